//! The result pane: results of a tool's calls, one at a time, as text, tree or raw JSON.

pub mod draw;
pub mod presentation;
#[cfg(test)]
pub mod tests;

use std::sync::OnceLock;

use crate::tui::calls::{CallActivity, ChildCall, ConsoleCall, ConsoleCalls};
use crate::tui::event::ConsoleCallId;
use crate::tui::prelude::*;
use crate::tui::views::result::presentation::{
    CallResult, FilterInput, PresentationKind, PresentationRequest, ResultBody, ResultFormat,
    has_layout, has_pictures, result_of,
};
use crate::tui::views::tools::tasks;
use crate::tui::widgets::list::step_around;
use crate::tui::widgets::picture::PictureBox;
use crate::tui::widgets::scroll_text::StyledSpan;
use crate::tui::widgets::table::ResultTable;
use crate::util::jq::JqError;

#[derive(Debug, Default)]
pub struct ResultViewer {
    pub format: ResultFormat,
    pub newer_calls: usize,
    /// How far the account of a running call is scrolled; it is made while it is drawn.
    pub position: ScrollPosition,
    body: ResultBody,
    /// What a call would send, by the tool: shown in place of results until something else is.
    pub dry_run: Option<(String, ScrollText)>,
    pub search: ResultSearch,
    pub filter: ResultFilter,
    /// Which of them is being typed.
    pub typing: Option<ResultInput>,
    /// How the result differs from the one before, while that is shown.
    pub difference: Option<ResultBody>,
    /// The result that the filter runs over.
    filter_input: Option<Arc<FilterInput>>,
    /// Whether the best look of what is shown as a text is another one.
    has_layout: bool,
    /// What the body was made of.
    source: Option<(ConsoleCallId, ResultFormat)>,
    /// The room that pictures were fitted into; `None` without pictures.
    picture_box: Option<PictureBox>,
    /// The number of the newest request to make something ready.
    generation: u64,
    awaited: [Option<u64>; 2],
    /// What is to be chosen in the tree once it is there.
    reveal: Option<Vec<String>>,
}

impl ResultViewer {
    pub fn call<'a>(&self, tool: &'a str, calls: &'a ConsoleCalls) -> Option<&'a ConsoleCall> {
        calls.all_of(tool).nth(self.newer_calls)
    }

    pub fn dry_run_of(&self, tool: &str) -> Option<&ScrollText> {
        self.dry_run.as_ref().filter(|(of, _)| of == tool).map(|(_, document)| document)
    }

    /// Shows the newest call from the top.
    pub fn reset(&mut self) {
        (self.newer_calls, self.dry_run) = (0, None);
        self.clear_tools();
        self.scroll_to_top();
    }

    pub fn next_format(&mut self) {
        self.format = match self.format {
            ResultFormat::Text if self.has_layout => ResultFormat::Best,
            format => format.next(self.body.has_table()),
        };
        self.difference = None;
        self.filter = ResultFilter::default();
        self.scroll_to_top();
    }

    /// Ends the search, the filter and the comparison; whether any of them was on.
    pub fn clear_tools(&mut self) -> bool {
        let was_on = self.search.words().is_some()
            || self.typing.is_some()
            || self.is_filtered()
            || self.difference.is_some();
        (self.search, self.filter) = (ResultSearch::default(), ResultFilter::default());
        (self.difference, self.filter_input, self.typing) = (None, None, None);
        self.body.find(None);
        was_on
    }

    /// The line of the search or the filter, while it is typed.
    pub fn line(&mut self) -> Option<&mut TextInput> {
        Some(match self.typing? {
            ResultInput::Search => &mut self.search.line,
            ResultInput::Filter => &mut self.filter.line,
        })
    }

    /// Whether the result is shown through a filter.
    pub fn is_filtered(&self) -> bool {
        self.typing == Some(ResultInput::Filter) || !self.filter.line.text().trim().is_empty()
    }

    pub fn shown(&self) -> &ResultBody {
        match &self.difference {
            Some(difference) => difference,
            None if self.is_filtered() => &self.filter.body,
            None => &self.body,
        }
    }

    fn shown_mut(&mut self) -> &mut ResultBody {
        let is_filtered = self.is_filtered();
        match &mut self.difference {
            Some(difference) => difference,
            None if is_filtered => &mut self.filter.body,
            None => &mut self.body,
        }
    }

    pub fn table(&self) -> Option<&ResultTable> {
        match self.shown() {
            ResultBody::Table(table) if self.dry_run.is_none() => Some(table),
            _ => None,
        }
    }

    pub fn table_mut(&mut self) -> Option<&mut ResultTable> {
        let is_shown = self.dry_run.is_none();
        match self.shown_mut() {
            ResultBody::Table(table) if is_shown => Some(table),
            _ => None,
        }
    }

    pub fn search_again(&mut self) {
        let words = self.search.words().map(str::to_owned);
        let body = self.shown_mut();
        let (found, from) = (body.find(words.as_deref()), body.current());
        self.search.set_found(found, from);
        self.show_match();
    }

    /// Goes to the next match, or to one before.
    pub fn step_match(&mut self, by: isize) {
        self.search.step(by);
        self.show_match();
    }

    fn show_match(&mut self) {
        if let Some(number) = self.search.line_at() {
            self.shown_mut().go_to(number);
        }
    }

    /// Folds a branch of the tree, has a long text in it shown whole, or shows the row of a table in
    /// the tree; `false` in a text.
    pub fn open_chosen(&mut self) -> bool {
        if self.dry_run.is_some() {
            return false;
        }
        match self.shown_mut() {
            ResultBody::Text(_) => return self.format == ResultFormat::Tree,
            ResultBody::Tree(tree) if tree.is_long_text() => {
                self.filter.line = TextInput::of(tree.chosen_path());
            }
            ResultBody::Tree(tree) => tree.fold(),
            ResultBody::Table(table) => {
                (self.reveal, self.format) = (Some(table.row_path()), ResultFormat::Tree);
            }
        }
        true
    }

    /// Has the filter run over the result that is shown, where it has not.
    pub fn request_filter(&mut self, tool: &str, calls: &ConsoleCalls) -> Option<Task> {
        if !self.is_filtered() {
            return None;
        }
        if self.filter_input.is_none() {
            let outcome = self.call(tool, calls)?.outcome.as_ref()?;
            result_of(outcome)?;
            let (outcome, value) = (Arc::clone(outcome), OnceLock::new());
            self.filter_input = Some(Arc::new(FilterInput { outcome, value }));
        }
        self.filter.request(self.filter_input.as_ref()?)
    }

    /// Takes in what a filter gave, if it was of the result that is shown.
    pub fn filter_finished(
        &mut self,
        filter: String,
        input: &Arc<FilterInput>,
        results: Result<(ScrollText, usize), JqError>,
    ) {
        if self.filter_input.as_ref().is_some_and(|own| Arc::ptr_eq(own, input)) {
            self.filter.finished(filter, results);
            self.search_again();
        }
    }

    /// Shows how the result differs from that of the call before, or the result again. What has to
    /// be done for it is asked for; `None` when there are not two.
    pub fn toggle_difference(&mut self, tool: &str, calls: &ConsoleCalls) -> Option<Vec<Task>> {
        if self.difference.take().is_some() {
            return Some(Vec::new());
        }
        let ended = calls.all_of(tool).skip(self.newer_calls).filter_map(|c| c.outcome.as_ref());
        let mut ended = ended.filter(|outcome| result_of(outcome).is_some());
        let (outcome, before) = (Arc::clone(ended.next()?), Arc::clone(ended.next()?));
        self.difference = Some(ResultBody::default());
        let kind = PresentationKind::Difference(before);
        let task = self.present(outcome, kind);
        Some(task.into_iter().collect())
    }

    /// Shows another call of the tool: an older one, or a newer one when negative.
    pub fn step(&mut self, by: isize, tool: &str, calls: &ConsoleCalls) {
        let most = calls.all_of(tool).count().saturating_sub(1);
        self.newer_calls = self.newer_calls.saturating_add_signed(by).min(most);
        self.dry_run = None;
        self.clear_tools();
        self.scroll_to_top();
    }

    /// Scrolls what is shown of this tool by this many rows; negative moves up.
    pub fn scroll(&mut self, by: isize, tool: &str) {
        match &mut self.dry_run {
            Some((of, document)) if of == tool => document.scroll(by),
            _ => {
                self.shown_mut().scroll(by);
                self.position.scroll(by);
            }
        }
    }

    pub fn scroll_to_top(&mut self) {
        if let ResultBody::Text(text) = &mut self.body {
            text.position.reset();
        }
        self.position.reset();
    }

    /// Makes the text or the tree anew when another one is looked at, it ended, or pictures in it
    /// have other room; asks for it where it takes long.
    pub fn refresh(
        &mut self,
        tool: Option<&str>,
        calls: &ConsoleCalls,
        room: Option<PictureBox>,
    ) -> Option<Task> {
        let call = tool.and_then(|tool| self.call(tool, calls));
        let ended = call.and_then(|call| Some((call, call.outcome.as_ref()?)));
        let wanted = ended.map(|(call, _)| (call.run, self.format));
        let has_pictures = matches!(self.format, ResultFormat::Best | ResultFormat::Text)
            && ended.is_some_and(|(_, outcome)| has_pictures(outcome));
        let pictures = room.filter(|_| has_pictures);
        let is_other = wanted != self.source;
        if !is_other && pictures == self.picture_box {
            return None;
        }
        self.picture_box = pictures;
        (self.source, self.awaited[0]) = (wanted, None);
        self.reveal.take_if(|_| self.format != ResultFormat::Tree);
        if is_other {
            self.scroll_to_top();
            self.show(ResultBody::default());
        }
        let (call, outcome) = ended?;
        self.has_layout = self.format == ResultFormat::Text && has_layout(outcome);
        let activity = Box::new(of(&call.activity));
        let kind = PresentationKind::Format { format: self.format, activity, pictures };
        self.present(Arc::clone(outcome), kind)
    }

    /// Shows what is made of a result: at once, or later, when it takes long to make.
    fn present(&mut self, outcome: Arc<CallResult>, kind: PresentationKind) -> Option<Task> {
        self.generation += 1;
        let request = PresentationRequest { generation: self.generation, outcome, kind };
        let is_difference = matches!(request.kind, PresentationKind::Difference(_));
        self.awaited[usize::from(is_difference)] = Some(self.generation);
        if !request.is_large() {
            self.presented(self.generation, Some(request.build()));
            return None;
        }
        let body = match &mut self.difference {
            Some(difference) if is_difference => difference,
            _ => &mut self.body,
        };
        // A picture being refitted is shown as before until it is ready.
        if let ResultBody::Text(text) = body
            && text.is_empty()
        {
            text.line(Role::Dim, "rendering…");
        }
        Some(tasks::present(request))
    }

    /// Takes in what was made of a result, unless something else is looked at meanwhile.
    pub fn presented(&mut self, generation: u64, made: Option<ResultBody>) {
        let Some(at) = self.awaited.iter().position(|awaited| *awaited == Some(generation)) else {
            return;
        };
        self.awaited[at] = None;
        let made = made.unwrap_or_else(|| {
            let mut text = ScrollText::default();
            text.line(Role::Error, "This cannot be shown; E saves it.");
            text.into()
        });
        match &mut self.difference {
            Some(difference) if at == 1 => *difference = made,
            None if at == 1 => return,
            _ => self.show(made),
        }
        if let ResultBody::Tree(tree) = &mut self.body
            && let Some(path) = self.reveal.take()
        {
            tree.reveal_path(&path);
        }
        if self.search.words().is_some() {
            self.search_again();
        }
    }

    fn show(&mut self, made: ResultBody) {
        let before = std::mem::replace(&mut self.body, made);
        if let (ResultBody::Text(before), ResultBody::Text(now)) = (before, &mut self.body) {
            now.position = before.position;
        }
        self.position.reset();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultInput {
    Search,
    Filter,
}

#[derive(Debug, Default)]
pub struct ResultFilter {
    pub line: TextInput,
    pub body: ResultBody,
    /// How many values that was.
    pub results: usize,
    pub error: Option<JqError>,
    running: Option<String>,
    /// The filter that the body is of.
    shown: Option<String>,
}

impl ResultFilter {
    /// Has what is typed now run over the value, unless a run is awaited or nothing changed.
    pub fn request(&mut self, input: &Arc<FilterInput>) -> Option<Task> {
        let filter = self.line.text().trim();
        let filter = if filter.is_empty() { "." } else { filter };
        if self.running.is_some() || self.shown.as_deref() == Some(filter) {
            return None;
        }
        self.running = Some(filter.to_owned());
        Some(tasks::query(filter.to_owned(), Arc::clone(input)))
    }

    pub fn finished(&mut self, filter: String, results: Result<(ScrollText, usize), JqError>) {
        self.running = None;
        self.shown = Some(filter);
        match results {
            Ok((text, results)) => {
                self.body = ResultBody::Text(text);
                (self.results, self.error) = (results, None);
            }
            Err(error) => self.error = Some(error),
        }
    }
}

#[derive(Debug, Default)]
pub struct ResultSearch {
    /// The words as they were typed.
    pub line: TextInput,
    found: Vec<usize>,
    at: usize,
}

impl ResultSearch {
    pub fn words(&self) -> Option<&str> {
        Some(self.line.text()).filter(|words| !words.is_empty())
    }

    /// Sets the lines that contain the words; the first one from `from` on becomes current.
    pub fn set_found(&mut self, found: Vec<usize>, from: usize) {
        self.at = found.iter().position(|line| *line >= from).unwrap_or(0);
        self.found = found;
    }

    /// Goes to the next line that has them, or to one before; round at the ends.
    pub fn step(&mut self, by: isize) {
        self.at = step_around(self.at, by, self.found.len());
    }

    pub fn line_at(&self) -> Option<usize> {
        self.found.get(self.at).copied()
    }

    /// How many lines have them and which is looked at: `/words 2 of 7`.
    pub fn summary(&self) -> Option<String> {
        let words = self.words()?;
        Some(match self.found.len() {
            0 => format!("/{words} no matches"),
            all => format!("/{words} {} of {all}", self.at + 1),
        })
    }
}

/// The calls that a call made; of one that has ended the end of some may be unknown.
pub fn nested_calls(activity: &CallActivity, is_running: bool) -> Vec<StyledSpan> {
    let line = |nested: &ChildCall| {
        let (role, text) = match nested.ended {
            Some((true, took)) => (Role::Dim, format!("ok {}", show_duration(took))),
            Some((false, took)) => (Role::Error, format!("failed {}", show_duration(took))),
            None if is_running => (Role::Plain, "running".to_owned()),
            None => (Role::Dim, "end unknown".to_owned()),
        };
        (role, format!("{}{}  {text}", "  ".repeat(nested.depth), nested.tool))
    };
    activity.children.iter().map(line).collect()
}

/// What was logged while a call ran.
pub fn log_lines(activity: &CallActivity) -> impl Iterator<Item = StyledSpan> + '_ {
    activity.log.iter().map(|(level, text)| (Role::Dim, format!("{level}: {text}")))
}

/// What was reported while it ran: nested calls and log lines; empty if nothing.
pub fn of(activity: &CallActivity) -> ScrollText {
    let mut page = ScrollText::default();
    for (title, lines) in
        [("nested calls", nested_calls(activity, false)), ("log", log_lines(activity).collect())]
    {
        if !lines.is_empty() {
            page.heading(title);
        }
        for (role, text) in &lines {
            page.text(*role, text);
        }
    }
    page
}
