//! Counting the results of one target's calls as they end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::host::load::{CompletedRequest, LoadOutcome};
use crate::model::ErrorKind;
use crate::util::histogram::Durations;

use super::report::{ErrorReport, SampleBlock, TimelineSlice};

/// Slices of the timeline at most; when one more is needed, pairs of them become one.
const MAX_SLICES: usize = 128;
const INITIAL_SLICE: Duration = Duration::from_millis(100);
/// Maximum number of kinds of failures told apart.
const MAX_ERROR_KINDS: usize = 32;

/// Counts the calls of one target.
#[derive(Debug, Clone)]
pub struct Meter {
    /// The first call that counts was to be sent then, of this turn and as if there had been no
    /// pauses.
    pub began: Option<Instant>,
    pub last: Option<Instant>,
    pub first_call: Option<Duration>,
    pub warm_up: u64,
    /// Of those: the tool answered, with a result or an error.
    pub warm_up_answered: u64,
    /// Calls that were sent and count.
    pub requests: u64,
    pub in_flight: u64,
    pub peak_in_flight: u64,
    pub ok: u64,
    pub tool_errors: u64,
    /// Failed, timeouts not included.
    pub errors: u64,
    pub timeouts: u64,
    /// Not answered when the run ended.
    pub unanswered: u64,
    /// Not made, because too many were in flight.
    pub dropped: u64,
    /// From the intended start, of answered calls.
    pub response: Durations,
    /// From the sending, of answered calls; of closed loads it is the response and not counted
    /// twice.
    service: Durations,
    pub failed: Durations,
    pub errors_by_kind: BTreeMap<String, ErrorReport>,
    pub bytes_out: u64,
    pub bytes_in: u64,
    /// From when a call could be sent to its sending.
    pub lag: Durations,
    /// Calls that waited because too many were in flight.
    pub queued: u64,
    timeline: Vec<TimelineSlice>,
    slice: Duration,
    earlier_turns: Duration,
    /// The account of the current turn; its counts are those of everything before it.
    turn: Option<SampleBlock>,
}

#[derive(Debug, Clone, Copy)]
pub struct PendingCall {
    /// Whether it is the target's very first call, warm-up or not.
    pub first: bool,
    /// Whether it counts; warm-up calls do not.
    pub is_counted: bool,
    /// Open loads: its moment, and from when on it could be sent.
    pub planned: Option<(Instant, Instant)>,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            began: None,
            last: None,
            first_call: None,
            warm_up: 0,
            warm_up_answered: 0,
            requests: 0,
            in_flight: 0,
            peak_in_flight: 0,
            ok: 0,
            tool_errors: 0,
            errors: 0,
            timeouts: 0,
            unanswered: 0,
            dropped: 0,
            response: Durations::default(),
            service: Durations::default(),
            failed: Durations::default(),
            errors_by_kind: BTreeMap::new(),
            bytes_out: 0,
            bytes_in: 0,
            lag: Durations::default(),
            queued: 0,
            timeline: Vec::new(),
            slice: INITIAL_SLICE,
            earlier_turns: Duration::ZERO,
            turn: None,
        }
    }
}

impl Meter {
    pub fn call_sent(&mut self, from: Instant, counts: bool) {
        self.in_flight += 1;
        self.peak_in_flight = self.peak_in_flight.max(self.in_flight);
        if counts {
            self.requests += 1;
            self.began.get_or_insert(from);
        } else {
            self.warm_up += 1;
        }
    }

    pub fn call_ended(&mut self, end: &CompletedRequest, call: PendingCall) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let service = end.ended_at.saturating_duration_since(end.sent_at);
        if call.first && !matches!(end.outcome, LoadOutcome::Unanswered) {
            self.first_call = Some(service);
        }
        if !call.is_counted {
            self.warm_up_answered +=
                u64::from(matches!(end.outcome, LoadOutcome::Ok | LoadOutcome::ToolError(_)));
            return;
        }
        let from = call.planned.map_or(end.sent_at, |(intended, _)| intended);
        let response = end.ended_at.saturating_duration_since(from);
        let began = *self.began.get_or_insert(from);
        if !matches!(end.outcome, LoadOutcome::Unanswered) {
            self.last = self.last.max(Some(end.ended_at));
        }
        self.bytes_out += end.bytes_out;
        self.bytes_in += end.bytes_in;
        if let Some((intended, ready)) = call.planned {
            self.lag.record(end.sent_at.saturating_duration_since(ready));
            self.queued += u64::from(ready > intended);
        }
        let since = self.earlier_turns + end.ended_at.saturating_duration_since(began);
        if matches!(end.outcome, LoadOutcome::Ok) {
            self.ok += 1;
            self.response.record(response);
            if call.planned.is_some() {
                self.service.record(service);
            }
            let slice = self.slice_at(since);
            slice.ok += 1;
            slice.response.record(response);
            if let Some(turn) = &mut self.turn {
                turn.response.record(response);
            }
            return;
        }
        self.slice_at(since).failed += 1;
        match &end.outcome {
            LoadOutcome::Ok => {}
            LoadOutcome::Unanswered => self.unanswered += 1,
            LoadOutcome::ToolError(message) => {
                self.tool_errors += 1;
                self.failure(ErrorKind::Tool.as_str(), since, service, message);
            }
            LoadOutcome::Failed(error) => {
                if error.kind() == ErrorKind::Timeout {
                    self.timeouts += 1;
                } else {
                    self.errors += 1;
                }
                self.failure(error.kind().as_str(), since, service, error.message());
            }
        }
    }

    fn failure(&mut self, kind: &str, since: Duration, took: Duration, message: &str) {
        self.failed.record(took);
        if let Some(report) = self.errors_by_kind.get_mut(kind) {
            report.count += 1;
        } else if self.errors_by_kind.len() < MAX_ERROR_KINDS {
            let first = ErrorReport { count: 1, first_seen: since, sample: message.to_owned() };
            self.errors_by_kind.insert(kind.to_owned(), first);
        }
    }

    /// From the sending, of answered calls.
    pub fn service(&self) -> &Durations {
        if self.service.count() > 0 { &self.service } else { &self.response }
    }

    /// The time from the first call that counts to the last end, pauses and the turns of others left
    /// out.
    pub fn active_time(&self) -> Duration {
        let now = self.began.zip(self.last);
        self.earlier_turns
            + now.map_or(Duration::ZERO, |(from, to)| to.saturating_duration_since(from))
    }

    /// How long it is being called by `now`: its earlier turns, and the one that runs.
    pub fn elapsed(&self, now: Instant) -> Duration {
        let turn = self.began.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.earlier_turns + turn
    }

    pub fn exclude_pause(&mut self, pause: Duration) {
        self.began = self.began.and_then(|began| began.checked_add(pause));
    }

    /// A turn begins: from now on there is an account of it, beside that of everything.
    pub fn begin_turn(&mut self) {
        self.turn = Some(SampleBlock {
            elapsed: Duration::ZERO,
            ok: self.ok,
            failed: self.failures() + self.unanswered,
            response: Durations::default(),
        });
    }

    pub fn end_turn(&mut self) -> Option<SampleBlock> {
        let active = self.active_time();
        let mut turn = self.turn.take()?;
        turn.elapsed = active.saturating_sub(self.earlier_turns);
        turn.ok = self.ok - turn.ok;
        turn.failed = self.failures() + self.unanswered - turn.failed;
        self.earlier_turns = active;
        (self.began, self.last) = (None, None);
        Some(turn)
    }

    /// Calls that ended otherwise than answered, those without an end left out.
    pub fn failures(&self) -> u64 {
        self.tool_errors + self.errors + self.timeouts
    }

    pub fn timeline(&self) -> &[TimelineSlice] {
        &self.timeline
    }

    fn slice_at(&mut self, since: Duration) -> &mut TimelineSlice {
        let at = |slice: Duration| {
            usize::try_from(since.as_nanos() / slice.as_nanos()).unwrap_or(usize::MAX)
        };
        while at(self.slice) >= MAX_SLICES {
            self.slice *= 2;
            let halves = std::mem::take(&mut self.timeline);
            self.timeline = halves.chunks(2).map(|pair| merge_slices(pair, self.slice)).collect();
        }
        let at = at(self.slice);
        while self.timeline.len() <= at {
            let number = u32::try_from(self.timeline.len()).unwrap_or(u32::MAX);
            self.timeline.push(TimelineSlice {
                from: self.slice * number,
                lasting: self.slice,
                ok: 0,
                failed: 0,
                response: Durations::coarse(),
            });
        }
        &mut self.timeline[at]
    }
}

fn merge_slices(pair: &[TimelineSlice], lasting: Duration) -> TimelineSlice {
    let mut response = Durations::coarse();
    for slice in pair {
        response.merge(&slice.response);
    }
    TimelineSlice {
        from: pair.first().map_or(Duration::ZERO, |slice| slice.from),
        lasting,
        ok: pair.iter().map(|slice| slice.ok).sum(),
        failed: pair.iter().map(|slice| slice.failed).sum(),
        response,
    }
}
