//! What a background host does for callers whose files or variables differ from its own.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use super::faults::{ended, of_host};
use super::{SERVER, call, count, hosts, trusted};
use crate::serve::client::{Lines, Served, Wire as _};
use crate::support::Sandbox;

/// A room whose user has the server, with these keys in its entry.
fn of_user(more: &str) -> Option<Sandbox> {
    if crate::support::lacks(&["python3"]) {
        return None;
    }
    let room = Sandbox::new();
    room.file("server.py", SERVER);
    let script = room.path("work/server.py").display().to_string();
    let entry = format!("counter: {{ command: python3, args: [{script}]{more} }}");
    room.file("../config/toolhost/mcp.yaml", &format!("mcp_servers:\n  {entry}\n"));
    Some(room)
}

#[test]
fn a_rule_that_was_added_holds_although_a_host_made_the_calls() {
    let Some(room) = of_user("") else { return };
    room.toolhost(["up"]).go().exits(0);
    let mut served = Served::start(&room, &[]);
    let mut editor = served.streams();
    editor.initialize(json!({}));
    let first = editor.call(1, "counter-count", json!({}));
    assert_eq!(first["structuredContent"]["calls"], 1, "{first}");
    assert_eq!(hosts(&room)[0]["calls"], 1, "the host was not used");
    let rule = "policy: [{ match: counter-count, action: deny }]\n";
    room.file("../config/toolhost/tools.yaml", rule);
    served.says("configuration reloaded: rules changed");
    let refused = editor.call(2, "counter-count", json!({}));
    assert!(refused.get("structuredContent").is_none(), "{refused}");
    drop(editor);
    served.end();
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_host_takes_no_call_that_its_files_no_longer_allow() {
    let Some(room) = of_user("") else { return };
    room.toolhost(["up"]).go().exits(0);
    let mut client = Lines::connect(of_host(&room, "sock").to_str().unwrap());
    client.initialize(json!({}));
    let first = client.call(1, "counter-count", json!({}));
    assert_eq!(first["structuredContent"]["calls"], 1, "{first}");
    std::fs::remove_file(room.path("config/toolhost/mcp.yaml")).unwrap();
    let refused = client.call(2, "counter-count", json!({}));
    assert!(refused.get("structuredContent").is_none(), "{refused}");
    ended(first["structuredContent"]["pid"].as_u64().unwrap());
}

#[test]
fn a_host_answers_only_callers_with_its_values() {
    for variable in ["TOOLHOST_USER", "XDG_SESSION_ID", "PWD"] {
        let Some(room) = of_user(&format!(", env: {{ WHO: '${{{variable}:-}}' }}")) else { return };
        room.toolhost(["up"]).env(variable, "ada").go().exits(0);
        let host_of = |value: &str| {
            let called = room.toolhost(["call", "--json", "counter-count"]).env(variable, value);
            called.go().exits(0).json()["metadata"]["host"]["pid"].as_u64()
        };
        assert!(host_of("ada").is_some(), "{variable}");
        assert_eq!(host_of("bob"), None, "{variable}");
        room.toolhost(["down", "--all"]).check().exits(0);
    }
}

#[test]
fn what_another_user_planted_in_a_shared_directory_stops_no_command() {
    let Some(room) = trusted() else { return };
    let shared = room.path("shared");
    std::fs::create_dir_all(shared.join("toolhost")).unwrap();
    std::fs::set_permissions(shared.join("toolhost"), std::fs::Permissions::from_mode(0o777))
        .unwrap();
    let pipe = shared.join("toolhost/key");
    assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let directory = shared.display().to_string();
    for words in [&["list"][..], &["call", "sum", "a=1"], &["ps"]] {
        let run = room.toolhost(words.iter().copied()).env("XDG_RUNTIME_DIR", &directory).check();
        assert_ne!(run.code, None, "{run}");
    }
    assert!(call(&room, &["counter-count"]).code == Some(0) && count(&room, &[]).2.is_none());
}
