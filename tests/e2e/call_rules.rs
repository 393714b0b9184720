//! What a call may set, whom approvals and rules are for, and where credentials may travel.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{Run, Sandbox};

fn own(room: &Sandbox, name: &str, text: &str) {
    std::fs::write(room.path("config/toolhost").join(name), text).unwrap();
}

#[test]
fn a_call_sets_only_what_the_entry_declares() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:
  - { name: show, command: [env], context_env: [TICKET] }
  - { name: shell, command: [bash, -c, 'ls; echo done'] }
  - { name: python, command: [python3, -c, 'print(1)'] }
",
    );
    let run = |words: &[&'static str]| {
        room.toolhost(["--tools", "tools.yaml", "call"].into_iter().chain(words.iter().copied()))
            .check()
    };
    let shown = run(&["show", "--context", "TICKET=7", "--context", "TOOLHOST_X=8"]);
    let out = shown.exits(0).out();
    assert!(out.contains("TICKET=7\n") && out.contains("TOOLHOST_X=8\n"), "{shown}");
    run(&["show", "--context", "OTHER_ID=7"])
        .exits(2)
        .says(&["'OTHER_ID' cannot be set by a call of 'show'", "context_env: [OTHER_ID]"]);
    run(&["show", "--context", "foo=bar"])
        .exits(2)
        .says(&["such as APP_ID in 'context_env'", "--context foo:=JSON is metadata"]);
    run(&["shell", "--context", "BASH_FUNC_ls%%=() { touch ran; }"])
        .exits(2)
        .says(&["may decide which code runs"]);
    for name in ["PYTHONUSERBASE", "PATH", "LD_PRELOAD", "GIT_SSH_COMMAND", "https_proxy"] {
        let word: &'static str = format!("{name}=.").leak();
        run(&["python", "--context", word]).exits(2).says(&[name, "may decide which code runs"]);
        run(&["python", "--dry-run", "--context", word]).exits(2);
    }
    assert!(!room.path("work/ran").exists());
    // Metadata is the caller's own word and reaches no environment.
    run(&["show", "--context", "OTHER:=7"]).exits(0);
}

#[test]
fn what_decides_code_cannot_be_declared() {
    for (name, told) in [
        ("LD_PRELOAD", "cannot be set by a call"),
        ("UV_INDEX_URL", "cannot be set by a call"),
        ("SOMETHING_UNKNOWN", "cannot be set by a call"),
        ("'BASH_FUNC_ls%%'", "invalid variable name"),
        ("'A B'", "invalid variable name"),
    ] {
        let room = Sandbox::new();
        room.file(
            "t.yaml",
            &format!("tools: [{{ name: a, command: [env], context_env: [{name}] }}]\n"),
        );
        let checked = room.toolhost(["--tools", "t.yaml", "config", "check"]).check();
        assert!(checked.exits(9).out().contains(told), "{checked}");
        room.file("m.yaml", &format!("s: {{ command: cat, context_env: [{name}] }}\n"));
        let checked = room.toolhost(["--mcp", "m.yaml", "config", "check"]).check();
        assert!(checked.exits(9).out().contains(told), "{checked}");
    }
}

#[test]
fn a_servers_tool_takes_declared_variables_only() {
    let room = Sandbox::new();
    let entry = "command: \"${TOOLHOST}\", args: [demo-server]";
    room.file("mcp.yaml", &format!("demo: {{ {entry}, context_env: [TICKET] }}\n"));
    let call = |word| room.with_servers(["call", "demo-echo", "message=x", "--context", word]);
    call("TICKET=1").check().exits(0);
    call("OTHER_ID=1").check().exits(2).says(&["context_env: [OTHER_ID]"]);
}

#[test]
fn a_pin_is_for_an_entry_and_not_for_a_name() {
    let room = Sandbox::new();
    let tools = |word: &str| {
        own(
            &room,
            "tools.yaml",
            &format!("tools: [{{ name: say, command: [echo, \"{word}\"] }}]\n"),
        );
    };
    let run = |words: &[&'static str]| -> Run<'_> { room.toolhost(words.iter().copied()) };
    tools("${A:-hi}");
    run(&["pin"]).check().exits(0);
    run(&["call", "say"]).check().exits(0);
    let pins = std::fs::read_to_string(room.path("state/toolhost/pins.json")).unwrap();
    let pins: Value = serde_json::from_str(&pins).unwrap();
    let entry = &pins["pins"][0]["tools"]["say"]["entry"];
    assert_eq!((&entry["layer"], &entry["written"]), (&"user".into(), &"echo ${A:-hi}".into()));
    // It starts the same, by the word of another variable.
    tools("${B:-hi}");
    run(&["call", "say"])
        .check()
        .exits(6)
        .says(&["the pinned definition of 'say' changed (entry)"]);
    run(&["pin", "--yes"]).check().exits(0);
    run(&["call", "say"]).check().exits(0);
}

/// What the user refuses by the name of a server is not reached under another one.
#[test]
fn a_project_gives_no_other_name_to_a_server_of_the_user() {
    let room = Sandbox::new();
    own(&room, "mcp.yaml", "pg: { command: \"${TOOLHOST}\", args: [demo-server] }\n");
    own(&room, "tools.yaml", "policy: [{ match: pg-*, action: deny }]\n");
    let stand_in = "components:\n  - { name: warehouse, type: storage, \
                    storage_type: postgresql, mcp_server: pg }\n";
    room.file("tools.yaml", stand_in);
    let call = |name| room.toolhost(["--trust", "call", name, "message=x"]).check();
    assert_ne!(call("warehouse-echo").code, Some(0));
    call("pg-echo").exits(6).says(&["'pg-*: deny'"]);
    let checked = room.toolhost(["--trust", "config", "check"]).check();
    assert!(checked.exits(9).out().contains("'pg' is not part of this project"), "{checked}");
    // The user may, and then it is the new name that rules are about.
    std::fs::remove_file(room.path("work/tools.yaml")).unwrap();
    own(&room, "tools.yaml", stand_in);
    call("warehouse-echo").exits(0);
}

/// A server that answers every request with `{}` and keeps what it heard.
fn canary() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    // It ends with the test's process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            log.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                          Content-Length: 2\r\nConnection: close\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    (port, heard)
}

const TOKEN: &str = "hunter2-hunter2-hunter2";

#[test]
fn credentials_do_not_travel_in_the_clear() {
    let (port, heard) = canary();
    // This machine, by an address that is not known to be: the network begins there.
    let away = format!("http://0.0.0.0:{port}");
    let entries = [
        format!("endpoint_url: '{away}/', auth: {{ type: bearer, token_env_var: SOME_TOKEN }}"),
        format!("endpoint_url: '{away}/', headers: {{ Authorization: 'Bearer x' }}"),
        format!("endpoint_url: '{away}/', headers: {{ X-Api-Key: '${{SOME_TOKEN}}' }}"),
        format!("endpoint_url: '{away}/', query: {{ q: '${{SOME_TOKEN}}' }}"),
        format!("base_url: '{away}', endpoint_url: /x, headers: {{ Cookie: a }}"),
    ];
    for entry in &entries {
        let room = Sandbox::new();
        let run = |words: &[&'static str]| {
            room.toolhost(words.iter().copied()).env("SOME_TOKEN", TOKEN).check()
        };
        own(&room, "tools.yaml", &format!("tools: [{{ name: api, {entry} }}]\n"));
        run(&["call", "api"]).exits(9).says(&["credentials would travel unencrypted"]);
        assert!(heard.lock().unwrap().is_empty(), "{entry}");
        // A file of somebody else cannot allow it, for itself or when it is named.
        let allowed = format!("tools: [{{ name: api, {entry}, insecure: true }}]\n");
        std::fs::remove_file(room.path("config/toolhost/tools.yaml")).unwrap();
        room.file("tools.yaml", &allowed);
        let told = "'insecure' is only allowed in your own configuration directory";
        run(&["--trust", "call", "api"]).exits(9).says(&[told]);
        run(&["--tools", "tools.yaml", "call", "api"]).exits(9).says(&[told]);
        assert!(heard.lock().unwrap().is_empty(), "{entry}");
        std::fs::remove_file(room.path("work/tools.yaml")).unwrap();
        own(&room, "tools.yaml", &allowed);
        run(&["call", "api"]).exits(0);
        assert_eq!(std::mem::take(&mut *heard.lock().unwrap()).len(), 1, "{entry}");
    }
    // Without credentials plain http is nobody's secret; and on this machine nothing is overheard.
    let room = Sandbox::new();
    own(
        &room,
        "tools.yaml",
        &format!(
            "tools:\n  - {{ name: open, endpoint_url: '{away}/' }}\n  - {{ name: here, endpoint_url: \
             'http://127.0.0.1:{port}/', auth: {{ token_env_var: SOME_TOKEN }} }}\n"
        ),
    );
    for name in ["open", "here"] {
        room.toolhost(["call", name]).env("SOME_TOKEN", TOKEN).check().exits(0);
    }
}

#[test]
fn credentials_of_servers_do_not_travel_in_the_clear() {
    let (port, heard) = canary();
    let away = format!("url: 'http://0.0.0.0:{port}/mcp'");
    for more in [
        "auth: { type: bearer, token_env_var: SOME_TOKEN }",
        "headers: { Authorization: 'Bearer x' }",
        "headers: { X-Api-Key: '${SOME_TOKEN}' }",
        "auth: { type: oauth }",
    ] {
        let room = Sandbox::new();
        let run = |words: &[&'static str]| {
            room.toolhost(words.iter().copied()).env("SOME_TOKEN", TOKEN).check()
        };
        own(&room, "mcp.yaml", &format!("srv: {{ {away}, {more} }}\n"));
        for words in
            [&["call", "srv-x"][..], &["--insecure", "call", "srv-x"], &["config", "check"]]
        {
            let finished = run(words);
            let said = finished.exits(9).out() + &finished.err();
            assert!(said.contains("credentials would travel unencrypted"), "{finished}");
        }
        own(&room, "mcp.yaml", "{}");
        room.file("mcp.yaml", &format!("srv: {{ {away}, {more}, insecure: true }}\n"));
        let checked = run(&["--trust", "config", "check"]);
        assert!(
            checked.exits(9).out().contains("'insecure' is only allowed in your own"),
            "{checked}"
        );
        assert!(heard.lock().unwrap().is_empty(), "{more}");
        std::fs::remove_file(room.path("work/mcp.yaml")).unwrap();
        own(&room, "mcp.yaml", &format!("srv: {{ {away}, {more}, insecure: true }}\n"));
        run(&["config", "check"]).exits(0);
    }
}
