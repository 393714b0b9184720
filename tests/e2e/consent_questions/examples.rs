//! The example projects: each takes one answer, after which nothing of it is untrusted.

use std::path::Path;

use super::{QUESTION, YES, run, terminal};
use crate::support::Sandbox;

#[test]
fn each_example_project_takes_one_answer() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut projects = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let directory = entry.unwrap().path();
        if !directory.is_dir() {
            continue;
        }
        let room = Sandbox::ordinary();
        copy(&directory, &room, "");
        let name = directory.file_name().unwrap().to_string_lossy().into_owned();
        let before = run(&room, &["list", "--declared", "--json"]).check();
        let untrusted = |text: &str| text.contains(r#""status":"untrusted""#);
        if !untrusted(&before.out()) {
            continue;
        }
        projects += 1;
        let mut pty = terminal(&room, &["trust"]);
        pty.expect(QUESTION).type_keys(YES);
        let (code, screen) = pty.finish();
        assert_eq!(code, Some(0), "{name}\n{screen}");
        assert_eq!(screen.matches(QUESTION).count(), 1, "{name}\n{screen}");
        let after = run(&room, &["list", "--declared", "--json"]).check();
        assert!(!untrusted(&after.out()), "{name}\n{after}");
        run(&room, &["trust"]).check().exits(0).says(&["already trusted"]);
    }
    assert!(projects >= 5, "{projects} projects need an answer");
}

/// Copies a directory into the working directory of a room.
fn copy(from: &Path, room: &Sandbox, below: &str) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{below}{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            copy(&path, room, &format!("{name}/"));
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            room.file(&name, &text);
        }
    }
}
