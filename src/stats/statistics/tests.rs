//! Tests of folding each row exactly once, of time windows, and of unusable stores.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rusqlite::Connection;

use super::*;
use crate::model::CallPlace;
use crate::stats::comparison::earlier_period;
use crate::stats::spool::SpoolRow;
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
        let spool = SegmentedLog::new(StatsLocation::own(root.path()).spool, false, keep);
        Self { root, spool, next: std::cell::Cell::new(0) }
    }

    fn location(&self) -> StatsLocation {
        StatsLocation::own(self.root.path())
    }

    fn store(&self) -> PathBuf {
        self.location().store.path
    }

    fn statistics(&self) -> Statistics {
        let patience =
            ReadBudget { lock_timeout: Duration::from_millis(1), max_chunks: usize::MAX };
        Statistics::new(self.location(), Duration::from_secs(90 * DAY), patience)
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

    fn read(&self) -> (Summary, Vec<String>) {
        self.read_since(None)
    }

    fn read_since(&self, ago: Option<u64>) -> (Summary, Vec<String>) {
        let mut statistics = self.statistics();
        statistics.refresh(now()).unwrap();
        let since = ago.map(|ago| Duration::from_secs(NOW - ago));
        let summary =
            statistics.summary(&CallFilter { since, ..CallFilter::default() }, now()).unwrap();
        (summary, statistics.take_notes())
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

fn fails(statistics: &mut Statistics) -> Error {
    let refreshed = statistics.refresh(now()).map(drop);
    let error =
        refreshed.and_then(|()| statistics.summary(&CallFilter::default(), now()).map(drop));
    error.unwrap_err()
}

#[test]
fn what_was_spooled_is_counted_once_by_however_many_readers() {
    let room = Room::new();
    assert_eq!(calls(&room.read().0), 0);
    assert_eq!(room.names(), [""; 0], "nothing is made for nothing");
    for call in 0..100 {
        room.call("a", call, "ok", 5);
        room.call("b", call, if call % 4 == 0 { "timeout" } else { "ok" }, 7);
    }
    for _ in 0..3 {
        let (summary, notes) = room.read();
        assert_eq!((calls(&summary), notes.len()), (200, 0));
        let [a, b] = summary.tools.as_slice() else { panic!("{summary:?}") };
        assert_eq!((a.counts.ok, b.counts.ok, b.counts.failed_by("timeout")), (100, 75, 25));
        assert_eq!(a.counts.durations.mean(), Some(Duration::from_millis(5)));
        assert_eq!((a.period.first, a.period.last), ((NOW - 99) * 1_000, NOW * 1_000));
    }
    room.call("a", 0, "ok", 5);
    assert_eq!(calls(&room.read().0), 201);
    let mode = std::fs::metadata(room.store()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn folded_files_are_removed_once_they_have_no_writer() {
    let room = Room::new();
    for call in 0..100 {
        room.call("a", call, "ok", 5);
    }
    let spooled = |room: &Room| {
        let is_spool = |name: &String| Path::new(name).extension().is_some_and(|e| e == "spool");
        room.names().into_iter().filter(is_spool).collect::<Vec<_>>()
    };
    assert!(spooled(&room).len() > 3);
    let mut statistics = room.statistics();
    // The files of this test changed just now by the clock of the system.
    statistics.refresh(now()).unwrap();
    let segments = spooled(&room).len();
    let later = Duration::from_secs(4_000_000_000);
    let mut statistics = room.statistics();
    statistics.refresh(later).unwrap();
    assert!(segments > 3 && spooled(&room) == ["stats.spool"], "{:?}", room.names());
    assert_eq!(calls(&room.read().0), 100);
    // Positions of files that are gone do no harm, whatever comes into their place.
    for call in 0..100 {
        room.call("b", call, "ok", 5);
    }
    assert_eq!(calls(&room.read().0), 200);
}

#[test]
fn a_window_is_exact_to_the_grain_it_begins_in() {
    let room = Room::new();
    for ago in [10, 50, 90, 3_000, 4_000, 90_000, 3 * DAY, 20 * DAY, 50 * DAY] {
        room.call("a", ago, "ok", 5);
    }
    // Twice: what is let go of fine grains is decided by the second run.
    for _ in 0..2 {
        let since = |ago| {
            let (summary, _) = room.read_since(Some(ago));
            (calls(&summary), NOW - ago - summary.from.unwrap().as_secs())
        };
        assert_eq!(since(30), (2, 30), "the minute of 11:59:30 holds the call of 11:59:10");
        assert_eq!(since(60), (2, 0));
        assert_eq!(since(3_600), (4, 0));
        assert_eq!(since(3_600 + 40), (4, 20));
        assert_eq!(since(2 * DAY), (6, 0));
        assert_eq!(since(30 * DAY), (8, 0));
        assert_eq!(calls(&room.read().0), 9);
    }
    let since = |ago| calls(&room.read_since(Some(ago)).0);
    // Minutes of three days ago are gone: the whole hour counts.
    assert_eq!(since(3 * DAY - 60), 7);
    assert_eq!(since(50 * DAY - 3_600), 9);
}

#[test]
fn the_series_of_a_window_adds_up() {
    let room = Room::new();
    for ago in 0..120 {
        room.call("a", ago * 60, if ago < 30 { "tool" } else { "ok" }, ago);
    }
    let mut statistics = room.statistics();
    statistics.refresh(now()).unwrap();
    for since in [None, Some(Duration::from_secs(NOW - 7_140))] {
        let query =
            CallFilter { since, tools: Some(vec!["a".to_owned()]), ..CallFilter::default() };
        let slices = statistics.time_series(&query, now(), 24).unwrap();
        assert_eq!(slices.len(), 24);
        assert_eq!(slices.iter().map(|slice| slice.counts.calls()).sum::<u64>(), 120);
        let failed: u64 = slices.iter().rev().take(6).map(|slice| slice.counts.failed()).sum();
        assert_eq!(failed, 30);
    }
}

#[test]
fn what_is_old_is_let_go_a_day_at_a_time() {
    let room = Room::new();
    room.call("old", 80 * DAY, "ok", 5);
    room.call("new", 0, "ok", 5);
    let names = |statistics: &mut Statistics, at: Duration| {
        let summary = statistics.summary(&CallFilter::default(), at).unwrap();
        summary.tools.into_iter().map(|usage| usage.tool.name).collect::<Vec<_>>()
    };
    let at = |days: u64| Duration::from_secs(NOW + days * DAY);
    let run = |days: u64| {
        let mut statistics = room.statistics();
        statistics.refresh(at(days)).unwrap();
        names(&mut statistics, at(days))
    };
    assert_eq!(run(0), ["new", "old"]);
    // A clock that is a year ahead for once, and then right again.
    assert_eq!(run(365), ["new", "old"]);
    assert_eq!(run(0), ["new", "old"]);
    for day in 1..=10 {
        assert_eq!(run(day), ["new", "old"], "{day}");
    }
    run(11);
    assert_eq!(run(12), ["new"]);
    let db = Connection::open(room.store()).unwrap();
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM tool"), 1);
    assert_eq!(count("SELECT count(*) FROM grain"), 2, "its minute is older than two days");
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
    let (summary, _) = room.read_since(Some(3_600));
    assert_eq!((calls(&summary), summary.future_dated().count()), (1, 1));
    assert_eq!(calls(&room.read().0), 3);
}

#[test]
fn a_locked_store_is_read_and_the_rest_comes_from_the_spool() {
    let room = Room::new();
    room.call("a", 5, "ok", 5);
    room.read();
    room.call("a", 4, "ok", 5);
    let locker = Connection::open(room.store()).unwrap();
    locker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut statistics = room.statistics();
    statistics.refresh(now()).unwrap();
    let read = |statistics: &mut Statistics| {
        let summary = statistics.summary(&CallFilter::default(), now()).unwrap();
        (calls(&summary), summary.unfolded)
    };
    assert_eq!(read(&mut statistics), (2, 1));
    let notes = statistics.take_notes();
    assert!(notes.len() == 1 && notes[0].contains("locked by another process"), "{notes:?}");
    locker.execute_batch("ROLLBACK").unwrap();
    room.call("a", 3, "ok", 5);
    assert!(statistics.refresh(now()).unwrap());
    assert_eq!(read(&mut statistics), (3, 0));
}

#[test]
fn what_is_older_than_it_is_kept_for_is_let_go_and_the_rest_stays() {
    let room = Room::new();
    room.call("old", 100 * DAY, "ok", 5);
    room.call("new", 80 * DAY, "ok", 5);
    // The first reader cannot know whether the clock is right.
    assert_eq!(calls(&room.read().0), 2);
    let (summary, notes) = room.read();
    let tools: Vec<&str> = summary.tools.iter().map(|usage| &*usage.tool.name).collect();
    assert_eq!((tools, notes.len()), (vec!["new"], 0));
    let db = Connection::open(room.store()).unwrap();
    let grains: i64 =
        db.query_row("SELECT count(DISTINCT tool) FROM grain", [], |row| row.get(0)).unwrap();
    assert_eq!(grains, 1, "what is not read any more is removed");
}

#[test]
fn a_damaged_store_is_moved_away_and_told_once() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("empty", |path| std::fs::write(path, "").unwrap()),
        ("not a store", |path| std::fs::write(path, "x".repeat(10_000)).unwrap()),
        ("truncated", |path| {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_len(5_000).unwrap();
        }),
        ("bits flipped", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            for byte in bytes.iter_mut().skip(100).step_by(7) {
                *byte ^= 0x55;
            }
            std::fs::write(path, bytes).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let room = Room::new();
        for call in 0..50 {
            room.call("a", call, "ok", 5);
        }
        room.read();
        damage(&room.store());
        room.call("a", 0, "ok", 5);
        let (summary, notes) = room.read();
        assert_eq!(calls(&summary), 51, "{what}: the spool still had everything");
        assert!(notes.len() == 1 && notes[0].contains("was damaged"), "{what}: {notes:?}");
        let aside: Vec<_> =
            room.names().into_iter().filter(|n| n.starts_with("stats.db.damaged-2024")).collect();
        assert_eq!(aside.len(), 1, "{what}: {:?}", room.names());
        let (summary, notes) = room.read();
        assert_eq!((calls(&summary), notes.len()), (51, 0), "{what}");
    }
}

#[test]
fn what_a_killed_process_left_is_swept_up() {
    let room = Room::new();
    room.call("a", 5, "ok", 5);
    let unfinished = room.root.path().join(".stats.db.new-1");
    std::fs::write(&unfinished, "x").unwrap();
    std::fs::write(room.root.path().join(".other.new-1"), "x").unwrap();
    // This test's files were made just now by the clock of the system.
    room.statistics().refresh(now()).unwrap();
    assert!(unfinished.exists(), "somebody may be making it");
    room.statistics().refresh(Duration::from_secs(4_000_000_000)).unwrap();
    assert!(!unfinished.exists());
    assert_eq!(room.names().iter().filter(|name| name.starts_with('.')).count(), 1);
}

#[test]
fn a_newer_store_is_only_read() {
    let room = Room::new();
    room.call("a", 5, "ok", 5);
    room.read();
    Connection::open(room.store()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(room.store()).unwrap();
    room.call("a", 4, "ok", 5);
    let (summary, notes) = room.read();
    assert_eq!((calls(&summary), summary.unfolded), (2, 1));
    assert!(notes.len() == 1 && notes[0].contains("newer toolhost (layout 99)"), "{notes:?}");
    assert_eq!(std::fs::read(room.store()).unwrap(), before);
}

#[test]
fn what_is_not_ours_is_refused_and_what_is_open_is_closed() {
    let room = Room::new();
    room.call("a", 5, "ok", 5);
    let foreign = Connection::open(room.store()).unwrap();
    foreign.execute_batch("CREATE TABLE mine (x)").unwrap();
    drop(foreign);
    let error = fails(&mut room.statistics());
    assert!(error.message().contains("another program"), "{error}");
    std::fs::remove_file(room.store()).unwrap();
    let target = room.root.path().join("precious");
    std::fs::write(&target, "x").unwrap();
    symlink(&target, room.store()).unwrap();
    let error = fails(&mut room.statistics());
    assert_eq!(error.kind(), crate::model::ErrorKind::Denied);
    assert!(error.message().contains("symbolic link"), "{error}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "x");
    std::fs::remove_file(room.store()).unwrap();
    room.read();
    std::fs::set_permissions(room.store(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let (_, notes) = room.read();
    assert!(notes.len() == 1 && notes[0].contains("set to 0600"), "{notes:?}");
    assert_eq!(std::fs::metadata(room.store()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn where_no_store_can_be_made_the_spool_is_read() {
    let room = Room::new();
    room.call("a", 5, "ok", 5);
    let mut location = room.location();
    // Nothing can be made there, not even by root.
    location.store = crate::util::append::RecordLocation::named("/proc/nowhere/stats.db".into());
    let mut statistics = Statistics::new(location, Duration::from_secs(DAY), ReadBudget::FULL);
    statistics.refresh(now()).unwrap();
    let summary = statistics.summary(&CallFilter::default(), now()).unwrap();
    assert_eq!((calls(&summary), summary.unfolded), (1, 1));
    assert!(statistics.take_notes()[0].contains("cannot be created"));
}

#[test]
fn little_patience_folds_a_part_and_says_so() {
    let room =
        Room::with(SegmentRetention { max_segment_bytes: 4 << 20, ..SegmentRetention::default() });
    let line = |id: usize| {
        format!(
            "{{\"t\":{NOW}000,\"id\":\"id-{id}\",\"tool\":\"{}\",\"k\":\"ok\",\"us\":5,\"n\":1,\"b\":0}}\n",
            "t".repeat(1_000)
        )
    };
    let text: String = (0..5_000).map(line).collect();
    std::fs::write(&room.location().spool.path, text).unwrap();
    let mut statistics =
        Statistics::new(room.location(), Duration::from_secs(DAY), ReadBudget::BRIEF);
    statistics.refresh(now()).unwrap();
    let summary = statistics.summary(&CallFilter::default(), now()).unwrap();
    assert!(summary.is_behind && (1_000..5_000).contains(&calls(&summary)), "{}", calls(&summary));
    // The next time goes on, whether anything was appended or not.
    statistics.refresh(now()).unwrap();
    let summary = statistics.summary(&CallFilter::default(), now()).unwrap();
    assert_eq!((summary.is_behind, calls(&summary)), (false, 5_000));
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
    Fold,
    /// A reader is killed after so many parts were folded: its transaction is lost.
    Crash(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_u8..3, 0_u64..90 * DAY, 0_u8..4, 0_u64..5_000)
            .prop_map(|(tool, ago, kind, millis)| Step::Call { tool, ago, kind, millis }),
        1 => Just(Step::Torn),
        1 => Just(Step::Fold),
        1 => (0_usize..3).prop_map(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn folding_is_counting(steps in prop::collection::vec(step(), 1..40), window in 0_u64..90 * DAY) {
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
                    let path = room.location().spool.path;
                    let file = std::fs::File::options().append(true).create(true).open(path);
                    file.unwrap().write_all(b"{\"t\":17\n").unwrap();
                }
                Step::Fold => drop(room.read()),
                Step::Crash(after) => {
                    let mut statistics = room.statistics();
                    // A few parts are folded, and then the process is gone in a transaction.
                    statistics.budget.max_chunks = after;
                    statistics.refresh(now()).unwrap();
                    if let Some(store) = &statistics.store {
                        store.fold_and_crash(&spool_reader::files(&room.location().spool, now()).unwrap());
                    }
                }
            }
        }
        let mut statistics = room.statistics();
        statistics.refresh(now()).unwrap();
        let since = Duration::from_secs(NOW - window);
        for since in [None, Some(since)] {
            let mut summary = statistics.summary(&CallFilter { since, ..CallFilter::default() }, now()).unwrap();
            sort(&mut summary.tools, UsageOrder::Name);
            let from = summary.from.map_or(0, |from| from.as_secs());
            prop_assert!(since.is_none_or(|since| from <= since.as_secs() && since.as_secs() - from < DAY));
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
    let mut statistics = room.statistics();
    statistics.refresh(now()).unwrap();
    let since = now().checked_sub(Duration::from_mins(30));
    let tools = Some(vec!["a".to_owned(), "b".to_owned()]);
    let query = CallFilter { since, tools, ..CallFilter::default() };
    let timelines = statistics.time_series_by(&query, now(), 60, false).unwrap();
    assert_eq!(timelines.length, Duration::from_mins(1));
    let names: Vec<&str> = timelines.series.iter().map(|(tool, _)| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let calls: Vec<u64> = timelines.series[0].1.iter().map(|point| point.calls).collect();
    assert_eq!((calls.len(), calls.iter().sum::<u64>()), (31, 2));
    let failed: u64 = timelines.series[1].1.iter().map(|point| point.failed).sum();
    assert_eq!((failed, timelines.series[1].1.iter().any(|point| point.p95.is_some())), (1, false));
    let servers = statistics.time_series_by(&query, now(), 60, true).unwrap();
    assert_eq!(servers.series.len(), 1, "tools of no server are one");
    let most = statistics.time_series_by(&query, now(), 10, false).unwrap();
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
    let mut statistics = room.statistics();
    statistics.refresh(now()).unwrap();
    let since = Some(Duration::from_secs(NOW - 3_000));
    let filter = CallFilter { since, ..CallFilter::default() };
    let later = statistics.summary(&filter, now()).unwrap();
    let earlier = statistics.summary(&earlier_period(&filter, &later).unwrap(), now()).unwrap();
    let calls = |summary: &Summary| -> Vec<(String, u64)> {
        summary.tools.iter().map(|u| (u.tool.name.clone(), u.counts.calls())).collect()
    };
    assert_eq!(calls(&later), [("a".to_owned(), 11)]);
    assert_eq!(calls(&earlier), [("a".to_owned(), 10), ("gone".to_owned(), 1)]);
}

#[test]
fn a_store_of_an_earlier_version_keeps_its_counts() {
    let room = Room::new();
    room.call("a", 60, "ok", 5);
    room.read();
    let store = Connection::open(room.location().store.path).unwrap();
    // What the version before had.
    store
        .execute_batch(
            "CREATE TABLE old (id INTEGER PRIMARY KEY, name TEXT NOT NULL, server TEXT NOT NULL,
                 first INTEGER NOT NULL, last INTEGER NOT NULL, UNIQUE (name, server)) STRICT;
             INSERT INTO old SELECT id, name, server, first, last FROM tool;
             DROP TABLE tool;
             ALTER TABLE old RENAME TO tool;
             PRAGMA user_version = 1;",
        )
        .unwrap();
    drop(store);
    room.call("a", 30, "ok", 5);
    let (summary, notes) = room.read();
    assert_eq!(notes, [""; 0]);
    assert_eq!(summary.total().unwrap().counts.calls(), 2);
    assert_eq!(summary.tools.len(), 1);
}
