//! Tests that a machine cannot run: each reports this where the test runner does not hide it.
//!
//! Part of all test binaries, so it uses only the standard library.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

/// Says that something is left out, and why. With `TOOLHOST_REQUIRE_ALL=1`, as in CI, that is a
/// failure.
pub fn left_out(why: &str) {
    #[expect(clippy::disallowed_methods, reason = "a switch for the person who runs the tests")]
    let requires_all = std::env::var_os("TOOLHOST_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!requires_all, "left out, and TOOLHOST_REQUIRE_ALL is set: {why}");
    let test = std::thread::current();
    let test = test.name().unwrap_or("a test");
    // The runner hides what is printed by macros, and only that.
    let line = format!("\nLEFT OUT: {test}: {why} (TOOLHOST_REQUIRE_ALL=1 makes this a failure)\n");
    std::io::stderr().write_all(line.as_bytes()).ok();
    let notes = notes()
        .and_then(|path| std::fs::OpenOptions::new().create(true).append(true).open(path).ok());
    if let Some(mut notes) = notes {
        notes.write_all(format!("{test}\t{}\n", why.replace('\n', " ")).as_bytes()).ok();
    }
}

/// The file in which all test binaries of one `cargo test` note what they leave out; the process
/// that runs them distinguishes the runs.
pub fn notes() -> Option<PathBuf> {
    let binary = std::env::current_exe().ok()?;
    Some(binary.with_file_name(format!("left-out-{}.txt", std::os::unix::process::parent_id())))
}

/// What a run left out: how many tests for each reason, the commonest first, and how to include
/// them. Empty when nothing was left out.
pub fn summary(notes: &str) -> String {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (test, why) in notes.lines().filter_map(|line| line.split_once('\t')) {
        let tests = reasons.entry(why).or_default();
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    if reasons.is_empty() {
        return String::new();
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    let all: usize = reasons.iter().map(|(_, tests)| tests.len()).sum();
    let mut text = format!("left out on this machine, in whole or in part: {all} tests\n");
    for (why, tests) in reasons {
        let example = tests.first().copied().unwrap_or_default();
        let more = if tests.len() > 1 { ", …" } else { "" };
        writeln!(text, "{:>5}  {why} ({example}{more})", tests.len()).ok();
    }
    text + "TOOLHOST_REQUIRE_ALL=1 cargo test makes each of them a failure\n"
}

/// Whether one of these programs is not installed; then the test is skipped, with a message.
pub fn lacks(programs: &[&str]) -> bool {
    #[expect(clippy::disallowed_methods, reason = "where a test looks for its counterpart")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |name: &&&str| std::env::split_paths(&path).any(|place| place.join(name).is_file());
    let missing = programs.iter().find(|name| !is_there(name));
    if let Some(name) = missing {
        left_out(&format!("{name} is not installed; install it to include this test"));
    }
    missing.is_some()
}

#[test]
fn what_was_left_out_is_told_by_reason() {
    assert_eq!(summary(""), "");
    let text = summary("a\tno git\nb\tno python3\nb\tno python3\nc\tno python3\n");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "left out on this machine, in whole or in part: 3 tests");
    assert_eq!(lines[1..3], ["    2  no python3 (b, …)", "    1  no git (a)"]);
    assert!(lines[3].starts_with("TOOLHOST_REQUIRE_ALL=1"), "{text}");
}
