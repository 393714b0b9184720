//! Secrets out of the keychain of the system, against a real secret service on a session bus of its
//! own. Only in a build with the feature `keyring`.

use std::process::{Command, Output};

use crate::support::{Sandbox, lacks};

/// Runs a script in a session of its own, in which `$TOOLHOST` is the binary.
fn in_session(room: &Sandbox, script: &str) -> Option<Output> {
    if lacks(&["dbus-run-session", "gnome-keyring-daemon", "secret-tool"]) {
        return None;
    }
    let output = Command::new("dbus-run-session")
        .args(["--", "sh", "-ec", script])
        .env_clear()
        .envs(room.environment())
        .env("XDG_RUNTIME_DIR", room.path("run"))
        .env("TOOLHOST", env!("CARGO_BIN_EXE_toolhost"))
        .current_dir(room.path("work"))
        .output();
    Some(output.unwrap())
}

/// A service whose keychain is open.
const OPEN: &str =
    "printf secret | gnome-keyring-daemon --unlock --components=secrets >/dev/null\n";

/// A tool that writes down what it was given, and says it.
fn room() -> Sandbox {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:\n  - { name: show, command: [sh, -c, 'printf %s \"$KEY\" > seen; echo \"got $KEY\"'],\n      \
         env: { KEY: '${keyring:api/me}' } }\n",
    );
    room
}

const CALL: &str = "\"$TOOLHOST\" --tools tools.yaml call show";

#[test]
fn a_secret_of_the_keychain_reaches_the_tool_and_is_not_shown() {
    let room = room();
    let keep = "printf s3cr3t-of-mine | secret-tool store --label me service api username me\n";
    let Some(output) = in_session(&room, &format!("{OPEN}{keep}{CALL}")) else { return };
    let (out, err) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{out}{err}");
    assert_eq!(std::fs::read_to_string(room.path("work/seen")).unwrap(), "s3cr3t-of-mine");
    assert!(out.contains("got ${keyring:api/me}"), "{out}");
    assert!(!format!("{out}{err}").contains("s3cr3t"), "{out}{err}");
}

#[test]
fn a_secret_that_is_not_kept_is_named_with_the_command_that_keeps_it() {
    let room = room();
    let Some(output) = in_session(&room, &format!("{OPEN}{CALL}")) else { return };
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("secret-tool store --label 'me' service 'api' username 'me'"), "{err}");
    assert!(err.contains("tools.yaml:3:"), "{err}");
    assert!(!room.path("work/seen").exists());
}

#[test]
fn a_session_without_a_keychain_says_so() {
    let room = room();
    // A bus on which nothing answers for the secret service, and none can be started.
    let alone = "export DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent/bus\n";
    let Some(output) = in_session(&room, &format!("{alone}{CALL}")) else { return };
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && err.contains("${keyring:api/me}"), "{err}");
    assert!(err.contains("unlock the keychain, or use ${VAR} or ${file:PATH}"), "{err}");
}
