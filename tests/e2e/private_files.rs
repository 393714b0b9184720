//! What toolhost keeps below the directories of state and cache is its user's alone, whatever the
//! process masks out.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::support::{Fixture, Place, Pty, Sandbox};

/// Tools whose use leaves something behind: a store, a mailbox, a cache of Python signatures.
const TOOLS: &str = "
tools:
  - { name: kept, kind: storage, storage_type: disk }
  - { name: post, kind: mailbox, storage_type: disk }
  - { name: py, kind: python, module: mod }
";

fn room() -> (Sandbox, Fixture) {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, "offers", "both", &room.log("srv"));
    room.server("srv", &fixture);
    room.file("tools.yaml", TOOLS).file("mod.py", "def f(x: int) -> int:\n    return x\n");
    (room, fixture)
}

/// Runs a command as a shell with this mask would.
fn run(room: &Sandbox, mask: &str, arguments: &[&str]) -> Option<i32> {
    let script = format!("umask {mask}; exec \"$0\" --mcp mcp.yaml --tools tools.yaml \"$@\"");
    let words = ["-c", &script, env!("CARGO_BIN_EXE_toolhost")];
    let words = words.into_iter().chain(arguments.iter().copied());
    room.program("/bin/sh", words).go().code
}

/// Many commands that read and write records, names, eras, pins, trust, stores and traces.
fn use_everything(room: &Sandbox, mask: &str) {
    for arguments in [
        &["list"][..],
        &["call", "srv-echo", "message=hi"],
        &["call", "py-f", "x=1"],
        &["call", "kept-write", "key=a", "value=b"],
        &["call", "post-send", "to=me", "text=hi"],
        &["prompts", "list"],
        &["pin", "srv"],
        &["trust", "mcp.yaml", "--yes"],
        &["stats"],
        &["history"],
        &["--trace-save", "wire.jsonl", "call", "srv-echo", "message=hi"],
    ] {
        run(room, mask, arguments);
    }
}

/// Everything below the directories of state and cache that somebody else could use, or that its
/// owner could not.
fn violations(room: &Sandbox) -> Vec<String> {
    let mut seen = 0;
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> =
        ["state/toolhost", "cache/toolhost"].iter().map(|path| room.path(path)).collect();
    while let Some(path) = left.pop() {
        let meta = std::fs::symlink_metadata(&path).unwrap();
        let expected = if meta.is_dir() { 0o700 } else { 0o600 };
        if meta.mode() & 0o777 != expected {
            found.push(format!("{} {:o}", path.display(), meta.mode() & 0o777));
        }
        seen += 1;
        if meta.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(seen > 10, "hardly anything was written: {seen}");
    found
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn records_and_caches_are_private_whatever_is_masked_out() {
    for mask in ["000", "022", "077", "0777"] {
        let (room, _fixture) = room();
        use_everything(&room, mask);
        assert_eq!(violations(&room), Vec::<String>::new(), "umask {mask}");
        assert_eq!(mode(&room.path("work/wire.jsonl")), 0o600, "umask {mask}");
        let names = |inside: &str| -> Vec<String> {
            let entries = std::fs::read_dir(room.path(inside)).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        // Nothing half written stays either.
        for name in names("cache/toolhost").iter().chain(&names("state/toolhost")) {
            let is_unfinished = std::path::Path::new(name).extension().is_some_and(|e| e == "new");
            assert!(!name.starts_with('.') && !is_unfinished, "{name}");
        }
        assert!(names("cache/toolhost").contains(&"eras.json".to_owned()));
    }
}

#[test]
fn what_an_older_version_left_open_is_closed() {
    let (room, _fixture) = room();
    use_everything(&room, "022");
    let cache = room.path("cache/toolhost");
    std::fs::set_permissions(&cache, Permissions::from_mode(0o755)).unwrap();
    let eras = cache.join("eras.json");
    std::fs::write(&eras, "{}").unwrap();
    std::fs::set_permissions(&eras, Permissions::from_mode(0o644)).unwrap();
    use_everything(&room, "000");
    assert_eq!(violations(&room), Vec::<String>::new());
}

#[test]
fn the_console_exports_privately() {
    let (room, _fixture) = room();
    let script = "umask 000; exec \"$0\" --mcp mcp.yaml --tools tools.yaml";
    let program = env!("CARGO_BIN_EXE_toolhost");
    let mut pty = Pty::sized(&room, "/bin/sh", &["-c", script, program], 50, 120);
    pty.expect_shown("add").type_keys("/").type_keys("srvadd").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  srv-add").type_keys("1\r2");
    pty.type_keys("\u{1b}[15~").expect_shown(" OK ").type_keys("\u{1b}");
    pty.expect_shown("filter").type_keys("E").expect_shown("wrote srv-add-");
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    let entries = std::fs::read_dir(room.path("work")).unwrap();
    let exported = entries
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("srv-add-"));
    assert_eq!(mode(&exported.unwrap()), 0o600);
}
