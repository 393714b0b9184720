//! What lies over the views: the palette, the letters of the jump, the list of running calls; and
//! what is done with the mouse.

use super::palette::Command;
use super::{List, Overlay, PaletteWindow, Pane, State};
use crate::tui::event::Effect;
use crate::tui::keys::{Action, Key, When};

impl State {
    /// Where keys of the view are looked up, whatever lies over it.
    pub fn places_below(&self) -> Vec<When> {
        self.stage_of(self.shell.view).places(self.shell.focus)
    }

    /// The letters of the panes that can be jumped to.
    pub fn letters(&self) -> Vec<(char, Pane)> {
        ('a'..='z').zip(self.shell.view.panes().iter().copied()).collect()
    }

    /// Opens a window, if the action is one that does.
    pub(super) fn open_window(&mut self, action: Action) -> bool {
        let overlay = match action {
            Action::Help => Overlay::Help(0),
            Action::Jump => Overlay::Jump,
            Action::Running => Overlay::Running(List::default()),
            Action::Palette => {
                let mut places = self.places_below();
                if !places.contains(&When::Anywhere) {
                    places.push(When::Anywhere);
                }
                Overlay::Palette(Box::new(PaletteWindow::of(&self.shell.keys, &places)))
            }
            _ => return false,
        };
        self.shell.overlay = Some(overlay);
        true
    }

    /// Takes a key that means something only in the window that is open; `None` when it does not.
    pub(super) fn pressed_in_window(&mut self, key: Key) -> Option<Vec<Effect>> {
        let (Some(Overlay::Jump), Key::Char(letter)) = (&self.shell.overlay, key) else {
            return None;
        };
        if !self.inbox.approvals.is_empty() || self.trust.window.is_some() {
            return None;
        }
        let (_, pane) = self.letters().into_iter().find(|(at, _)| *at == letter)?;
        self.shell.overlay = None;
        self.shell.focus = pane;
        Some(Vec::new())
    }

    /// Does what a key stands for in the window that is open; `None` when that means nothing there.
    pub(super) fn act_in_window(&mut self, action: Action) -> Option<Vec<Effect>> {
        match (&mut self.shell.overlay, action) {
            (Some(Overlay::Palette(palette)), Action::Open) => {
                let command = palette.chosen().map(|entry| entry.command);
                self.shell.overlay = None;
                Some(command.map(|command| self.command(command)).unwrap_or_default())
            }
            (Some(Overlay::Running(list)), Action::Stop) => {
                let at = list.chosen();
                let call = self.shell.calls.running().nth(at);
                let told = call.map(|call| (call.run, call.tool.clone()));
                Some(match told {
                    Some((run, tool)) => {
                        self.shell.say(format!("{tool} is told to stop"));
                        vec![Effect::Cancel(run)]
                    }
                    None => Vec::new(),
                })
            }
            _ => None,
        }
    }

    fn command(&mut self, command: Command) -> Vec<Effect> {
        match command {
            Command::Act(action) => self.act(action),
            Command::Colours(palette) => {
                self.shell.look.palette = palette;
                if self.shell.look.has_colour {
                    self.shell.say(format!("the {} colours", palette.name()));
                } else {
                    self.shell.say("colours are switched off for this terminal");
                }
                Vec::new()
            }
        }
    }

    /// Scrolls the window that is open; `false` when none is that scrolls.
    pub(super) fn scroll_window(&mut self, by: isize) -> bool {
        let running = self.shell.calls.running().count();
        match &mut self.shell.overlay {
            Some(Overlay::Help(line)) => *line = line.saturating_add_signed(by),
            Some(Overlay::Palette(palette)) => palette.step(by),
            Some(Overlay::Running(list)) => list.step(by, running),
            _ => return false,
        }
        true
    }

    /// The button of the mouse was pressed here.
    pub(super) fn clicked(&mut self, x: u16, y: u16) {
        if self.is_covered() {
            return;
        }
        let at =
            self.shell.panes_shown().into_iter().find(|(_, area)| area.contains((x, y).into()));
        let Some((pane, area)) = at else { return };
        self.shell.focus = pane;
        let inside = self.shell.inside(area);
        if inside.contains((x, y).into()) {
            let (stage, _) = self.stage();
            stage.point(pane, usize::from(y - inside.y), usize::from(inside.height));
        }
    }

    /// The wheel of the mouse was turned here.
    pub(super) fn wheeled(&mut self, x: u16, y: u16, by: isize) {
        /// Lines for each step of the wheel.
        const STEP: isize = 3;
        if self.is_covered() {
            return self.scroll(by * STEP);
        }
        let at =
            self.shell.panes_shown().into_iter().find(|(_, area)| area.contains((x, y).into()));
        if let Some((pane, _)) = at {
            let (stage, _) = self.stage();
            stage.scroll(pane, by * STEP);
        }
    }
}
