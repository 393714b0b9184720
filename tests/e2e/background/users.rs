//! Two users on one machine, and two projects of one user.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::faults::of_host;
use super::{count, hosts, is_alive, pid_of, project_in, trusted};
use crate::support::{Finished, Sandbox};

/// Says hello over a socket as another user, and says what was answered.
const CALLER: &str = "import os, socket, sys\n\
    os.setuid(65534)\n\
    one = socket.socket(socket.AF_UNIX)\n\
    one.connect(sys.argv[1])\n\
    one.settimeout(60)\n\
    try:\n    \
        one.sendall(sys.argv[2].encode() + b'\\n')\n    \
        said = one.recv(4096)\n\
    except (BrokenPipeError, ConnectionResetError):\n    \
        said = b''\n\
    print(len(said))\n";

fn open_to_all(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn another_user_who_reaches_the_socket_is_hung_up_on() {
    if !rustix::process::geteuid().is_root() {
        // Only root can make a process of another user.
        return;
    }
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let socket = of_host(&room, "sock");
    // Somebody was careless with the directories.
    for directory in ["", "state", "state/toolhost", "state/toolhost/run"] {
        open_to_all(&room.path(directory), 0o755);
    }
    open_to_all(&socket, 0o666);
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "another", "version": "1" } } });
    let mut caller = Command::new("python3");
    let said = caller.args(["-c", CALLER]).arg(&socket).arg(hello.to_string()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "0\n", "{said:?}");
    // Nor is what others may enter used by its own user.
    assert!(hosts(&room).is_empty() && count(&room, &[]).2.is_none());
    open_to_all(&room.path("state/toolhost/run"), 0o700);
    assert!(count(&room, &[]).2.is_some());
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn an_ordinary_user_has_a_host_that_root_neither_uses_nor_ends() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let Some(room) = project_in(Sandbox::ordinary()) else { return };
    room.toolhost(["trust", "--yes"]).go().exits(0);
    room.toolhost(["up"]).go().exits(0);
    let (server, _, host) = count(&room, &[]);
    assert!(host.is_some());
    let as_root = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolhost"));
        command.args(words).env_clear().envs(room.environment()).current_dir(room.path("work"));
        command.output().unwrap()
    };
    let seen: Value = serde_json::from_slice(&as_root(&["ps", "--json"]).stdout).unwrap();
    assert_eq!(seen["hosts"], json!([]));
    let up = as_root(&["up"]);
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(
        !up.status.success() && said.contains("is not a private directory of this user"),
        "{said}"
    );
    as_root(&["down", "--all"]);
    assert!(is_alive(host.unwrap()) && is_alive(server));
    assert_eq!(count(&room, &[]), (server, 2, host));
    room.toolhost(["down"]).check().exits(0);
    assert!(!is_alive(host.unwrap()) && !is_alive(server));
}

/// A run in another project of the same user.
fn in_other(room: &Sandbox, words: &[&str]) -> Finished {
    let script = ["-c", "cd other && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_toolhost")];
    room.program("/bin/sh", script.iter().chain(words).copied()).go()
}

#[test]
fn each_project_has_a_host_of_its_own_and_down_ends_that_of_its_project() {
    let Some(room) = trusted() else { return };
    room.file("other/server.py", super::SERVER);
    room.file(
        "other/mcp.yaml",
        "mcp_servers:\n  counter: { command: python3, args: [server.py] }\n",
    );
    in_other(&room, &["trust", "--yes"]).exits(0);
    let up = room.toolhost(["up", "--json"]).go().json();
    let other = in_other(&room, &["up", "--json"]).json();
    assert!(up["started"] == true && other["started"] == true);
    let listed = hosts(&room);
    let directories: Vec<&Value> = listed.iter().map(|host| &host["directory"]).collect();
    assert_eq!(directories, [&up["host"]["directory"], &other["host"]["directory"]]);
    let called = in_other(&room, &["call", "counter-count", "--json"]);
    let used = called.exits(0).json()["metadata"]["host"]["pid"].as_u64();
    assert_eq!(used, Some(pid_of(&other["host"])));
    in_other(&room, &["down"]).exits(0);
    assert!(!is_alive(pid_of(&other["host"])));
    assert_eq!(count(&room, &[]).2, Some(pid_of(&up["host"])));
    room.toolhost(["down", "--all"]).check().exits(0);
}
