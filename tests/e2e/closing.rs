//! The end of a run: what was started last is ended first, whatever kind it is of.

use crate::support::Sandbox;

/// A server that writes down when it is told to end, and has one tool.
const SERVER: &str = r#"
import json, sys
name, log = sys.argv[1:3]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, answer = message["method"], {}
    if method == "server/discover":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    if method == "initialize":
        answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}
    elif method == "tools/list":
        answer = {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        answer = {"content": [{"type": "text", "text": name}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
open(log, "a").write(name + "\n")
"#;

const WORKER: &str = r#"
import atexit
atexit.register(lambda: open(LOG, "a").write("worker\n"))

def work() -> str:
    """Works."""
    return "worker"
"#;

#[test]
fn servers_and_workers_are_ended_in_the_reverse_order_of_their_start() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    let log = room.path("work/ends");
    let log = log.to_str().unwrap();
    room.file("server.py", SERVER);
    room.file("worker.py", &format!("LOG = {log:?}\n{WORKER}"));
    let server =
        |name: &str| format!("  {name}: {{ command: [python3, server.py, {name}, {log}] }}\n");
    let servers = format!("mcp_servers:\n{}{}{}", server("one"), server("two"), server("three"));
    room.file("mcp.yaml", &servers);
    for (order, ends) in [
        (["two-go", "work", "one-go", "three-go"], ["three", "one", "worker", "two"]),
        (["three-go", "one-go", "work", "two-go"], ["two", "worker", "one", "three"]),
    ] {
        let step =
            |tool: &&str| format!("      - {{ id: {}, tool: {tool} }}\n", tool.replace('-', "_"));
        let steps: String = order.iter().map(step).collect();
        room.file(
            "tools.yaml",
            &format!(
                "tools:\n  - {{ name: work, module: worker, function: work }}\n  - name: all\n    kind: pipeline\n    steps:\n{steps}"
            ),
        );
        let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml", "call", "all"];
        room.toolhost(files).check().exits(0);
        let written = std::fs::read_to_string(log).unwrap();
        assert_eq!(written.lines().collect::<Vec<_>>(), ends, "{order:?}");
        std::fs::remove_file(log).unwrap();
    }
}
