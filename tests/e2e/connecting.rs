//! `toolhost serve` in the configuration of editors and agents: what `connect` writes, what it keeps, and what it does not touch.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::{Pty, Sandbox};

const TOOLHOST: &str = env!("CARGO_BIN_EXE_toolhost");

fn write(room: &Sandbox, path: &str, text: &str) -> PathBuf {
    let path = room.path(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn backup(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.toolhost.bak", path.display()))
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

const CLAUDE: &str = "{\n  \"numStartups\": 3, // kept\n  \"mcpServers\": {\n    \"docs\": { \"command\": \"x\" }\n  }\n}\n";

#[test]
fn every_client_is_connected_and_disconnected_and_its_file_is_as_it_was() {
    let room = Sandbox::new();
    let home = [
        ("claude", "home/.claude.json", CLAUDE),
        (
            "codex",
            "home/.codex/config.toml",
            "model = \"o\" # mine\n\n[mcp_servers.docs]\ncommand = \"x\"\n",
        ),
        (
            "goose",
            "config/goose/config.yaml",
            "# mine\nextensions:\n  developer: { type: builtin }\nGOOSE_MODE: auto\n",
        ),
        (
            "zed",
            "config/zed/settings.json",
            "// mine\n{\n\t\"theme\": \"One\",\n\t\"context_servers\": {\n\t\t\"a\": {}\n\t},\n}\n",
        ),
        ("opencode", "home/.config/opencode/opencode.json", "{\r\n  \"mcp\": {}\r\n}\r\n"),
        ("vscode", "config/Code/User/mcp.json", "{ \"servers\": {} }"),
    ];
    for (client, path, text) in home {
        let path = write(&room, path, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let shown = room.toolhost(["connect", client, "--dry-run"]).check();
        assert!(shown.exits(0).out().contains('+'), "{shown}");
        assert_eq!(read(&path), text);
        room.toolhost(["connect", client, "--yes"]).check().exits(0).says(&["connected"]);
        let changed = read(&path);
        assert!(changed.contains(TOOLHOST) && changed.contains("serve"), "{changed}");
        for line in text.lines().filter(|line| line.contains("mine") || line.contains("kept")) {
            assert!(changed.contains(line), "{changed}");
        }
        assert_eq!((read(&backup(&path)).as_str(), mode(&backup(&path))), (text, 0o600));
        assert_eq!(mode(&path), 0o640);
        let ends = |text: &str| (text.contains("\r\n"), text.replace("\r\n", "").contains('\n'));
        assert_eq!(ends(&changed), ends(text), "{changed:?}");
        let again = room.toolhost(["connect", client, "--yes"]).check();
        again.exits(0).says(&["is up to date"]);
        assert_eq!(read(&path), changed);
        let listed = room.toolhost(["connect", "--list"]).check().out();
        let row = listed.lines().find(|line| line.starts_with(client)).unwrap();
        assert!(row.contains("as toolhost"), "{listed}");
        room.toolhost(["disconnect", client, "--yes"]).check().exits(0);
        assert_eq!(read(&path), text, "{client}");
        room.toolhost(["disconnect", client, "--yes"]).check().exits(0).says(&["has no entry"]);
    }
    // Where there is no file, one is made that only its owner reads.
    room.toolhost(["connect", "cursor", "--yes"]).check().exits(0);
    let path = room.path("home/.cursor/mcp.json");
    let expected =
        json!({ "mcpServers": { "toolhost": { "command": TOOLHOST, "args": ["serve"] } } });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&read(&path)).unwrap(), expected);
    assert_eq!((mode(&path), backup(&path).exists()), (0o600, false));
}

#[test]
fn what_was_written_starts_and_serves_the_tools() {
    let room = Sandbox::new();
    let options = ["--", "--profile", "few", "--tools", "t.yaml"];
    let connect = |more: &[&'static str]| {
        let words = [&["connect", "claude", "--yes"][..], more].concat();
        room.toolhost(words).check()
    };
    connect(&options).exits(0);
    let text = read(&room.path("home/.claude.json"));
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entry = &written["mcpServers"]["toolhost"];
    let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    room.file("t.yaml", "profiles: { few: { include: [add] } }\ntools:\n  - { name: add, module: builtin.calculator, function: calculate }\n  - { name: sub, module: builtin.calculator, function: calculate }\n");
    let list = ["list", "-o", "names", "--", entry["command"].as_str().unwrap()];
    let listed = room.toolhost(list.into_iter().chain(words)).check();
    assert_eq!(listed.exits(0).out(), "toolhost-add\n", "{listed}");
    // Other options replace its own entry; options that 'serve' does not have are refused.
    connect(&["--", "--lan"]).exits(2).says(&["--lan"]);
    assert_eq!(read(&room.path("home/.claude.json")), text);
    connect(&[]).exits(0).says(&["-        \"few\""]);
}

#[test]
fn in_a_project_the_program_is_named_and_toolhost_does_not_start_itself() {
    let room = Sandbox::new();
    room.toolhost(["connect", "claude", "--project", "--yes"]).check().exits(0);
    let text = read(&room.path("work/.mcp.json"));
    assert!(text.contains("\"command\": \"toolhost\""), "{text}");
    room.toolhost(["list", "--json"]).check().exits(0);
    let imported = room.toolhost(["import", "claude", "--dry-run"]).check();
    imported.exits(0).says(&["skipped 'toolhost': it is toolhost itself"]);
    room.toolhost(["connect", "claude-desktop", "--project"]).check().exits(2);
}

#[test]
fn a_person_sees_the_change_and_says_yes() {
    let room = Sandbox::new();
    let path = write(&room, "home/.claude.json", CLAUDE);
    room.toolhost(["connect", "claude"]).check().exits(6).says(&["nothing was written"]);
    for (answer, is_written) in [("n\r", false), ("y\r", true)] {
        let mut pty = Pty::toolhost(&room, &["connect", "claude"]);
        pty.expect("+    \"toolhost\": {").expect("Write this?").type_keys(answer);
        assert_eq!(pty.finish().0, Some(if is_written { 0 } else { 6 }));
        assert_eq!(read(&path) != CLAUDE, is_written);
        assert_eq!(backup(&path).exists(), is_written);
    }
    // What another program wrote meanwhile is not lost.
    let mut pty = Pty::toolhost(&room, &["disconnect", "claude"]);
    pty.expect("Write this?");
    std::fs::write(&path, "{ \"changed\": 1 }").unwrap();
    pty.type_keys("y\r").expect("changed in the meantime");
    pty.finish();
    assert_eq!(read(&path), "{ \"changed\": 1 }");
}

#[test]
fn what_cannot_be_read_or_belongs_to_something_else_stays() {
    let room = Sandbox::new();
    let connect = || room.toolhost(["connect", "claude", "--yes"]).check();
    for (text, code, reason) in [
        ("{\n  \"mcpServers\": {,}\n}", 9, ".claude.json:2:18"),
        ("{ \"mcpServers\": [1] }", 9, "layout is not supported"),
        ("{ \"mcpServers\": {}, \"mcpServers\": {} }", 9, "layout is not supported"),
        ("{ \"mcpServers\": { \"toolhost\": { \"command\": \"my-own\" } } }", 2, "my-own"),
    ] {
        let path = write(&room, "home/.claude.json", text);
        connect().exits(code).says(&[reason]);
        assert_eq!((read(&path).as_str(), backup(&path).exists()), (text, false));
    }
    room.toolhost(["disconnect", "claude", "--yes"]).check().exits(2).says(&["another server"]);
    let codex = write(&room, "home/.codex/config.toml", "[mcp_servers.x\n");
    room.toolhost(["connect", "codex", "--yes"]).check().exits(9).says(&["config.toml:1:15"]);
    assert_eq!(read(&codex), "[mcp_servers.x\n");
    let other = room.toolhost(["connect", "claude", "--yes", "--name", "all"]).check();
    other.exits(0);
    let text = read(&room.path("home/.claude.json"));
    assert!(text.contains("my-own") && text.contains("\"all\""), "{text}");
}

#[test]
fn no_link_leads_to_a_file_that_is_not_the_clients() {
    let room = Sandbox::new();
    // A project that was cloned cannot have the user's own file changed, nor any other.
    let own = write(&room, "home/.cursor/mcp.json", "{}\n");
    for (link, target, code) in [
        (".cursor", "home/.cursor", 6),
        (".mcp.json", "home/.cursor/mcp.json", 6),
        (".mcp.json", "home/missing.json", 2),
    ] {
        let link = room.path("work").join(link);
        symlink(room.path(target), &link).unwrap();
        let client = if link.ends_with(".cursor") { "cursor" } else { "claude" };
        let refused = room.toolhost(["connect", client, "--project", "--yes"]).check();
        refused.exits(code);
        std::fs::remove_file(link).unwrap();
    }
    assert_eq!(read(&own), "{}\n");
    assert!(!room.path("home/missing.json").exists());
    // The copy is not written through a link either.
    room.file(".mcp.json", "{}\n");
    symlink(&own, room.path("work/.mcp.json.toolhost.bak")).unwrap();
    let refused = room.toolhost(["connect", "claude", "--project", "--yes"]).check();
    refused.exits(6).says(&["is a link"]);
    assert_eq!(
        (read(&own).as_str(), read(&room.path("work/.mcp.json")).as_str()),
        ("{}\n", "{}\n")
    );
    // A user's own link to a file elsewhere stays a link.
    let real = write(&room, "dotfiles/claude.json", CLAUDE);
    symlink(&real, room.path("home/.claude.json")).unwrap();
    room.toolhost(["connect", "claude", "--yes"]).check().exits(0);
    assert!(room.path("home/.claude.json").is_symlink() && read(&real).contains("serve"));
}

#[test]
fn files_that_cannot_be_written_and_a_user_without_a_home_are_named() {
    let room = Sandbox::ordinary();
    let path = write(&room, "home/.claude.json", CLAUDE);
    std::fs::set_permissions(room.path("home"), std::fs::Permissions::from_mode(0o555)).unwrap();
    let refused = room.toolhost(["connect", "claude", "--yes"]).check();
    refused.exits(2).says(&["cannot write", "nothing was written"]);
    std::fs::set_permissions(room.path("home"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(read(&path), CLAUDE);
    room.toolhost(["connect", "clod", "--yes"]).check().exits(2).says(&["claude"]);
    room.toolhost(["connect"]).check().exits(2);
}
