//! The room itself: it finds what it is there to find.

use std::time::Duration;

use crate::support::Sandbox;

/// What is wrong with a shell script, by the numbers of the invariants.
fn violations(script: &str) -> Vec<String> {
    let room = Sandbox::new();
    let finished = room.program("/bin/sh", ["-c", script]).limit(Duration::from_secs(3)).go();
    finished
        .violations(&room)
        .iter()
        .map(|found| found.split(':').next().unwrap().to_owned())
        .collect()
}

#[test]
fn good_manners_pass() {
    assert_eq!(violations("echo 'fine ␛[31m'"), [] as [&str; 0]);
    assert_eq!(violations("echo error: no >&2; echo '  detail' >&2; exit 4"), [] as [&str; 0]);
    let json = r#"echo '{"error":{"kind":"usage","exit":2,"message":"no"}}' >&2; exit 2"#;
    assert_eq!(violations(json), [] as [&str; 0]);
}

#[test]
fn bad_manners_are_found() {
    assert_eq!(violations("exec sleep 60"), ["I1"]);
    assert_eq!(violations(r"printf '\033[31m'"), ["I3"]);
    assert_eq!(violations(r"printf 'a\302\233b' >&2"), ["I3"]);
    assert_eq!(violations("exit 4"), ["I4"]);
    assert_eq!(violations("echo error: a >&2; echo error: b >&2; exit 4"), ["I4"]);
    assert_eq!(violations("echo error: a >&2; exit 0"), ["I4"]);
    assert_eq!(violations("echo error: a >&2; exit 101"), ["I4"]);
    assert_eq!(violations("kill -SEGV $$"), ["I10"]);
}

#[test]
fn what_is_left_behind_is_found() {
    assert_eq!(violations("sleep 60 >/dev/null 2>&1 & exit 0"), ["I6"]);
}

#[test]
fn who_left_the_group_and_the_session_is_found() {
    assert_eq!(violations("setsid sleep 60 >/dev/null 2>&1 & exit 0"), ["I6"]);
}

#[test]
fn who_holds_the_pipes_is_found() {
    assert_eq!(violations("sleep 60 & exit 0"), ["I6", "I6"]);
}

#[test]
fn what_is_left_behind_is_cleared_away_with_the_room() {
    let room = Sandbox::new();
    room.program("/bin/sh", ["-c", "sleep 60 >/dev/null 2>&1 &"]).go();
    let path = room.path("");
    let left = room.inhabitants();
    assert_eq!(left.len(), 1, "{left:?}");
    let pid = left[0].split(' ').next().unwrap().to_owned();
    drop(room);
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let marker = path.as_os_str().as_encoded_bytes();
    assert!(!environment.windows(marker.len()).any(|part| part == marker));
}
