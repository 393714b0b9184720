//! Overlays: command palette, list of running calls; and mouse input.

use super::palette::PaletteCommand;
use super::{AppState, ListCursor, Overlay, PaletteWindow, ScrollPosition};
use crate::tui::event::{AppEffect, Navigation};
use crate::tui::keys::{Action, KeyContext};

impl AppState {
    pub fn view_key_contexts(&self) -> Vec<KeyContext> {
        self.view_state(self.context.view).key_contexts(self.context.focus)
    }

    /// Opens a window, if the action is one that does.
    pub(super) fn open_window(&mut self, action: Action) -> bool {
        let overlay = match action {
            Action::Help => Overlay::Help(ScrollPosition::default()),
            Action::Running => Overlay::Running(ListCursor::default()),
            Action::Problems if self.configuration_problems.is_empty() => {
                self.context.show_status("no problems in the configuration files");
                return true;
            }
            Action::Problems => {
                self.configuration_problems.text.scroll_to_top();
                Overlay::Problems
            }
            Action::Palette => {
                let mut places = self.view_key_contexts();
                if !places.contains(&KeyContext::Anywhere) {
                    places.push(KeyContext::Anywhere);
                }
                Overlay::Palette(Box::new(PaletteWindow::of(
                    &self.context.keys,
                    &places,
                    self.tools.catalogue.rows(),
                )))
            }
            _ => return false,
        };
        self.context.overlay = Some(overlay);
        true
    }

    /// Performs an action in the open window; `None` when the window has no use for it.
    pub(super) fn act_in_window(&mut self, action: Action) -> Option<Vec<AppEffect>> {
        match (&mut self.context.overlay, action) {
            (Some(Overlay::Palette(palette)), Action::Open) => {
                let command = palette.chosen().map(|entry| entry.command.clone());
                self.context.overlay = None;
                Some(command.map(|command| self.command(command)).unwrap_or_default())
            }
            (Some(Overlay::SaveCall(_)), Action::Open) => Some(self.context.save_named_call()),
            (Some(Overlay::Running(list)), Action::Stop) => {
                let at = list.chosen();
                let call = self.context.calls.running().nth(at);
                let told = call.map(|call| (call.run, call.tool.clone()));
                Some(match told {
                    Some((run, tool)) => {
                        self.context.show_status(format!("cancelling {tool}…"));
                        vec![AppEffect::Cancel(run)]
                    }
                    None => Vec::new(),
                })
            }
            (Some(Overlay::Problems), Action::Copy) => {
                let text = self.configuration_problems.to_text().to_owned();
                Some(self.context.copy("problems", text))
            }
            (Some(Overlay::Pin), Action::Yes) => {
                let window = self.pin_window.as_ref()?;
                Some(window.accept(&mut self.context))
            }
            _ => None,
        }
    }

    fn command(&mut self, command: PaletteCommand) -> Vec<AppEffect> {
        match command {
            PaletteCommand::Action(action) => self.act(action),
            PaletteCommand::Tool(tool) => {
                vec![AppEffect::Navigate(Navigation::FillArguments { tool, arguments: None })]
            }
            PaletteCommand::Colours(palette) => {
                self.context.appearance.palette = palette;
                if self.context.appearance.has_colour {
                    self.context.show_status(format!("using the {} colours", palette.name()));
                } else {
                    self.context.show_status("colours are off in this terminal");
                }
                Vec::new()
            }
        }
    }

    /// Scrolls the window that is open; `false` when none is that scrolls.
    pub(super) fn scroll_window(&mut self, by: isize) -> bool {
        let running = self.context.calls.running().count();
        match &mut self.context.overlay {
            Some(Overlay::Help(position)) => position.scroll(by),
            Some(Overlay::Palette(palette)) => palette.step(by),
            Some(Overlay::Running(list)) => list.step(by, running),
            Some(Overlay::Problems) => self.configuration_problems.text.scroll(by),
            Some(Overlay::Pin) => {
                if let Some(window) = &mut self.pin_window {
                    window.scroll(by);
                }
            }
            _ => return false,
        }
        true
    }

    /// The button of the mouse was pressed here.
    pub(super) fn clicked(&mut self, x: u16, y: u16) -> Vec<AppEffect> {
        if self.has_overlay() {
            return Vec::new();
        }
        let (width, height) = self.context.size;
        let [_, body, ..] =
            crate::tui::layout::frame(ratatui::layout::Rect::new(0, 0, width, height));
        if y + 1 == body.y {
            let tabs = self.context.tabs.borrow();
            let view = tabs.iter().find(|(columns, _)| columns.contains(&x)).map(|(_, view)| *view);
            drop(tabs);
            return view.map(|view| self.show(view)).unwrap_or_default();
        }
        let at =
            self.context.panes_shown().into_iter().find(|(_, area)| area.contains((x, y).into()));
        let Some((pane, area)) = at else { return Vec::new() };
        self.context.focus = pane;
        let inside = self.context.inside(area);
        if inside.contains((x, y).into()) {
            let (view, _) = self.active_view();
            view.on_click(pane, usize::from(y - inside.y), usize::from(inside.height));
        }
        Vec::new()
    }

    pub(super) fn wheeled(&mut self, x: u16, y: u16, by: isize) {
        const STEP: isize = 3;
        if self.has_overlay() {
            return self.scroll(by * STEP);
        }
        let at =
            self.context.panes_shown().into_iter().find(|(_, area)| area.contains((x, y).into()));
        if let Some((pane, _)) = at {
            let (view, _) = self.active_view();
            view.scroll(pane, by * STEP);
        }
    }
}
