//! Escapes from the directory, special files, and another process that changes entries meanwhile.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use super::{call, harness, inside};
use crate::providers::harness::KindHarness;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::named_pipe;

/// What must never be seen or touched.
fn outside(d: &Path) -> std::path::PathBuf {
    let outside = d.parent().unwrap().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("f"), "secret").unwrap();
    outside
}

#[tokio::test]
async fn no_link_leads_out() {
    let harness = harness(|d| {
        let outside = outside(d);
        symlink(&outside, d.join("dir")).unwrap();
        symlink("../outside/f", d.join("rel")).unwrap();
        symlink(outside.join("f"), d.join("abs")).unwrap();
        symlink("/proc/self/root", d.join("magic")).unwrap();
        symlink("/dev/zero", d.join("zero")).unwrap();
        symlink("nothing", d.join("dangling")).unwrap();
        symlink("loop", d.join("loop")).unwrap();
        std::fs::write(d.join("f"), "mine").unwrap();
    });
    for path in ["rel", "abs", "dir/f", "magic/etc/passwd", "zero", "/proc/self/environ"] {
        for tool in ["read", "copy", "edit"] {
            let arguments =
                json!({ "path": path, "from": path, "to": "copied", "old": "s", "new": "t" });
            let text = call(&harness, tool, arguments).await;
            assert!(text.starts_with("6: "), "{tool} {path}: {text}");
        }
        let text = call(&harness, "write", json!({ "path": path, "text": "x" })).await;
        assert!(text.starts_with("6: "), "write {path}: {text}");
        let text = call(&harness, "copy", json!({ "from": "f", "to": path })).await;
        assert!(text.starts_with("6: "), "copy to {path}: {text}");
    }
    for tool in ["list", "search"] {
        let text = call(&harness, tool, json!({ "path": "dir", "glob": "*" })).await;
        assert!(text.starts_with("6: "), "{tool}: {text}");
    }
    for to in ["dir/x", "dir"] {
        let text =
            call(&harness, "move", json!({ "from": "f", "to": to, "overwrite": true })).await;
        assert!(text.starts_with("6: "), "move to {to}: {text}");
    }
    let text = call(&harness, "delete", json!({ "path": "dir/f" })).await;
    assert!(text.starts_with("6: "), "{text}");
    let text = call(&harness, "write", json!({ "path": "dangling", "text": "x" })).await;
    assert_eq!(text, "6: 'dangling' is a symbolic link");
    let text = call(&harness, "read", json!({ "path": "loop" })).await;
    assert!(text.starts_with("3: "), "{text}");
    let everything = call(&harness, "list", json!({ "recursive": true })).await;
    assert!(!everything.contains("dir/f"), "{everything}");
    assert_eq!(std::fs::read_to_string(harness.dir.path().join("outside/f")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(harness.dir.path().join("outside")).unwrap().count(), 1);
}

#[tokio::test]
async fn what_is_no_file_is_refused_at_once() {
    let harness = harness(|d| {
        named_pipe::make(&d.join("fifo"));
        drop(std::os::unix::net::UnixListener::bind(d.join("socket")).unwrap());
        // Only root may make a device, and not everywhere.
        let mut made = std::process::Command::new("mknod");
        made.arg(d.join("zero")).args(["c", "1", "5"]);
        if !made.output().is_ok_and(|made| made.status.success()) {
            symlink("/dev/zero", d.join("zero")).unwrap();
        }
        std::fs::create_dir(d.join("dir")).unwrap();
    });
    for (path, code) in [("fifo", "6: "), ("socket", "6: "), ("zero", "6: "), ("dir", "3: ")] {
        for tool in ["read", "write", "append", "copy", "edit"] {
            let arguments = json!({ "path": path, "from": path, "to": "copied", "text": "x",
                "old": "a", "new": "b" });
            let text = call(&harness, tool, arguments).await;
            assert!(text.starts_with(code), "{tool} {path}: {text}");
        }
    }
    assert_eq!(call(&harness, "search", json!({ "text": "x" })).await, "nothing found\n");
}

#[tokio::test]
async fn a_file_of_ten_gibibytes_costs_nothing() {
    let harness = harness(|d| {
        std::fs::File::create(d.join("sparse")).unwrap().set_len(10 << 30).unwrap();
    });
    assert_eq!(
        call(&harness, "read", json!({ "path": "sparse" })).await,
        "3: 'sparse' is not text: application/octet-stream, 10.0 GiB"
    );
    let text = call(&harness, "append", json!({ "path": "sparse", "text": "x" })).await;
    assert!(text.starts_with("3: 'sparse' has 10.0 GiB"), "{text}");
    assert_eq!(call(&harness, "search", json!({ "text": "x" })).await, "nothing found\n");
}

#[tokio::test]
async fn what_the_system_does_not_permit_is_a_no() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        // The system permits root everything.
        return;
    }
    let harness = harness(|d| {
        for (name, mode) in [("hidden", 0o000), ("fixed", 0o444)] {
            std::fs::write(d.join(name), "x").unwrap();
            std::fs::set_permissions(d.join(name), PermissionsExt::from_mode(mode)).unwrap();
        }
    });
    let text = call(&harness, "read", json!({ "path": "hidden" })).await;
    assert_eq!(text, "3: cannot read 'hidden': permission denied");
    let text = call(&harness, "write", json!({ "path": "fixed", "text": "y" })).await;
    assert_eq!(text, "3: cannot write 'fixed': permission denied");
}

/// A thread swaps a directory and a link that leads out, as fast as possible, while calls go
/// through that name; `go_on` is asked before each round. Nothing gets out.
async fn race(mut go_on: impl FnMut(u32) -> bool) {
    let harness = Arc::new(harness(|d| {
        let outside = outside(d);
        std::fs::create_dir(d.join("swap")).unwrap();
        std::fs::write(d.join("swap/f"), "mine").unwrap();
        std::fs::write(d.join("src"), "mine").unwrap();
        symlink(outside, d.join("link")).unwrap();
    }));
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (d, stop) = (inside(&harness), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut swaps = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let (a, b) = (d.join("swap"), d.join("link"));
                renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        })
    };
    let mut round = 0;
    let (mut refused, mut done) = (0_u32, 0_u32);
    while go_on(round) {
        round += 1;
        let arguments = json!({ "path": "swap/f", "text": "mine", "from": "src", "to": "swap/g",
            "overwrite": true });
        for tool in ["read", "write", "copy", "append"] {
            let text = call(&harness, tool, arguments.clone()).await;
            assert!(!text.contains("secret"), "{tool}: {text}");
            let counted = if text.starts_with("6: ") { &mut refused } else { &mut done };
            *counted += 1;
        }
        for tool in ["list", "search"] {
            let text =
                call(&harness, tool, json!({ "path": "swap", "glob": "*", "text": "" })).await;
            assert!(!text.contains("secret"), "{tool}: {text}");
        }
        let text = call(&harness, "search", json!({ "text": "secret" })).await;
        assert_eq!(text.lines().next(), Some("nothing found"), "{text}");
        call(&harness, "delete", json!({ "path": "swap/f" })).await;
        call(&harness, "move", json!({ "from": "swap/g", "to": "swap/f" })).await;
        let outside = harness.dir.path().join("outside");
        assert_eq!(std::fs::read_to_string(outside.join("f")).unwrap(), "secret");
        assert_eq!(std::fs::read_dir(outside).unwrap().count(), 1);
    }
    stop.store(true, Ordering::Relaxed);
    assert!(swapper.join().unwrap() > 0);
    // Both sides of the swap were met, or nothing was raced.
    assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
}

#[tokio::test]
async fn nothing_gets_out_while_a_directory_becomes_a_link() {
    race(|round| round < 150).await;
}

/// The same for ten seconds: `cargo test --lib -- --ignored ten_seconds`, as `.ci/run tests` does.
#[tokio::test]
#[ignore = "takes ten seconds"]
async fn nothing_gets_out_in_ten_seconds_of_it() {
    let clock = SystemClock;
    let end = clock.now() + std::time::Duration::from_secs(10);
    race(|_| clock.now() < end).await;
}

fn hostile_harness() -> KindHarness {
    harness(|d| {
        let outside = outside(d);
        std::fs::create_dir_all(d.join("a/b")).unwrap();
        std::fs::write(d.join("a/f"), "mine").unwrap();
        symlink(outside, d.join("out")).unwrap();
        symlink("..", d.join("a/up")).unwrap();
        symlink("../..", d.join("a/above")).unwrap();
        symlink("/", d.join("top")).unwrap();
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// O03: whatever is said about a tree with links in all directions, nothing but what is in it
    /// is read or written.
    #[test]
    fn no_path_leads_out(paths in prop::collection::vec(
        "(/|//)?((\\.\\.|\\.|a|b|out|up|above|top|outside|f|d|tmp|etc|passwd)/{1,2}){0,6}(f|passwd|\\.\\.|g)?",
        8,
    )) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let harness = hostile_harness();
            for path in &paths {
                let arguments = json!({ "path": path, "text": "mine", "from": path, "to": path });
                for tool in ["read", "list", "info", "write", "append", "copy", "move", "delete"] {
                    let text = call(&harness, tool, arguments.clone()).await;
                    assert!(!text.contains("secret") && !text.contains("root:"), "{tool} {path}: {text}");
                }
            }
            let outside = harness.dir.path().join("outside");
            assert_eq!(std::fs::read_to_string(outside.join("f")).unwrap(), "secret");
            let mut names: Vec<_> = std::fs::read_dir(harness.dir.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            assert_eq!(names, ["d", "outside", "tools.yaml"]);
        });
    }
}
