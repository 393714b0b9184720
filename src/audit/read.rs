//! Reading the audit log: intents and outcomes joined into calls.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;

use crate::model::{BreakpointRecord, CallFacts, CallFilter, CallerRecord, ErrorKind, JsonObject};
use crate::util::append::AppendError;
use crate::util::segments::RecordLine;

/// The wall clock is said to have been put back when a line is older than the one before it by more
/// than this, in seconds: the lines of several processes do not come in perfect order.
const CLOCK_STEP: f64 = 2.0;

/// How many lines further back the intent of an outcome is looked for, once everything else was
/// found.
const MAX_INTENT_DISTANCE: usize = 100_000;

const MAX_OPEN_CALLS: usize = 10_000;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditedCall {
    pub call: String,
    /// When it began, or was refused: seconds since the Unix epoch.
    pub at: f64,
    /// How many seconds the wall clock was put back just before its last line.
    pub clock_set_back_by: Option<f64>,
    pub pid: Option<u32>,
    pub user: Option<String>,
    pub session: Option<String>,
    /// Whose call it was; lines of earlier versions do not say.
    pub caller: Option<CallerRecord>,
    pub parent: Option<String>,
    pub tool: String,
    pub server: Option<String>,
    /// `internal` for tools of a file, `mcp` for those of a server.
    pub source: Option<String>,
    pub decision: Option<String>,
    /// The arguments, secrets masked; long ones are cut.
    pub arguments: Option<JsonObject>,
    /// What breakpoints did to it, and then to its result.
    pub breakpoints: Vec<BreakpointRecord>,
    /// How it ended; `None` when nothing was written about that.
    pub outcome: Option<AuditOutcome>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOutcome {
    /// `ok`, or the word of the failure's kind.
    pub result: String,
    /// The message of the failure; `None` on success.
    pub message: Option<String>,
    /// From first attempt to answer, in microseconds.
    pub duration_us: u64,
    /// Attempts made; 0 when refused.
    pub attempts: u32,
    pub bytes: u64,
}

impl AuditedCall {
    /// Whether it did not end well, or is not known to.
    pub fn has_failed(&self) -> bool {
        self.outcome.as_ref().is_none_or(|outcome| outcome.result != "ok")
    }

    /// Whether it never ran: its server did not start, it was refused, or it was given up before.
    pub fn was_not_sent(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.attempts == 0)
            && self.decision.is_none()
    }

    pub fn decision_text(&self) -> &str {
        match &self.decision {
            Some(decision) => decision,
            None if self.was_refused() => "refused",
            None if self.was_not_sent() => "not sent",
            None => "",
        }
    }

    pub fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            project: None,
            at: self.at,
            tool: &self.tool,
            failed: self.has_failed(),
            session: self.session.as_deref(),
            decision: self.decision_text(),
        }
    }

    /// Whether policy, a person or the trust rules refused it.
    pub fn was_refused(&self) -> bool {
        let is_denied = |outcome: &AuditOutcome| outcome.result == ErrorKind::Denied.as_str();
        self.was_not_sent() && self.outcome.as_ref().is_some_and(is_denied)
    }
}

#[derive(Debug, Default)]
pub struct AuditCalls {
    pub calls: Vec<AuditedCall>,
    /// Lines that could not be read.
    pub damaged: usize,
}

/// The newest `limit` calls that `filter` wants, from lines that come newest first. Reads no
/// further back than needed.
pub fn newest(
    lines: impl Iterator<Item = Result<RecordLine, AppendError>>,
    filter: &CallFilter,
    limit: usize,
) -> Result<AuditCalls, AppendError> {
    // Each with the number of its last line, from the newest.
    let mut calls: Vec<(usize, AuditedCall)> = Vec::new();
    // Outcomes whose intent was not met yet.
    let mut ended: HashMap<String, (usize, AuditedCall)> = HashMap::new();
    let (mut damaged, mut waited, mut is_past) = (0, 0, false);
    // The line after this one in the file: when it was written, and the call it belongs to.
    let mut later: Option<(f64, String)> = None;
    for (at, line) in lines.enumerate() {
        let Some(row) = AuditRow::of(&line?) else {
            damaged += 1;
            continue;
        };
        if let Some((written, id)) = later.replace((row.unix, row.call.clone()))
            && row.unix - written > CLOCK_STEP
        {
            let joined = calls.iter_mut().rev().find(|(_, call)| call.call == id);
            if let Some((_, call)) = ended.get_mut(&id).or(joined) {
                call.clock_set_back_by = Some(row.unix - written);
            }
        }
        let call = match ended.remove(&row.call) {
            Some((at, mut call)) if row.is_intent() => {
                row.add_intent(&mut call);
                Some((at, call))
            }
            // A second outcome of one call: the newer one counts.
            Some(newer) => {
                ended.insert(row.call, newer);
                None
            }
            None if calls.len() >= limit => None,
            None if filter.ends_at(row.unix) => {
                is_past = true;
                None
            }
            None if row.has_intent() => {
                ended.insert(row.call.clone(), (at, row.into_call()));
                None
            }
            None => Some((at, row.into_call())),
        };
        calls.extend(call.filter(|(_, call)| filter.matches(&call.facts())));
        if calls.len() >= limit || is_past {
            if ended.is_empty() || waited == MAX_INTENT_DISTANCE {
                break;
            }
            waited += 1;
        }
    }
    // An intent that was never found tells nothing, and what was asked for is not known of it.
    calls.extend(ended.into_values().filter(|(_, call)| filter.matches(&call.facts())));
    calls.sort_by_key(|(at, _)| *at);
    calls.truncate(limit);
    let calls = calls.into_iter().rev().map(|(_, call)| call).collect();
    Ok(AuditCalls { calls, damaged })
}

#[derive(Debug, Default)]
pub struct AuditJoiner {
    /// The calls under way, in the order in which they began.
    open: VecDeque<AuditedCall>,
    last: Option<f64>,
    /// Lines that could not be read.
    pub damaged: usize,
}

impl AuditJoiner {
    /// Knows the calls that were under way before.
    pub fn after(calls: &[AuditedCall]) -> Self {
        let mut joiner = Self::default();
        for call in calls.iter().filter(|call| call.outcome.is_none()) {
            joiner.open(call.clone());
        }
        joiner
    }

    /// Takes a line; gives the call that it ends.
    pub fn push(&mut self, line: &RecordLine) -> Option<AuditedCall> {
        let Some(row) = AuditRow::of(line) else {
            self.damaged += 1;
            return None;
        };
        let back = self.last.replace(row.unix).map(|last| last - row.unix);
        if row.is_intent() {
            self.open(row.into_call());
            return None;
        }
        let begun = self.open.iter().rposition(|call| call.call == row.call);
        let begun = begun.and_then(|at| self.open.remove(at));
        let mut call = row.into_call();
        if let Some(begun) = begun {
            let breakpoints = [begun.breakpoints.clone(), call.breakpoints].concat();
            call = AuditedCall { outcome: call.outcome, breakpoints, ..begun };
        }
        call.clock_set_back_by = back.filter(|back| *back > CLOCK_STEP);
        Some(call)
    }

    /// The oldest make room: a call whose process was killed never ends.
    fn open(&mut self, call: AuditedCall) {
        if self.open.len() >= MAX_OPEN_CALLS {
            self.open.pop_front();
        }
        self.open.push_back(call);
    }
}

/// A line as it is in the file.
#[derive(Debug, Deserialize)]
struct AuditRow {
    event: String,
    unix: f64,
    call: String,
    pid: Option<u32>,
    user: Option<String>,
    session: Option<String>,
    caller: Option<CallerRecord>,
    parent: Option<String>,
    tool: String,
    server: Option<String>,
    source: Option<String>,
    decision: Option<String>,
    arguments: Option<JsonObject>,
    breakpoint: Option<BreakpointRecord>,
    result: Option<String>,
    message: Option<String>,
    duration_us: Option<u64>,
    attempts: Option<u32>,
    bytes: Option<u64>,
}

impl AuditRow {
    fn of(line: &RecordLine) -> Option<Self> {
        let RecordLine::Text(text) = line else { return None };
        let row: Self = serde_json::from_slice(text).ok()?;
        let is_complete = row.is_intent() || (row.event == "outcome" && row.result.is_some());
        (is_complete && row.unix.is_finite()).then_some(row)
    }

    fn is_intent(&self) -> bool {
        self.event == "intent"
    }

    /// Whether this is the outcome of a call that was begun: one that was not says itself whose it is.
    fn has_intent(&self) -> bool {
        !self.is_intent() && self.session.is_none()
    }

    fn add_intent(self, call: &mut AuditedCall) {
        let outcome = call.outcome.take();
        let clock_back = call.clock_set_back_by;
        let of_result = std::mem::take(&mut call.breakpoints);
        *call = AuditedCall { clock_set_back_by: clock_back, outcome, ..self.into_call() };
        call.breakpoints.extend(of_result);
    }

    fn into_call(self) -> AuditedCall {
        let outcome = self.result.map(|result| AuditOutcome {
            result,
            message: self.message,
            duration_us: self.duration_us.unwrap_or(0),
            attempts: self.attempts.unwrap_or(0),
            bytes: self.bytes.unwrap_or(0),
        });
        AuditedCall {
            call: self.call,
            at: self.unix,
            clock_set_back_by: None,
            pid: self.pid,
            user: self.user,
            session: self.session,
            caller: self.caller,
            parent: self.parent,
            tool: self.tool,
            server: self.server,
            source: self.source,
            decision: self.decision,
            arguments: self.arguments,
            breakpoints: self.breakpoint.into_iter().collect(),
            outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn intent(call: &str, unix: f64) -> Value {
        json!({"event": "intent", "unix": unix, "call": call, "tool": format!("tool-{call}"),
               "session": "s", "decision": "allowed", "arguments": {"a": call}})
    }

    fn outcome(call: &str, unix: f64, result: &str, attempts: u32) -> Value {
        json!({"event": "outcome", "unix": unix, "call": call, "tool": format!("tool-{call}"),
               "result": result, "duration_us": 5, "attempts": attempts, "bytes": 2})
    }

    fn find(lines: &[Value], filter: &CallFilter, limit: usize) -> AuditCalls {
        let lines = lines.iter().rev().map(|line| {
            Ok(RecordLine::Text(match line {
                Value::String(raw) => raw.clone().into_bytes(),
                line => line.to_string().into_bytes(),
            }))
        });
        newest(lines, filter, limit).unwrap()
    }

    fn ids(calls: &AuditCalls) -> Vec<&str> {
        calls.calls.iter().map(|call| call.call.as_str()).collect()
    }

    #[test]
    fn lines_of_calls_that_overlap_are_joined() {
        let lines = [
            intent("a", 1.0),
            intent("b", 2.0),
            outcome("b", 3.0, "timeout", 2),
            outcome("c", 4.0, "denied", 0),
            intent("d", 5.0),
            outcome("a", 6.0, "ok", 1),
        ];
        let calls = find(&lines, &CallFilter::default(), 10);
        assert_eq!(ids(&calls), ["b", "c", "d", "a"]);
        let [b, c, d, a] = &calls.calls[..] else { panic!() };
        assert_eq!((a.at, a.session.as_deref(), a.has_failed()), (1.0, Some("s"), false));
        assert_eq!(a.arguments.as_ref().unwrap()["a"], "a");
        assert_eq!(b.outcome.as_ref().unwrap().result, "timeout");
        assert!(c.was_refused() && c.has_failed() && !b.was_refused());
        assert!(d.outcome.is_none() && d.has_failed());
        assert_eq!(calls.damaged, 0);
    }

    #[test]
    fn a_call_that_got_no_attempt_is_one_call() {
        let mut refused = outcome("b", 4.0, "unreachable", 0);
        refused["session"] = "s".into();
        let lines = [intent("a", 1.0), outcome("a", 3.0, "timeout", 0), refused];
        let calls = find(&lines, &CallFilter::default(), 10);
        assert_eq!(ids(&calls), ["a", "b"]);
        let [a, b] = &calls.calls[..] else { panic!() };
        assert_eq!((a.decision_text(), b.decision_text()), ("allowed", "not sent"));
        assert!(b.was_not_sent() && !b.was_refused() && !a.was_not_sent());
    }

    #[test]
    fn only_the_newest_are_given_and_filters_count_first() {
        let lines: Vec<Value> = (0..20)
            .flat_map(|n| {
                let call = format!("{n:02}");
                let result = if n % 2 == 0 { "ok" } else { "tool" };
                let at = f64::from(n);
                [intent(&call, at), outcome(&call, at + 0.5, result, 1)]
            })
            .collect();
        assert_eq!(ids(&find(&lines, &CallFilter::default(), 3)), ["17", "18", "19"]);
        let failed = CallFilter { failed: Some(true), ..CallFilter::default() };
        assert_eq!(ids(&find(&lines, &failed, 3)), ["15", "17", "19"]);
        let tool = CallFilter { tools: Some(vec!["tool-0*".into()]), ..CallFilter::default() };
        assert_eq!(ids(&find(&lines, &tool, 2)), ["08", "09"]);
        let since =
            CallFilter { since: Some(std::time::Duration::from_secs(18)), ..CallFilter::default() };
        assert_eq!(ids(&find(&lines, &since, 9)), ["18", "19"]);
        let session = CallFilter { session: Some("other".into()), ..CallFilter::default() };
        assert_eq!(ids(&find(&lines, &session, 9)), [""; 0]);
        let decision = CallFilter { decision: Some("allow".into()), ..CallFilter::default() };
        assert_eq!(find(&lines, &decision, 9).calls.len(), 9);
    }

    #[test]
    fn reading_stops_when_enough_was_found() {
        let lines = [intent("a", 1.0), outcome("a", 2.0, "ok", 1)];
        let mut newest_first =
            lines.iter().rev().map(|line| Ok(RecordLine::Text(line.to_string().into_bytes())));
        let rest = std::iter::from_fn(|| panic!("it read on"));
        let calls = newest(newest_first.by_ref().chain(rest), &CallFilter::default(), 1).unwrap();
        assert_eq!(ids(&calls), ["a"]);
    }

    #[test]
    fn what_is_no_line_of_ours_is_counted_and_skipped() {
        let lines = [
            intent("a", 1.0),
            json!("{\"event\":\"outcome\",\"unix\":1"),
            json!({"event": "outcome", "unix": 1, "call": "x", "tool": "t"}),
            json!({"event": "intent", "unix": "soon", "call": "x", "tool": "t"}),
            json!("\u{0}\u{1b}[2J"),
            json!("[]"),
            json!({"event": "note", "unix": 1, "call": "x", "tool": "t"}),
            outcome("a", 2.0, "ok", 1),
        ];
        let calls = find(&lines, &CallFilter::default(), 10);
        assert_eq!((ids(&calls), calls.damaged), (vec!["a"], 6));
    }

    #[test]
    fn a_clock_that_was_put_back_is_marked_once() {
        let lines = [
            intent("a", 100_000.0),
            outcome("a", 100_001.0, "ok", 1),
            intent("b", 50_000.0),
            outcome("b", 50_001.0, "ok", 1),
            intent("c", 50_000.5),
            outcome("c", 50_002.0, "ok", 1),
        ];
        let calls = find(&lines, &CallFilter::default(), 10);
        let back: Vec<_> = calls.calls.iter().map(|call| call.clock_set_back_by).collect();
        assert_eq!(back, [None, Some(50_001.0), None]);
    }

    #[test]
    fn followed_lines_are_joined_at_the_outcome() {
        let mut joiner = AuditJoiner::default();
        let mut push = |line: &Value| joiner.push(&RecordLine::Text(line.to_string().into_bytes()));
        assert_eq!(push(&intent("a", 5.0)), None);
        assert_eq!(push(&json!("x")), None);
        let a = push(&outcome("a", 6.0, "ok", 1)).unwrap();
        assert_eq!((a.at, a.decision.as_deref(), a.has_failed()), (5.0, Some("allowed"), false));
        assert!(push(&outcome("b", 1.0, "denied", 0)).unwrap().clock_set_back_by.is_some());
        assert_eq!(joiner.damaged, 1);
    }

    #[test]
    fn calls_that_never_end_do_not_keep_out_new_ones() {
        let begun = |call: &str| AuditedCall { call: call.to_owned(), ..AuditedCall::default() };
        let crashed: Vec<_> = (0..=MAX_OPEN_CALLS).map(|n| begun(&n.to_string())).collect();
        let mut joiner = AuditJoiner::after(&crashed);
        let mut push = |line: &Value| joiner.push(&RecordLine::Text(line.to_string().into_bytes()));
        assert_eq!(push(&intent("a", 5.0)), None);
        let a = push(&outcome("a", 6.0, "ok", 1)).unwrap();
        assert_eq!((a.decision.as_deref(), a.arguments.is_some()), (Some("allowed"), true));
        assert!(joiner.open.len() <= MAX_OPEN_CALLS);
    }
}
