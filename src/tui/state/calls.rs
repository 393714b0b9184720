//! The calls that were made here.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::live::Live;
use crate::host::request::CallOutcome;
use crate::model::{CallId, Event, Fault, JsonObject};
use crate::tui::event::RunId;

/// How many calls are remembered.
const KEPT: usize = 200;

/// A call.
#[derive(Debug)]
pub struct Call {
    /// Its number.
    pub run: RunId,
    /// What the host calls it, once it was begun.
    pub id: Option<CallId>,
    /// The tool's full name.
    pub tool: String,
    /// What it was called with.
    pub arguments: JsonObject,
    /// What was told of it while it ran.
    pub live: Live,
    /// What came of it; `None` while it runs.
    pub outcome: Option<Outcome>,
}

/// What came of a call.
pub type Outcome = Result<CallOutcome, Fault>;

/// The calls that were made here, the newest last.
#[derive(Debug, Default)]
pub struct Calls {
    all: VecDeque<Call>,
    next: u64,
    /// The arguments of calls that were made in earlier runs of the console.
    recalled: HashMap<String, JsonObject>,
}

impl Calls {
    /// A call is made.
    pub fn begin(&mut self, tool: String, arguments: JsonObject) -> RunId {
        let run = RunId(self.next);
        self.next += 1;
        if self.all.len() >= KEPT
            && let Some(oldest) = self.all.iter().position(|call| call.outcome.is_some())
        {
            self.all.remove(oldest);
        }
        self.all.push_back(Call {
            run,
            id: None,
            tool,
            arguments,
            live: Live::default(),
            outcome: None,
        });
        run
    }

    /// The host begins a call, and calls it this.
    pub fn began(&mut self, run: RunId, id: CallId) {
        if let Some(call) = self.all.iter_mut().find(|call| call.run == run) {
            call.id = Some(id);
        }
    }

    /// A call ended.
    pub fn end(&mut self, run: RunId, outcome: Outcome) {
        if let Some(call) = self.all.iter_mut().find(|call| call.run == run) {
            call.outcome = Some(outcome);
        }
    }

    /// How many were made until now.
    pub fn made(&self) -> u64 {
        self.next
    }

    /// What was called in earlier runs, and with which arguments.
    pub fn recall(&mut self, recalled: HashMap<String, JsonObject>) {
        self.recalled = recalled;
    }

    /// It is so late.
    pub fn tick(&mut self, now: Duration) {
        let running = self.all.iter_mut().filter(|call| call.outcome.is_none());
        running.for_each(|call| call.live.tick(now));
    }

    /// Hears what the host tells of calls that run.
    pub fn hear(&mut self, event: &Event) {
        let mut running = self.all.iter_mut().rev().filter(|call| call.outcome.is_none());
        match event {
            Event::Progress { call_id, .. } | Event::AttemptFailed { call_id, .. } => {
                if let Some(call) = running.find(|call| call.id.as_ref() == Some(call_id)) {
                    call.live.hear(event);
                }
            }
            Event::CallStarted { call_id, tool, parent: Some(parent) } => {
                for call in running {
                    let depth = match call.live.depth_of(parent) {
                        Some(depth) => depth + 1,
                        None if call.id.as_ref() == Some(parent) => 1,
                        None => continue,
                    };
                    return call.live.begin_nested(call_id, tool, depth);
                }
            }
            Event::CallFinished { call_id, success, duration, .. } => {
                if let Some(call) = running.find(|call| call.live.depth_of(call_id).is_some()) {
                    call.live.end_nested(call_id, *success, *duration);
                }
            }
            // A log line does not say which call it belongs to, only whose it is.
            Event::Log { origin, .. } => {
                running.filter(|call| call.is_of(origin)).for_each(|call| call.live.hear(event));
            }
            _ => {}
        }
    }

    /// The call of this number.
    pub fn get(&self, run: RunId) -> Option<&Call> {
        self.all.iter().find(|call| call.run == run)
    }

    /// The calls of a tool, the newest first.
    pub fn all_of<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a Call> + 'a {
        self.all.iter().rev().filter(move |call| call.tool == tool)
    }

    /// Those that run, the newest first.
    pub fn running(&self) -> impl Iterator<Item = &Call> + '_ {
        self.all.iter().rev().filter(|call| call.outcome.is_none())
    }

    /// How many calls that were answered by a server ended, and how many of them failed; of those
    /// that are remembered.
    pub fn tally(&self, server: &str) -> (usize, usize) {
        let failed = |outcome: &Outcome| match outcome {
            Ok(done) if done.definition.name.component() == Some(server) => {
                Some(done.fault().is_some())
            }
            Err(fault) if fault.server_name() == Some(server) => Some(true),
            _ => None,
        };
        let ended = self.all.iter().filter_map(|call| failed(call.outcome.as_ref()?));
        ended.fold((0, 0), |(all, bad), failed| (all + 1, bad + usize::from(failed)))
    }

    /// The newest one of a tool.
    pub fn newest_of(&self, tool: &str) -> Option<&Call> {
        self.all.iter().rev().find(|call| call.tool == tool)
    }

    /// The arguments a tool was last called with.
    pub fn arguments_of(&self, tool: &str) -> Option<&JsonObject> {
        let newest = self.newest_of(tool).map(|call| &call.arguments);
        newest.or_else(|| self.recalled.get(tool))
    }

    /// What was called from this one on, the oldest first.
    pub fn since(&self, first: u64) -> impl Iterator<Item = &Call> + '_ {
        self.all.iter().filter(move |call| call.run.0 >= first)
    }
}

impl Call {
    /// Whether its tool is this one, or one of this server.
    fn is_of(&self, origin: &str) -> bool {
        let rest = self.tool.strip_prefix(origin);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}
