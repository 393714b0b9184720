//! The calls of this console, and of the other clients of an attached host, as they end: counts, durations, and the rate of the last minute.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use crate::model::HostEvent;
use crate::util::histogram::Durations;

/// The number of seconds whose calls are counted individually.
pub const LIVE_SECONDS: u64 = 60;
/// The maximum number of other clients counted separately for each tool.
const MAX_CLIENTS: usize = 8;
/// The maximum number of tools that are counted; of more, those that were called last.
const MAX_TOOLS: usize = 500;

/// The calls of each tool that ended since the console was opened.
#[derive(Debug)]
pub struct LiveCalls {
    tools: HashMap<String, LiveToolCalls>,
    calls: usize,
    failed: usize,
    durations: Durations,
}

impl Default for LiveCalls {
    fn default() -> Self {
        Self { tools: HashMap::new(), calls: 0, failed: 0, durations: Durations::coarse() }
    }
}

#[derive(Debug)]
pub struct LiveToolCalls {
    pub ok: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub durations: Durations,
    pub clients: BTreeMap<String, u64>,
    /// How many ended in which second since the Unix epoch, in order; only of the last minute.
    recent: VecDeque<(u64, u64)>,
}

impl LiveCalls {
    /// Counts a call that ended now, the time since the Unix epoch. `client` made it, when that was
    /// not this console.
    pub fn handle_host_event(&mut self, event: &HostEvent, client: Option<&str>, now: Duration) {
        let HostEvent::CallFinished { tool, success, is_cancelled, duration, .. } = event else {
            return;
        };
        self.calls += 1;
        match (success, is_cancelled) {
            (true, _) => self.durations.record(*duration),
            (false, is_cancelled) => self.failed += usize::from(!is_cancelled),
        }
        if !self.tools.contains_key(tool) && self.tools.len() >= MAX_TOOLS {
            let last = |calls: &LiveToolCalls| calls.recent.back().map(|(second, _)| *second);
            let oldest = self.tools.iter().min_by_key(|(_, calls)| last(calls));
            if let Some(oldest) = oldest.map(|(tool, _)| tool.clone()) {
                self.tools.remove(&oldest);
            }
        }
        let calls = self.tools.entry(tool.clone()).or_insert_with(|| LiveToolCalls {
            ok: 0,
            failed: 0,
            cancelled: 0,
            durations: Durations::coarse(),
            clients: BTreeMap::new(),
            recent: VecDeque::new(),
        });
        if let Some(client) = client {
            let is_known = calls.clients.contains_key(client);
            let name =
                if is_known || calls.clients.len() < MAX_CLIENTS { client } else { "others" };
            *calls.clients.entry(name.to_owned()).or_default() += 1;
        }
        match (success, is_cancelled) {
            (true, _) => {
                calls.ok += 1;
                calls.durations.record(*duration);
            }
            (_, true) => calls.cancelled += 1,
            _ => calls.failed += 1,
        }
        let second = now.as_secs();
        match calls.recent.back_mut() {
            Some((last, count)) if *last == second => *count += 1,
            _ => calls.recent.push_back((second, 1)),
        }
        while calls.recent.front().is_some_and(|(first, _)| first + LIVE_SECONDS <= second) {
            calls.recent.pop_front();
        }
    }

    /// All calls, how many failed, and how long half of the successful ones took at most.
    pub fn totals(&self) -> (usize, usize, Option<Duration>) {
        (self.calls, self.failed, self.durations.quantile(0.5))
    }

    /// The calls of a tool, by its full name; `None` before one ended.
    pub fn of(&self, tool: &str) -> Option<&LiveToolCalls> {
        self.tools.get(tool)
    }
}

impl LiveToolCalls {
    pub fn count(&self) -> u64 {
        self.ok + self.failed + self.cancelled
    }

    /// How many ended in each of the last 60 seconds, the earliest first.
    pub fn by_second(&self, now: Duration) -> Vec<u64> {
        let first = (now.as_secs() + 1).saturating_sub(LIVE_SECONDS);
        let mut counts = vec![0; usize::try_from(LIVE_SECONDS).unwrap_or(60)];
        for (second, count) in &self.recent {
            let at = second.checked_sub(first).and_then(|at| usize::try_from(at).ok());
            if let Some(slot) = at.and_then(|at| counts.get_mut(at)) {
                *slot = *count;
            }
        }
        counts
    }

    /// Whether one ended in the last 60 seconds, so that the picture of them moves.
    pub fn is_recent(&self, now: Duration) -> bool {
        self.recent.back().is_some_and(|(last, _)| last + LIVE_SECONDS > now.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CallId;

    fn ended(live: &mut LiveCalls, tool: &str, at: u64, success: bool, is_cancelled: bool) {
        let event = HostEvent::CallFinished {
            call_id: CallId(format!("{tool}-{at}")),
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
        assert_eq!((calls.ok, calls.failed, calls.cancelled, calls.count()), (2, 1, 1, 4));
        assert_eq!(calls.durations.count(), 2);
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
