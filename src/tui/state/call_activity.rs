//! The activity of a running call: progress, log lines, waits, and nested calls.
//!
//! Bounded: of a tool that reports a lot, less is kept; it never gets more time.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::{CallId, HostEvent};
use crate::util::text::shorten;

const LOG: usize = 100;
/// Calls within a call that are kept.
const NESTED: usize = 50;
/// The maximum number of characters of one line.
const LONGEST: usize = 500;

#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    /// In the tool's own measure.
    pub at: f64,
    pub total: Option<f64>,
    /// What the tool says it is doing.
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
    /// The time left until the next attempt.
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

    pub fn handle_host_event(&mut self, event: &HostEvent) {
        match event {
            HostEvent::Progress { progress, total, message, .. } => {
                self.retry = None;
                let message = message.as_ref().map(|said| shorten(said, LONGEST).into_owned());
                // What was said last holds until something else is said.
                let before = self.progress.take().and_then(|before| before.message);
                let message = message.or(before);
                self.progress = Some(CallProgress { at: *progress, total: *total, message });
            }
            HostEvent::AttemptFailed { attempt, error, delay, .. } => {
                self.progress = None;
                self.retry = Some(PendingRetry {
                    attempt: *attempt,
                    reason: shorten(error.message(), LONGEST).into_owned(),
                    delay: *delay,
                    since: None,
                });
            }
            HostEvent::Log { level, text, .. } => {
                if self.log.len() >= LOG {
                    self.log.pop_front();
                }
                self.log.push_back((level.0.clone(), shorten(text, LONGEST).into_owned()));
            }
            _ => {}
        }
    }

    pub fn begin_nested(&mut self, id: &CallId, tool: &str, depth: usize) {
        if self.children.len() < NESTED {
            let tool = shorten(tool, LONGEST).into_owned();
            self.children.push(ChildCall { id: id.clone(), tool, depth, ended: None });
        }
    }

    pub fn end_nested(&mut self, id: &CallId, success: bool, took: Duration) {
        if let Some(nested) = self.children.iter_mut().find(|nested| nested.id == *id) {
            nested.ended = Some((success, took));
        }
    }
}
