//! Tests of rotation while others write, read and follow.

use std::collections::BTreeSet;
use std::io::Write as _;

use proptest::prelude::*;

use super::*;

const NOW: Duration = Duration::from_secs(1_795_304_776);

fn here(root: &tempfile::TempDir) -> RecordLocation {
    RecordLocation::named(root.path().join("log.jsonl"))
}

fn small(segment: u64) -> SegmentRetention {
    SegmentRetention { max_segment_bytes: segment, ..SegmentRetention::default() }
}

fn names(root: &tempfile::TempDir) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn text(line: RecordLine) -> String {
    match line {
        RecordLine::Text(text) if text.len() > 1 << 20 => format!("{} bytes", text.len()),
        RecordLine::Text(text) => String::from_utf8(text).unwrap(),
        RecordLine::TooLong => "too long".to_owned(),
    }
}

fn newest_first(location: &RecordLocation) -> Vec<String> {
    ReverseLines::all(location).unwrap().map(|line| text(line.unwrap())).collect()
}

#[test]
fn a_full_file_is_set_aside_under_a_name_that_sorts() {
    let root = tempfile::tempdir().unwrap();
    let log = SegmentedLog::new(here(&root), false, small(8));
    log.append(NOW, "\"first\"").unwrap();
    log.append(NOW, "\"second\"").unwrap();
    // The clock was put back by a day.
    log.append(NOW.saturating_sub(Duration::from_hours(24)), "\"third\"").unwrap();
    log.append(NOW, "4").unwrap();
    assert_eq!(
        names(&root),
        [
            "log-20261121T234616Z.jsonl",
            "log-20261121T234617Z.jsonl",
            "log-20261121T234618Z.jsonl",
            "log.jsonl"
        ]
    );
    assert_eq!(newest_first(&here(&root)), ["4", "\"third\"", "\"second\"", "\"first\""]);
    assert_eq!(log.take_notes(), [""; 0]);
}

#[test]
fn what_is_old_or_too_much_goes_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let keep = SegmentRetention {
        max_segment_bytes: 8,
        max_total_bytes: 40,
        max_age: Duration::from_hours(24),
    };
    for foreign in ["log-2026.jsonl", "log-20261122T002616Z.jsonl.bak", "other.jsonl"] {
        std::fs::write(root.path().join(foreign), "mine").unwrap();
    }
    let old = root.path().join("log-20200101T000000Z.jsonl");
    std::fs::write(&old, "1\n").unwrap();
    let then = std::time::UNIX_EPOCH + NOW.saturating_sub(Duration::from_hours(25));
    std::fs::File::options().append(true).open(&old).unwrap().set_modified(then).unwrap();
    let log = SegmentedLog::new(here(&root), false, keep);
    for line in 0..6 {
        log.append(NOW, &format!("\"line {line}\"")).unwrap();
    }
    // Four files of nine bytes fit into forty.
    assert_eq!(newest_first(&here(&root)), [5, 4, 3, 2].map(|line| format!("\"line {line}\"")));
    assert_eq!(names(&root).len(), 4 + 3);
    assert!(!old.exists());
}

#[test]
fn a_file_goes_for_its_age_alone() {
    let root = tempfile::tempdir().unwrap();
    let keep = SegmentRetention {
        max_segment_bytes: 8,
        ..SegmentRetention::for_age(Duration::from_hours(24))
    };
    let aged = |name: &str, hours: u64| {
        let path = root.path().join(name);
        std::fs::write(&path, "1\n").unwrap();
        let then = std::time::UNIX_EPOCH + NOW.saturating_sub(Duration::from_hours(hours));
        std::fs::File::options().append(true).open(&path).unwrap().set_modified(then).unwrap();
        path
    };
    let (old, young) =
        (aged("log-20200101T000000Z.jsonl", 25), aged("log-20200102T000000Z.jsonl", 23));
    SegmentedLog::new(here(&root), false, keep).append(NOW, "\"a line\"").unwrap();
    assert!(!old.exists());
    assert!(young.exists());
}

#[test]
fn no_line_is_lost_while_many_set_files_aside() {
    let root = tempfile::tempdir().unwrap();
    let location = here(&root);
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let location = location.clone();
            scope.spawn(move || {
                // Each has its own descriptor, as processes have.
                let log = SegmentedLog::new(location, false, small(500));
                for line in 0..200 {
                    log.append(NOW, &format!("[{writer},{line}]")).unwrap();
                }
                assert_eq!(log.take_notes(), [""; 0]);
            });
        }
    });
    let lines = newest_first(&location);
    assert_eq!((lines.len(), lines.iter().collect::<BTreeSet<_>>().len()), (1_600, 1_600));
    assert!(names(&root).len() > 3);
    // The lines of one writer stay in order.
    let of_one: Vec<&String> = lines.iter().filter(|line| line.starts_with("[3,")).collect();
    assert!(of_one.windows(2).all(|pair| {
        let number = |line: &String| {
            let digits = line.strip_prefix("[3,").and_then(|line| line.strip_suffix(']'));
            digits.unwrap().parse::<u32>().unwrap()
        };
        number(pair[0]) > number(pair[1])
    }));
}

#[test]
fn a_file_that_cannot_be_set_aside_grows_on_and_says_so_once() {
    let root = tempfile::tempdir().unwrap();
    let log = SegmentedLog::new(here(&root), false, small(1));
    let names = SegmentNames::of(&here(&root).path);
    let now = i64::try_from(NOW.as_secs()).unwrap();
    // Directories stand at every name that would be tried; they are no files of ours to sort after.
    std::fs::create_dir(root.path().join(names.at(i64::MAX))).unwrap();
    for second in now..now + 3 {
        std::fs::create_dir(root.path().join(names.at(second))).unwrap();
    }
    log.append(NOW, "1").unwrap();
    log.append(NOW, "2").unwrap();
    assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "1\n2\n");
    let notes = log.take_notes();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("cannot be rotated"), "{notes:?}");
}

#[test]
fn what_is_followed_goes_on_in_the_next_files() {
    let root = tempfile::tempdir().unwrap();
    let log = SegmentedLog::new(here(&root), false, small(20));
    log.append(NOW, "\"before\"").unwrap();
    let mut follow = LineFollower::from_end(here(&root)).unwrap();
    let mut texts = Vec::new();
    let mut look = |texts: &mut Vec<String>| {
        texts.extend(follow.poll().unwrap().into_iter().map(text));
    };
    look(&mut texts);
    assert_eq!(texts, [""; 0]);
    for line in 0..4 {
        log.append(NOW, &format!("\"line {line}\"")).unwrap();
        if line == 1 {
            look(&mut texts);
        }
    }
    // A writer that still has the set-aside file open writes its last line there.
    for _ in 0..3 {
        look(&mut texts);
    }
    assert_eq!(texts, [0, 1, 2, 3].map(|line| format!("\"line {line}\"")));
    // Half a line is no line yet.
    let mut file = File::options().append(true).create(true).open(log.path()).unwrap();
    file.write_all(b"[1,").unwrap();
    look(&mut texts);
    file.write_all(b"2]\n").unwrap();
    look(&mut texts);
    assert_eq!(texts.last().unwrap(), "[1,2]");
    assert_eq!(texts.len(), 5);
}

#[test]
fn following_what_is_not_there_yet_begins_with_its_first_line() {
    let root = tempfile::tempdir().unwrap();
    let mut follow = LineFollower::from_end(here(&root)).unwrap();
    assert_eq!(follow.poll().unwrap(), []);
    let log = SegmentedLog::new(here(&root), false, SegmentRetention::default());
    log.append(NOW, "1").unwrap();
    assert_eq!(follow.poll().unwrap(), [RecordLine::Text(b"1".to_vec())]);
}

#[test]
fn a_line_beyond_all_measure_is_skipped() {
    let root = tempfile::tempdir().unwrap();
    let long = "x".repeat(9 << 20);
    std::fs::write(root.path().join("log.jsonl"), format!("1\n{long}\n2\n")).unwrap();
    assert_eq!(newest_first(&here(&root)), ["2", "too long", "1"]);
}

proptest! {
    #[test]
    fn backwards_is_forwards_reversed(lines in proptest::collection::vec("[a-z]{0,200}", 0..40), pad in 0..200_000_usize, ended: bool) {
        let root = tempfile::tempdir().unwrap();
        let mut text = lines.join("\n");
        // So that blocks end anywhere in lines.
        text.insert_str(0, &"y".repeat(pad));
        if ended {
            text.push('\n');
        }
        std::fs::write(root.path().join("log.jsonl"), &text).unwrap();
        let mut expected: Vec<&str> = text.split('\n').filter(|line| !line.is_empty()).collect();
        expected.reverse();
        prop_assert_eq!(newest_first(&here(&root)), expected);
    }
}

#[test]
fn a_short_file_is_set_aside_when_it_is_old_and_removed_at_its_age() {
    let root = tempfile::tempdir().unwrap();
    let week = Duration::from_hours(7 * 24);
    let keep = SegmentRetention::for_age(week);
    let log = |text: &str, now: Duration| {
        SegmentedLog::new(here(&root), false, keep).append(now, text).unwrap();
    };
    log("1", NOW);
    let created = std::fs::metadata(root.path().join("log.jsonl")).unwrap().created().unwrap();
    let created = created.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    log("2", created + week / 9);
    assert_eq!(names(&root), ["log.jsonl"]);
    log("3", created + week / 8);
    assert_eq!(names(&root).len(), 1, "it goes with the line that finds it old");
    assert_eq!(newest_first(&here(&root)), ["3", "2", "1"]);
    let aside = root.path().join(&names(&root)[0]);
    let weeks_ago = SystemTime::UNIX_EPOCH + created - week * 3;
    std::fs::File::options().append(true).open(aside).unwrap().set_modified(weeks_ago).unwrap();
    log("4", created + week * 3);
    assert_eq!(
        newest_first(&here(&root)).len(),
        4,
        "a line that is dated ahead takes nothing along"
    );
    let later = created + week / 8 + Duration::from_hours(1);
    log("5", later);
    assert_eq!(newest_first(&here(&root)).len(), 5, "weeks that pass at once are not believed yet");
    log("6", later);
    assert_eq!(newest_first(&here(&root)), ["6", "5", "4"], "the one from weeks ago was old");
}
