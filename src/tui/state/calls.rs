//! The calls made in this console.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::call_activity::CallActivity;
use crate::model::{CallId, HostEvent, JsonObject};
use crate::tui::event::ConsoleCallId;
use crate::tui::presentation::CallResult;

/// The maximum number of ended calls that are kept.
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
    pub(super) all: VecDeque<ConsoleCall>,
    next: u64,
    saved_arguments: HashMap<String, JsonObject>,
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

    pub fn set_saved_arguments(&mut self, recalled: HashMap<String, JsonObject>) {
        self.saved_arguments = recalled;
    }

    /// Takes in the current time, which running calls are measured with.
    pub fn tick(&mut self, now: Duration) {
        let running = self.all.iter_mut().filter(|call| call.outcome.is_none());
        running.for_each(|call| call.activity.tick(now));
    }

    pub fn handle_host_event(&mut self, event: &HostEvent) {
        let mut running = self.all.iter_mut().rev().filter(|call| call.outcome.is_none());
        match event {
            HostEvent::Progress { call_id, .. } | HostEvent::AttemptFailed { call_id, .. } => {
                if let Some(call) = running.find(|call| call.id.as_ref() == Some(call_id)) {
                    call.activity.handle_host_event(event);
                }
            }
            HostEvent::CallStarted { call_id, tool, parent: Some(parent), .. } => {
                for call in running {
                    let depth = match call.activity.depth_of(parent) {
                        Some(depth) => depth + 1,
                        None if call.id.as_ref() == Some(parent) => 1,
                        None => continue,
                    };
                    return call.activity.begin_nested(call_id, tool, depth);
                }
            }
            HostEvent::CallFinished { call_id, success, duration, .. } => {
                if let Some(call) = running.find(|call| call.activity.depth_of(call_id).is_some()) {
                    call.activity.end_nested(call_id, *success, *duration);
                }
            }
            // A log line does not name its call, only its origin.
            HostEvent::Log { origin, .. } => {
                running
                    .filter(|call| call.is_of(origin))
                    .for_each(|call| call.activity.handle_host_event(event));
            }
            _ => {}
        }
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

    pub fn newest_of(&self, tool: &str) -> Option<&ConsoleCall> {
        self.all.iter().rev().find(|call| call.tool == tool)
    }

    pub fn arguments_of(&self, tool: &str) -> Option<&JsonObject> {
        let newest = self.newest_of(tool).map(|call| &call.arguments);
        newest.or_else(|| self.saved_arguments.get(tool))
    }
}

impl ConsoleCall {
    /// Whether its tool is this one, or one of this server.
    fn is_of(&self, origin: &str) -> bool {
        let rest = self.tool.strip_prefix(origin);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}
