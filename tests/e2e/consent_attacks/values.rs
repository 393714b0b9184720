//! Values of references stay out of everything that is shown or kept, also of the user's own.

use super::{SECRET, keeps_the_secret, run, user_file};
use crate::support::{Listener, Sandbox};

#[test]
fn references_are_shown_as_they_are_written() {
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
  - {{ name: absent, command: [./no/${{CANARY}}/program] }}
  - {{ name: elsewhere, command: [echo], cwd: '/no/${{CANARY}}' }}
"
        ),
    );
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
    let mut leaks = Vec::new();
    let mut look = |words: &[&str]| {
        let finished = run(&room, words).check();
        if (finished.out() + &finished.err()).contains(SECRET) {
            leaks.push(words.join(" "));
        }
    };
    let tools = ["path", "based", "refused", "args", "absent", "elsewhere"];
    let servers = ["web", "gone", "started", "rooted", "socket"];
    for name in tools {
        look(&["inspect", name]);
        look(&["inspect", name, "--json"]);
        look(&["call", name, "--yes"]);
        look(&["call", name, "--yes", "--json"]);
        look(&["call", name, "--dry-run"]);
        look(&["bench", name, "-n", "1", "--allow-writes"]);
    }
    for name in servers {
        look(&["inspect", name]);
        look(&["trace", name]);
        look(&["call", &format!("{name}-echo"), "--yes"]);
        look(&["list", "--server", name]);
    }
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["servers"],
        &["servers", "--json"],
        &["config", "show"],
        &["config", "check"],
        &["history"],
        &["history", "--json"],
        &["audit"],
        &["audit", "--json"],
        &["stats"],
        &["pin", "--yes"],
        &["verify"],
    ] {
        look(words);
    }
    assert!(leaks.is_empty(), "the value is in the output of:\n{}", leaks.join("\n"));
    let finished = run(&room, &["list", "--declared"]).check();
    keeps_the_secret(&room, &finished);
    // It did go where it was sent.
    assert!(listener.requests().iter().any(|request| request.contains(SECRET)));
}
