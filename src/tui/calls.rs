//! The calls made in this console.

use std::collections::{BTreeMap, HashMap, VecDeque};

use indexmap::IndexMap;

use crate::model::{CallId, ErrorKind, HostEvent};
use crate::stats::count::CallCounts;
use crate::tui::event::ConsoleCallId;
use crate::tui::prelude::*;
use crate::tui::views::result::presentation::CallResult;

const MAX_CALLS: usize = 200;

#[derive(Debug)]
pub struct ConsoleCall {
    pub run: ConsoleCallId,
    pub id: Option<CallId>,
    pub tool: String,
    pub arguments: JsonObject,
    pub activity: CallActivity,
    /// The outcome; `None` while the call is running.
    pub outcome: Option<Arc<CallResult>>,
}

#[derive(Debug, Default)]
pub struct ConsoleCalls {
    pub all: VecDeque<ConsoleCall>,
    next: u64,
    /// The last arguments of tools that were not called here, by their full names.
    pub saved_arguments: HashMap<String, JsonObject>,
}

impl ConsoleCalls {
    pub fn begin(&mut self, tool: String, arguments: JsonObject) -> ConsoleCallId {
        let run = ConsoleCallId(self.next);
        self.next += 1;
        if self.all.len() >= MAX_CALLS
            && let Some(oldest) = self.all.iter().position(|call| call.outcome.is_some())
        {
            self.all.remove(oldest);
        }
        self.all.push_back(ConsoleCall {
            run,
            id: None,
            tool,
            arguments,
            activity: CallActivity::default(),
            outcome: None,
        });
        run
    }

    pub fn set_host_id(&mut self, run: ConsoleCallId, id: CallId) {
        if let Some(call) = self.all.iter_mut().find(|call| call.run == run) {
            call.id = Some(id);
        }
    }

    pub fn end(&mut self, run: ConsoleCallId, outcome: CallResult) {
        if let Some(call) = self.all.iter_mut().find(|call| call.run == run) {
            call.outcome = Some(Arc::new(outcome));
        }
    }

    /// Takes in the current time, which running calls are measured with.
    pub fn tick(&mut self, now: Duration) {
        let running = self.all.iter_mut().filter(|call| call.outcome.is_none());
        running.for_each(|call| call.activity.tick(now));
    }

    pub fn handle_host_event(&mut self, event: &HostEvent) {
        let running = self.all.iter_mut().filter(|call| call.outcome.is_none());
        running.for_each(|call| call.handle_host_event(event));
    }

    pub fn has_made(&self, id: &CallId) -> bool {
        let is_part = |call: &ConsoleCall| call.activity.depth_of(id).is_some();
        self.all.iter().rev().any(|call| call.id.as_ref() == Some(id) || is_part(call))
    }

    pub fn all_of<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a ConsoleCall> + 'a {
        self.all.iter().rev().filter(move |call| call.tool == tool)
    }

    pub fn running(&self) -> impl Iterator<Item = &ConsoleCall> + '_ {
        self.all.iter().rev().filter(|call| call.outcome.is_none())
    }

    pub fn is_running(&self) -> bool {
        self.running().next().is_some()
    }

    /// How many calls that were answered by a server ended, and how many of them failed; of those
    /// that are remembered.
    pub fn server_counts(&self, server: &str) -> (usize, usize) {
        let failed = |outcome: &CallResult| match outcome {
            Ok(done) if done.definition.name.component() == Some(server) => {
                Some(done.error().is_some_and(|error| !error.is_cancelled()))
            }
            Err(error) if error.server() == Some(server) => Some(true),
            _ => None,
        };
        let ended = self.all.iter().filter_map(|call| failed(call.outcome.as_deref()?));
        ended.fold((0, 0), |(all, bad), failed| (all + 1, bad + usize::from(failed)))
    }

    /// Why calls are in no record: it is switched off, or could not be written when the newest call
    /// ended. `key` is that of its settings.
    pub fn recording_problem(&self, key: &str, is_recording: bool) -> Option<String> {
        if !is_recording {
            return Some(format!(
                "Recording is off. Set {key}: {{ enabled: true }} to turn it on."
            ));
        }
        let outcome = self.all.iter().rev().find_map(|call| call.outcome.as_deref())?;
        outcome.as_ref().ok()?.metadata.unrecorded.clone()
    }

    pub fn newest_of(&self, tool: &str) -> Option<&ConsoleCall> {
        self.all.iter().rev().find(|call| call.tool == tool)
    }

    pub fn arguments_of(&self, tool: &str) -> Option<&JsonObject> {
        let newest = self.newest_of(tool).map(|call| &call.arguments);
        newest.or_else(|| self.saved_arguments.get(tool))
    }
}

pub fn error_of(outcome: &CallResult) -> Option<&Error> {
    outcome.as_ref().map_or_else(Some, |done| done.error())
}

impl ConsoleCall {
    /// Whether its arguments were refused.
    pub fn is_refused(&self) -> bool {
        let error = self.outcome.as_deref().and_then(error_of);
        error.is_some_and(|error| error.kind() == ErrorKind::Usage)
    }

    /// Takes in what is told of the call while it runs, or of one within it.
    fn handle_host_event(&mut self, event: &HostEvent) {
        let is_own = |id: &CallId| self.id.as_ref() == Some(id);
        match event {
            HostEvent::Progress { call_id, progress, total, message, .. } if is_own(call_id) => {
                self.activity.retry = None;
                let message = message.as_ref().map(|text| shorten(text, LONGEST).into_owned());
                // What was said last holds until something else is said.
                let message = message.or_else(|| self.activity.progress.take()?.message);
                self.activity.progress =
                    Some(CallProgress { at: *progress, total: *total, message });
            }
            HostEvent::AttemptFailed { call_id, attempt, error, delay, .. } if is_own(call_id) => {
                self.activity.progress = None;
                self.activity.retry = Some(PendingRetry {
                    attempt: *attempt,
                    reason: shorten(error.message(), LONGEST).into_owned(),
                    delay: *delay,
                    since: None,
                });
            }
            HostEvent::CallStarted { call_id, tool, parent: Some(parent), .. } => {
                let depth = match self.activity.depth_of(parent) {
                    Some(depth) => depth + 1,
                    None if is_own(parent) => 1,
                    None => return,
                };
                if self.activity.children.len() < NESTED {
                    let (id, tool) = (call_id.clone(), shorten(tool, LONGEST).into_owned());
                    self.activity.children.push(ChildCall { id, tool, depth, ended: None });
                }
            }
            HostEvent::CallFinished { call_id, success, duration, .. } => {
                let mut children = self.activity.children.iter_mut();
                if let Some(nested) = children.find(|nested| nested.id == *call_id) {
                    nested.ended = Some((*success, *duration));
                }
            }
            // A log line does not name its call, only its origin.
            HostEvent::Log { origin, level, text, .. } if self.is_of(origin) => {
                let text = shorten(text, LONGEST).into_owned();
                keep_last(&mut self.activity.log, LOG, (level.0.clone(), text));
            }
            _ => {}
        }
    }

    /// Whether its tool is this one, or one of this server.
    fn is_of(&self, origin: &str) -> bool {
        let rest = self.tool.strip_prefix(origin);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

/// Appends to what is remembered; the oldest makes room for it.
pub fn keep_last<T>(kept: &mut VecDeque<T>, most: usize, newest: T) {
    if kept.len() >= most {
        kept.pop_front();
    }
    kept.push_back(newest);
}

const LOG: usize = 100;
const NESTED: usize = 50;
const LONGEST: usize = 500;

#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    /// In the tool's own measure.
    pub at: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

impl CallProgress {
    /// The part that is done, from 0 to 1, when the end is known.
    pub fn share(&self) -> Option<f64> {
        let share = self.at / self.total?;
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }
}

/// An attempt failed, and another one follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRetry {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// Why the last attempt failed.
    pub reason: String,
    /// How long the host waits before the next attempt.
    pub delay: Duration,
    /// When the wait began, as of the last tick.
    pub since: Option<Duration>,
}

impl PendingRetry {
    pub fn remaining(&self, now: Duration) -> Duration {
        let passed = self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        self.delay.saturating_sub(passed)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildCall {
    pub id: CallId,
    pub tool: String,
    /// The nesting depth, from 1 for a direct call.
    pub depth: usize,
    /// How it ended: whether it worked, and how long it took.
    pub ended: Option<(bool, Duration)>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallActivity {
    /// When it was first seen running.
    pub since: Option<Duration>,
    /// The newest progress; `None` when the tool reported none.
    pub progress: Option<CallProgress>,
    /// What it waits for before the next attempt.
    pub retry: Option<PendingRetry>,
    /// What was logged while it ran: the level and the line, the newest last.
    pub log: VecDeque<(String, String)>,
    pub children: Vec<ChildCall>,
}

impl CallActivity {
    pub fn tick(&mut self, now: Duration) {
        self.since.get_or_insert(now);
        if let Some(retry) = &mut self.retry {
            retry.since.get_or_insert(now);
        }
    }

    /// The nesting depth of a call within this one; `None` when it is not part of it.
    pub fn depth_of(&self, id: &CallId) -> Option<usize> {
        self.children.iter().find(|nested| nested.id == *id).map(|nested| nested.depth)
    }
}

/// The number of seconds whose calls are counted individually.
pub const LIVE_SECONDS: u64 = 60;
const MAX_CLIENTS: usize = 8;
/// The maximum number of tools that are counted; of more, those that were called last.
const MAX_TOOLS: usize = 500;

/// The calls that ended since the console was opened, of each tool and of all.
#[derive(Debug, Default)]
pub struct LiveCalls {
    tools: HashMap<String, LiveToolCalls>,
    pub all: LiveToolCalls,
}

#[derive(Debug, Default)]
pub struct LiveToolCalls {
    pub counts: CallCounts,
    pub clients: BTreeMap<String, u64>,
    /// How many ended in which second since the Unix epoch, in order; only of the last minute.
    recent: VecDeque<(u64, u64)>,
}

impl LiveCalls {
    /// Counts a call that ended now, the time since the Unix epoch. `client` made it, when that was
    /// not this console.
    pub fn handle_host_event(&mut self, event: &HostEvent, client: Option<&str>, now: Duration) {
        let HostEvent::CallFinished { tool, .. } = event else { return };
        if !self.tools.contains_key(tool) && self.tools.len() >= MAX_TOOLS {
            let last = |calls: &LiveToolCalls| calls.recent.back().map(|(second, _)| *second);
            let oldest = self.tools.iter().min_by_key(|(_, calls)| last(calls));
            if let Some(oldest) = oldest.map(|(tool, _)| tool.clone()) {
                self.tools.remove(&oldest);
            }
        }
        self.all.record(event, client, now);
        self.tools.entry(tool.clone()).or_default().record(event, client, now);
    }

    /// The calls of a tool, by its full name; `None` before one ended.
    pub fn of(&self, tool: &str) -> Option<&LiveToolCalls> {
        self.tools.get(tool)
    }
}

impl LiveToolCalls {
    fn record(&mut self, event: &HostEvent, client: Option<&str>, now: Duration) {
        let HostEvent::CallFinished { success, is_cancelled, duration, .. } = event else { return };
        match (success, is_cancelled) {
            (true, _) => {
                self.counts.ok += 1;
                self.counts.durations.record(*duration);
            }
            (_, true) => self.counts.cancelled += 1,
            _ => self.counts.add_failures("failed", 1),
        }
        if let Some(client) = client {
            let is_counted = self.clients.contains_key(client) || self.clients.len() < MAX_CLIENTS;
            let name = if is_counted { client } else { "others" };
            *self.clients.entry(name.to_owned()).or_default() += 1;
        }
        let second = now.as_secs();
        match self.recent.back_mut() {
            Some((last, count)) if *last == second => *count += 1,
            _ => self.recent.push_back((second, 1)),
        }
        while self.recent.front().is_some_and(|(first, _)| first + LIVE_SECONDS <= second) {
            self.recent.pop_front();
        }
    }

    /// How many ended in each of the last 60 seconds, the earliest first.
    pub fn by_second(&self, now: Duration) -> Vec<u64> {
        let first = (now.as_secs() + 1).saturating_sub(LIVE_SECONDS);
        let count =
            |second| self.recent.iter().find(|(at, _)| *at == second).map_or(0, |own| own.1);
        (first..first + LIVE_SECONDS).map(count).collect()
    }

    /// Whether one ended in the last 60 seconds, so that the picture of them moves.
    pub fn is_recent(&self, now: Duration) -> bool {
        self.recent.back().is_some_and(|(last, _)| last + LIVE_SECONDS > now.as_secs())
    }
}

/// How many calls are remembered at least; of more than twice as many, those that began last.
const MAX_OTHER_CALLS: usize = 1_000;
/// The maximum number of characters of the name of a client, which it chose itself.
const MAX_NAME: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherCall {
    /// The identity that all its events share.
    pub id: CallId,
    pub tool: String,
    pub client: String,
    pub since: Duration,
    pub is_running: bool,
}

#[derive(Debug, Default)]
pub struct OtherClients {
    calls: IndexMap<CallId, OtherCall>,
}

impl OtherClients {
    /// Takes in an event of the host. Calls of `own` are not another client's.
    pub fn handle_host_event(&mut self, event: &HostEvent, own: &ConsoleCalls, now: Duration) {
        match event {
            HostEvent::CallStarted { call_id, tool, parent, client: Some(client) } => {
                let is_own = |id: &CallId| own.has_made(id);
                if is_own(call_id) || parent.as_ref().is_some_and(is_own) {
                    return;
                }
                if self.calls.len() >= 2 * MAX_OTHER_CALLS {
                    // Half at a time, so that one call costs little on average.
                    self.calls.drain(..MAX_OTHER_CALLS);
                }
                let call = OtherCall {
                    id: call_id.clone(),
                    tool: tool.clone(),
                    client: shorten(client, MAX_NAME).into_owned(),
                    since: now,
                    is_running: true,
                };
                self.calls.insert(call_id.clone(), call);
            }
            HostEvent::CallFinished { call_id, .. } => {
                if let Some(call) = self.calls.get_mut(call_id) {
                    call.is_running = false;
                }
            }
            _ => {}
        }
    }

    /// The client that made a call; `None` for a call of this console, and one that is not known.
    pub fn client_of(&self, id: &CallId) -> Option<&str> {
        self.calls.get(id).map(|call| &*call.client)
    }

    pub fn running(&self) -> impl Iterator<Item = &OtherCall> + '_ {
        self.calls.values().rev().filter(|call| call.is_running)
    }

    /// The host is gone, and nothing is heard of its calls any more.
    pub fn clear(&mut self) {
        self.calls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(live: &mut LiveCalls, tool: &str, at: u64, success: bool, is_cancelled: bool) {
        let event = HostEvent::CallFinished {
            call_id: CallId(format!("{tool}-{at}").into()),
            tool: tool.to_owned(),
            success,
            is_cancelled,
            duration: Duration::from_millis(at),
        };
        live.handle_host_event(&event, None, Duration::from_secs(at));
    }

    #[test]
    fn calls_are_counted_by_kind_and_leave_the_picture_after_a_minute() {
        let mut live = LiveCalls::default();
        for (at, success, is_cancelled) in
            [(100, true, false), (100, false, false), (130, false, true), (159, true, false)]
        {
            ended(&mut live, "a", at, success, is_cancelled);
        }
        let calls = live.of("a").unwrap();
        let counts = &calls.counts;
        assert_eq!((counts.ok, counts.failed(), counts.cancelled, counts.calls()), (2, 1, 1, 4));
        assert_eq!(counts.durations.count(), 2);
        let seconds = calls.by_second(Duration::from_secs(159));
        assert_eq!((seconds[0], seconds[30], seconds[59]), (2, 1, 1));
        let later = calls.by_second(Duration::from_secs(200));
        assert_eq!((later.iter().sum::<u64>(), later[18]), (1, 1));
        assert!(calls.is_recent(Duration::from_secs(218)));
        assert!(!calls.is_recent(Duration::from_secs(219)));
        assert!(live.of("b").is_none());
    }

    #[test]
    fn the_number_of_tools_is_bounded() {
        let mut live = LiveCalls::default();
        for at in 0..2 * u64::try_from(MAX_TOOLS).unwrap() {
            ended(&mut live, &format!("t{at}"), at, true, false);
        }
        assert_eq!(live.tools.len(), MAX_TOOLS);
        assert!(live.of("t0").is_none() && live.of("t999").is_some());
    }
}

#[cfg(test)]
mod other_clients_tests {
    use super::*;

    fn started(id: &str, parent: Option<&str>, client: &str) -> HostEvent {
        HostEvent::CallStarted {
            call_id: CallId(id.into()),
            tool: "echo".to_owned(),
            parent: parent.map(|parent| CallId(parent.into())),
            client: Some(client.to_owned()),
        }
    }

    fn finished(id: &str) -> HostEvent {
        HostEvent::CallFinished {
            call_id: CallId(id.into()),
            tool: "echo".to_owned(),
            success: true,
            is_cancelled: false,
            duration: Duration::ZERO,
        }
    }

    #[test]
    fn calls_of_this_console_and_what_they_call_are_its_own() {
        let mut own = ConsoleCalls::default();
        let run = own.begin("echo".to_owned(), JsonObject::new());
        own.set_host_id(run, CallId("mine".into()));
        let mut others = OtherClients::default();
        let events = [
            started("mine", None, "toolhost console"),
            started("within", Some("mine"), "toolhost console"),
            started("theirs", None, "an editor"),
            started("nested", Some("theirs"), "an editor"),
        ];
        for event in &events {
            others.handle_host_event(event, &own, Duration::ZERO);
        }
        let running: Vec<&str> = others.running().map(|call| &*call.id.0).collect();
        assert_eq!(running, ["nested", "theirs"]);
        others.handle_host_event(&finished("theirs"), &own, Duration::ZERO);
        assert_eq!(others.running().count(), 1);
        assert_eq!(others.client_of(&CallId("theirs".into())), Some("an editor"));
        assert_eq!(others.client_of(&CallId("mine".into())), None);
    }

    #[test]
    fn the_number_of_calls_and_the_names_of_clients_are_bounded() {
        let (own, mut others) = (ConsoleCalls::default(), OtherClients::default());
        for number in 0..5 * MAX_OTHER_CALLS {
            let event = started(&number.to_string(), None, &"x".repeat(10_000));
            others.handle_host_event(&event, &own, Duration::ZERO);
        }
        assert!((MAX_OTHER_CALLS..=2 * MAX_OTHER_CALLS).contains(&others.calls.len()));
        assert!(others.calls[0].client.chars().count() < 2 * MAX_NAME);
    }
}
