//! Actions on recorded calls: copy, edit, rerun, compare, save.

use super::{AppContext, HistoryView, Pane};
use crate::history::HistoryEntry;
use crate::history::read::StoredResult;
use crate::host::{command, rerun};
use crate::model::JsonObject;
use crate::tui::event::history::HistoryEffect;
use crate::tui::event::{AppEffect, Navigation};
use crate::tui::keys::Action;

impl HistoryView {
    /// Does something with the chosen call, as soon as it was read.
    pub(super) fn act_on_entry(
        &mut self,
        action: Action,
        context: &mut AppContext,
    ) -> Vec<AppEffect> {
        let Some(entry) = self.entry() else {
            self.pending_action = self.chosen().is_some().then_some(action);
            return self.next_request();
        };
        let Some(arguments) = &entry.arguments else {
            context.show_error("the arguments of this call were too large to keep");
            return Vec::new();
        };
        if action == Action::CopyCommand {
            let is_whole = rerun::masked_paths(arguments).is_empty();
            let mut line = if is_whole {
                command::call(&entry.tool, arguments)
            } else {
                command::rerun(&entry.id)
            };
            line.extend(entry.command_end.iter().flat_map(|words| [" ", words]));
            return context.copy("command", line);
        }
        if matches!(self.changed, Some(Ok(Some(true)))) {
            context.show_status(format!(
                "the definition of {} has changed since this call",
                entry.tool
            ));
        }
        let navigation = rerun(entry, arguments, action == Action::RerunEdited, context);
        vec![AppEffect::Navigate(navigation)]
    }

    pub(super) fn toggle_mark(&mut self, context: &mut AppContext) {
        let Some(call) = self.chosen() else { return };
        let id = call.id.clone();
        if self.marked.take_if(|marked| *marked == id).is_none() {
            self.marked = Some(id);
            context.show_status("marked; press d on another call to compare");
        }
    }

    pub(super) fn diff(&mut self, context: &mut AppContext) -> Vec<AppEffect> {
        let Some(call) = self.chosen() else { return Vec::new() };
        let before = || {
            let older = self.found().skip(self.list.chosen() + 1);
            older.filter(|older| older.tool == call.tool).map(|older| older.id.clone()).next()
        };
        let other = self.marked.clone().filter(|marked| *marked != call.id).or_else(before);
        let Some(other) = other else {
            context.show_error("nothing to compare with: mark a call with m first");
            return Vec::new();
        };
        vec![AppEffect::History(HistoryEffect::Compare(call.id.clone(), other))]
    }

    pub(super) fn copy_selection(&self, context: &mut AppContext) -> Vec<AppEffect> {
        let result = || self.entry()?.result.as_ref().map(StoredResult::text);
        let details = || self.details.to_text();
        let (what, text) = match context.focus {
            Pane::Entry if self.is_comparing() => ("diff", Some(details())),
            Pane::Entry => match result() {
                Some(text) => ("result", Some(text)),
                None => ("call", Some(details())),
            },
            _ => ("call ID", self.chosen().map(|call| call.id.clone())),
        };
        text.map(|text| context.copy(what, text)).unwrap_or_default()
    }

    pub(super) fn export_matches(&self, context: &mut AppContext) -> Vec<AppEffect> {
        let ids: Vec<String> = self.found().map(|call| call.id.clone()).collect();
        if ids.is_empty() {
            context.show_error("nothing to export");
            return Vec::new();
        }
        vec![AppEffect::History(HistoryEffect::Export(ids))]
    }
}

/// How a call is made again. What was secret was not kept: it has to be filled in.
fn rerun(
    entry: &HistoryEntry,
    arguments: &JsonObject,
    edited: bool,
    context: &mut AppContext,
) -> Navigation {
    let (arguments, missing) = rerun::without_masked(arguments);
    let tool = entry.tool.clone();
    if missing.is_empty() && !edited {
        return Navigation::Call { tool, arguments };
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        context.show_status(format!("secrets are not kept; fill in: {missing}"));
    }
    Navigation::FillArguments { tool, arguments: Some(arguments) }
}
