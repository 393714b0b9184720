//! What is done with calls of the past.
//!
//! Owns: which arguments are good enough to be sent again. Never does: send what stands for a secret.

use super::{History, Pane, Shell};
use crate::history::Entry;
use crate::history::read::KeptResult;
use crate::host::{command, replay};
use crate::model::JsonObject;
use crate::tui::event::history::Wish;
use crate::tui::event::{Effect, Errand};
use crate::tui::keys::Action;

impl History {
    /// Does something with the chosen call, as soon as it was read.
    pub(super) fn with_entry(&mut self, action: Action, shell: &mut Shell) -> Vec<Effect> {
        let Some(entry) = self.entry() else {
            self.then = self.chosen().is_some().then_some(action);
            return self.ask();
        };
        let Some(arguments) = &entry.arguments else {
            shell.say_bad("the arguments of this call were too large to be kept");
            return Vec::new();
        };
        if action == Action::CopyCommand {
            let is_whole = replay::hidden(arguments).is_empty();
            let line = if is_whole {
                command::call(&entry.tool, arguments)
            } else {
                command::replay(&entry.id)
            };
            shell.say("copied as a command");
            return vec![Effect::Copy(line)];
        }
        if matches!(self.changed, Some(Ok(Some(true)))) {
            shell.say(format!("the definition of {} changed since this call", entry.tool));
        }
        let errand = again(entry, arguments, action == Action::ReplayEdited, shell);
        vec![Effect::Go(errand)]
    }

    pub(super) fn mark(&mut self, shell: &mut Shell) {
        let Some(call) = self.chosen() else { return };
        let id = call.id.clone();
        if self.marked.take_if(|marked| *marked == id).is_none() {
            self.marked = Some(id);
            shell.say("marked; d on another call compares the two");
        }
    }

    pub(super) fn diff(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some(call) = self.chosen() else { return Vec::new() };
        let before = || {
            let older = self.found().skip(self.list.chosen() + 1);
            older.filter(|older| older.tool == call.tool).map(|older| older.id.clone()).next()
        };
        let other = self.marked.clone().filter(|marked| *marked != call.id).or_else(before);
        let Some(other) = other else {
            shell.say_bad("nothing to compare with: m marks a call, d on another compares the two");
            return Vec::new();
        };
        vec![Effect::History(Wish::Compare(call.id.clone(), other))]
    }

    pub(super) fn copied(&self, shell: &mut Shell) -> Vec<Effect> {
        let result = || self.entry()?.result.as_ref().map(KeptResult::text);
        let text = match shell.focus {
            Pane::Entry if self.is_comparing() => Some(self.page.to_text()),
            Pane::Entry => result().or_else(|| Some(self.page.to_text())),
            _ => self.chosen().map(|call| call.id.clone()),
        };
        let Some(text) = text else { return Vec::new() };
        shell.say("copied");
        vec![Effect::Copy(text)]
    }

    pub(super) fn exported(&self, shell: &mut Shell) -> Vec<Effect> {
        let ids: Vec<String> = self.found().map(|call| call.id.clone()).collect();
        if ids.is_empty() {
            shell.say_bad("there is nothing to write");
            return Vec::new();
        }
        vec![Effect::History(Wish::Export(ids))]
    }
}

/// How a call is made again. What was secret was not kept: it has to be filled in.
fn again(entry: &Entry, arguments: &JsonObject, edited: bool, shell: &mut Shell) -> Errand {
    let (arguments, missing) = replay::without_hidden(arguments);
    let tool = entry.tool.clone();
    if missing.is_empty() && !edited {
        return Errand::Call { tool, arguments };
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        shell.say(format!("secret and therefore not kept, to be filled in: {missing}"));
    }
    Errand::Fill { tool, arguments: Some(arguments) }
}
