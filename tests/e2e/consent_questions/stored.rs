//! Answers that were stored: shown, taken back, and not believed when others could have written
//! them.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;

use super::{ALLOWS, Project, refused, run};
use crate::support::{Sandbox, files_below};

/// A project that was trusted, and the file that says so.
fn trusted() -> (Project, PathBuf) {
    let project = Project::new();
    run(&project.room, &["trust", "--yes"]).check().exits(0);
    run(&project.room, &["call", "plain"]).check().exits(0);
    let store = store(&project.room);
    (project, store)
}

fn store(room: &Sandbox) -> PathBuf {
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("trust"))
            && path.extension().is_some_and(|extension| extension == "json")
    };
    let mut found: Vec<PathBuf> =
        files_below(&room.path("state")).into_iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn what_was_trusted_is_listed_and_can_be_taken_back() {
    let (project, _) = trusted();
    let root = project.room.path("work").display().to_string();
    let listed = run(&project.room, &["trust", "list"]).check();
    assert!(listed.exits(0).out().contains(&root), "{listed}");
    let listed = run(&project.room, &["trust", "list", "--json"]).check();
    assert!(listed.exits(0).json().to_string().contains(&root), "{listed}");
    run(&project.room, &["trust", "revoke", &root]).check().exits(0);
    refused(&project.room, &["call", "plain"]);
    let listed = run(&project.room, &["trust", "list"]).check();
    assert!(!listed.exits(0).out().contains(&root), "{listed}");
    run(&project.room, &["trust", "revoke", &root]).check().exits(2);
}

#[test]
fn a_directory_can_be_named() {
    let project = Project::new();
    let root = project.room.path("work").display().to_string();
    refused(&project.room, &["trust", &root]);
    run(&project.room, &["trust", &root, "--yes"]).check().exits(0);
    run(&project.room, &["call", "plain"]).check().exits(0);
}

#[test]
fn a_store_that_cannot_be_read_trusts_nothing_and_is_kept() {
    let damages: &[fn(&str) -> String] = &[
        |_| String::new(),
        |_| "{nonsense".to_owned(),
        |text| text.chars().take(text.len() / 2).collect(),
        |text| {
            let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
            value["version"] = serde_json::json!(999);
            value.to_string()
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        let (project, store) = trusted();
        let starts = project.recorder.starts().len();
        let damaged = damage(&std::fs::read_to_string(&store).unwrap());
        std::fs::write(&store, &damaged).unwrap();
        let finished = run(&project.room, &["call", "plain"]).check();
        assert_eq!(project.recorder.starts().len(), starts, "damage {number}\n{finished}");
        finished.exits(6);
        // It may hold answers of a newer version: nothing is written over it.
        run(&project.room, &["list"]).check();
        assert_eq!(std::fs::read_to_string(&store).unwrap(), damaged, "damage {number}");
    }
}

#[test]
fn a_store_that_others_may_write_to_trusts_nothing() {
    for mode in [0o620, 0o602, 0o666] {
        let (project, store) = trusted();
        let starts = project.recorder.starts().len();
        std::fs::set_permissions(&store, std::fs::Permissions::from_mode(mode)).unwrap();
        let finished = run(&project.room, &["call", "plain"]).check();
        assert_eq!(project.recorder.starts().len(), starts, "{mode:o}\n{finished}");
        finished.exits(6);
    }
}

#[test]
fn a_store_of_another_user_trusts_nothing() {
    if !rustix::process::geteuid().is_root() {
        crate::support::left_out("only root can give a file away");
        return;
    }
    // Root's own room: whoever owns the file could have written what root then believes.
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: t, command: [touch, ran] }]\n");
    run(&room, &["trust", "--yes"]).check().exits(0);
    chown(store(&room), Some(65534), Some(65534)).unwrap();
    let finished = run(&room, &["call", "t"]).check();
    assert!(!room.path("work/ran").exists(), "{finished}");
    finished.exits(6);
}

#[test]
fn a_store_that_is_a_link_or_cannot_be_written_is_said() {
    let project = Project::new();
    let state = project.room.path("state/toolhost");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(project.room.path("state/blocker"), "").unwrap();
    std::fs::remove_dir_all(&state).unwrap();
    std::os::unix::fs::symlink(project.room.path("state/blocker"), &state).unwrap();
    let finished = run(&project.room, &["trust", "--yes"]).check();
    assert_ne!(finished.code, Some(0), "an answer that is not stored was taken\n{finished}");
    refused(&project.room, &["call", "plain"]);
}

/// A run that is allowed leaves no answer behind.
#[test]
fn the_flag_of_a_run_stores_nothing() {
    let project = Project::new();
    run(&project.room, &["--trust", "call", "plain"]).check().exits(0);
    let listed = run(&project.room, &["trust", "list", "--json"]).check();
    let root = project.room.path("work").display().to_string();
    assert!(!listed.exits(0).out().contains(&root), "{listed}");
    run(&project.room, &["call", "plain"]).check().exits(6).says(&[ALLOWS]);
}
