//! Tests of writing, editing, copying, moving and deleting.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use super::super::kind;
use super::{call, harness, inside};
use crate::providers::harness::KindHarness;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_is_created_replaced_and_added_to() {
    let harness = harness(|_| {});
    let file = inside(&harness).join("n/a");
    let write = |text: &str| json!({ "path": "n/a", "text": text });
    assert_eq!(call(&harness, "write", write("1\n")).await, "created 'n/a' with 2 bytes");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    let text = call(&harness, "write", write("22\n")).await;
    assert_eq!(text, "replaced the content of 'n/a' with 3 bytes");
    let text = call(&harness, "append", write("3")).await;
    assert_eq!(text, "added 1 byte to 'n/a', which now has 4");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "22\n3");
    assert_eq!(mode(&file), 0o640);
    let bytes = json!({ "path": "n/a", "text": "AP8=", "encoding": "base64" });
    call(&harness, "write", bytes).await;
    assert_eq!(std::fs::read(&file).unwrap(), [0, 255]);
    assert_eq!(names(file.parent().unwrap()), ["a"]);
    let none = call(&harness, "write", json!({ "path": "n/", "text": "" })).await;
    assert_eq!(none, "3: 'n' is a directory, not a file");
    let none = call(&harness, "write", json!({ "path": "n", "text": "" })).await;
    assert_eq!(none, "3: 'n' is a directory, not a file");
}

#[tokio::test]
async fn langchains_arguments_do_the_same() {
    let yaml = "toolkits: [{ name: d, toolkit: FileManagementToolkit, root_dir: ., \
                access: write }]";
    let harness = KindHarness::new(&kind(), yaml);
    for (tool, arguments, expected) in [
        ("write_file", json!({ "file_path": "a", "text": "x" }), "created 'a' with 1 byte"),
        (
            "write_file",
            json!({ "file_path": "a", "text": "y\n", "append": true }),
            "added 2 bytes to 'a', which now has 3",
        ),
        ("read_file", json!({ "file_path": "a" }), "xy\n"),
        (
            "copy_file",
            json!({ "source_path": "a", "destination_path": "b" }),
            "copied 'a' to 'b' (3 B)",
        ),
        (
            "move_file",
            json!({ "source_path": "b", "destination_path": "c/d" }),
            "moved 'b' to 'c/d'",
        ),
        ("file_search", json!({ "pattern": "d" }), "c/d\n"),
        ("file_delete", json!({ "file_path": "c/d" }), "deleted 'c/d', a file"),
    ] {
        assert_eq!(call(&harness, tool, arguments).await, expected, "{tool}");
    }
}

#[tokio::test]
async fn an_edit_needs_a_text_that_stands_there_once() {
    let harness = harness(|d| std::fs::write(d.join("a"), "one two\none three\n").unwrap());
    let edit = |old: &str, new: &str| json!({ "path": "a", "old": old, "new": new });
    assert_eq!(
        call(&harness, "edit", edit("one", "1")).await,
        "3: the old text occurs 2 times in 'a', on the lines 1, 2"
    );
    assert_eq!(
        call(&harness, "edit", edit("four", "4")).await,
        "3: 'a' does not contain the old text"
    );
    assert_eq!(call(&harness, "edit", edit("one three\n", "3\n")).await, "changed 'a' at line 2");
    assert_eq!(call(&harness, "edit", edit(" two", "")).await, "changed 'a' at line 1");
    assert_eq!(std::fs::read_to_string(inside(&harness).join("a")).unwrap(), "one\n3\n");
    assert_eq!(
        call(&harness, "edit", json!({ "path": "b", "old": "a", "new": "b" })).await,
        "3: cannot read 'b': there is no such file or directory"
    );
}

#[tokio::test]
async fn a_copy_keeps_mode_and_holes_and_what_is_there() {
    let harness = harness(|d| {
        std::fs::write(d.join("a"), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(d.join("a"), PermissionsExt::from_mode(0o750)).unwrap();
        std::fs::write(d.join("b"), "old").unwrap();
        std::fs::create_dir(d.join("dir")).unwrap();
        let sparse = std::fs::File::create(d.join("sparse")).unwrap();
        sparse.set_len(10 << 30).unwrap();
    });
    let copy = |from: &str, to: &str| json!({ "from": from, "to": to });
    assert_eq!(call(&harness, "copy", copy("a", "dir")).await, "copied 'a' to 'dir/a' (10 B)");
    assert_eq!(mode(&inside(&harness).join("dir/a")), 0o750);
    assert_eq!(call(&harness, "copy", copy("a", "b")).await, "3: 'b' exists already");
    assert_eq!(call(&harness, "copy", copy("a", "a")).await, "3: 'a' and 'a' are the same file");
    let over = json!({ "from": "a", "to": "b", "overwrite": true });
    assert_eq!(call(&harness, "copy", over).await, "copied 'a' to 'b' (10 B)");
    assert_eq!(
        call(&harness, "copy", copy("dir", "c")).await,
        "3: 'dir' is a directory, not a file"
    );
    let text = call(&harness, "copy", copy("sparse", "s2")).await;
    assert_eq!(text, "copied 'sparse' to 's2' (10.0 GiB)");
    assert_eq!(std::fs::metadata(inside(&harness).join("s2")).unwrap().len(), 10 << 30);
}

#[tokio::test]
async fn a_move_takes_files_and_directories_and_keeps_what_is_there() {
    let harness = harness(|d| {
        std::fs::create_dir_all(d.join("dir/in")).unwrap();
        std::fs::write(d.join("a"), "a").unwrap();
        std::fs::write(d.join("b"), "b").unwrap();
    });
    let to = |from: &str, to: &str| json!({ "from": from, "to": to });
    assert_eq!(call(&harness, "move", to("a", "b")).await, "3: 'b' exists already");
    assert_eq!(
        call(&harness, "move", to("dir", "dir/in/x")).await,
        "3: 'dir' cannot be moved into itself"
    );
    assert_eq!(call(&harness, "move", to("dir", "new/place")).await, "moved 'dir' to 'new/place'");
    let over = json!({ "from": "a", "to": "b", "overwrite": true });
    assert_eq!(call(&harness, "move", over).await, "moved 'a' to 'b'");
    assert_eq!(names(&inside(&harness)), ["b", "new"]);
    assert_eq!(std::fs::read_to_string(inside(&harness).join("b")).unwrap(), "a");
    let none = call(&harness, "move", to(".", "x")).await;
    assert_eq!(none, "6: cannot move '.': it is the directory of these tools");
}

#[tokio::test]
async fn only_files_links_and_empty_directories_are_deleted() {
    let harness = harness(|d| {
        std::fs::create_dir_all(d.join("dir")).unwrap();
        std::fs::write(d.join("dir/a"), "a").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", d.join("link")).unwrap();
    });
    let delete = |path: &str| json!({ "path": path });
    for (path, expected) in [
        ("dir", "3: the directory 'dir' is not empty"),
        ("dir/a", "deleted 'dir/a', a file"),
        ("dir/a", "3: cannot delete 'dir/a': there is no such file or directory"),
        ("dir", "deleted 'dir', a directory"),
        ("link", "deleted 'link', a symbolic link"),
        (".", "6: cannot delete '.': it is the directory of these tools"),
    ] {
        assert_eq!(call(&harness, "delete", delete(path)).await, expected, "{path}");
    }
    assert!(Path::new("/etc/passwd").exists());
}

#[tokio::test]
async fn what_a_dead_writer_left_is_removed_by_the_next() {
    let harness = harness(|d| std::fs::write(d.join(".toolhost-write.tmp"), "half").unwrap());
    call(&harness, "write", json!({ "path": "a", "text": "x" })).await;
    assert_eq!(names(&inside(&harness)), ["a"]);
    let text = call(&harness, "write", json!({ "path": ".toolhost-write.tmp", "text": "x" })).await;
    assert!(text.starts_with("6: "), "{text}");
}

#[tokio::test]
async fn writers_of_one_directory_take_turns_and_lose_nothing() {
    let harness = harness(|_| {});
    let tasks: Vec<_> = (0..40)
        .map(|n| harness.call("d-append", json!({ "path": "log", "text": format!("{n}\n") })))
        .collect();
    for done in futures_util::future::join_all(tasks).await {
        assert!(done.unwrap().success);
    }
    let text = std::fs::read_to_string(inside(&harness).join("log")).unwrap();
    let mut lines: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..40).collect::<Vec<_>>());
}

#[tokio::test]
async fn other_names_of_a_file_are_told_about() {
    let harness = harness(|d| {
        std::fs::write(d.join("a"), "old").unwrap();
        std::fs::hard_link(d.join("a"), d.parent().unwrap().join("b")).unwrap();
    });
    let text = call(&harness, "write", json!({ "path": "a", "text": "new" })).await;
    assert!(text.contains("one of 2 hard links"), "{text}");
    let other = harness.dir.path().join("b");
    assert_eq!(std::fs::read_to_string(other).unwrap(), "old");
}
