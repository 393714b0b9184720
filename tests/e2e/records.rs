//! What is kept of calls: whole lines under load, after kill -9, and when nothing can be kept.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Finished, Fixture, Place, Run, Sandbox, log_events};

const CALL: [&str; 3] = ["call", "calculator", "expression=6*7"];

fn audit(room: &Sandbox) -> PathBuf {
    room.path("state/toolhost/audit.jsonl")
}

fn history(room: &Sandbox) -> PathBuf {
    room.path("state/toolhost/history.jsonl")
}

fn spool(room: &Sandbox) -> PathBuf {
    room.path("state/toolhost/stats.spool")
}

/// The rows of a file; each line must be one, or empty.
#[track_caller]
fn rows(path: &Path) -> Vec<Value> {
    // Before the first record there is no file.
    let text = std::fs::read_to_string(path).unwrap_or_default();
    assert!(text.is_empty() || text.ends_with('\n'), "the last line of {} is torn", path.display());
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line:?}")))
        .collect()
}

fn events<'a>(rows: &'a [Value], kind: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["event"] == kind).collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The call gave its answer and the record was lost, which is said once.
#[track_caller]
fn answered_without_a_record(finished: &Finished) {
    finished.exits(0);
    assert_eq!(finished.out(), "42\n", "{finished}");
    assert_eq!(finished.err().matches("not recorded").count(), 1, "{finished}");
}

#[test]
fn lines_of_many_processes_are_complete_whole_and_unique() {
    let room = Sandbox::new();
    for _ in 0..25 {
        let together: Vec<_> = (0..8).map(|_| room.toolhost(CALL).start()).collect();
        for running in together {
            running.finish().exits(0);
        }
    }
    let rows_of_audit = rows(&audit(&room));
    for kind in ["intent", "outcome"] {
        let found = events(&rows_of_audit, kind);
        let ids: BTreeSet<&str> = found.iter().map(|row| row["call"].as_str().unwrap()).collect();
        assert_eq!((found.len(), ids.len()), (200, 200), "{kind}");
    }
    let counted = rows(&spool(&room));
    let ids: BTreeSet<&str> = counted.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!((counted.len(), ids.len()), (200, 200));
    let kept = rows(&history(&room));
    let ids: BTreeSet<&str> = kept.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!((kept.len(), ids.len()), (200, 200));
}

#[test]
fn a_log_that_is_set_aside_by_many_at_once_loses_no_line() {
    let room = Sandbox::new();
    room.toolhost(CALL).check().exits(0);
    for path in [audit(&room), history(&room)] {
        let line = std::fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned();
        // Almost as long as a file may be: the next lines reach the limit.
        let many = (16 << 20) / (line.len() + 1) - 1;
        std::fs::write(&path, format!("{line}\n").repeat(many)).unwrap();
    }
    // They are too many to be read one by one.
    let count = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with("}\n"), "{} is torn", path.display());
        text.lines().filter(|line| !line.is_empty()).count()
    };
    let before = [count(&audit(&room)), count(&history(&room))];
    for _ in 0..3 {
        let together: Vec<_> = (0..8).map(|_| room.toolhost(CALL).start()).collect();
        for running in together {
            let finished = running.finish();
            finished.exits(0);
            assert!(finished.err().is_empty(), "{finished}");
        }
    }
    for (name, lines) in [("audit", before[0] + 48), ("history", before[1] + 24)] {
        let directory = std::fs::read_dir(room.path("state/toolhost")).unwrap();
        let paths = directory.map(|entry| entry.unwrap().path());
        let files: Vec<PathBuf> = paths
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name))
            .collect();
        assert_eq!(files.len(), 2, "{files:?}");
        assert!(files.iter().all(|file| mode(file) == 0o600));
        let found: usize = files.iter().map(|file| count(file)).sum();
        assert_eq!(found, lines, "{name}");
    }
    let newest = room.toolhost(["audit", "--json", "-n", "24"]).check();
    assert!(newest.json().as_array().unwrap().iter().all(|call| call["result"] == "ok"));
}

#[test]
fn records_are_kept_as_long_as_the_user_says_and_no_longer() {
    let room = Sandbox::new();
    room.toolhost(CALL).check().exits(0);
    let now = std::time::SystemTime::now();
    let files = ["audit", "history", "stats"];
    let set_aside = |name: &str, stamp: &str| {
        let extension = if name == "stats" { "spool" } else { "jsonl" };
        room.path(&format!("state/toolhost/{name}-{stamp}.{extension}"))
    };
    for (name, path) in files.iter().zip([audit(&room), history(&room), spool(&room)]) {
        let line = std::fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned();
        // The next line sets the file aside, which is when others are looked at.
        let limit = if *name == "stats" { 1 << 20 } else { 16 << 20 };
        let many = limit / (line.len() + 1) + 1;
        std::fs::write(&path, format!("{line}\n").repeat(many)).unwrap();
        for (stamp, hours) in [("20200101T000000Z", 80), ("20200102T000000Z", 30)] {
            let path = set_aside(name, stamp);
            std::fs::write(&path, format!("{line}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            let then = now - std::time::Duration::from_secs(hours * 3600);
            let file = std::fs::File::options().append(true).open(&path).unwrap();
            file.set_modified(then).unwrap();
        }
    }
    std::fs::write(
        room.path("config/toolhost/tools.yaml"),
        "audit: { retention: 2d }\nhistory: { retention: 2d }\nstats: { retention: 2d }\n\
         tools: [{ name: calculator, module: builtin.calculator, function: calculate }]\n",
    )
    .unwrap();
    room.toolhost(CALL).check().exits(0);
    for name in files {
        assert!(!set_aside(name, "20200101T000000Z").exists(), "{name}: 80 hours are too old");
        assert!(set_aside(name, "20200102T000000Z").exists(), "{name}: 30 hours are not");
    }
}

#[test]
fn kill_9_tears_no_line_of_any_record() {
    let room = Sandbox::new();
    for round in 0..25 {
        let mut running = room.toolhost(CALL).start();
        // Killed somewhere else each time: as soon as so many bytes were recorded.
        let wanted = round * 60;
        let written = || std::fs::metadata(audit(&room)).map_or(0, |found| found.len());
        let before = written();
        while written() < before + wanted && running.child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        running.child.kill().unwrap();
        running.finish();
        rows(&audit(&room));
        rows(&spool(&room));
        rows(&history(&room));
    }
    let before = rows(&history(&room)).len();
    room.toolhost(CALL).check().exits(0);
    assert_eq!(rows(&history(&room)).len(), before + 1);
    room.toolhost(["audit"]).check().exits(0);
}

#[test]
fn kill_9_loses_no_intent_and_tears_no_line() {
    let room = Sandbox::new();
    let log = room.log("srv");
    room.server("srv", &Fixture::fault(Place::Stdio, "never-answers-call", "legacy", &log));
    let call = ["call", "srv-echo", "message=hi", "--timeout", "25s"];
    let mut reached = 0;
    // Killed as soon as the server has seen a message: in the handshake, the list, the call.
    for round in 0..12 {
        let method = ["initialize", "tools/list", "tools/call"][round % 3];
        let seen = || {
            let messages = log_events(&log, "message");
            messages.iter().filter(|message| message["method"] == method).count()
        };
        let before = seen();
        let mut running = room.with_servers(call).start();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while seen() == before {
            assert!(std::time::Instant::now() < deadline, "{method} never arrived");
            std::thread::yield_now();
        }
        running.child.kill().unwrap();
        running.finish();
        reached += usize::from(method == "tools/call");
        let written = rows(&audit(&room));
        assert!(events(&written, "intent").len() >= reached, "{method}: {written:?}");
        assert!(events(&written, "outcome").is_empty(), "{written:?}");
    }
    // Who comes next finds everything in order, and goes on in the same files.
    room.file(
        "tools.yaml",
        "tools:\n  - { name: calculator, module: builtin.calculator, function: calculate }\n",
    );
    let finished = room.toolhost([&["--tools", "tools.yaml"][..], &CALL].concat()).check();
    finished.exits(0);
    assert!(!finished.err().contains("recorded"), "{finished}");
    let written = rows(&audit(&room));
    let (intents, outcomes) = (events(&written, "intent"), events(&written, "outcome"));
    assert!(intents.len() > reached, "{written:?}");
    assert_eq!(outcomes.len(), 1, "{written:?}");
    assert!(intents.iter().any(|intent| intent["call"] == outcomes[0]["call"]), "{written:?}");
    assert_eq!(rows(&spool(&room)).len(), 1);
}

/// A run of the binary whose files may not grow beyond `blocks` of 512 bytes: a full disk that
/// needs no mount.
fn with_little_room<'a>(room: &'a Sandbox, blocks: &str, more: &[&'a str]) -> Run<'a> {
    let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let script: &'static str = Box::leak(script.into_boxed_str());
    let binary = env!("CARGO_BIN_EXE_toolhost");
    room.program("/bin/sh", ["-c", script, binary].into_iter().chain(more.iter().copied()))
}

#[test]
fn a_full_disk_costs_the_record_and_never_the_answer() {
    let room = Sandbox::new();
    answered_without_a_record(&with_little_room(&room, "0", &CALL).check());
    let required = with_little_room(&room, "0", &[&["--require-record"][..], &CALL].concat());
    let finished = required.check();
    finished.exits(1).says(&["--require-record"]);
    assert!(finished.out().is_empty(), "it was run without its record\n{finished}");
}

#[test]
fn a_disk_that_fills_up_in_the_middle_of_a_line_harms_no_other_line() {
    let room = Sandbox::new();
    room.toolhost(CALL).check().exits(0);
    let before = rows(&audit(&room));
    // The next line fits in part only.
    let size = std::fs::metadata(audit(&room)).unwrap().len();
    let blocks = (size / 512 + 1).to_string();
    answered_without_a_record(&with_little_room(&room, &blocks, &CALL).go());
    room.toolhost(CALL).check().exits(0);
    let text = std::fs::read_to_string(audit(&room)).unwrap();
    let whole: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(whole[..before.len()], before[..]);
    assert_eq!(events(&whole, "outcome").len(), 2, "{text}");
    assert!(text.lines().count() - whole.len() <= 1, "more than one line is torn:\n{text}");
}

#[test]
fn nowhere_to_keep_records_is_a_warning() {
    let room = Sandbox::new();
    // Nothing can be made there, whoever one is.
    let nowhere = |run: Run<'_>| run.env("XDG_STATE_HOME", "/proc/nowhere").check();
    answered_without_a_record(&nowhere(room.toolhost(CALL)));
    let required = room.toolhost([&["--require-record"][..], &CALL].concat());
    nowhere(required).exits(1);
    room.toolhost(["list"]).env("XDG_STATE_HOME", "/proc/nowhere").check().exits(0);
}

#[test]
fn a_file_where_the_directory_belongs_is_a_warning() {
    for place in ["state/toolhost", "state"] {
        let room = Sandbox::new();
        std::fs::remove_dir(room.path("state")).unwrap();
        let file = room.path(place);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "mine").unwrap();
        answered_without_a_record(&room.toolhost(CALL).go());
        let required = room.toolhost([&["--require-record"][..], &CALL].concat());
        required.go().exits(1);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        // The rules of a run look through the whole state directory.
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir_all(room.path("state")).unwrap();
    }
}

#[test]
fn no_home_at_all_is_a_warning_at_most() {
    let room = Sandbox::new();
    let mut run = room.toolhost(CALL);
    for key in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
        run = run.without(key);
    }
    // Without HOME the home is looked up; what is found there belongs to somebody, so the state
    // goes to the room all the same.
    let state = room.path("state").display().to_string();
    let finished = run.env("XDG_STATE_HOME", &state).go();
    finished.exits(0);
    assert_eq!(finished.out(), "42\n", "{finished}");
}

#[test]
fn a_linked_record_is_refused_and_its_target_untouched() {
    for linked in ["audit.jsonl", "stats.spool", "history.jsonl"] {
        let room = Sandbox::new();
        let target = room.path("home/precious");
        std::fs::write(&target, "x").unwrap();
        std::fs::create_dir_all(room.path("state/toolhost")).unwrap();
        symlink(&target, room.path("state/toolhost").join(linked)).unwrap();
        let finished = room.toolhost(CALL).check();
        if linked == "audit.jsonl" {
            finished.exits(6).says(&["audit.jsonl", "symbolic link"]);
            assert!(finished.out().is_empty(), "it was run\n{finished}");
        } else {
            answered_without_a_record(&finished);
        }
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "x");
    }
}

#[test]
fn a_linked_state_directory_is_refused() {
    let room = Sandbox::new();
    std::fs::create_dir(room.path("elsewhere")).unwrap();
    symlink(room.path("elsewhere"), room.path("state/toolhost")).unwrap();
    room.toolhost(CALL).check().exits(6).says(&["symbolic link"]);
    assert_eq!(std::fs::read_dir(room.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_record_that_others_can_write_is_closed_with_a_note() {
    let room = Sandbox::new();
    room.toolhost(CALL).check().exits(0);
    let directory = room.path("state/toolhost");
    let open = |path: &Path, bits| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    open(&audit(&room), 0o666);
    open(&spool(&room), 0o666);
    open(&history(&room), 0o644);
    open(&directory, 0o777);
    let finished = room.toolhost(CALL).check();
    finished.exits(0).says(&["0600", "0700"]);
    let modes = [audit(&room), spool(&room), history(&room), directory].map(|path| mode(&path));
    assert_eq!(modes, [0o600, 0o600, 0o600, 0o700]);
    assert!(!room.toolhost(CALL).check().err().contains("0600"), "it is said once");
}

#[test]
fn a_record_of_somebody_else_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return crate::support::left_out("only root can give a file away");
    }
    let room = Sandbox::new();
    room.toolhost(CALL).check().exits(0);
    std::os::unix::fs::chown(audit(&room), Some(65534), None).unwrap();
    room.toolhost(CALL).check().exits(6).says(&["another user"]);
    room.toolhost(["audit"]).check().exits(6).says(&["another user"]);
    std::os::unix::fs::chown(audit(&room), Some(0), None).unwrap();
    std::os::unix::fs::chown(history(&room), Some(65534), None).unwrap();
    answered_without_a_record(&room.toolhost(CALL).check());
    room.toolhost(["history"]).check().exits(6).says(&["another user"]);
}

#[test]
fn a_fifo_in_the_place_of_a_record_blocks_nothing() {
    let room = Sandbox::new();
    std::fs::create_dir_all(room.path("state/toolhost")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(audit(&room)).status().unwrap();
    assert!(made.success());
    room.toolhost(CALL).check().exits(6).says(&["not a regular file"]);
}
