//! The tools view: the catalogue, one tool, its arguments, and its results.

pub mod detail;
pub mod draw;
pub mod list;
pub mod tasks;

use std::collections::HashMap;

use serde_json::Value;

use crate::host::validate::Violation;
use crate::model::{Origin, ToolStatus};
use crate::tui::calls::ConsoleCall;
use crate::tui::event::ConsoleCallId;
use crate::tui::keys::KeyPress::{Char, Enter, Left, Right};
use crate::tui::keys::TEXT;
use crate::tui::prelude::*;
use crate::tui::views::form::FORM;
use crate::tui::views::overlays::SaveCallWindow;
use crate::tui::views::pins;
use crate::tui::views::result::presentation::{FilterInput, ResultFormat, result_of};
use crate::tui::views::result::{ResultInput, ResultViewer};
use crate::tui::views::tools::detail::{DetailTab, ToolDetail};
use crate::tui::views::tools::list::ToolListState;
use crate::tui::widgets::table::ResultTable;
use crate::util::jq::JqError;

#[derive(Debug, Default)]
pub struct ToolsView {
    pub catalogue: ToolListState,
    pub form: Option<SchemaForm>,
    /// Forms that were left with something filled in, by their tools.
    drafts: HashMap<String, SchemaForm>,
    pub detail: ToolDetail,
    pub viewer: ResultViewer,
    subject: Option<String>,
    /// How results are shown, of tools that were looked at before.
    formats: HashMap<String, ResultFormat>,
}

impl View for ToolsView {
    fn act(&mut self, action: Action, context: &mut AppContext) -> bool {
        let (in_list, in_result) =
            (context.focus == Pane::Catalogue, context.focus == Pane::Result);
        match action {
            Action::Filter if in_result => self.viewer.typing = Some(ResultInput::Search),
            Action::Query if in_result => {
                self.viewer.typing = Some(ResultInput::Filter);
                self.request_filter(context);
            }
            Action::NextMatch => self.viewer.step_match(1),
            Action::PreviousMatch => self.viewer.step_match(-1),
            Action::Diff if in_result => {
                let tool = self.subject.clone().unwrap_or_default();
                match self.viewer.toggle_difference(&tool, &context.calls) {
                    Some(tasks) => context.effects.extend(tasks.into_iter().map(AppEffect::Task)),
                    None => context.show_error("nothing to compare with: call it twice first"),
                }
            }
            Action::CopyPath => match self.viewer.shown().chosen_path() {
                Some(path) => context.copy("path", path),
                None => context.show_error("paths are copied from the JSON tree: press v"),
            },
            Action::Sort => {
                if let Some(table) = self.focused_table(context) {
                    context.show_status(table.sort());
                } else {
                    self.catalogue.sort_next();
                    context.show_status(format!("sorted by {}", <&str>::from(self.catalogue.sort)));
                }
            }
            Action::Run => self.run(context),
            Action::Copy => self.copy_selection(context),
            Action::CopyCommand => self.copy_command(context),
            Action::ChangeFormat => {
                self.viewer.next_format();
                context.show_status(format!("showing results as {}", self.viewer.format.title()));
            }
            Action::Detail => {
                self.detail.tab = after(DetailTab::VARIANTS, self.detail.tab);
                self.detail.scroll_to_top();
                let tab: &str = self.detail.tab.into();
                context.show_status(format!("showing {tab}"));
            }
            Action::Export => self.save_result(context),
            Action::SaveCall => self.name_call(context),
            Action::Validate if self.form.is_some() => self.dry_run(context),
            Action::PreviousColumn | Action::NextColumn => {
                if let Some(table) = self.focused_table(context) {
                    table.step_column(if action == Action::PreviousColumn { -1 } else { 1 });
                }
            }
            Action::PreviousChoice | Action::NextChoice if in_result => {
                let by = if action == Action::PreviousChoice { 1 } else { -1 };
                if let Some(tool) = self.subject.clone() {
                    self.viewer.step(by, &tool, &context.calls);
                }
            }
            // What was typed stays.
            Action::Open if self.viewer.typing.take().is_some() => {}
            Action::Open if in_result && self.viewer.open_chosen() => self.request_filter(context),
            Action::Wire => context.has_wire = !context.has_wire,
            Action::Breakpoint => self.toggle_breakpoint(context),
            Action::Group => self.catalogue.group_next(),
            Action::PreviousChoice | Action::NextChoice if in_list => {
                self.catalogue.fold(Some(action == Action::NextChoice));
            }
            Action::Fill | Action::Open if in_list && self.catalogue.chosen_group().is_some() => {
                self.catalogue.fold(None);
            }
            Action::Fill | Action::Open if self.is_untrusted() => {
                context.emit(Navigation::AskTrust);
            }
            Action::Fill | Action::Open => self.fill(None, context),
            Action::ShowTrace => self.wire(context),
            Action::Back => return self.back(context),
            Action::ShowHistory | Action::Pin | Action::Bench => {
                let Some(tool) = self.catalogue.chosen().map(|row| row.name.clone()) else {
                    return false;
                };
                match action {
                    Action::ShowHistory => context.emit(Navigation::ShowHistory(tool)),
                    Action::Bench => context.emit(Navigation::Bench(tool)),
                    _ => {
                        context.show_status(format!("comparing {tool} with its pin…"));
                        context.emit(pins::compare(tool));
                    }
                }
            }
            other => {
                let form = self.form.as_mut().filter(|_| context.focus == Pane::Detail);
                return form.is_some_and(|form| form.act(other));
            }
        }
        true
    }

    fn key_contexts(&self, focus: Pane) -> Vec<KeyContext> {
        if self.form.is_some() && focus == Pane::Detail {
            return vec![&FORM];
        }
        if self.viewer.typing.is_some() && focus == Pane::Result {
            return vec![&TEXT];
        }
        let near = match focus {
            Pane::Result if self.viewer.table().is_some() => {
                vec![&RESULT_TABLE, &RESULT]
            }
            Pane::Result => vec![&RESULT],
            Pane::Catalogue => vec![&TOOL_TREE],
            _ => Vec::new(),
        };
        [near, vec![&TOOLS, &PANE, &ANYWHERE]].concat()
    }

    fn scroll(&mut self, pane: Pane, by: isize, _context: &mut AppContext) {
        match pane {
            Pane::Catalogue => {
                self.catalogue.step(by);
                self.detail.scroll_to_top();
            }
            Pane::Detail => self.detail.scroll(by),
            _ => {
                if let Some(tool) = &self.subject {
                    self.viewer.scroll(by, tool);
                }
            }
        }
    }

    fn filter(&self) -> Option<&ListFilter> {
        Some(&self.catalogue.filter)
    }

    fn filter_mut(&mut self) -> Option<&mut ListFilter> {
        Some(&mut self.catalogue.filter)
    }

    fn is_list_empty(&self) -> bool {
        self.catalogue.lines.is_empty() && self.form.is_none()
    }

    fn form(&self, focus: Pane) -> Option<&SchemaForm> {
        self.form.as_ref().filter(|_| focus == Pane::Detail)
    }

    fn form_mut(&mut self, focus: Pane) -> Option<&mut SchemaForm> {
        self.form.as_mut().filter(|_| focus == Pane::Detail)
    }

    fn line(&mut self, focus: Pane) -> Option<&mut TextInput> {
        if focus == Pane::Result { self.viewer.line() } else { self.form_mut(focus)?.line() }
    }

    fn on_text_changed(&mut self, context: &mut AppContext) {
        if context.focus == Pane::Result {
            match self.viewer.typing {
                Some(ResultInput::Search) => self.viewer.search_again(),
                Some(ResultInput::Filter) => self.request_filter(context),
                None => {}
            }
        } else if context.focus == Pane::Catalogue {
            self.catalogue.refilter();
            self.detail.scroll_to_top();
        } else if let Some(form) = &mut self.form {
            form.on_text_changed();
        }
    }
}

impl ToolsView {
    fn focused_table(&mut self, context: &AppContext) -> Option<&mut ResultTable> {
        self.viewer.table_mut().filter(|_| context.focus == Pane::Result)
    }

    pub fn find(&mut self, query: &str) {
        self.catalogue.filter.set(query);
        self.catalogue.refilter();
    }

    /// Selects the tool with this name, ignoring the filter; `false` when there is none.
    pub fn choose(&mut self, tool: &str) -> bool {
        if !self.catalogue.reveal(tool) {
            self.find("");
        }
        self.catalogue.reveal(tool)
    }

    pub fn fill_arguments(
        &mut self,
        tool: &str,
        arguments: Option<&JsonObject>,
        context: &mut AppContext,
    ) {
        if !self.choose(tool) {
            return context.show_error(format!("no tool named {tool}"));
        }
        self.fill(arguments, context);
    }

    /// The form that is filled in, or the one that Enter would open.
    pub fn shown_form(&self) -> Option<&SchemaForm> {
        let preview = self.detail.preview.as_ref();
        let draft = || preview.and_then(|preview| self.drafts.get(&preview.tool));
        self.form.as_ref().or_else(draft).or(preview)
    }

    /// Whether something was filled in that no call was made with.
    pub fn has_drafts(&self) -> bool {
        self.form.iter().chain(self.drafts.values()).any(|form| form.is_edited)
    }

    pub fn subject(&self) -> Option<&str> {
        let chosen = || Some(self.catalogue.chosen()?.name.as_str());
        self.form.as_ref().map(|form| form.tool.as_str()).or_else(chosen)
    }

    /// Rebuilds what is cached across frames, where it is outdated.
    pub fn refresh(&mut self, context: &AppContext) -> Option<AppEffect> {
        if self.subject.as_deref() != self.subject() {
            let subject = self.subject().map(str::to_owned);
            let before = std::mem::replace(&mut self.subject, subject);
            self.viewer.reset();
            // How a result is shown belongs to its tool.
            self.formats.extend(before.map(|tool| (tool, self.viewer.format)));
            let format = self.subject.as_ref().and_then(|tool| self.formats.get(tool));
            self.viewer.format = format.copied().unwrap_or_default();
        }
        self.detail.refresh(self.catalogue.chosen().map(|row| &row.tool), &context.calls);
        let (tool, room) = (self.subject.as_deref(), context.picture_box(Pane::Result));
        self.viewer.refresh(tool, &context.calls, room).map(AppEffect::Task)
    }

    pub fn filtered(
        &mut self,
        filter: String,
        input: &Arc<FilterInput>,
        results: Result<(ScrollText, usize), JqError>,
        context: &mut AppContext,
    ) {
        self.viewer.filter_finished(filter, input, results);
        // What was typed meanwhile.
        self.request_filter(context);
    }

    fn request_filter(&mut self, context: &mut AppContext) {
        let tool = self.subject.as_deref().unwrap_or_default();
        let task = self.viewer.request_filter(tool, &context.calls);
        context.effects.extend(task.map(AppEffect::Task));
    }

    pub fn call(&mut self, tool: String, arguments: JsonObject, context: &mut AppContext) {
        let run = context.calls.begin(tool.clone(), arguments.clone());
        self.viewer.reset();
        context.emit(AppEffect::Call { run, tool, arguments });
    }

    /// Whether the chosen tool does nothing until its project is trusted.
    fn is_untrusted(&self) -> bool {
        self.catalogue.chosen().is_some_and(|row| row.tool.status == ToolStatus::Untrusted)
    }

    /// Leaves the form, if one is filled in; what was changed in it is kept.
    fn leave_form(&mut self) -> bool {
        let Some(form) = self.form.take() else { return false };
        if form.is_edited {
            self.drafts.insert(form.tool.clone(), form);
        }
        true
    }

    /// Opens the form of the chosen tool: with these arguments, else as it was left.
    fn fill(&mut self, arguments: Option<&JsonObject>, context: &mut AppContext) {
        let Some(row) = self.catalogue.chosen() else { return };
        if let Some(error) = &row.tool.unavailable_reason {
            let why = format!("{} cannot be called: {}", row.name, error.message());
            return context.show_error(why);
        }
        let tool = Arc::clone(&row.tool);
        self.leave_form();
        let name = tool.name.full();
        let earlier = context.calls.arguments_of(&name);
        // What was typed before waits while other arguments are filled in.
        let draft = if arguments.is_none() { self.drafts.remove(&name) } else { None };
        self.form = Some(draft.filter(|draft| draft.is_of(&tool)).unwrap_or_else(|| {
            let mut form = SchemaForm::of(&tool, arguments.or(earlier));
            form.is_remembered = arguments.is_none() && earlier.is_some();
            form
        }));
        context.focus = Pane::Detail;
    }

    fn run(&mut self, context: &mut AppContext) {
        let Some(form) = self.ready_form(context) else { return };
        let (tool, arguments) = (form.tool.clone(), form.arguments());
        form.is_edited = false;
        context.focus = Self::focus_after_run(context);
        self.call(tool, arguments, context);
    }

    /// The form, if it can be sent. If not, all that is wrong with it is marked, not only what is found
    /// first.
    fn ready_form(&mut self, context: &mut AppContext) -> Option<&mut SchemaForm> {
        let form = self.form.as_mut()?;
        if form.is_ready() {
            return Some(form);
        }
        if form.json.is_none() {
            context.emit(form.check());
        }
        None
    }

    /// The call was refused before it was made, or by the tool. If it is of the form, whether its
    /// arguments fit is checked.
    pub fn refused(&mut self, run: ConsoleCallId, context: &mut AppContext) {
        let Some(form) = &mut self.form else { return };
        let call = context.calls.all.iter().find(|call| call.run == run);
        if call.is_some_and(|call| call.tool == form.tool && call.arguments == form.arguments()) {
            form.is_edited = true;
            context.emit(form.check());
        }
    }

    /// The form was checked, if these are its arguments. Calls that were refused because they do not
    /// fit were none: the form says where they do not.
    pub fn checked(
        &mut self,
        schema: &Arc<Value>,
        arguments: &JsonObject,
        problems: &[Violation],
        context: &mut AppContext,
    ) -> bool {
        let Some(form) = &mut self.form else { return false };
        if !form.checked(schema, arguments, problems) {
            return false;
        }
        let was_none = |call: &ConsoleCall| {
            call.tool == form.tool && call.arguments == *arguments && call.is_refused()
        };
        if !problems.is_empty() && context.calls.all.iter().any(was_none) {
            context.calls.all.retain(|call| !was_none(call));
            self.viewer.reset();
            if context.view == ViewId::Tools {
                context.focus = Pane::Detail;
            }
        }
        true
    }

    /// The form, which stays for the next call; the result where there is no room for both.
    fn focus_after_run(context: &AppContext) -> Pane {
        if context.is_pane_shown(Pane::Result) { Pane::Detail } else { Pane::Result }
    }

    fn dry_run(&mut self, context: &mut AppContext) {
        let Some(form) = self.ready_form(context) else { return };
        context.show_status("preparing a dry run…");
        let (tool, arguments) = (form.tool.clone(), form.arguments());
        context.focus = Self::focus_after_run(context);
        context.emit(tasks::dry_run(tool, arguments));
    }

    fn save_result(&mut self, context: &mut AppContext) {
        let call = self.subject().and_then(|tool| self.viewer.call(tool, &context.calls));
        let outcome = call.and_then(|call| Some((call, call.outcome.as_ref()?)));
        let Some((call, outcome)) = outcome.filter(|(_, o)| result_of(o).is_some()) else {
            return context.show_error("no result to save");
        };
        let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let name: String = call.tool.chars().take(80).map(safe).collect();
        let id: String = call
            .id
            .iter()
            .flat_map(|id| id.0.chars().filter(char::is_ascii_alphanumeric))
            .collect();
        let id = id.get(id.len().saturating_sub(8)..).unwrap_or_default();
        let stem = format!("{}-{id}", name.trim_start_matches('.'));
        let save = tasks::save(stem, Arc::clone(outcome), self.viewer.format);
        context.emit(save);
    }

    fn name_call(&self, context: &mut AppContext) {
        let call = match &self.form {
            Some(form) => Some((form.tool.as_str(), form.arguments())),
            None => self.subject().and_then(|tool| {
                let call = self.viewer.call(tool, &context.calls);
                let shown = call.map(|call| &call.arguments);
                Some((tool, shown.or_else(|| context.calls.arguments_of(tool))?.clone()))
            }),
        };
        match call {
            Some((tool, arguments)) => {
                let window = Box::new(SaveCallWindow::of(tool, arguments));
                context.overlay = Some(Overlay::SaveCall(window));
            }
            None => context.show_error("no call to save yet: Enter fills one in"),
        }
    }

    fn copy_selection(&mut self, context: &mut AppContext) {
        let Some(row) = self.catalogue.chosen() else { return };
        let shown = self.viewer.call(self.subject().unwrap_or(&row.name), &context.calls);
        let result = shown.and_then(|call| call.outcome.as_deref());
        let (what, text) = match (context.focus, result) {
            (Pane::Result, Some(Ok(outcome))) => match &outcome.result {
                Ok(result) => {
                    ("result", result.structured.as_ref().unwrap_or(&result.output).to_string())
                }
                Err(error) => ("error", error.to_string()),
            },
            (Pane::Result, Some(Err(error))) => ("error", error.to_string()),
            _ => ("name", row.name.clone()),
        };
        context.copy(what, text);
    }

    fn copy_command(&mut self, context: &mut AppContext) {
        let Some(row) = self.catalogue.chosen() else { return };
        let line = match context.calls.arguments_of(&row.name) {
            Some(arguments) => {
                crate::host::command::call(&row.name, arguments) + &row.tool.command_end()
            }
            None => crate::host::example::command_line(&row.tool),
        };
        context.copy("command", line);
    }

    fn toggle_breakpoint(&self, context: &mut AppContext) {
        let Some(row) = self.catalogue.chosen() else { return };
        if context.attached_host.is_none() {
            return context.show_error(
                "breakpoints stop calls of a background host: run 'toolhost up', then press A in \
                 Servers",
            );
        }
        let is_set = context.breakpoints.iter().any(|rule| rule.pattern == row.name);
        context.emit(tasks::set_breakpoint(row.name.clone(), !is_set));
    }

    fn wire(&self, context: &mut AppContext) {
        let Some(row) = self.catalogue.chosen() else { return };
        let call = context.calls.newest_of(&row.name).and_then(|call| call.id.clone());
        match (&row.tool.origin, call) {
            (_, Some(call)) => context.emit(Navigation::ShowCall(call)),
            (Origin::Server(server), None) => context.emit(Navigation::ShowTrace(server.clone())),
            _ => context.show_status(format!("{} has no trace yet: call it first", row.name)),
        }
    }

    fn back(&mut self, context: &mut AppContext) -> bool {
        if self.viewer.typing.is_some() {
            self.viewer.clear_tools();
        } else if (context.focus == Pane::Result && self.viewer.clear_tools())
            || self.viewer.dry_run.take().is_some()
        {
            self.viewer.scroll_to_top();
        } else if self.form.is_some() && !context.is_pane_shown(Pane::Detail) {
            context.focus = Pane::Detail;
        } else if self.leave_form() {
            context.focus = Pane::Catalogue;
        } else {
            return false;
        }
        true
    }
}

#[rustfmt::skip]
pub const TOOLS: KeyTable = KeyTable { name: "tools", title: "Tools", rows: &[
    on_row(&[Enter, Char('e')], Action::Fill, "call", "fill in the arguments and call"),
    row(&[Char('/')], Action::Filter, "filter",
        "filter: words src:NAME kind:NAME approval:yes !word"),
    on_row(&[Char('Y')], Action::CopyCommand, "", "copy the call as a command"),
    on_row(&[Char('b')], Action::Bench, "bench", "benchmark this tool"),
    on_row(&[Char('h')], Action::ShowHistory, "history", "show the history of this tool"),
    on_row(&[Char('d')], Action::Detail, "docs", "switch between form, documentation and schema"),
    row(&[Char('t')], Action::Wire, "trace", "open or close the trace"),
    on_row(&[Char('v')], Action::ChangeFormat, "", "show the result as text, JSON tree, table or raw"),
    on_row(&[Char('E')], Action::Export, "save", "save the shown result to a file"),
    on_row(&[Char('S')], Action::SaveCall, "save call",
        "save the call under a name, for 'toolhost run NAME'"),
    row(&[Char('s')], Action::Sort, "", "change the sort order"),
    on_row(&[Char('p')], Action::Pin, "", "compare with the pin, then pin it"),
    on_row(&[Char('B')], Action::Breakpoint, "", "stop calls of the tool for you to decide, or not"),
    on_row(&[Char('T')], Action::ShowTrace, "", "show the trace of its newest call"),
    row(&[Char('u')], Action::Refresh, "reload", "reload the tools of all sources"),
] };

/// What holds in the tree only: elsewhere these keys scroll.
#[rustfmt::skip]
pub const TOOL_TREE: KeyTable = KeyTable { name: "tree", title: "Tree of tools", rows: &[
    row(&[Char('g')], Action::Group, "", "group by server or kind, by category, or not"),
    row(&[Left], Action::PreviousChoice, "", "fold"),
    row(&[Right], Action::NextChoice, "", "unfold"),
] };

#[rustfmt::skip]
pub const RESULT: KeyTable = KeyTable { name: "result", title: "Result", rows: &[
    row(&[Enter, Char(' ')], Action::Open, "open",
        "fold or unfold, or show a long text whole; in text: edit the arguments"),
    row(&[Char('/')], Action::Filter, "search", "search in the result"),
    row(&[Char('n')], Action::NextMatch, "", "next match"),
    row(&[Char('N')], Action::PreviousMatch, "", "previous match"),
    row(&[Char('|')], Action::Query, "jq", "filter the result with jq as you type"),
    row(&[Char('d')], Action::Diff, "diff", "compare with the previous call"),
    row(&[Char('c')], Action::CopyPath, "", "copy the jq path of the selected tree line"),
    row(&[Left], Action::PreviousChoice, "older", "show an older call"),
    row(&[Right], Action::NextChoice, "newer", "show a newer call"),
] };

#[rustfmt::skip]
pub const RESULT_TABLE: KeyTable = KeyTable { name: "table", title: "Result as a table", rows: &[
    row(&[Enter], Action::Open, "row", "show the row in the JSON tree"),
    row(&[Left], Action::PreviousColumn, "column", "column to the left"),
    row(&[Right], Action::NextColumn, "", "column to the right"),
    row(&[Char('s')], Action::Sort, "sort", "sort by column: up, down, unsorted"),
    row(&[Char('c')], Action::CopyPath, "", "copy the jq path of the cell"),
] };
