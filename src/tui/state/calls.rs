//! The calls that were made here.

use std::collections::VecDeque;

use crate::host::request::CallOutcome;
use crate::model::{CallId, Fault, JsonObject};
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
        self.all.push_back(Call { run, id: None, tool, arguments, outcome: None });
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
        self.newest_of(tool).map(|call| &call.arguments)
    }
}
