//! The view of the tools: the catalogue, one tool, its arguments, what calls of it gave.

use std::cell::Cell;

use super::viewer::Face;
use super::{Catalogue, Form, Line, Pane, Portrait, Shell, Side, Stage, Viewer};
use crate::model::{JsonObject, Origin, Source, ToolStatus};
use crate::tui::event::tools::{News, Wish};
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
    /// The chosen tool from one of its sides.
    pub portrait: Portrait,
    /// What calls of it gave.
    pub viewer: Viewer,
    /// How many rows below the list say something else; known when it was drawn.
    pub notice_height: Cell<u16>,
    /// The tool whose calls are looked at.
    subject: Option<String>,
    /// How many lines the detail and the result have room for.
    heights: (usize, usize),
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
            Action::Run => return Some(self.run(shell)),
            Action::Copy => return Some(self.copied(shell)),
            Action::ShowHistory => {
                let name = self.catalogue.chosen()?.name.clone();
                return Some(vec![Effect::Go(Errand::ShowHistory(name))]);
            }
            Action::CopyCommand => return Some(self.command_copied(shell)),
            Action::Turn => {
                self.viewer.turn();
                shell.say(format!("results as {}", self.viewer.face.title()));
            }
            Action::Detail => {
                self.portrait.turn();
                self.detail_scroll = 0;
                shell.say(format!("the tool: {}", self.portrait.side.title()));
            }
            Action::Export => return Some(self.saved(shell)),
            Action::Validate if self.form.is_some() => return Some(self.rehearse(shell)),
            Action::PreviousChoice | Action::NextChoice if shell.focus == Pane::Result => {
                let by = if action == Action::PreviousChoice { 1 } else { -1 };
                if let Some(tool) = self.subject.clone() {
                    self.viewer.step(by, &tool, &shell.calls);
                }
            }
            Action::Open if shell.focus == Pane::Result && self.viewer.face == Face::Tree => {
                self.viewer.tree.fold();
            }
            Action::Fill | Action::Open if self.is_untrusted() => {
                return Some(vec![Effect::Go(Errand::AskTrust)]);
            }
            Action::Fill | Action::Open => self.fill(shell),
            Action::ShowTrace => return Some(self.wire(shell)),
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
        let near = if focus == Pane::Result { vec![When::Result] } else { Vec::new() };
        [near, vec![When::Tools, When::Pane, When::Anywhere]].concat()
    }

    fn scroll(&mut self, focus: Pane, by: isize) {
        match focus {
            Pane::Catalogue => {
                let length = self.catalogue.found().len();
                self.catalogue.list.step(by, length);
                self.detail_scroll = 0;
            }
            Pane::Detail => {
                let most = match self.portrait.side {
                    // Made while it is drawn: whoever draws it knows where it ends.
                    Side::Detail => usize::MAX,
                    _ => self.portrait.text.len().saturating_sub(self.heights.0),
                };
                self.detail_scroll = self.detail_scroll.saturating_add_signed(by).min(most);
            }
            _ => {
                if let Some(tool) = &self.subject {
                    self.viewer.scroll(by, tool, self.heights.1);
                }
            }
        }
    }

    fn point(&mut self, pane: Pane, row: usize, height: usize) {
        match pane {
            // The first row is what is searched for.
            Pane::Catalogue if row > 0 => {
                let length = self.catalogue.found().len();
                let height = height.saturating_sub(1 + usize::from(self.notice_height.get()));
                if row > height {
                    return;
                }
                let first = self.catalogue.list.first(height, length);
                self.catalogue.list.choose(first + row - 1, length);
                self.detail_scroll = 0;
            }
            Pane::Result if self.viewer.face == Face::Tree => {
                let tree = &mut self.viewer.tree;
                let length = tree.len();
                tree.list.choose(tree.list.first(height, length) + row, length);
            }
            _ => {}
        }
    }

    fn form(&self, focus: Pane) -> Option<&Form> {
        self.form.as_ref().filter(|_| focus == Pane::Detail)
    }

    fn form_mut(&mut self, focus: Pane) -> Option<&mut Form> {
        self.form.as_mut().filter(|_| focus == Pane::Detail)
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

    /// The tool whose calls are looked at.
    pub fn subject(&self) -> Option<&str> {
        let chosen = || Some(self.catalogue.chosen()?.name.as_str());
        self.form.as_ref().map(|form| form.tool.as_str()).or_else(chosen)
    }

    /// Makes anew what is made once for many pictures, where it is not true any more.
    pub fn refresh(&mut self, shell: &Shell) {
        if self.subject.as_deref() != self.subject() {
            self.subject = self.subject().map(str::to_owned);
            self.viewer.reset();
        }
        self.portrait.refresh(self.catalogue.chosen().map(|row| &row.tool));
        self.viewer.refresh(self.subject.as_deref(), &shell.calls);
        let height = |pane: Pane| {
            let place = shell.panes_shown().into_iter().find(|(shown, _)| *shown == pane);
            place.map_or(0, |(_, area)| usize::from(shell.inside(area).height))
        };
        self.heights = (height(Pane::Detail), height(Pane::Result));
    }

    /// Takes in what came of a wish.
    pub fn hear(&mut self, news: News) {
        match news {
            News::Rehearsed { tool, rehearsal } => self.viewer.rehearsed(tool, &rehearsal),
        }
    }

    /// Makes a call.
    pub fn call(&mut self, tool: String, arguments: JsonObject, shell: &mut Shell) -> Effect {
        let run = shell.calls.begin(tool.clone(), arguments.clone());
        self.viewer.reset();
        Effect::Call { run, tool, arguments }
    }

    /// Whether the chosen tool does nothing until its project is trusted.
    fn is_untrusted(&self) -> bool {
        self.catalogue.chosen().is_some_and(|row| row.tool.status == ToolStatus::Untrusted)
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
        if !form.is_ready() {
            return Vec::new();
        }
        let (tool, arguments) = (form.tool.clone(), form.arguments());
        shell.focus = Pane::Detail;
        vec![self.call(tool, arguments, shell)]
    }

    fn rehearse(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some(form) = &self.form else { return Vec::new() };
        shell.say("asking what would be sent");
        let (tool, arguments) = (form.tool.clone(), form.arguments());
        vec![Effect::Tools(Wish::Rehearse { tool, arguments })]
    }

    fn saved(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let call = self.subject().and_then(|tool| self.viewer.call(tool, &shell.calls));
        let saved = call.and_then(|call| Some((call, self.viewer.saved(call)?)));
        let Some((call, what)) = saved else {
            shell.say_bad("there is no result to save");
            return Vec::new();
        };
        let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let name: String = call.tool.chars().take(80).map(safe).collect();
        let id = call.id.as_ref().map_or("", |id| id.0.as_str());
        let id: String = id.chars().rev().filter(char::is_ascii_alphanumeric).take(8).collect();
        let id: String = id.chars().rev().collect();
        let stem = format!("{}-{id}", name.trim_start_matches('.'));
        vec![Effect::Tools(Wish::Save { stem, what: Box::new(what) })]
    }

    fn benched(&self) -> Vec<Effect> {
        let Some(row) = self.catalogue.chosen() else { return Vec::new() };
        let tool = row.name.clone();
        vec![Effect::Go(Errand::Bench { tool, arguments: None })]
    }

    fn copied(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some(row) = self.catalogue.chosen() else { return Vec::new() };
        let shown = self.viewer.call(self.subject().unwrap_or(&row.name), &shell.calls);
        let result = shown.and_then(|call| call.outcome.as_ref());
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
            Some(arguments) => crate::host::command::call(&row.name, arguments),
            None => crate::host::example::command_line(&row.tool),
        };
        shell.say("copied as a command");
        vec![Effect::Copy(line)]
    }

    /// Shows the wire of the newest call of the chosen tool, or of its server.
    fn wire(&self, shell: &mut Shell) -> Vec<Effect> {
        let Some(row) = self.catalogue.chosen() else { return Vec::new() };
        let call = shell.calls.newest_of(&row.name).and_then(|call| call.id.clone());
        let errand = match (&row.tool.origin, row.tool.source, call) {
            (_, Source::Mcp, Some(call)) => Errand::ShowCall(call),
            (Origin::Server(server), _, _) => Errand::ShowTrace(server.clone()),
            _ => {
                shell.say(format!("{} has no wire: it runs here", row.name));
                return Vec::new();
            }
        };
        vec![Effect::Go(errand)]
    }

    fn back(&mut self, shell: &mut Shell) -> Option<Vec<Effect>> {
        if self.catalogue.is_filtering {
            self.catalogue.is_filtering = false;
        } else if self.viewer.rehearsal.take().is_some() {
            self.viewer.scroll = 0;
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
