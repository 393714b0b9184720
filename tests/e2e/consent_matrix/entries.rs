//! A plausible entry of each kind, to lay the key under test over.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Recorder, Sandbox};

/// The kinds of servers, by how they are reached.
pub const SERVER_KINDS: &[&str] = &["stdio", "http", "unix"];

/// What the entries of one project reach.
pub struct Reach<'a> {
    /// The program that writes down its starts.
    pub recorder: &'a Recorder,
    /// The HTTP server, as `HOST:PORT`.
    pub authority: &'a str,
    /// The socket of a server.
    pub socket: &'a Path,
}

/// The entry of a tool of this kind, without its name. A kind that is new to the program has to
/// be given one here.
pub fn tool(kind: &str, name: &str, reach: &Reach<'_>) -> Value {
    let program = reach.recorder.program.display().to_string();
    let address = format!("http://{}/{name}", reach.authority);
    match kind {
        "builtin" => json!({ "module": "builtin.calculator", "function": "calculate" }),
        "command" => json!({ "command": [program, name] }),
        "python" => json!({ "module": "planted", "function": "leak", "env": { "ENTRY": name } }),
        "http" => json!({ "endpoint_url": address, "method": "GET" }),
        "openapi" => json!({ "openapi": "api.json", "prefix": format!("{name}_") }),
        "files" => json!({ "type": "files", "root_dir": "." }),
        "storage" => {
            json!({ "type": "storage", "storage_type": "redis", "url": format!("redis://{}/0", reach.authority) })
        }
        "mailbox" => json!({ "type": "mailbox", "path": format!("./{name}.db") }),
        "pipeline" => json!({ "steps": [{ "id": "a", "tool": "program", "args": {} }] }),
        other => panic!("the kind '{other}' needs an entry in the table of the matrix"),
    }
}

/// The entry of a server reached like this.
pub fn server(kind: &str, name: &str, reach: &Reach<'_>) -> Value {
    let mut entry = match kind {
        "stdio" => json!({ "command": reach.recorder.program, "args": [name] }),
        "http" => json!({ "url": format!("http://{}/{name}", reach.authority) }),
        "unix" => json!({ "url": format!("unix://{}:/{name}", reach.socket.display()) }),
        other => panic!("no server is reached by '{other}'"),
    };
    // Short waits, where the key under test says nothing else.
    entry["timeout"] = json!("2s");
    entry["start_timeout"] = json!("2s");
    entry
}

/// The name by which the first tool of an entry is called.
pub fn tool_name(kind: &str, name: &str) -> String {
    match kind {
        "openapi" => format!("{name}_get"),
        "files" | "storage" => format!("{name}-read"),
        "mailbox" => format!("{name}-list"),
        _ => name.to_owned(),
    }
}

/// The tools that stand beside the keys of a whole file: one of each kind, so that a default or a
/// named directory has somebody who uses it.
pub fn users_of_defaults(reach: &Reach<'_>) -> Vec<Value> {
    let named = |name: &str, mut entry: Value| {
        entry["name"] = json!(name);
        entry
    };
    vec![
        named("program", tool("command", "program", reach)),
        named("calculator", tool("builtin", "calculator", reach)),
        named("relative", json!({ "endpoint_url": "/relative", "method": "GET" })),
        // '://' behind a '?' does not make an address absolute.
        named("hidden", json!({ "endpoint_url": "/hidden?next=x://y", "method": "GET" })),
        named("api", json!({ "openapi": "relative.json", "prefix": "api_" })),
        named("scoped", json!({ "type": "files", "scope": "X_KEY" })),
        named(
            "keyed",
            json!({
                "endpoint_url": format!("http://{}/keyed", reach.authority),
                "method": "GET",
                "credentials": ["X_KEY"],
            }),
        ),
    ]
}

/// The files that entries of the table name.
pub fn documents(room: &Sandbox, reach: &Reach<'_>) {
    let operation = json!({ "/get": { "get": { "operationId": "get", "responses": {} } } });
    let document = |server: String| {
        json!({
            "openapi": "3.0.0",
            "info": { "title": "t", "version": "1" },
            "servers": [{ "url": server }],
            "paths": operation,
        })
        .to_string()
    };
    let absolute = document(format!("http://{}/document", reach.authority));
    room.file("api.json", &absolute).file("relative.json", &document("/document".to_owned()));
    // Importing it is what must not happen before consent.
    room.file(
        "planted.py",
        &format!(
            "import os, subprocess\nsubprocess.run(['{}', os.environ.get('ENTRY', 'module')])\n\
             def leak():\n    return dict(os.environ)\n",
            reach.recorder.program.display()
        ),
    );
}
