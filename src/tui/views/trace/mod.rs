//! The trace view: the newest items, the filter, and the selected item.

pub mod draw;
pub mod frame;
pub mod item;
#[cfg(test)]
pub mod tests;

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::audit::trace::TraceFile;
use crate::model::traffic::TrafficKind;
use crate::model::{CapturedTraffic, HostEvent, Traffic};
use crate::tui::keys::KeyPress::{Char, Enter, Left, Right};
use crate::tui::prelude::*;
use crate::tui::tasks::blocking;
use crate::tui::views::trace::frame::{FrameScope, TraceSearch, frame_text};
use crate::tui::views::trace::item::{TraceItem, TraceRing};
use crate::util::timestamp;

/// The trace view: the messages to and from servers.
#[derive(Debug, Default)]
pub struct TraceView {
    ring: TraceRing,
    /// The lines since the view was paused; `None` while it is not.
    pause_buffer: Option<TraceRing>,
    /// The numbers of the lines that are shown, the oldest first.
    found: VecDeque<u64>,
    chosen: u64,
    /// Whether the chosen line stays the same when newer ones come.
    pub is_still: bool,
    pub filter: ListFilter,
    query: TraceSearch,
    /// Which messages of a request and its response are shown.
    pub scope: FrameScope,
    pub frame: ScrollText,
    is_stale: bool,
}

impl View for TraceView {
    fn act(&mut self, action: Action, context: &mut AppContext) -> bool {
        match action {
            Action::Pause => self.pause(context),
            Action::Follow => {
                self.is_still = !self.is_still;
                self.choose_newest();
                let text = ["following the newest line", "not following"];
                context.show_status(text[usize::from(self.is_still)]);
            }
            Action::Reset => {
                self.clear();
                context.show_status("cleared");
            }
            Action::Open => {
                context.focus = Pane::Frame;
                self.is_still = true;
                let has_pair = self.chosen().is_some_and(|item| item.pair.is_some());
                self.show(if has_pair { FrameScope::Both } else { FrameScope::Chosen });
            }
            Action::ChangeFormat => match self.chosen().filter(|item| item.pair.is_some()) {
                Some(item) => {
                    let next = self.scope.next(item.is_request());
                    self.is_still = true;
                    self.show(next);
                }
                None => context.show_status("no request or response to show with it"),
            },
            Action::Copy => self.copy_selection(false, context),
            Action::CopyCommand => self.copy_selection(true, context),
            Action::Export => self.export(context),
            _ => return false,
        }
        true
    }

    fn key_contexts(&self, _focus: Pane) -> Vec<KeyContext> {
        vec![&TRACE, &PANE, &ANYWHERE]
    }

    fn scroll(&mut self, pane: Pane, by: isize, _context: &mut AppContext) {
        if pane == Pane::Frame {
            return self.frame.scroll(by);
        }
        let mut list = self.list();
        list.step(by, self.found.len());
        self.is_still = by <= 0 || list.chosen() + 1 != self.found.len();
        if let Some(number) = self.found.get(list.chosen()) {
            self.choose(*number);
        }
        self.lay_out();
    }

    fn enter(&mut self, _context: &mut AppContext) {
        self.lay_out();
    }

    fn filter(&self) -> Option<&ListFilter> {
        Some(&self.filter)
    }

    fn filter_mut(&mut self) -> Option<&mut ListFilter> {
        Some(&mut self.filter)
    }

    fn is_list_empty(&self) -> bool {
        self.chosen().is_none()
    }

    fn on_text_changed(&mut self, _context: &mut AppContext) {
        self.refilter();
    }

    fn tick(&mut self, _context: &mut AppContext) {
        // Not with each line that comes: thousands of frames a second cannot be read.
        self.lay_out();
    }

    fn is_animating(&self) -> bool {
        true
    }
}

fn call_noun(kind: &str) -> &str {
    match kind {
        "command" => "command",
        "http" | "openapi" => "HTTP request",
        "python" => "worker call",
        other => other,
    }
}

impl TraceView {
    /// Something crossed a wire, for a call of `client` when that is another one than this console.
    pub fn push_traffic(&mut self, seen: CapturedTraffic, client: Option<String>) {
        let mut item = TraceItem::of(seen);
        item.client = client;
        self.add(item);
    }

    /// Adds a log line. `now` is the newest time that is known here.
    pub fn logged(&mut self, origin: &str, now: Duration, level: &str, text: &str) {
        self.add(TraceItem::logged(origin, self.newest_time(now), level, text));
    }

    /// The time of what happened just now, which is no earlier than that of what came before.
    fn newest_time(&self, now: Duration) -> Duration {
        self.ring.iter().next_back().map_or(now, |(_, item)| item.traffic.at.max(now))
    }

    /// Adds the start or end of a call of a tool without its own wire.
    pub fn call_changed(
        &mut self,
        event: &HostEvent,
        kind: &str,
        client: Option<String>,
        now: Duration,
    ) {
        let what = call_noun(kind);
        let (call, text, is_error) = match event {
            HostEvent::CallStarted { call_id, tool, .. } => {
                (call_id, format!("{what} {tool} started"), false)
            }
            HostEvent::CallFinished { call_id, tool, success, is_cancelled, duration } => {
                let word = match (success, is_cancelled) {
                    (true, _) => "ok",
                    (_, true) => "cancelled",
                    _ => "failed",
                };
                let took = show_duration(*duration);
                (call_id, format!("{what} {tool} {word} {took}"), !success && !is_cancelled)
            }
            _ => return,
        };
        let mut item = TraceItem::logged("internal", self.newest_time(now), "call", &text);
        (item.traffic.call, item.is_error, item.client) = (Some(call.clone()), is_error, client);
        self.add(item);
    }

    pub fn find(&mut self, query: &str) {
        self.filter.set(query);
        self.is_still = false;
        self.refilter();
    }

    /// How many lines there are, and how many of them are shown.
    pub fn counts(&self) -> (usize, usize) {
        (self.ring.len(), self.found.len())
    }

    /// How many lines came since the view was paused; `None` while it is not.
    pub fn paused_count(&self) -> Option<u64> {
        self.pause_buffer.as_ref().map(TraceRing::end)
    }

    /// The lines that are shown in this height around the chosen one, and whether each is that.
    pub fn window(&self, height: usize) -> impl Iterator<Item = (bool, &TraceItem)> + '_ {
        let first = self.list().first(height, self.found.len());
        let numbers = self.found.iter().skip(first).take(height);
        numbers.filter_map(|number| Some((*number == self.chosen, self.ring.get(*number)?)))
    }

    /// The newest of the lines that are shown, at most so many, the oldest first.
    pub fn newest(&self, count: usize) -> impl Iterator<Item = &TraceItem> + '_ {
        let first = self.found.len().saturating_sub(count);
        self.found.iter().skip(first).filter_map(|number| self.ring.get(*number))
    }

    pub fn chosen(&self) -> Option<&TraceItem> {
        self.ring.get(self.chosen).filter(|_| !self.found.is_empty())
    }

    /// The newest lines of one server, the newest first, of the newest `among`.
    pub fn newest_of<'a>(
        &'a self,
        server: &'a str,
        among: usize,
    ) -> impl Iterator<Item = &'a TraceItem> + 'a {
        let newest = self.ring.iter().rev().take(among);
        newest.map(|(_, item)| item).filter(move |item| item.traffic.server == server)
    }

    /// What a server wrote to its standard error, the newest first, of the newest `among`.
    pub fn stderr_of<'a>(
        &'a self,
        server: &'a str,
        among: usize,
    ) -> impl Iterator<Item = &'a str> + 'a {
        self.newest_of(server, among).filter_map(|item| match &item.traffic.kind {
            TrafficKind::Stderr(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The pair of the selected line: the request and the response, as far as they are kept.
    fn pair(&self) -> Vec<&TraceItem> {
        let Some(item) = self.chosen() else { return Vec::new() };
        let other = item.pair.and_then(|pair| self.ring.get(pair));
        let mut pair: Vec<&TraceItem> = [Some(item), other].into_iter().flatten().collect();
        pair.sort_by_key(|item| !item.is_request());
        pair
    }

    fn add(&mut self, item: TraceItem) {
        if let Some(held) = &mut self.pause_buffer {
            held.push(item);
            return;
        }
        self.append(item);
        self.choose_newest();
    }

    fn append(&mut self, item: TraceItem) {
        let number = self.ring.push(item);
        while self.found.front().is_some_and(|number| *number < self.ring.first()) {
            self.found.pop_front();
        }
        let Some(item) = self.ring.get(number) else { return };
        self.is_stale |= item.pair == Some(self.chosen);
        if self.query.matches(item) {
            self.found.push_back(number);
        }
        if self.chosen < self.ring.first() {
            let oldest = self.found.front().copied().unwrap_or(number);
            self.choose(oldest);
        }
    }

    fn choose_newest(&mut self) {
        if let (false, Some(newest)) = (self.is_still, self.found.back()) {
            self.choose(*newest);
        }
    }

    fn choose(&mut self, number: u64) {
        if number != self.chosen {
            (self.chosen, self.scope) = (number, FrameScope::Chosen);
            self.frame.position.reset();
        }
        self.is_stale = true;
    }

    fn show(&mut self, side: FrameScope) {
        (self.scope, self.is_stale) = (side, true);
        self.frame.position.reset();
        self.lay_out();
    }

    /// Lays the chosen frame out, if that was not done.
    fn lay_out(&mut self) {
        if std::mem::take(&mut self.is_stale) {
            let frame = frame_text(&self.shown(self.scope));
            self.frame.replace(frame);
        }
    }

    /// The messages that are shown of the chosen line and what belongs to it.
    fn shown(&self, scope: FrameScope) -> Vec<&TraceItem> {
        let mut pair = self.pair();
        match scope {
            FrameScope::Chosen => return self.chosen().into_iter().collect(),
            FrameScope::Both => {}
            FrameScope::Request => pair.truncate(1),
            FrameScope::Answer => drop(pair.drain(..pair.len().saturating_sub(1))),
        }
        pair
    }

    /// Where the chosen line stands among those that are shown.
    pub fn list(&self) -> ListCursor {
        let mut list = ListCursor::default();
        let at = self.found.binary_search(&self.chosen).unwrap_or_else(|at| at);
        list.choose(at, self.found.len());
        list
    }

    fn refilter(&mut self) {
        self.query = TraceSearch::of(self.filter.text());
        let admitted = self.ring.iter().filter(|(_, item)| self.query.matches(item));
        self.found = admitted.map(|(number, _)| number).collect();
        // What was chosen stays so where it is still there.
        if let Some(number) = self.found.get(self.list().chosen()).copied() {
            self.choose(number);
        }
        self.choose_newest();
        self.is_stale = true;
        self.lay_out();
    }

    fn pause(&mut self, context: &mut AppContext) {
        match self.pause_buffer.take() {
            None => {
                self.pause_buffer = Some(TraceRing::default());
                context.show_status("paused; new lines are kept");
            }
            Some(mut held) => {
                let (count, gone) = (held.end(), held.first());
                for item in held.drain_items() {
                    self.append(item);
                }
                self.choose_newest();
                self.lay_out();
                let lost = if gone > 0 { format!(", {gone} lost") } else { String::new() };
                context.show_status(format!("{count} new lines{lost}"));
            }
        }
    }

    fn clear(&mut self) {
        self.ring.drain_items();
        if let Some(held) = &mut self.pause_buffer {
            *held = TraceRing::default();
        }
        self.found.clear();
        (self.frame, self.scope) = (ScrollText::default(), FrameScope::Chosen);
    }

    fn copy_selection(&self, both: bool, context: &mut AppContext) {
        let items = self.shown(if both { FrameScope::Both } else { self.scope });
        if items.is_empty() {
            return context.show_status("nothing to copy");
        }
        let what = if items.len() == 2 { "both frames" } else { "frame" };
        let texts = items.iter().map(|item| String::from_utf8_lossy(item.bytes()).into_owned());
        context.copy(what, texts.collect::<Vec<_>>().join("\n"));
    }

    fn export(&self, context: &mut AppContext) {
        let shown = self.found.iter().filter_map(|number| self.ring.get(*number));
        let (cut, whole): (Vec<&TraceItem>, Vec<&TraceItem>) = shown.partition(|item| item.is_cut);
        // A log line crossed no wire.
        let sent = whole.into_iter().filter(|item| item.level.is_none());
        let items: Vec<Traffic> = sent.map(|item| item.traffic.clone()).collect();
        if items.is_empty() {
            return context.show_status("nothing to export");
        }
        let path = format!("trace-{}.jsonl", timestamp::file_name_timestamp(context.now));
        context.emit(export(path.into(), items, cut.len()));
    }
}

#[rustfmt::skip]
pub const TRACE: KeyTable = KeyTable { name: "trace", title: "Trace", rows: &[
    row(&[Char(' ')], Action::Pause, "pause", "pause or resume; new lines are kept"),
    row(&[Char('/')], Action::Filter, "filter",
        "filter: words srv:NAME method:tools/* way:sent error:yes call:ID !word"),
    on_row(&[Enter], Action::Open, "pair", "show the frame with its request or response"),
    on_row(&[Char('t'), Left, Right], Action::ChangeFormat, "view", "show request, response or both"),
    row(&[Char('f')], Action::Follow, "follow", "follow the newest line"),
    on_row(&[Char('Y')], Action::CopyCommand, "", "copy the request and its response"),
    on_row(&[Char('E')], Action::Export, "export", "export for replay"),
    row(&[Char('C')], Action::Reset, "", "clear the trace"),
] };

/// Writes these messages to a trace file that was not there before; `cut` more were too large to keep.
pub fn export(path: PathBuf, items: Vec<Traffic>, cut: usize) -> Task {
    Task::message(
        ("export trace", path.clone(), items.len(), cut),
        async move |context: TaskContext| {
            let path = context.deps.cwd.join(path);
            let (shown, length) = (path.display().to_string(), items.len());
            let written = blocking(move || save(path, items)).await;
            let skipped = match cut {
                0 => String::new(),
                cut => format!("; skipped {cut} too large to keep"),
            };
            written
                .map(|()| format!("wrote {shown}: {length} lines for replay{skipped}"))
                .map_err(|error| error.to_string())
        },
    )
}

fn save(path: PathBuf, items: Vec<Traffic>) -> Result<(), Error> {
    if path.exists() {
        let shown = path.display();
        return Err(Error::usage(format!("'{shown}' already exists")));
    }
    let file = TraceFile::open(path)?;
    let sink = file.sink(|_| {});
    for item in items {
        sink.emit(item);
    }
    file.ensure_complete()
}
