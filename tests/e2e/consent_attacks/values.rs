//! Values of references stay out of everything that is shown or kept, also of the user's own.

use super::{SECRET, keeps_the_secret, run, user_file};
use crate::support::{Listener, Sandbox};

/// Commands that show what there is, and what was done.
const VIEWS: &[&[&str]] = &[
    &["list"],
    &["list", "--json"],
    &["servers", "--json"],
    &["config", "show"],
    &["config", "check"],
    &["history", "--json"],
    &["audit"],
    &["audit", "--json"],
    &["pin", "--yes"],
    &["verify"],
];

/// Fails when a value is in the output of any of these, or was kept.
#[track_caller]
fn none_shows_it(room: &Sandbox, lines: &[Vec<String>]) {
    let views = VIEWS.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect());
    let lines: Vec<Vec<String>> = lines.iter().cloned().chain(views).collect();
    let mut leaks = Vec::new();
    for line in &lines {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let finished = run(room, &words).go();
        if (finished.out() + &finished.err()).contains(SECRET) {
            leaks.push(line.join(" "));
        }
    }
    assert!(leaks.is_empty(), "the value is in the output of:\n{}", leaks.join("\n"));
    keeps_the_secret(room, &run(room, &["list", "--declared"]).check());
}

/// Each line for each name, which stands for `@`.
fn lines(names: &[&str], commands: &[&str]) -> Vec<Vec<String>> {
    let line = |name: &str, command: &str| {
        command.split(' ').map(|word| word.replace('@', name)).collect::<Vec<_>>()
    };
    names.iter().flat_map(|name| commands.iter().map(|command| line(name, command))).collect()
}

#[test]
fn references_of_tools_are_shown_as_they_are_written() {
    let (room, listener) = (Sandbox::ordinary(), Listener::http());
    let address = listener.authority();
    user_file(
        &room,
        "tools.yaml",
        &format!(
            "tools:
  - {{ name: path, endpoint_url: 'http://{address}/v1/${{CANARY}}/x' }}
  - {{ name: based, endpoint_url: /x, base_url: 'http://{address}/${{CANARY}}' }}
  - {{ name: refused, endpoint_url: 'http://127.0.0.1:1/${{CANARY}}/x' }}
  - {{ name: args, command: [sh, -c, 'exit 3', '${{CANARY}}'] }}
  - {{ name: absent, command: ['./no/${{CANARY}}/program'] }}
  - {{ name: elsewhere, command: [echo], cwd: '/no/${{CANARY}}' }}
"
        ),
    );
    let names = ["path", "based", "refused", "args", "absent", "elsewhere"];
    let commands = [
        "inspect @",
        "inspect @ --json",
        "call @ --yes",
        "call @ --yes --json",
        "call @ --dry-run",
        "bench @ -n 1 --allow-writes",
    ];
    none_shows_it(&room, &lines(&names, &commands));
    // It did go where it was sent.
    assert!(listener.requests().iter().any(|request| request.contains(SECRET)));
}

#[test]
fn references_of_servers_are_shown_as_they_are_written() {
    let (room, listener) = (Sandbox::ordinary(), Listener::http());
    let address = listener.authority();
    user_file(
        &room,
        "mcp.yaml",
        &format!(
            "mcp_servers:
  web: {{ url: 'http://{address}/${{CANARY}}/mcp', timeout: 2s }}
  gone: {{ url: 'http://127.0.0.1:1/${{CANARY}}/mcp' }}
  started: {{ command: sh, args: [-c, 'exit 3', '${{CANARY}}'], start_timeout: 2s }}
  rooted: {{ command: 'true', roots: ['/srv/${{CANARY}}'], start_timeout: 2s }}
  socket: {{ url: 'unix:///no/${{CANARY}}.sock' }}
"
        ),
    );
    let names = ["web", "gone", "started", "rooted", "socket"];
    let commands = ["inspect @", "trace @", "call @-echo --yes", "list --server @"];
    none_shows_it(&room, &lines(&names, &commands));
    assert!(listener.requests().iter().any(|request| request.contains(SECRET)));
}
