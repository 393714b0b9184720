//! Entries in the exact form of the documents that toolhost was made for: listed, inspected, called.
//!
//! The files stand in `tests/fixtures/documents`; tests copy them into a room and put real addresses
//! and programs in place of those that only documents have.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::support::{Finished, Fixture, Place, Sandbox};

/// One of the files.
macro_rules! document {
    ($path:literal) => {
        include_str!(concat!("../fixtures/documents/", $path))
    };
}

const BINARY: &str = env!("CARGO_BIN_EXE_toolhost");

/// Runs with options first, and holds the run to the invariants.
fn run(room: &Sandbox, files: &[&'static str], words: &[&'static str]) -> Finished {
    room.toolhost([files, words].concat()).check()
}

/// The names that `list` shows, and the configuration is as good as `--strict` wants it.
fn names(room: &Sandbox, files: &[&'static str]) -> Vec<String> {
    run(room, files, &["--strict", "config", "check"]).exits(0);
    let listed = run(room, files, &["list", "-o", "names"]);
    listed.exits(0).out().lines().map(str::to_owned).collect()
}

/// A directory of its own for each test that has modules: what stands beside the file decides.
const CALCULATOR: &[&str] = &["--tools", "tools.yml"];

#[test]
fn the_calculator_is_builtin_where_no_module_is() {
    let room = Sandbox::new();
    room.file("tools.yml", document!("tools.yml"));
    assert_eq!(names(&room, CALCULATOR), ["calculator"]);
    let shown = run(&room, CALCULATOR, &["inspect", "calculator"]).exits(0).out();
    for words in ["internal builtin", "core_utils", "fast", "sandboxed", "What to work out"] {
        assert!(shown.contains(words), "{words:?} is missing:\n{shown}");
    }
    let called = run(&room, CALCULATOR, &["call", "calculator", "expression=6 * 7"]);
    assert_eq!(called.exits(0).out(), "42\n");
    let called = run(&room, CALCULATOR, &["call", "calculator", "expression=6 * 7", "--json"]);
    assert_eq!(called.exits(0).json()["success"], true);
    run(&room, CALCULATOR, &["call", "calculator"]).exits(2).says(&["expression"]);
}

#[test]
fn the_calculator_is_the_module_where_there_is_one() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    let module = document!("calculator/src/tools/core/calculator_tool.py");
    room.file("src/tools/core/calculator_tool.py", module);
    room.file("tools.yml", &document!("tools.yml").replace("\"sandboxed\"", "\"native\""));
    assert_eq!(names(&room, CALCULATOR), ["calculator"]);
    let shown = run(&room, CALCULATOR, &["inspect", "calculator"]).exits(0).out();
    assert!(shown.contains("internal python"), "{shown}");
    assert!(shown.contains("src/tools/core/calculator_tool.py"), "{shown}");
    let called = run(&room, CALCULATOR, &["call", "calculator", "expression=6+7", "--json"]);
    assert_eq!(called.exits(0).json()["output"], json!({ "sum": 13, "by": "python" }));
    // As it stands it asks for a sandbox: kept, or refused where the system has none, and never
    // answered by anything else than the module.
    room.file("tools.yml", document!("tools.yml"));
    let asked = run(&room, CALCULATOR, &["call", "calculator", "expression=6+7", "--json"]);
    if asked.code == Some(0) {
        assert_eq!(asked.json()["output"]["by"], "python");
    } else {
        asked.exits(6).says(&["sandbox"]);
    }
}

#[test]
fn servers_by_address_have_the_tools_that_are_declared_for_them() {
    const TOKEN: &str = "hunter2-hunter2-hunter2";
    let room = Sandbox::new();
    let log = room.log("web");
    let server = Fixture::fault(Place::Http, "none", "legacy", &log);
    let url = server.url().unwrap();
    // The first has nobody at its address, the second is the server.
    let text = document!("mcp.yml").replace("http://localhost:8002", url);
    room.file("mcp.yml", &text.replace("localhost:8001", "127.0.0.1:1"));
    let files = ["--mcp", "mcp.yml"];
    let with_token = |words: &[&'static str]| {
        let words = [&files, words].concat();
        room.toolhost(words).env("CODE_EXEC_AUTH_TOKEN", TOKEN).check()
    };
    with_token(&["--strict", "config", "check"]).exits(0);
    let listed = with_token(&["list"]);
    listed.exits(11);
    assert!(listed.out().contains("code_execution_server-execute_python_code"), "{listed}");
    assert!(listed.out().contains("web_search_server-echo"), "{listed}");
    let shown = with_token(&["inspect", "code_execution_server-execute_python_code"]);
    for words in ["medium", "sandboxed", "timeout_seconds", "Runs a snippet", "refused"] {
        assert!(shown.exits(0).out().contains(words), "{words:?} is missing\n{shown}");
    }
    let called = with_token(&["call", "execute_python_code", "code=print(1)"]);
    called.exits(4).says(&["code_execution_server", "connection refused"]);
    // Declared, but the server has no such tool.
    let drifted = with_token(&["call", "perform_web_search", "query=tools", "--json"]);
    assert_ne!(drifted.code, Some(0), "{drifted}");
    let called = with_token(&["call", "web_search_server-echo", "message=hi", "--json"]);
    assert_eq!(called.exits(0).json()["metadata"]["server"], "web_search_server");
    for said in [listed, shown, called, with_token(&["config", "show"])] {
        assert!(!format!("{}{}", said.out(), said.err()).contains("hunter2"), "{said}");
    }
    // Without the token its server is out of service, and the other is not.
    let declared = "code_execution_server-execute_python_code";
    let shown = run(&room, &files, &["inspect", declared]);
    assert!(
        shown.exits(0).out().contains("the variable CODE_EXEC_AUTH_TOKEN is not set"),
        "{shown}"
    );
    run(&room, &files, &["call", declared, "code=1"])
        .exits(9)
        .says(&["CODE_EXEC_AUTH_TOKEN", "mcp.yml:9"]);
    run(&room, &files, &["call", "web_search_server-echo", "message=hi"]).exits(0);
}

/// Answers one request with a task; what it heard comes back.
fn task_server() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "it ends early: {head}");
            let line = head.get(start..).unwrap_or_default().to_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let answer = r#"{"id":7,"title":"milk"}"#;
        write!(
            stream,
            "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{answer}",
            answer.len()
        )
        .unwrap();
        sender.send(head + &String::from_utf8(body).unwrap()).unwrap();
    });
    (url, heard)
}

#[test]
fn an_agents_file_searches_files_and_creates_tasks() {
    let room = Sandbox::new();
    let (url, heard) = task_server();
    room.file("agent.yaml", document!("agent.yaml"));
    room.file("data/list.txt", "milk").file("outside.txt", "milk");
    let files = ["--tools", "agent.yaml"];
    assert_eq!(names(&room, &files), ["file_system_search", "create_task"]);
    run(&room, &files, &["inspect", "file_system_search"]).exits(0);
    let found = run(&room, &files, &["call", "file_system_search", "pattern=*.txt", "--json"]);
    assert!(found.exits(0).out().contains("list.txt"), "{found}");
    assert!(!found.out().contains("outside"), "{found}");
    let shown = run(&room, &files, &["inspect", "create_task"]).exits(0).out();
    for words in ["title", "at least 1", "POST", "/api/agent/tasks"] {
        assert!(shown.contains(words), "{words:?} is missing:\n{shown}");
    }
    let call = ["--tools", "agent.yaml", "call", "create_task", "title=milk", "--json"];
    let made = room.toolhost(call).env("AGENT_API_URL", &url).check();
    assert_eq!(made.exits(0).json()["output"], json!({ "id": 7, "title": "milk" }));
    let heard = heard.recv().unwrap();
    assert!(heard.starts_with("POST /api/agent/tasks HTTP/1.1\r\n"), "{heard}");
    assert!(heard.contains(r#""title":"milk""#), "{heard}");
    let wrong = ["call", "create_task", "priority=0"];
    run(&room, &files, &wrong).exits(2).says(&["title", "priority"]);
}

#[test]
fn a_host_tool_answers_through_its_async_handler() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("host-tools.yaml", document!("host/host-tools.yaml"));
    room.file("myapp/tools/database.py", document!("host/myapp/tools/database.py"));
    let files = ["--tools", "host-tools.yaml"];
    assert_eq!(names(&room, &files), ["my_database_query"]);
    // The document's own option adds to the project's tools.
    room.file("tools.yaml", "tools: [{ name: own, command: [echo, hi] }]\n");
    let added = ["--trust", "--host-tools", "host-tools.yaml"];
    assert_eq!(names(&room, &added), ["own", "my_database_query"]);
    let shown = run(&room, &files, &["inspect", "my_database_query"]).exits(0).out();
    assert!(shown.contains("One select statement"), "{shown}");
    let sql = "sql=select item, amount from orders order by item";
    let found = run(&room, &files, &["call", "my_database_query", sql, "--json"]).exits(0).json();
    assert_eq!(found["output"], json!([["bread", 1], ["milk", 2]]));
    assert_eq!(found["result"]["metadata"]["rows"], 2);
    assert!(found["metadata"].get("rows").is_none() && found["metadata"]["attempts"] == 1);
    let wrong = run(&room, &files, &["call", "my_database_query", "sql=select * from invoices"]);
    wrong.exits(3).says(&["the database says: no such table: invoices"]);
}

#[test]
fn components_are_stores_in_memory_and_tools_of_a_server() {
    let room = Sandbox::new();
    room.file("tools.yaml", document!("components/tools.yaml"));
    let server = Value::from(BINARY);
    let servers = format!("mcp_servers:\n  pg: {{ command: {server}, args: [demo-server] }}\n");
    room.file("mcp.yaml", &servers);
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml"];
    let names = names(&room, &files);
    for name in ["my_mem_db-read", "my_mem_db-write", "postgresql_server-add"] {
        assert!(names.iter().any(|listed| listed == name), "{name} is missing: {names:?}");
    }
    run(&room, &files, &["inspect", "my_mem_db-write"]).exits(0);
    run(&room, &files, &["inspect", "postgresql_server-add"]).exits(0);
    let write = ["call", "my_mem_db-write", "key=a", "value=b", "--json"];
    let written = run(&room, &files, &write).exits(0).json();
    assert_eq!(written["output"], json!({ "key": "a", "version": 1 }));
    // What is in memory ends with its process.
    run(&room, &files, &["call", "my_mem_db-read", "key=a"]).exits(3);
    let add = ["call", "postgresql_server-add", "a=1", "b=2", "--json"];
    let added = run(&room, &files, &add).exits(0).json();
    assert_eq!(added["output"]["sum"], 3);
    assert_eq!(added["metadata"]["server"], "postgresql_server");
}

#[test]
fn the_clients_of_a_host_file_are_servers_with_weights() {
    let room = Sandbox::new();
    // A `server_path` has no arguments, so the program is a script that has them.
    room.file("server.sh", &format!("#!/bin/sh\nexec '{BINARY}' demo-server\n"));
    let path = room.path("work/server.sh");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&path, executable).unwrap();
    room.file("clients.json", &document!("clients.json").replace("SERVER", "./server.sh"));
    let files = ["--mcp", "clients.json"];
    let names = names(&room, &files);
    let has = |name: &str| names.iter().any(|listed| listed == name);
    assert!(has("primary-add") && has("backup-add"), "{names:?}");
    assert!(!has("primary-fail") && has("backup-fail"), "excluded at one of them: {names:?}");
    run(&room, &files, &["inspect", "primary-add"]).exits(0);
    let added = run(&room, &files, &["call", "add", "a=1", "b=2", "--json"]).exits(0).json();
    assert_eq!(added["metadata"]["server"], "primary", "the heaviest that answers");
    let only = run(&room, &files, &["call", "fail", "--json"]);
    assert_eq!(only.exits(3).json()["metadata"]["server"], "backup", "{only}");
}
