//! Counting the results of one target's calls as they end.

use std::time::{Duration, Instant};

use crate::host::load::{CompletedCall, LoadOutcome};
use crate::model::ErrorKind;
use crate::util::histogram::Durations;

use super::report::{ErrorReport, SampleBlock, TargetReport, TimelineSlice};
use super::scheduler::PlannedCall;

/// Slices of the timeline at most; when one more is needed, pairs of them become one.
const MAX_SLICES: usize = 128;
const INITIAL_SLICE: Duration = Duration::from_millis(100);
const MAX_ERROR_KINDS: usize = 32;

#[derive(Debug, Clone, Default)]
pub struct Meter {
    /// What was counted; of closed loads `service` is `response` and not counted twice.
    pub report: TargetReport,
    /// The first call that counts was to be sent then, of this turn and as if there had been no
    /// pauses.
    began: Option<Instant>,
    last: Option<Instant>,
    /// Of the calls to warm up: the tool answered, with a result or an error.
    pub warm_up_answered: u64,
    pub in_flight: u64,
    /// From when a call could be sent to its sending.
    pub lag: Durations,
    /// Calls that waited because too many were in flight.
    pub queued: u64,
    earlier_turns: Duration,
    /// The account of the current turn; its counts are those of everything before it.
    turn: Option<SampleBlock>,
}

/// A call in flight.
#[derive(Debug, Clone, Copy)]
pub struct PendingCall {
    pub planned: PlannedCall,
    /// Whether it is the target's very first call, warm-up or not.
    pub is_first: bool,
    pub sent_at: Instant,
}

impl PendingCall {
    /// What its response time counts from.
    fn from(&self) -> Instant {
        self.planned.moments.map_or(self.sent_at, |(intended, _)| intended)
    }
}

impl Meter {
    pub fn call_sent(&mut self, call: &PendingCall) {
        self.in_flight += 1;
        self.report.peak_in_flight = self.report.peak_in_flight.max(self.in_flight);
        if call.planned.is_counted {
            self.report.requests += 1;
            self.began.get_or_insert(call.from());
        } else {
            self.report.warm_up += 1;
        }
    }

    pub fn call_ended(&mut self, call: &PendingCall, end: &CompletedCall) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let service = end.ended_at.saturating_duration_since(call.sent_at);
        if call.is_first && !matches!(end.outcome, LoadOutcome::Unanswered) {
            self.report.cold.first_call = Some(service);
        }
        if !call.planned.is_counted {
            self.warm_up_answered +=
                u64::from(matches!(end.outcome, LoadOutcome::Ok | LoadOutcome::ToolError(_)));
            return;
        }
        let response = end.ended_at.saturating_duration_since(call.from());
        let began = *self.began.get_or_insert(call.from());
        if !matches!(end.outcome, LoadOutcome::Unanswered) {
            self.last = self.last.max(Some(end.ended_at));
        }
        self.report.bytes_out += end.bytes_out;
        self.report.bytes_in += end.bytes_in;
        if let Some((intended, ready)) = call.planned.moments {
            self.lag.record(call.sent_at.saturating_duration_since(ready));
            self.queued += u64::from(ready > intended);
        }
        let since = self.earlier_turns + end.ended_at.saturating_duration_since(began);
        let slice = slice_at(&mut self.report.timeline, since);
        let (kind, message) = match &end.outcome {
            LoadOutcome::Ok => {
                slice.ok += 1;
                slice.response.record(response);
                self.report.ok += 1;
                self.report.response.record(response);
                if call.planned.moments.is_some() {
                    self.report.service.record(service);
                }
                if let Some(turn) = &mut self.turn {
                    turn.response.record(response);
                }
                return;
            }
            LoadOutcome::Unanswered => {
                slice.failed += 1;
                self.report.unanswered += 1;
                return;
            }
            LoadOutcome::ToolError(message) => {
                self.report.tool_errors += 1;
                (ErrorKind::Tool, &**message)
            }
            LoadOutcome::Failed(error) if error.kind() == ErrorKind::Timeout => {
                self.report.timeouts += 1;
                (ErrorKind::Timeout, error.message())
            }
            LoadOutcome::Failed(error) => {
                self.report.errors += 1;
                (error.kind(), error.message())
            }
        };
        slice.failed += 1;
        self.report.failed.record(service);
        let kinds = &mut self.report.errors_by_kind;
        if let Some(report) = kinds.get_mut(kind.as_str()) {
            report.count += 1;
        } else if kinds.len() < MAX_ERROR_KINDS {
            let first = ErrorReport { count: 1, first_seen: since, sample: message.to_owned() };
            kinds.insert(kind.as_str().to_owned(), first);
        }
    }

    /// From the sending, of answered calls.
    pub fn service(&self) -> &Durations {
        let report = &self.report;
        if report.service.count() > 0 { &report.service } else { &report.response }
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
            ok: self.report.ok,
            failed: self.report.failures() + self.report.unanswered,
            response: Durations::default(),
        });
    }

    pub fn end_turn(&mut self) -> Option<SampleBlock> {
        let active = self.active_time();
        let mut turn = self.turn.take()?;
        turn.elapsed = active.saturating_sub(self.earlier_turns);
        turn.ok = self.report.ok - turn.ok;
        turn.failed = self.report.failures() + self.report.unanswered - turn.failed;
        self.earlier_turns = active;
        (self.began, self.last) = (None, None);
        Some(turn)
    }
}

fn slice_at(timeline: &mut Vec<TimelineSlice>, since: Duration) -> &mut TimelineSlice {
    let mut lasting = timeline.first().map_or(INITIAL_SLICE, |slice| slice.lasting);
    let at = |lasting: Duration| {
        usize::try_from(since.as_nanos() / lasting.as_nanos()).unwrap_or(usize::MAX)
    };
    while at(lasting) >= MAX_SLICES {
        lasting *= 2;
        let joined = timeline.chunks(2).filter_map(TimelineSlice::joined);
        *timeline = joined.map(|slice| TimelineSlice { lasting, ..slice }).collect();
    }
    let at = at(lasting);
    while timeline.len() <= at {
        let number = u32::try_from(timeline.len()).unwrap_or(u32::MAX);
        timeline.push(TimelineSlice {
            from: lasting * number,
            lasting,
            ok: 0,
            failed: 0,
            response: Durations::coarse(),
        });
    }
    &mut timeline[at]
}
