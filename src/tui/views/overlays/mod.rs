//! Overlays: help, command palette, list of running calls; and mouse input.

pub mod help;
pub mod palette;

use crate::catalogue::pins::PinReportState;
use crate::model::{Diagnostic, check_name};
use crate::present::configuration;
use crate::tui::draw::{self, tab_columns};
use crate::tui::layout::{self, page_size};
use crate::tui::prelude::*;
use crate::tui::views::inbox::{self, approval};
use crate::tui::views::overlays::palette::PaletteCommand;
use crate::tui::views::pins::PinWindow;
use crate::tui::views::{result, tools, trust};
use crate::tui::widgets::filter::Picker;

impl AppState {
    pub fn open_window(&mut self, action: Action) -> bool {
        let overlay = match action {
            Action::Help => Overlay::Help(Box::default()),
            Action::Running => Overlay::Running(ListCursor::default()),
            Action::Problems if self.configuration_problems.is_empty() => {
                self.context.show_status("no problems in the configuration files");
                return true;
            }
            Action::Problems => {
                self.configuration_problems.text.position.reset();
                Overlay::Problems
            }
            Action::Palette => {
                let mut places = self.view_key_contexts();
                if !places.contains(&&ANYWHERE) {
                    places.push(&ANYWHERE);
                }
                let entries = palette::entries(self, &places);
                Overlay::Palette(Box::new(Picker::of(entries)))
            }
            _ => return false,
        };
        self.context.overlay = Some(overlay);
        true
    }

    /// Performs an action in the open window; `false` when the window has no use for it.
    pub fn act_in_window(&mut self, action: Action) -> bool {
        match (&mut self.context.overlay, action) {
            (Some(Overlay::Palette(palette)), Action::Open) => {
                let command = palette.chosen().map(|entry| entry.command.clone());
                self.context.overlay = None;
                if let Some(command) = command {
                    self.command(command);
                }
            }
            (Some(Overlay::Help(window)), Action::Filter) => window.filter.start(),
            (Some(Overlay::Help(window)), Action::Open) if window.filter.is_typed => {
                window.filter.is_typed = false;
            }
            (Some(Overlay::Help(window)), Action::Back) if window.filter.is_shown() => {
                **window = help::HelpWindow::default();
            }
            (Some(Overlay::SaveCall(_)), Action::Open) => self.context.save_named_call(),
            (Some(Overlay::Running(list)), Action::Stop) => {
                let at = list.chosen();
                let call = self.context.calls.running().nth(at);
                if let Some((run, tool)) = call.map(|call| (call.run, call.tool.clone())) {
                    self.context.show_status(format!("cancelling {tool}…"));
                    self.context.emit(AppEffect::Cancel(run));
                }
            }
            (Some(Overlay::Problems), Action::Copy) => {
                self.context.copy("problems", self.configuration_problems.text.to_text());
            }
            (Some(Overlay::Pin), Action::Yes) => {
                if let Some(window) = &self.pin_window {
                    window.accept(&mut self.context);
                }
            }
            (Some(Overlay::Question(_)), Action::Show(view)) => {
                self.context.overlay = None;
                self.show(view);
            }
            (Some(Overlay::Question(id)), Action::Open) => {
                let id = *id;
                self.context.overlay = None;
                self.context.emit(Navigation::OpenQuestion(id));
            }
            _ => return false,
        }
        true
    }

    fn command(&mut self, command: PaletteCommand) {
        match command {
            PaletteCommand::Action(action) => self.act(action),
            PaletteCommand::Tool(tool) => {
                self.context.emit(Navigation::FillArguments { tool, arguments: None });
            }
            PaletteCommand::Server(server) => {
                self.servers.choose(&server);
                self.show(ViewId::Servers);
            }
            PaletteCommand::Colours(palette) => {
                self.context.appearance.palette = palette;
                self.context.show_status(if self.context.appearance.has_colour {
                    format!("using the {} colours", palette.name())
                } else {
                    "colours are off in this terminal".to_owned()
                });
            }
        }
    }

    /// The button of the mouse was pressed here.
    pub fn clicked(&mut self, x: u16, y: u16) {
        if self.has_overlay() {
            return;
        }
        let (width, height) = self.context.size;
        let [_, body, ..] = layout::frame(Rect::new(0, 0, width, height));
        if y + 1 == body.y {
            let mut tabs = tab_columns(self, width, y > 0).into_iter();
            if let Some((_, view, _)) = tabs.find(|(columns, ..)| columns.contains(&usize::from(x)))
            {
                self.show(view);
            }
            return;
        }
        let Some(pane) = self.context.pane_at(x, y) else { return };
        let steps = draw::lists(self).into_iter().find_map(|list| list.steps_to((x, y).into()));
        self.context.focus = pane;
        if let Some(steps) = steps.filter(|steps| *steps != 0) {
            let (view, context) = self.active_view();
            view.scroll(pane, steps, context);
        }
    }

    pub fn wheeled(&mut self, x: u16, y: u16, by: isize) {
        const STEP: isize = 3;
        if self.has_overlay() {
            return self.scroll(by * STEP);
        }
        let Some(pane) = self.context.pane_at(x, y) else { return };
        let (view, context) = self.active_view();
        view.scroll(pane, by * STEP, context);
    }
}

pub fn draw(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    if let Some(pending) = state.inbox.approvals.front() {
        return approval::draw(pen, state, pending, area);
    }
    if let Some(window) = &state.trust.window {
        return trust::draw(pen, state, window, area);
    }
    match &state.context.overlay {
        Some(Overlay::Palette(window)) => palette::draw(pen, window, area),
        Some(Overlay::Running(list)) => result::draw::list(pen, state, *list, area),
        Some(Overlay::Help(window)) => help::draw(pen, state, window, area),
        Some(Overlay::ConfirmQuit) => {
            let running = state.context.calls.running().count();
            let calls = plural(running, "call", "calls");
            let (title, text) = match (running, state.bench.is_running()) {
                (0, true) => ("A benchmark is running", "Quitting stops it.".to_owned()),
                (0, false) if state.tools.has_drafts() => {
                    ("Quit?", "What is filled in would be lost.".to_owned())
                }
                (0, false) => ("Quit?", "Nothing is running.".to_owned()),
                (_, true) => (
                    "Calls and a benchmark are running",
                    format!("Quitting stops the benchmark and {calls}."),
                ),
                _ => ("Calls are running", format!("Quitting cancels {calls}.")),
            };
            let inner = pen.open_over(area, (52, 5), title);
            let lines = vec![pen.line(Role::Plain, text), pen.line(Role::Key, "y quit   Esc stay")];
            pen.paragraph(inner, &lines);
        }
        Some(Overlay::Problems) => problems(pen, state, area),
        Some(Overlay::Pin) => {
            if let Some(window) = &state.pin_window {
                pin(pen, state, window, area);
            }
        }
        Some(Overlay::SaveCall(window)) => save_call(pen, window, area),
        Some(Overlay::Question(id)) => inbox::draw::window(pen, state, *id, area),
        None => {}
    }
}

pub fn problems(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let title = format!("Configuration  {}", state.configuration_problems.summary());
    let inner = pen.open_over(area, page_size(area), &title);
    pen.text(&state.configuration_problems.text, inner);
}

pub fn pin(pen: &mut Pen<'_>, state: &AppState, window: &PinWindow, area: Rect) {
    let title = format!("Pin  {}", window.review.tool.name);
    let inner = pen.open_over(area, page_size(area), &title);
    let question = match window.review.tool.state {
        PinReportState::New => "Pin this definition? [y/N]",
        _ => "Accept all of these changes? [y/N]",
    };
    let command = format!("toolhost pin {}", window.review.tool.name);
    window.text.draw(pen, inner, state.context.now, |readiness| {
        if window.is_question() {
            readiness.line(question, &command)
        } else {
            (Role::Dim, "Esc closes".to_owned())
        }
    });
}

pub fn save_call(pen: &mut Pen<'_>, window: &SaveCallWindow, area: Rect) {
    let inner = pen.open_over(area, (64, 5), &format!("Save call  {}", window.tool));
    let above = pen.input_row(inner, "name  ", &window.name);
    let name = Some(window.name.text().trim()).filter(|name| !name.is_empty()).unwrap_or("NAME");
    let (role, text) = match &window.error {
        Some(error) => (Role::Error, error.clone()),
        None => (Role::Dim, format!("run it again: toolhost run {name}")),
    };
    pen.put(pen.line(role, text), above);
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SaveCallWindow {
    pub name: TextInput,
    pub tool: String,
    pub arguments: JsonObject,
    /// Why the typed name cannot be used; `None` until Enter found something.
    pub error: Option<String>,
}

impl SaveCallWindow {
    pub fn of(tool: &str, arguments: JsonObject) -> Self {
        Self { tool: tool.to_owned(), arguments, ..Self::default() }
    }
}

impl AppContext {
    /// Saves the call that is being named, and closes its window; a name that cannot be used is
    /// said in the window.
    pub fn save_named_call(&mut self) {
        let Some(Overlay::SaveCall(window)) = &mut self.overlay else { return };
        let name = window.name.text().trim().to_owned();
        if check_name(&name).is_err() {
            window.error = Some("use letters, digits, '_', '.' and '-'".to_owned());
            return;
        }
        let SaveCallWindow { tool, arguments, .. } = std::mem::take(&mut **window);
        self.overlay = None;
        self.emit(tools::tasks::save_call(name, tool, arguments));
    }
}

/// What the last reading of the files found wrong.
#[derive(Debug, Default)]
pub struct ConfigurationProblems {
    /// The findings as the window shows them, in the order of the files.
    pub text: ScrollText,
    errors: usize,
    warnings: usize,
}

impl ConfigurationProblems {
    pub fn of(diagnostics: &[Diagnostic]) -> Self {
        let mut text = ScrollText::with_indent(4);
        text.page(&configuration::findings(diagnostics));
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
        Self { text, errors, warnings: diagnostics.len() - errors }
    }

    pub fn is_empty(&self) -> bool {
        self.errors + self.warnings == 0
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub fn summary(&self) -> String {
        configuration::diagnostic_counts(self.errors, self.warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SourceLocation;

    #[test]
    fn each_finding_has_its_place_and_its_hint() {
        let file = Arc::new("tools.yaml".into());
        let place = SourceLocation { file, line: 3, column: 7, text: Arc::from("") };
        let problems = ConfigurationProblems::of(&[
            Diagnostic::error("unknown key 'x'")
                .with_location(place)
                .with_hint("did you mean 'y'?"),
            Diagnostic::warning("no place"),
        ]);
        assert_eq!(problems.summary(), "1 error and 1 warning");
        let shown = problems.text.to_text();
        for part in ["tools.yaml:3:7: error: unknown key 'x'", "did you mean", "warning: no place"]
        {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(ConfigurationProblems::default().is_empty());
    }
}
