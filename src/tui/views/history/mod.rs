//! The history view: a list of recorded calls, one in detail, two compared.

pub mod draw;
pub mod entry_text;
pub mod tasks;
#[cfg(test)]
pub mod tests;

use crate::history::HistoryEntry;
use crate::history::compare::CallComparison;
use crate::history::read::StoredResult;
use crate::host::{command, rerun};
use crate::tui::context::ShownProjects;
use crate::tui::keys::KeyPress::{Char, Enter};
use crate::tui::prelude::*;
use crate::tui::views::history::entry_text::EntryFormat;
use crate::tui::views::history::tasks::{HistoryReadFilter, PastCall, PastCalls};
use crate::tui::widgets::filter::{FilterTerms, FilteredList, WordMatcher, is_yes, quoted};
use crate::util::timestamp::parse_since;

/// The number of calls read at once.
const PAGE_SIZE: usize = 500;

/// The calls of the past.
#[derive(Debug, Default)]
pub struct HistoryView {
    pub list: FilteredList,
    /// The call that others are compared with, by its identity.
    pub marked: Option<String>,
    pub format: EntryFormat,
    /// The chosen call, or how two differ.
    pub details: ScrollText,
    /// What was read last; `None` before that.
    pub file: Option<Result<PastCalls, Error>>,
    query: HistorySearch,
    limit: usize,
    last_request: Option<(HistoryReadFilter, usize)>,
    is_reading: bool,
    is_stale: bool,
    /// The call that is being read, or was read last.
    open_id: Option<String>,
    is_opening: bool,
    entry: Option<HistoryEntry>,
    changed: Option<Result<Option<bool>, Error>>,
    comparison: Option<Box<CallComparison>>,
    pending_action: Option<Action>,
}

impl View for HistoryView {
    fn act(&mut self, action: Action, context: &mut AppContext) -> bool {
        match action {
            Action::Open => context.focus = Pane::Entry,
            Action::Refresh => {
                self.is_stale = true;
                self.next_request(context);
            }
            Action::AllProjects => {
                context.switch_projects();
                self.next_request(context);
            }
            Action::ChangeFormat => {
                self.format = after(EntryFormat::VARIANTS, self.format);
                self.show();
            }
            Action::Mark => self.toggle_mark(context),
            Action::Diff => self.diff(context),
            Action::Rerun | Action::RerunEdited | Action::CopyCommand => {
                self.act_on_entry(action, context);
            }
            Action::Copy => self.copy_selection(context),
            Action::Export => self.export_matches(context),
            Action::SaveTest => match self.chosen() {
                Some(call) => context.emit(tasks::save_test(call.id.clone())),
                None => context.show_error("no call is chosen"),
            },
            Action::Back if self.comparison.take().is_some() => {
                self.details = ScrollText::default();
                self.show();
            }
            _ => return false,
        }
        true
    }

    fn key_contexts(&self, _focus: Pane) -> Vec<KeyContext> {
        vec![&HISTORY, &PANE, &ANYWHERE]
    }

    fn scroll(&mut self, pane: Pane, by: isize, context: &mut AppContext) {
        match pane {
            Pane::HistoryList => self.step(by),
            _ => self.details.scroll(by),
        }
        self.next_request(context);
    }

    fn enter(&mut self, context: &mut AppContext) {
        self.is_stale = true;
        self.next_request(context);
    }

    fn filter(&self) -> Option<&ListFilter> {
        Some(&self.list.filter)
    }

    fn filter_mut(&mut self) -> Option<&mut ListFilter> {
        Some(&mut self.list.filter)
    }

    fn is_list_empty(&self) -> bool {
        self.chosen().is_none()
    }

    fn on_text_changed(&mut self, context: &mut AppContext) {
        let found = self.find();
        self.list.narrow(found);
        self.next_request(context);
    }

    fn tick(&mut self, context: &mut AppContext) {
        self.next_request(context);
    }

    fn is_animating(&self) -> bool {
        self.chosen().is_some_and(|call| Some(&call.id) != self.open_id.as_ref())
    }
}

impl HistoryView {
    /// All calls that were read.
    pub fn calls(&self) -> &[PastCall] {
        match &self.file {
            Some(Ok(file)) => &file.calls,
            _ => &[],
        }
    }

    pub fn found(&self) -> impl ExactSizeIterator<Item = &PastCall> + '_ {
        self.list.found().iter().map(|at| &self.calls()[*at])
    }

    pub fn chosen(&self) -> Option<&PastCall> {
        self.calls().get(self.list.chosen()?)
    }

    pub fn filter_by_tool(&mut self, tool: &str) {
        self.list.filter.set(HistorySearch::for_tool(tool));
        let found = self.find();
        self.list.narrow(found);
    }

    pub fn on_call_recorded(&mut self, context: &mut AppContext) {
        self.is_stale = true;
        if context.view == ViewId::History {
            self.next_request(context);
        }
    }

    /// Takes in the newest calls.
    pub fn read(&mut self, read: Result<PastCalls, Error>, context: &mut AppContext) {
        self.is_reading = false;
        // Who looks at the newest call goes on looking at the newest.
        let is_older = self.list.cursor.chosen() > 0;
        let chosen = self.chosen().map(|call| call.id.clone()).filter(|_| is_older);
        self.file = Some(read);
        let again = chosen.and_then(|id| self.calls().iter().position(|call| call.id == id));
        if again.is_none() {
            self.list.cursor = ListCursor::default();
        }
        let found = self.find();
        self.list.show(found, again);
        self.next_request(context);
    }

    pub fn opened(&mut self, entry: HistoryEntry, context: &mut AppContext) {
        self.is_opening = false;
        self.changed = None;
        if self.entry.as_ref().is_none_or(|before| before.id != entry.id) {
            self.details = ScrollText::default();
        }
        self.entry = Some(entry);
        self.show();
        let is_chosen = self.chosen().map(|call| &call.id) == self.open_id.as_ref();
        match self.pending_action.take_if(|_| is_chosen) {
            Some(action) => self.act_on_entry(action, context),
            None => self.next_request(context),
        }
    }

    /// The call is not there any more.
    pub fn not_opened(&mut self, id: &str, error: &Error, context: &mut AppContext) {
        self.is_opening = false;
        self.pending_action = None;
        if self.open_id.as_deref() == Some(id) {
            self.entry = None;
            self.details = ScrollText::default();
            self.details.line(Role::Error, error.message());
        }
        self.next_request(context);
    }

    /// Whether the tool of this call changed since; `None` when that was not kept.
    pub fn definition_checked(&mut self, id: &str, changed: Result<Option<bool>, Error>) {
        if self.entry.as_ref().is_some_and(|entry| entry.id == id) {
            self.changed = Some(changed);
            self.show();
        }
    }

    pub fn compared(&mut self, compared: Result<CallComparison, Error>, context: &mut AppContext) {
        match compared {
            Ok(comparison) => {
                self.comparison = Some(Box::new(comparison));
                self.details = ScrollText::default();
                self.show();
                if context.view == ViewId::History {
                    context.focus = Pane::Entry;
                }
            }
            Err(error) => context.show_error(error.message()),
        }
    }

    fn next_request(&mut self, context: &mut AppContext) {
        let all_projects = context.shown_projects == ShownProjects::All;
        let filter = HistoryReadFilter { all_projects, ..self.query.read_filter.clone() };
        let request = (filter, self.limit.max(PAGE_SIZE));
        if !self.is_reading && (self.is_stale || self.last_request.as_ref() != Some(&request)) {
            (self.is_reading, self.is_stale) = (true, false);
            self.last_request = Some(request.clone());
            context.emit(tasks::read(request.0, request.1));
        }
        let id = self.chosen().map(|call| call.id.clone());
        if id.is_none() && (self.entry.is_some() || self.open_id.is_some()) {
            (self.entry, self.open_id) = (None, None);
            self.show();
        }
        if let Some(id) = id.filter(|id| !self.is_opening && Some(id) != self.open_id.as_ref()) {
            self.is_opening = true;
            self.open_id = Some(id.clone());
            context.emit(tasks::open(id));
        }
    }

    fn find(&mut self) -> Vec<usize> {
        self.query = HistorySearch::of(self.list.filter.text());
        self.query.find(self.calls())
    }

    fn step(&mut self, by: isize) {
        let before = self.list.chosen();
        self.list.step(by);
        let at_end = self.list.cursor.chosen() + 1 >= self.list.found().len();
        let has_more = matches!(self.file, Some(Ok(PastCalls { has_more: true, .. })));
        if by > 0 && at_end && has_more && !self.is_reading {
            self.limit = self.calls().len() + PAGE_SIZE;
        }
        if self.list.chosen() != before {
            self.comparison = None;
            self.pending_action = None;
        }
    }

    /// The chosen call, when it was read.
    fn entry(&self) -> Option<&HistoryEntry> {
        let chosen = self.chosen()?;
        self.entry.as_ref().filter(|entry| entry.id == chosen.id)
    }

    /// Writes down what the entry pane shows.
    fn show(&mut self) {
        let page = match (&self.comparison, &self.entry) {
            (Some(comparison), _) => entry_text::comparison(comparison),
            (None, Some(entry)) => entry_text::entry(entry, self.changed.as_ref(), self.format),
            (None, None) => ScrollText::default(),
        };
        self.details.replace(page);
    }
}

impl HistoryView {
    /// Does something with the chosen call, as soon as it was read.
    fn act_on_entry(&mut self, action: Action, context: &mut AppContext) {
        let Some(entry) = self.entry() else {
            self.pending_action = self.chosen().is_some().then_some(action);
            return self.next_request(context);
        };
        let Some(arguments) = &entry.arguments else {
            return context.show_error("the arguments of this call were too large to keep");
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
        // What was secret was not kept: it has to be filled in.
        let (arguments, missing) = rerun::without_masked(arguments);
        let tool = entry.tool.clone();
        if missing.is_empty() && action != Action::RerunEdited {
            return context.emit(Navigation::Call { tool, arguments });
        }
        if !missing.is_empty() {
            let missing = missing.join(", ");
            context.show_status(format!("secrets are not kept; fill in: {missing}"));
        }
        context.emit(Navigation::FillArguments { tool, arguments: Some(arguments) });
    }

    fn toggle_mark(&mut self, context: &mut AppContext) {
        let Some(call) = self.chosen() else { return };
        let id = call.id.clone();
        if self.marked.take_if(|marked| *marked == id).is_none() {
            self.marked = Some(id);
            context.show_status("marked; press d on another call to compare");
        }
    }

    fn diff(&mut self, context: &mut AppContext) {
        let Some(call) = self.chosen() else { return };
        let before = || {
            let older = self.found().skip(self.list.cursor.chosen() + 1);
            older.filter(|older| older.tool == call.tool).map(|older| older.id.clone()).next()
        };
        let other = self.marked.clone().filter(|marked| *marked != call.id).or_else(before);
        match other {
            Some(other) => context.emit(tasks::compare(call.id.clone(), other)),
            None => context.show_error("nothing to compare with: mark a call with m first"),
        }
    }

    fn copy_selection(&self, context: &mut AppContext) {
        let result = || self.entry()?.result.as_ref().map(StoredResult::text);
        let details = || self.details.to_text();
        let (what, text) = match context.focus {
            Pane::Entry if self.comparison.is_some() => ("diff", Some(details())),
            Pane::Entry => match result() {
                Some(text) => ("result", Some(text)),
                None => ("call", Some(details())),
            },
            _ => ("call ID", self.chosen().map(|call| call.id.clone())),
        };
        if let Some(text) = text {
            context.copy(what, text);
        }
    }

    fn export_matches(&self, context: &mut AppContext) {
        let ids: Vec<String> = self.found().map(|call| call.id.clone()).collect();
        if ids.is_empty() {
            return context.show_error("nothing to export");
        }
        context.emit(tasks::export(ids));
    }
}

#[rustfmt::skip]
pub const HISTORY: KeyTable = KeyTable { name: "history", title: "History", rows: &[
    on_row(&[Enter], Action::Open, "open", "show the call"),
    row(&[Char('/')], Action::Filter, "filter",
        "filter: words tool:GLOB failed:yes since:1h session:this !word"),
    on_row(&[Char('r')], Action::Rerun, "rerun",
        "call again with the same arguments (asks for secrets)"),
    on_row(&[Char('R')], Action::RerunEdited, "edit and rerun", "edit the arguments, then call again"),
    on_row(&[Char('m')], Action::Mark, "mark", "mark the call for a diff"),
    on_row(&[Char('d'), Char('D')], Action::Diff, "diff",
        "diff with the marked call, or the tool's previous call"),
    on_row(&[Char('t')], Action::ChangeFormat, "text/json/raw", "change the format"),
    on_row(&[Char('Y')], Action::CopyCommand, "copy as command", "copy the call as a command"),
    row(&[Char('P')], Action::AllProjects, "", "show calls of all projects or this one"),
    on_row(&[Char('T')], Action::SaveTest, "", "add to tests.yaml as a test"),
    on_row(&[Char('E')], Action::Export, "", "export the listed calls as JSON lines"),
    row(&[Char('u')], Action::Refresh, "", "reload the history"),
] };

#[derive(Debug, Default, PartialEq)]
pub struct HistorySearch {
    pub read_filter: HistoryReadFilter,
    /// The error in the value of a key, for the screen.
    pub problem: Option<String>,
    words: Vec<String>,
    without: Vec<String>,
}

impl HistorySearch {
    /// Reads `calc`, `failed:yes`, `tool:calc*`, `since:1h`, `session:this`, `!web`, in any order.
    /// Values with spaces are in double quotes.
    pub fn of(text: &str) -> Self {
        let terms = FilterTerms::of(text, &["tool", "failed", "since", "session"], true);
        let mut query = Self::default();
        for (key, value) in terms.values {
            let filter = &mut query.read_filter;
            match key {
                "tool" => filter.tool = Some(value),
                "failed" => filter.failed = Some(is_yes(&value)),
                "since" => match parse_since(&value) {
                    Ok(since) => filter.since = Some(since),
                    Err(why) => query.problem = Some(format!("since: {why}")),
                },
                _ => filter.session = Some(value),
            }
        }
        (query.words, query.without) = (terms.words, terms.excluded);
        query
    }

    pub fn for_tool(tool: &str) -> String {
        format!("{} ", quoted(&format!("tool:{tool}")))
    }

    pub fn find(&self, calls: &[PastCall]) -> Vec<usize> {
        let mut words = WordMatcher::of(&self.words, &self.without);
        let found = calls.iter().enumerate().filter(|(_, call)| {
            let status = call.error.as_deref().unwrap_or("ok");
            let fields = [&call.tool, &call.source, status, &call.arguments, &call.id];
            words.admits(&call.tool, &fields.join("\n"))
        });
        found.map(|(at, _)| at).collect()
    }
}

#[cfg(test)]
mod search_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::util::timestamp::Since;

    #[test]
    fn fields_say_what_is_read_and_words_choose_among_it() {
        let query = HistorySearch::of(r#"ccl failed:yes "tool:a b*" since:1h session:this !web"#);
        let wanted = HistoryReadFilter {
            tool: Some("a b*".to_owned()),
            failed: Some(true),
            since: Some(Since::Ago(Duration::from_hours(1))),
            session: Some("this".to_owned()),
            all_projects: false,
        };
        assert_eq!(query.read_filter, wanted);
        assert_eq!(
            (&query.words[..], &query.without[..]),
            (&["ccl".to_owned()][..], &["web".to_owned()][..])
        );
        assert_eq!(query.problem, None);
        assert_eq!(HistorySearch::of("failed:no session:s-1").read_filter.failed, Some(false));
        // While it is being written, a field says nothing yet.
        assert_eq!(
            HistorySearch::of("tool: failed: since:").read_filter,
            HistoryReadFilter::default()
        );
        assert!(HistorySearch::of("since:soon").problem.unwrap().starts_with("since: expected"));
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(text in "\\PC{0,40}") {
            let query = HistorySearch::of(&text);
            prop_assert!(query.find(&[]).is_empty());
        }

        #[test]
        fn the_calls_of_a_tool_are_asked_for_by_its_exact_name(tool in "\\PC{1,20}") {
            let query = HistorySearch::of(&HistorySearch::for_tool(&tool));
            prop_assert_eq!(query.read_filter.tool, Some(tool));
            prop_assert!(query.words.is_empty() && query.without.is_empty());
        }
    }
}
