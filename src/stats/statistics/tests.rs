//! Tests of counting each row exactly once, and of time windows.

use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;
use crate::model::CallPlace;
use crate::stats::comparison::earlier_period;
use crate::stats::spool;
use crate::stats::summary::{UsageOrder, sort};
use crate::util::segments::{SegmentRetention, SegmentedLog};

const DAY: u64 = 86_400;
const NOW: u64 = 20_000 * DAY + DAY / 2;

fn now() -> Duration {
    Duration::from_secs(NOW)
}

struct Room {
    root: tempfile::TempDir,
    spool: SegmentedLog,
    next: std::cell::Cell<u64>,
}

impl Room {
    fn new() -> Self {
        Self::with(SegmentRetention { max_segment_bytes: 2_000, ..SegmentRetention::default() })
    }

    fn with(keep: SegmentRetention) -> Self {
        let root = tempfile::tempdir().unwrap();
        let spool = SegmentedLog::new(RecordLocation::own(root.path(), spool::FILE), false, keep);
        Self { root, spool, next: std::cell::Cell::new(0) }
    }

    fn location(&self) -> RecordLocation {
        RecordLocation::own(self.root.path(), spool::FILE)
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new(self.location(), ReadBudget::Everything);
        statistics.refresh().unwrap();
        statistics
    }

    fn call(&self, tool: &str, ago: u64, kind: &str, millis: u64) {
        self.next.set(self.next.get() + 1);
        self.append(&SpoolRow {
            ended_at_ms: (NOW - ago) * 1_000,
            id: format!("id-{}", self.next.get()),
            tool: tool.to_owned(),
            server: None,
            place: CallPlace::default(),
            outcome: kind.to_owned(),
            duration_us: millis * 1_000,
            attempts: 1,
            bytes: 3,
        });
    }

    fn append(&self, row: &SpoolRow) {
        self.spool.append(Duration::from_millis(row.ended_at_ms), &row.line()).unwrap();
    }

    fn read(&self) -> Summary {
        self.read_since(None)
    }

    fn read_since(&self, ago: Option<u64>) -> Summary {
        let since = ago.map(|ago| Duration::from_secs(NOW - ago));
        self.statistics().summary(&CallFilter { since, ..CallFilter::default() }, now())
    }

    fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.root.path()).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }
}

fn calls(summary: &Summary) -> u64 {
    summary.tools.iter().map(|usage| usage.counts.calls()).sum()
}

#[test]
fn what_was_spooled_is_counted_once_by_however_many_readers() {
    let room = Room::new();
    assert_eq!(calls(&room.read()), 0);
    assert_eq!(room.names(), [""; 0], "nothing is made for nothing");
    for call in 0..100 {
        room.call("a", call, "ok", 5);
        room.call("b", call, if call % 4 == 0 { "timeout" } else { "ok" }, 7);
    }
    for _ in 0..3 {
        let summary = room.read();
        assert_eq!(calls(&summary), 200);
        let [a, b] = summary.tools.as_slice() else { panic!("{summary:?}") };
        assert_eq!((a.counts.ok, b.counts.ok, b.counts.failed_by("timeout")), (100, 75, 25));
        assert_eq!(a.counts.durations.mean(), Some(Duration::from_millis(5)));
        assert_eq!((a.period.first, a.period.last), ((NOW - 99) * 1_000, NOW * 1_000));
    }
    room.call("a", 0, "ok", 5);
    assert_eq!(calls(&room.read()), 201);
}

#[test]
fn a_window_is_exact() {
    let room = Room::new();
    for ago in [10, 50, 90, 3_000, 4_000, 90_000, 3 * DAY, 20 * DAY, 50 * DAY] {
        room.call("a", ago, "ok", 5);
    }
    let since = |ago| calls(&room.read_since(Some(ago)));
    assert_eq!([30, 50, 60, 3_600, 3_000, 2_999].map(since), [1, 2, 2, 4, 4, 3]);
    assert_eq!([2 * DAY, 30 * DAY, 100 * DAY].map(since), [6, 8, 9]);
    let all = room.read();
    assert_eq!((calls(&all), all.tools[0].period.first), (9, (NOW - 50 * DAY) * 1_000));
}

#[test]
fn what_is_appended_is_counted_whatever_is_set_aside_meanwhile() {
    let room = Room::new();
    room.call("a", 100, "ok", 5);
    let mut statistics = room.statistics();
    for round in 1..80 {
        room.call("a", 100 - round, "ok", 5);
        // A writer that met a torn line writes its own once more.
        if round % 5 == 0 {
            room.next.set(room.next.get() - 1);
            room.call("a", 100 - round, "ok", 5);
        }
        statistics.refresh().unwrap();
        assert_eq!(calls(&statistics.summary(&CallFilter::default(), now())), round + 1);
    }
    assert!(room.names().len() > 2, "{:?}", room.names());
}

#[test]
fn what_is_not_ours_is_refused() {
    let room = Room::new();
    let target = room.root.path().join("precious");
    std::fs::write(&target, "x").unwrap();
    symlink(&target, &room.location().path).unwrap();
    let mut statistics = Statistics::new(room.location(), ReadBudget::Everything);
    let error = statistics.refresh().unwrap_err();
    assert_eq!(error.kind(), crate::model::ErrorKind::Denied);
    assert!(error.message().contains("symbolic link"), "{error}");
}

#[test]
fn what_cannot_be_read_to_its_end_is_not_counted_twice() {
    let room = Room::new();
    for call in 0..50 {
        room.call("a", 100 - call, "ok", 5);
    }
    let newest = room.location().path;
    let aside = room.root.path().join("aside");
    std::fs::rename(&newest, &aside).unwrap();
    symlink(&aside, &newest).unwrap();
    let mut statistics = Statistics::new(room.location(), ReadBudget::Everything);
    for _ in 0..3 {
        statistics.refresh().unwrap_err();
    }
    std::fs::rename(&aside, &newest).unwrap();
    statistics.refresh().unwrap();
    assert_eq!(calls(&statistics.summary(&CallFilter::default(), now())), 50);
}

#[test]
fn beside_something_else_only_the_newest_files_are_read() {
    let room = Room::new();
    for call in 0..100 {
        room.call("a", call, "ok", 5);
    }
    let mut statistics = Statistics::new(room.location(), ReadBudget::Newest);
    statistics.refresh().unwrap();
    let summary = statistics.summary(&CallFilter::default(), now());
    assert!(summary.is_behind && (1..60).contains(&calls(&summary)), "{}", calls(&summary));
    assert!(!room.read().is_behind);
}

#[test]
fn the_series_of_a_window_adds_up() {
    let room = Room::new();
    for ago in 0..120 {
        room.call("a", ago * 60, if ago < 30 { "tool" } else { "ok" }, ago);
    }
    let statistics = room.statistics();
    for since in [None, Some(Duration::from_secs(NOW - 7_140))] {
        let query =
            CallFilter { since, tools: Some(vec!["a".to_owned()]), ..CallFilter::default() };
        let slices = statistics.time_series(&query, now(), 24);
        assert_eq!(slices.len(), 24);
        assert_eq!(slices.iter().map(|slice| slice.counts.calls()).sum::<u64>(), 120);
        let failed: u64 = slices.iter().rev().take(6).map(|slice| slice.counts.failed()).sum();
        assert_eq!(failed, 30);
    }
}

#[test]
fn calls_dated_in_the_future_are_in_no_window_and_told() {
    let room = Room::new();
    room.call("a", 5, "ok", 5);
    let mut row = SpoolRow {
        ended_at_ms: (NOW + 365 * DAY) * 1_000,
        id: "ahead".to_owned(),
        tool: "a".to_owned(),
        server: None,
        place: CallPlace::default(),
        outcome: "ok".to_owned(),
        duration_us: 1,
        attempts: 1,
        bytes: 0,
    };
    room.append(&row);
    row.ended_at_ms = u64::MAX;
    row.id = "far ahead".to_owned();
    room.append(&row);
    let summary = room.read_since(Some(3_600));
    assert_eq!((calls(&summary), summary.future_dated().count()), (1, 1));
    assert_eq!(calls(&room.read()), 3);
}

/// Something that happens to the spool or its readers.
#[derive(Debug, Clone)]
enum Step {
    Call {
        tool: u8,
        ago: u64,
        kind: u8,
        millis: u64,
    },
    /// Half a line, as of a full disk.
    Torn,
    Read,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_u8..3, 0_u64..90 * DAY, 0_u8..4, 0_u64..5_000)
            .prop_map(|(tool, ago, kind, millis)| Step::Call { tool, ago, kind, millis }),
        1 => Just(Step::Torn),
        1 => Just(Step::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn reading_is_counting(steps in prop::collection::vec(step(), 1..40), window in 0_u64..90 * DAY) {
        let room = Room::with(SegmentRetention { max_segment_bytes: 700, ..SegmentRetention::default() });
        let mut naive: Vec<(String, u64, &str, u64)> = Vec::new();
        for step in steps {
            match step {
                Step::Call { tool, ago, kind, millis } => {
                    let kind = ["ok", "ok", "tool", "timeout"][usize::from(kind)];
                    let tool = format!("tool-{tool}");
                    room.call(&tool, ago, kind, millis);
                    naive.push((tool, NOW - ago, kind, millis));
                }
                Step::Torn => {
                    use std::io::Write as _;
                    let path = room.location().path;
                    let file = std::fs::File::options().append(true).create(true).open(path);
                    file.unwrap().write_all(b"{\"t\":17\n").unwrap();
                }
                Step::Read => drop(room.read()),
            }
        }
        let statistics = room.statistics();
        let since = Duration::from_secs(NOW - window);
        for since in [None, Some(since)] {
            let mut summary = statistics.summary(&CallFilter { since, ..CallFilter::default() }, now());
            sort(&mut summary.tools, UsageOrder::Name);
            let from = summary.from.map_or(0, |from| from.as_secs());
            prop_assert!(since.is_none_or(|since| from == since.as_secs()));
            let mut expected: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
            for (tool, _, kind, millis) in naive.iter().filter(|(_, at, _, _)| *at >= from) {
                let counted = expected.entry(tool.clone()).or_default();
                match *kind {
                    "ok" => {
                        counted.0 += 1;
                        counted.2 += millis;
                    }
                    _ => counted.1 += 1,
                }
            }
            let counts: BTreeMap<String, (u64, u64, u64)> = summary
                .tools
                .iter()
                .map(|usage| {
                    let counts = &usage.counts;
                    let sum = counts.durations.mean().map_or(0.0, |mean| mean.as_secs_f64() * 1e3);
                    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
                    let sum = (sum * counts.ok as f64).round() as u64;
                    (usage.tool.name.clone(), (counts.ok, counts.failed(), sum))
                })
                .collect();
            prop_assert_eq!(counts, expected);
        }
    }
}

#[test]
fn every_tool_has_its_series() {
    let room = Room::new();
    room.call("a", 600, "ok", 5);
    room.call("a", 30, "ok", 7);
    room.call("b", 30, "timeout", 9);
    room.call("c", 30, "ok", 9);
    let statistics = room.statistics();
    let since = now().checked_sub(Duration::from_mins(30));
    let tools = Some(vec!["a".to_owned(), "b".to_owned()]);
    let query = CallFilter { since, tools, ..CallFilter::default() };
    let timelines = statistics.time_series_by(&query, now(), 60, false);
    assert_eq!(timelines.length, Duration::from_mins(1));
    let names: Vec<&str> = timelines.series.iter().map(|(tool, _)| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let calls: Vec<u64> = timelines.series[0].1.iter().map(|point| point.calls).collect();
    assert_eq!((calls.len(), calls.iter().sum::<u64>()), (31, 2));
    let failed: u64 = timelines.series[1].1.iter().map(|point| point.failed).sum();
    assert_eq!((failed, timelines.series[1].1.iter().any(|point| point.p95.is_some())), (1, false));
    let servers = statistics.time_series_by(&query, now(), 60, true);
    assert_eq!(servers.series.len(), 1, "tools of no server are one");
    let most = statistics.time_series_by(&query, now(), 10, false);
    assert!(most.series[0].1.len() <= 10);
}

#[test]
fn a_period_is_compared_with_the_one_before_it() {
    let room = Room::new();
    for call in 0..10 {
        room.call("a", call * 60, "ok", 20);
        room.call("a", 3_600 + call * 60, "ok", 10);
    }
    room.call("a", 60, "timeout", 5);
    room.call("gone", 4_000, "ok", 5);
    let statistics = room.statistics();
    let since = Some(Duration::from_secs(NOW - 3_000));
    let filter = CallFilter { since, ..CallFilter::default() };
    let later = statistics.summary(&filter, now());
    let earlier = statistics.summary(&earlier_period(&filter, &later).unwrap(), now());
    let calls = |summary: &Summary| -> Vec<(String, u64)> {
        summary.tools.iter().map(|u| (u.tool.name.clone(), u.counts.calls())).collect()
    };
    assert_eq!(calls(&later), [("a".to_owned(), 11)]);
    assert_eq!(calls(&earlier), [("a".to_owned(), 10), ("gone".to_owned(), 1)]);
}
