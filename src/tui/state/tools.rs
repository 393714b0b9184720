//! The view of the tools: the catalogue, one tool, its arguments, what calls of it gave.

use super::{Catalogue, Form, Line, Pane, Shell, Stage};
use crate::model::JsonObject;
use crate::tui::event::{Effect, Errand};
use crate::tui::keys::{Action, When};

/// The view of the tools.
#[derive(Debug, Default)]
pub struct Tools {
    /// The tools of all sources.
    pub catalogue: Catalogue,
    /// The arguments that are being filled in.
    pub form: Option<Form>,
    /// How far the detail is scrolled.
    pub detail_scroll: usize,
    /// How far the result is scrolled.
    pub result_scroll: usize,
}

impl Stage for Tools {
    fn act(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        match action {
            Action::Filter => {
                shell.focus = Pane::Catalogue;
                self.catalogue.is_filtering = true;
            }
            Action::Sort => {
                self.catalogue.sort_next();
                shell.say(format!("sorted by {}", self.catalogue.sort.title()));
            }
            Action::Fill => self.fill(shell),
            Action::Run => return Some(self.run(shell)),
            Action::Copy => return Some(self.copied(shell)),
            Action::CopyCommand => return Some(self.command_copied(shell)),
            Action::Back => return self.back(shell),
            Action::Bench => return Some(self.benched()),
            other => {
                let done = self.form.as_mut().is_some_and(|form| form.act(other));
                return done.then(Vec::new);
            }
        }
        Some(Vec::new())
    }

    fn places(&self, focus: Pane) -> Vec<When> {
        if self.form.is_some() && focus == Pane::Detail {
            return vec![When::Form];
        }
        if self.catalogue.is_filtering {
            return vec![When::Text];
        }
        vec![When::Tools, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, focus: Pane, by: isize) {
        match focus {
            Pane::Catalogue => {
                let length = self.catalogue.found().len();
                self.catalogue.list.step(by, length);
                (self.detail_scroll, self.result_scroll) = (0, 0);
            }
            Pane::Detail => self.detail_scroll = self.detail_scroll.saturating_add_signed(by),
            _ => self.result_scroll = self.result_scroll.saturating_add_signed(by),
        }
    }

    fn line(&mut self, focus: Pane) -> Option<&mut Line> {
        if self.catalogue.is_filtering {
            return Some(&mut self.catalogue.filter);
        }
        match &mut self.form {
            Some(form) if focus == Pane::Detail => form.line(),
            _ => None,
        }
    }

    fn rewritten(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        if self.catalogue.is_filtering {
            self.catalogue.refilter();
            self.detail_scroll = 0;
        }
        if let Some(form) = &mut self.form {
            form.rewritten();
        }
        Vec::new()
    }
}

impl Tools {
    /// Searches for this.
    pub fn find(&mut self, words: &str) {
        self.catalogue.filter = Line::of(words);
        self.catalogue.refilter();
    }

    /// Chooses the tool of this name, whatever was searched for; `false` when there is none.
    pub fn choose(&mut self, tool: &str) -> bool {
        if !self.catalogue.choose(tool) {
            self.find("");
        }
        self.catalogue.choose(tool)
    }

    /// Fills in the arguments of the tool of this name.
    pub fn fill_named(&mut self, tool: &str, known: Option<&JsonObject>, shell: &mut Shell) {
        if !self.choose(tool) {
            return shell.say_bad(format!("{tool} is not in the catalogue"));
        }
        self.fill(shell);
        if let (Some(known), Some(row), true) =
            (known, self.catalogue.chosen(), self.form.is_some())
        {
            self.form = Some(Form::of(&row.tool, Some(known)));
        }
    }

    /// Makes a call.
    pub fn call(&mut self, tool: String, arguments: JsonObject, shell: &mut Shell) -> Effect {
        let run = shell.calls.begin(tool.clone(), arguments.clone());
        self.result_scroll = 0;
        Effect::Call { run, tool, arguments }
    }

    fn fill(&mut self, shell: &mut Shell) {
        let Some(row) = self.catalogue.chosen() else { return };
        if let Some(fault) = &row.tool.unavailable {
            let why = format!("{} cannot be called: {}", row.name, fault.message());
            return shell.say_bad(why);
        }
        self.form = Some(Form::of(&row.tool, shell.calls.arguments_of(&row.name)));
        shell.focus = Pane::Detail;
    }

    fn run(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some(form) = &mut self.form else { return Vec::new() };
        if let Some(missing) = form.missing() {
            form.at = missing;
            form.problem =
                form.fields.get(missing).map(|field| format!("{} is required", field.key));
            return Vec::new();
        }
        let (tool, arguments) = (form.tool.clone(), form.arguments());
        shell.focus = Pane::Detail;
        vec![self.call(tool, arguments, shell)]
    }

    fn benched(&self) -> Vec<Effect> {
        let Some(row) = self.catalogue.chosen() else { return Vec::new() };
        let tool = row.name.clone();
        vec![Effect::Go(Errand::Bench { tool, arguments: None })]
    }

    fn copied(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some(row) = self.catalogue.chosen() else { return Vec::new() };
        let result = shell.calls.newest_of(&row.name).and_then(|call| call.outcome.as_ref());
        let text = match (shell.focus, result) {
            (Pane::Result, Some(Ok(outcome))) => match &outcome.result {
                Ok(result) => result.structured.as_ref().unwrap_or(&result.output).to_string(),
                Err(fault) => fault.to_string(),
            },
            (Pane::Result, Some(Err(fault))) => fault.to_string(),
            _ => row.name.clone(),
        };
        shell.say("copied");
        vec![Effect::Copy(text)]
    }

    fn command_copied(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some(row) = self.catalogue.chosen() else { return Vec::new() };
        let line = match shell.calls.arguments_of(&row.name) {
            Some(arguments) => {
                let json = serde_json::Value::Object(arguments.clone()).to_string();
                format!("toolhost call {} '{}'", row.name, json.replace('\'', r"'\''"))
            }
            None => crate::host::example::command_line(&row.tool),
        };
        shell.say("copied as a command");
        vec![Effect::Copy(line)]
    }

    fn back(&mut self, shell: &mut Shell) -> Option<Vec<Effect>> {
        if self.catalogue.is_filtering {
            self.catalogue.is_filtering = false;
        } else if self.form.take().is_some() {
            shell.focus = Pane::Catalogue;
        } else if !shell.is_zoomed && !self.catalogue.filter.text().is_empty() {
            self.find("");
        } else {
            return None;
        }
        Some(Vec::new())
    }
}
