//! Files that change while clients are connected.

use std::io::Read as _;

use serde_json::{Value, json};

use super::client::{
    HttpSession, Served, TOKEN, Wire, ask_stateless, heard, outcome_in, post_stateless, subscribe,
};
use crate::support::Sandbox;

/// A server that writes its process down when it is started.
fn demo(room: &Sandbox, name: &str) -> String {
    let (program, log) = (env!("CARGO_BIN_EXE_toolhost"), room.path("run").join(name));
    let script = format!("echo $$ >> {}; exec {program} demo-server", log.display());
    format!("  {name}: {{ command: sh, args: [-c, '{script}'] }}\n")
}

/// The processes of a server so far.
fn starts(room: &Sandbox, name: &str) -> Vec<String> {
    let log = std::fs::read_to_string(room.path("run").join(name)).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

fn write_servers(room: &Sandbox, names: &[&str]) {
    write_servers_to(room, "mcp.yaml", names);
}

fn write_servers_to(room: &Sandbox, file: &str, names: &[&str]) {
    let entries: String = names.iter().map(|name| demo(room, name)).collect();
    room.file(file, &format!("mcp_servers:\n{entries}"));
}

fn offered(client: &mut impl Wire, id: u64) -> String {
    let tools = client.ask(id, "tools/list", json!({}))["result"]["tools"].clone();
    let names = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    names.collect::<Vec<_>>().join(" ")
}

/// The next message of this kind.
fn notified(client: &mut impl Wire, method: &str) -> Value {
    let mut messages = std::iter::from_fn(|| client.next());
    messages.find(|message| message["method"] == method).expect("the server hung up")
}

const CHANGED: &str = "notifications/tools/list_changed";
/// The user's own files, seen from the working directory.
const OWN_SERVERS: &str = "../config/toolhost/mcp.yaml";
const OWN_TOOLS: &str = "../config/toolhost/tools.yaml";
const FILES: [&str; 4] = ["--mcp", "mcp.yaml", "--tools", "tools.yaml"];

fn start(room: &Sandbox, words: &[&str]) -> Served {
    Served::start(room, &[&FILES, words].concat())
}

#[test]
fn a_changed_file_reaches_every_client_and_what_is_the_same_stays_connected() {
    let room = Sandbox::new();
    write_servers_to(&room, OWN_SERVERS, &["kept", "gone"]);
    room.file(OWN_TOOLS, "tools: [{ name: one, module: builtin.echo }]\n");
    let mut served = Served::start(&room, &["--stdio", "--http", "127.0.0.1:0"]);
    let http = served.address();
    let mut client = served.streams();
    client.initialize(json!({}));
    let before = offered(&mut client, 1);
    assert!(before.contains("kept-echo") && before.contains("gone-echo"), "{before}");
    let mut events = HttpSession::open(&http, TOKEN).events();
    // A call of the server that goes, as it goes.
    let call = json!({ "name": "gone-slow", "arguments": { "seconds": 1 },
                       "_meta": { "progressToken": "p" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }));
    notified(&mut client, "notifications/progress");
    let process = starts(&room, "gone").pop().unwrap();

    write_servers_to(&room, OWN_SERVERS, &["fresh", "kept"]);
    room.file(OWN_TOOLS, "tools: [{ name: two, module: builtin.echo }]\n");
    let mut answer = None;
    let mut is_told = false;
    while answer.is_none() || !is_told {
        let message = client.next().expect("the server hung up");
        is_told |= message["method"] == CHANGED;
        if message["id"] == 2 {
            answer = Some(message);
        }
    }
    let answer = answer.unwrap();
    assert_eq!(
        answer["result"]["content"][0]["text"], "waited 1 s",
        "a call was cut off: {answer}"
    );
    heard(&mut events, CHANGED);
    // One of the two files may have been read before the other.
    let told = served.says("configuration reloaded");
    let mut all = told.clone();
    while !(all.contains("fresh") && all.contains("two")) {
        all.push_str(&served.says("configuration reloaded"));
    }
    let after = offered(&mut client, 3);
    assert!(after.contains("fresh-echo") && after.contains("two"), "{after}");
    assert!(!after.contains("gone-") && !after.contains("one"), "{after}");
    let sum = client.call(4, "kept-echo", json!({ "message": "still" }));
    assert_eq!(sum["content"][0]["text"], "still", "{sum}");
    assert_eq!(starts(&room, "kept").len(), 1, "what did not change was started again");
    let over_http = ask_stateless(
        &http,
        "tools/call",
        json!({ "name": "fresh-echo", "arguments": { "message": "new" } }),
    );
    assert_eq!(over_http["content"][0]["text"], "new", "{over_http}");
    let removed = client.call(5, "gone-echo", json!({ "message": "x" }));
    assert!(removed.to_string().contains("'gone-echo' was removed"), "{removed}");
    let process = std::path::Path::new("/proc").join(&process).join("fd/0");
    let mut lives = (0..100_000).take_while(|_| {
        client.ask(6, "ping", json!({}));
        process.exists()
    });
    assert!(lives.by_ref().count() < 100_000, "the removed server still runs");
    served.hang_up();
    served.says("configuration reloaded: nothing changed");
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

/// A store in memory, one in a file, and a function whose module has a counter.
const WITH_STATE: &str = "
tools:
  - { name: one, module: builtin.echo, description: First. }
  - { name: count, module: counter, function: count, root: run }
  - { name: other, module: counter, function: other, root: run }
components:
  - { name: kept, storage_type: memory }
  - { name: file, storage_type: disk, path: run/file.db }
  - { name: more, storage_type: memory, max_keys: 3 }
";
const COUNTER: &str = "import itertools, os\nn = itertools.count(1)\n\
                       def count():\n    return f'{next(n)} {os.getpid()}'\n\
                       def other():\n    return 'first'\n";

/// The file descriptors of a process that lead to this file.
fn handles(pid: u32, file: &str) -> Vec<String> {
    let list = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let leads =
        |path: &std::path::Path| std::fs::read_link(path).is_ok_and(|to| to.ends_with(file));
    let mut found: Vec<String> = list
        .filter(|entry| leads(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

#[test]
fn what_an_entry_keeps_is_there_after_other_entries_of_its_kind_changed() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("mcp.yaml", "mcp_servers: {}\n").file("tools.yaml", WITH_STATE);
    room.file("run/counter.py", COUNTER);
    let mut served = start(&room, &[]);
    let mut client = served.streams();
    client.initialize(json!({}));
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    for component in ["kept", "file", "more"] {
        let put = json!({ "key": "k", "value": component });
        let set = client.call(1, &format!("{component}-write"), put);
        assert!(set["structuredContent"]["version"].is_u64(), "{set}");
    }
    let counted = text(&client.call(2, "count", json!({})));
    let (count, pid) = counted.split_once(' ').unwrap();
    assert_eq!(count, "1");
    let handle = handles(served.pid(), "file.db");
    assert!(!handle.is_empty());

    for (from, to) in [
        ("max_keys: 3", "max_keys: 4"),
        ("function: other", "function: other, description: Another."),
        ("description: First.", "description: The first."),
    ] {
        let now = std::fs::read_to_string(room.path("work/tools.yaml")).unwrap();
        room.file("tools.yaml", &now.replace(from, to));
        served.hang_up();
        served.says("configuration reloaded: changed");
    }
    for component in ["kept", "file", "more"] {
        let got = client.call(3, &format!("{component}-read"), json!({ "key": "k" }));
        assert!(got.to_string().contains(component), "{got}");
    }
    assert_eq!(text(&client.call(4, "count", json!({}))), format!("2 {pid}"));
    assert_eq!(handles(served.pid(), "file.db"), handle);

    // What no entry uses any more has ended.
    room.file("tools.yaml", "tools: [{ name: one, module: builtin.echo }]\n");
    served.hang_up();
    served.says("configuration reloaded");
    let process = std::path::PathBuf::from(format!("/proc/{pid}"));
    let mut turns = (0..100_000).take_while(|_| {
        client.ask(5, "ping", json!({}));
        process.exists() || !handles(served.pid(), "file.db").is_empty()
    });
    assert!(turns.by_ref().count() < 100_000, "Python or the file is still there");
    room.file("tools.yaml", WITH_STATE);
    served.hang_up();
    served.says("configuration reloaded");
    let gone = client.call(6, "kept-read", json!({ "key": "k" }));
    assert!(!gone["content"].to_string().contains("kept\\\""), "{gone}");
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn a_changed_server_is_started_again_and_calls_go_to_the_new_one() {
    let room = Sandbox::new();
    write_servers(&room, &["one"]);
    room.file("tools.yaml", "tools: []\n");
    let mut served = start(&room, &[]);
    let mut client = served.streams();
    client.initialize(json!({}));
    client.call(1, "one-echo", json!({ "message": "a" }));
    let entry = demo(&room, "one").replace(" }", ", exclude: [slow] }");
    room.file("mcp.yaml", &format!("mcp_servers:\n{entry}"));
    served.hang_up();
    let told = served.says("configuration reloaded");
    assert!(told.contains("changed one"), "{told}");
    notified(&mut client, CHANGED);
    let names = offered(&mut client, 2);
    assert!(names.contains("one-echo") && !names.contains("one-slow"), "{names}");
    assert_eq!(starts(&room, "one").len(), 2);
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn a_broken_file_is_refused_and_what_was_served_goes_on() {
    let room = Sandbox::new();
    write_servers(&room, &["kept"]);
    room.file("tools.yaml", "tools: [{ name: one, module: builtin.echo }]\n");
    let mut served = start(&room, &[]);
    let mut client = served.streams();
    client.initialize(json!({}));
    let before = offered(&mut client, 1);
    for (broken, words) in [
        ("tools: [{ name: one, module: builtin.echo }\n", "tools.yaml:"),
        (
            "tools: [{ name: one, module: builtin.echo }, { name: bad, module: builtin.none }]\n",
            "tools.yaml:1:",
        ),
    ] {
        room.file("tools.yaml", broken);
        served.hang_up();
        served.says("the configuration was not reloaded");
        served.says(words);
        assert_eq!(offered(&mut client, 2), before);
    }
    std::fs::remove_file(room.path("work/tools.yaml")).unwrap();
    served.hang_up();
    served.says("the configuration was not reloaded");
    assert_eq!(offered(&mut client, 3), before);
    room.file("tools.yaml", "tools: [{ name: two, module: builtin.echo }]\n");
    served.hang_up();
    let told = served.says("configuration reloaded");
    assert!(told.contains("added two") && told.contains("removed one"), "{told}");
    let after = offered(&mut client, 4);
    assert!(after.contains("two") && after.contains("kept-echo"), "{after}");
    assert_eq!(starts(&room, "kept").len(), 1);
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn a_project_that_changed_is_served_as_it_was_trusted_until_it_is_trusted_again() {
    let room = Sandbox::new();
    write_servers(&room, &["kept"]);
    room.toolhost(["trust", "--yes"]).go().exits(0);
    let mut served = Served::start(&room, &[]);
    let mut client = served.streams();
    client.initialize(json!({}));
    let before = offered(&mut client, 1);
    assert!(before.contains("kept-echo"), "{before}");
    write_servers(&room, &["kept", "sneaky"]);
    served.hang_up();
    served.says("is not trusted as it is now");
    assert_eq!(offered(&mut client, 2), before);
    let refused = client.call(3, "sneaky-echo", json!({ "message": "x" }));
    assert!(refused["isError"] == true || refused["code"].is_i64(), "{refused}");
    assert!(starts(&room, "sneaky").is_empty(), "it was started unasked");
    let still = client.call(4, "kept-echo", json!({ "message": "still" }));
    assert_eq!(still["content"][0]["text"], "still", "{still}");
    // The answer is noticed without a signal.
    room.toolhost(["trust", "--yes"]).go().exits(0);
    notified(&mut client, CHANGED);
    let after = offered(&mut client, 5);
    assert!(after.contains("sneaky-echo"), "{after}");
    assert_eq!(starts(&room, "kept").len(), 1, "what did not change was started again");
    // Trust that is withdrawn ends what rested on it.
    room.toolhost(["trust", "revoke"]).go().exits(0);
    notified(&mut client, CHANGED);
    let revoked = offered(&mut client, 6);
    assert!(!revoked.contains("sneaky-") && !revoked.contains("kept-"), "{revoked}");
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn rules_and_profiles_hold_for_connected_clients_as_they_are_now() {
    let room = Sandbox::new();
    let tools = |include: &str, policy: &str| {
        format!(
            "tools:\n  - {{ name: one, module: builtin.echo }}\n  - {{ name: two, module: builtin.echo }}\n\
             profiles:\n  few: {{ include: [{include}] }}\npolicy: [{policy}]\n"
        )
    };
    room.file("tools.yaml", &tools("one, two", "")).file("mcp.yaml", "mcp_servers: {}\n");
    let words = [&FILES[..], &["--profile", "few", "serve", "token", "issue", "ci"]].concat();
    let token = room.toolhost(words).go().exits(0).out().trim().to_owned();
    let mut served = start(&room, &["--stdio", "--http", "127.0.0.1:0"]);
    let http = served.address();
    let mut client = served.streams();
    client.initialize(json!({}));
    let seen = || {
        outcome_in(&post_stateless(&http, &token, "tools/list", json!({})).1)["tools"].to_string()
    };
    assert!(seen().contains("\"two\""), "{}", seen());
    let mut events = HttpSession::open(&http, &token).events();
    room.file("tools.yaml", &tools("one", "{ match: two, action: deny }"));
    served.hang_up();
    heard(&mut events, CHANGED);
    notified(&mut client, CHANGED);
    assert!(seen().contains("\"one\"") && !seen().contains("\"two\""), "{}", seen());
    let refused = client.call(1, "two", json!({ "text": "x" }));
    assert_eq!(refused["isError"], true, "{refused}");
    // A profile that is gone shows nothing, and lets no one in.
    room.file("tools.yaml", "tools: [{ name: one, module: builtin.echo }]\n");
    served.hang_up();
    heard(&mut events, CHANGED);
    assert_eq!(post_stateless(&http, &token, "tools/list", json!({})).0, 403);
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

/// Anything that can write such a file could otherwise have it start what it likes, unasked.
#[test]
fn what_was_agreed_to_for_one_run_is_read_again_only_when_asked() {
    for (words, variable) in [
        (&["--mcp", "mcp.yaml"][..], None),
        (&["--trust"], None),
        (&[], Some(("TOOLHOST_MCP", "mcp.yaml"))),
        (&[], Some(("TOOLHOST_TRUST", "1"))),
    ] {
        let room = Sandbox::new();
        write_servers(&room, &["kept"]);
        let mut served =
            Served::start_with(&room, &[words, &["serve"][..]].concat(), variable.as_slice());
        let mut client = served.streams();
        client.initialize(json!({}));
        let before = offered(&mut client, 1);
        write_servers(&room, &["kept", "sneaky"]);
        let told = served.says("mcp.yaml changed, but the previous configuration is still served");
        assert!(told.contains("kill -HUP"), "{told}");
        assert_eq!(offered(&mut client, 2), before);
        assert!(starts(&room, "sneaky").is_empty(), "{words:?}: it was started unasked");
        served.hang_up();
        served.says("configuration reloaded: added sneaky");
        notified(&mut client, CHANGED);
        let after = offered(&mut client, 3);
        assert!(after.contains("sneaky-echo"), "{after}");
        assert_eq!(starts(&room, "kept").len(), 1, "what did not change was started again");
        drop(client);
        assert_eq!(served.ended(), Some(0));
    }
}

/// A project that comes to be beside a run that trusts all is not what was trusted.
#[test]
fn a_project_that_appears_later_is_not_trusted_by_the_run_before_it() {
    let room = Sandbox::new();
    write_servers_to(&room, OWN_SERVERS, &["own"]);
    let mut served = Served::start_with(&room, &["--trust", "serve"], &[]);
    let mut client = served.streams();
    client.initialize(json!({}));
    let before = offered(&mut client, 1);
    write_servers(&room, &["sneaky"]);
    served.says("mcp.yaml changed, but the previous configuration is still served");
    assert_eq!(offered(&mut client, 2), before);
    assert!(starts(&room, "sneaky").is_empty(), "it was started unasked");
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn a_subscription_over_http_hears_of_changes_until_the_server_ends_it() {
    let room = Sandbox::new();
    room.file("mcp.yaml", "mcp_servers: {}\n");
    room.file("tools.yaml", "tools: [{ name: one, module: builtin.echo }]\n");
    let mut served = start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let mut tools = subscribe(&http, &json!({ "toolsListChanged": true }));
    let begun = heard(&mut tools, "data: {");
    assert!(begun.contains("notifications/subscriptions/acknowledged"), "{begun}");
    assert!(begun.contains("\"toolsListChanged\":true"), "{begun}");
    // One that wants something else is not told.
    let mut prompts = subscribe(&http, &json!({ "promptsListChanged": true }));
    heard(&mut prompts, "notifications/subscriptions/acknowledged");
    room.file("tools.yaml", "tools: [{ name: two, module: builtin.echo }]\n");
    served.hang_up();
    let told = heard(&mut tools, "data: {");
    assert!(told.contains(CHANGED), "{told}");
    assert!(told.contains("\"io.modelcontextprotocol/subscriptionId\":7"), "{told}");
    assert_eq!(served.end(), Some(143));
    for mut stream in [tools, prompts] {
        let last = heard(&mut stream, "data: {");
        assert!(
            last.contains("\"resultType\":\"complete\"") && last.contains("\"id\":7"),
            "{last}"
        );
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("0\r\n\r\n"), "the stream was cut off: {rest:?}");
    }
}
