//! The observed activity of one server: pings and log lines.

use std::collections::{HashSet, VecDeque};

use crate::catalogue::drift::Drift;
use crate::model::{ToolDefinition, ToolStatus};
use crate::tui::calls::keep_last;
use crate::tui::prelude::*;
use crate::tui::widgets::scroll_text::StyledSpan;

const PINGS: usize = 120;
/// The most samples of memory and processor time that are kept: some minutes of them.
const SAMPLES: usize = 120;
const LINES: usize = 500;
const MAX_LINE_CHARS: usize = 1_000;

#[derive(Debug, Default)]
pub struct ServerActivity {
    pub pings: VecDeque<Duration>,
    /// The resident memory of its process over time, in bytes, the newest last.
    pub memory: VecDeque<u64>,
    /// How busy its process was over time, in percent of a processor, the newest last.
    pub cpu: VecDeque<u64>,
    sampled: Option<(Duration, Duration)>,
    /// What it logged: how grave it was, and what it said; the newest last.
    pub log: VecDeque<(String, String)>,
    pub level: Option<&'static str>,
}

impl ServerActivity {
    /// This is how long the newest ping took; one that was told before counts once.
    pub fn ping(&mut self, took: Option<Duration>) {
        let Some(took) = took.filter(|took| self.pings.back() != Some(took)) else { return };
        keep_last(&mut self.pings, PINGS, took);
    }

    /// This is what its process uses at `now`, the time since the Unix epoch. A process that was
    /// started again begins anew.
    pub fn sample(&mut self, memory: Option<u64>, used: Option<Duration>, now: Duration) {
        /// The minimum time between samples: processor time is reported in hundredths of a second.
        const INTERVAL: Duration = Duration::from_secs(1);
        let (Some(memory), Some(used)) = (memory, used) else {
            (self.memory, self.cpu, self.sampled) = Default::default();
            return;
        };
        if let Some((before, at)) = self.sampled {
            let passed = now.saturating_sub(at);
            if passed < INTERVAL {
                return;
            }
            if let Some(more) = used.checked_sub(before) {
                let share = more.as_millis() * 100 / passed.as_millis();
                keep_last(&mut self.cpu, SAMPLES, u64::try_from(share).unwrap_or(u64::MAX));
            } else {
                (self.memory, self.cpu) = Default::default();
            }
        }
        keep_last(&mut self.memory, SAMPLES, memory);
        self.sampled = Some((used, now));
    }

    /// Takes in a log line; the oldest makes room for it.
    pub fn logged(&mut self, level: &str, text: &str) {
        let line = text::shorten(text, MAX_LINE_CHARS).into_owned();
        keep_last(&mut self.log, LINES, (level.to_owned(), line));
    }

    /// The duration that `percent` of the pings did not exceed.
    pub fn ping_within(&self, percent: usize) -> Option<Duration> {
        let mut sorted: Vec<Duration> = self.pings.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_are_counted_once_and_ranked() {
        let mut past = ServerActivity::default();
        assert_eq!(past.ping_within(50), None);
        for ms in [5, 5, 1, 9, 3] {
            past.ping(Some(Duration::from_millis(ms)));
        }
        past.ping(None);
        assert_eq!(past.pings.len(), 4);
        assert_eq!(past.ping_within(50), Some(Duration::from_millis(3)));
        assert_eq!(past.ping_within(95), Some(Duration::from_millis(9)));
    }

    #[test]
    fn the_load_of_a_process_is_what_it_used_between_two_samples() {
        let mut past = ServerActivity::default();
        let secs = Duration::from_secs;
        past.sample(Some(10), Some(secs(5)), secs(100));
        past.sample(Some(11), Some(secs(6)), secs(100) + Duration::from_millis(10));
        past.sample(Some(12), Some(secs(6)), secs(102));
        past.sample(Some(13), Some(secs(10)), secs(104));
        assert_eq!(
            (past.memory.make_contiguous(), past.cpu.make_contiguous()),
            (&mut [10, 12, 13][..], &mut [50, 200][..])
        );
        // Started again: another process has used less.
        past.sample(Some(3), Some(secs(0)), secs(106));
        assert_eq!((past.memory.len(), past.cpu.len()), (1, 0));
        past.sample(None, None, secs(108));
        assert_eq!(past.memory.len(), 0);
        for second in 200..900 {
            past.sample(Some(second), Some(secs(1)), secs(second));
        }
        assert_eq!((past.memory.len(), past.cpu.len()), (SAMPLES, SAMPLES));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut past = ServerActivity::default();
        for at in 0..2_000_u64 {
            past.ping(Some(Duration::from_micros(at)));
            past.logged("info", &"x".repeat(10_000));
        }
        assert_eq!((past.pings.len(), past.log.len()), (PINGS, LINES));
        assert!(past.log.iter().all(|(_, text)| text.len() < 1_100));
    }
}

#[derive(Debug, Default)]
pub struct ServerToolLists {
    pub declared: Vec<Arc<ToolDefinition>>,
    /// This is advertised, with what is only declared among it as unavailable; `None` until it was
    /// asked.
    pub advertised: Option<Vec<Arc<ToolDefinition>>>,
    /// How they differ, as it was when one of them changed.
    comparison: Vec<StyledSpan>,
}

impl ServerToolLists {
    /// How many differ from what was declared or pinned.
    pub fn differing(&self) -> usize {
        let differs = |tool: &&Arc<ToolDefinition>| {
            matches!(
                tool.status,
                ToolStatus::Drifted | ToolStatus::Changed | ToolStatus::Unavailable
            )
        };
        self.advertised.iter().flatten().filter(differs).count()
    }

    fn live(&self) -> impl Iterator<Item = &Arc<ToolDefinition>> {
        let tools = self.advertised.iter().flatten();
        tools.filter(|tool| tool.status != ToolStatus::Unavailable)
    }

    /// Whether a person is asked before each call of all its tools.
    pub fn asks_always(&self) -> bool {
        let mut live = self.live().peekable();
        live.peek().is_some() && live.all(|tool| tool.requires_approval)
    }

    /// To be called when one of the lists changed.
    pub fn compare(&mut self) {
        let has_both = self.advertised.is_some() && !self.declared.is_empty();
        self.comparison = if has_both { self.differences() } else { Vec::new() };
    }

    /// Tool by tool: what differs first.
    pub fn lines(&self) -> &[StyledSpan] {
        &self.comparison
    }

    fn differences(&self) -> Vec<StyledSpan> {
        let live: Vec<_> = self.live().cloned().collect();
        let Drift { missing, changed, .. } = &Drift::between(&self.declared, &live);
        let missing = missing
            .iter()
            .map(|name| (Role::Error, format!("- {name}  (declared, not advertised)")));
        let differing = changed.iter().map(|(name, parts)| {
            (Role::Warning, format!("~ {name}  differs in {}", parts.join(", ")))
        });
        let declared: HashSet<&str> = self.declared.iter().map(|tool| tool.name.tool()).collect();
        let names = live.iter().map(|tool| tool.name.tool());
        let (both, extra): (Vec<&str>, Vec<&str>) = names.partition(|n| declared.contains(n));
        let extra =
            extra.into_iter().map(|name| (Role::Plain, format!("+ {name}  (not declared)")));
        let is_changed = |name: &&str| changed.iter().any(|(other, _)| other == name);
        let same = both.into_iter().filter(|name| !is_changed(name));
        let same = same.map(|name| (Role::Dim, format!("= {name}")));
        missing.chain(differing).chain(extra).chain(same).collect()
    }
}

#[cfg(test)]
mod tool_lists_tests {
    use serde_json::json;

    use super::*;
    use crate::tui::tests::tool;

    #[test]
    fn every_tool_stands_in_the_comparison_once() {
        let of = |name: &str, described: &str| {
            let mut tool = tool(name, json!({ "type": "object" }));
            tool.description = Some(described.to_owned());
            Arc::new(tool)
        };
        let declared = vec![of("s-same", "a"), of("s-other", "a"), of("s-gone", "a")];
        let mut advertised = ServerToolLists { declared, ..ServerToolLists::default() };
        assert_eq!(advertised.differing(), 0);
        let mut gone = ToolDefinition::clone(&of("s-gone", "a"));
        gone.status = ToolStatus::Unavailable;
        let mut other = ToolDefinition::clone(&of("s-other", "b"));
        other.status = ToolStatus::Drifted;
        let live = vec![of("s-same", "a"), Arc::new(other), of("s-new", "n"), Arc::new(gone)];
        advertised.advertised = Some(live);
        advertised.compare();
        let lines = advertised.lines();
        let signs: Vec<&str> =
            lines.iter().map(|(_, line)| line.split("  ").next().unwrap()).collect();
        assert_eq!(signs, ["- gone", "~ other", "+ new", "= same"]);
        assert!(lines[1].1.ends_with("differs in description"), "{lines:?}");
        assert_eq!(advertised.differing(), 2);
    }
}
