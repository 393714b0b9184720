//! Built-in tools that need more than their arguments, or are more than one line of them.

use serde_json::json;

use crate::support::{Finished, Listener, Sandbox};

const ENTRIES: &str = r"
tools:
  - { name: fetch, module: builtin.http }
  - { name: public, module: builtin.http, requires_approval: false }
  - { name: changes, module: builtin.json_diff }
  - { name: find, module: builtin.regex, function: find_all }
  - { name: swap, module: builtin.regex, function: replace }
";

fn run<'w>(room: &'w Sandbox, words: impl IntoIterator<Item = &'w str>) -> Finished {
    room.toolhost(["--tools", "tools.yaml"].into_iter().chain(words)).check()
}

#[test]
fn fetching_asks_first_and_then_reaches_this_machine() {
    let room = Sandbox::new();
    room.file("tools.yaml", ENTRIES);
    let peer = Listener::http();
    let url = format!("url=http://{}/a?b=1", peer.authority());
    run(&room, ["call", "fetch", &url]).exits(6);
    assert!(peer.requests().is_empty(), "asked before anything is sent");
    run(&room, ["call", "public", &url]).exits(6).says(&["is not a public address"]);
    assert!(peer.requests().is_empty());
    let metadata = "url=http://169.254.169.254/latest";
    run(&room, ["call", "fetch", metadata, "--yes"]).exits(6).says(&["link-local"]);
    let shown =
        run(&room, ["call", "fetch", &url, "headers:={\"Cookie\":\"k=s3cret\"}", "--dry-run"]);
    let page = shown.exits(0).out();
    assert!(page.contains("sends GET") && page.contains("***"), "{shown}");
    assert!(!page.contains("s3cret"), "{shown}");
    run(&room, ["call", "fetch", &url, "--yes"]);
    assert_eq!(peer.requests().len(), 1);
}

#[test]
fn a_project_may_not_fetch_before_it_is_trusted() {
    let room = Sandbox::new();
    room.file("tools.yaml", ENTRIES);
    let refused = room.toolhost(["call", "public", "url=https://example.com/", "--yes"]).check();
    refused.exits(6).says(&["the address given in the call"]);
    // The others reach nothing, and need no trust.
    let swapped = ["call", "swap", "pattern=a", "text=cat", "replacement=u"];
    assert!(room.toolhost(swapped).check().exits(0).out().contains("cut"));
}

#[test]
fn json_is_compared_and_text_searched() {
    let room = Sandbox::new();
    room.file("tools.yaml", ENTRIES).file("a.json", "{\"a\":[1,2]}").file("b.json", "{\"a\":[1]}");
    let words = ["call", "changes", "before_json=@a.json", "after_json=@b.json", "--json"];
    let changes = run(&room, words).exits(0).json();
    let removed = json!([{ "op": "remove", "path": "/a/1", "old": 2 }]);
    assert_eq!(changes["output"], json!({ "equal": false, "operations": removed }));
    let words = ["call", "find", "pattern=(?<n>[0-9]+)", "text=7 of 12", "--json"];
    let found = run(&room, words).exits(0).json();
    assert_eq!(found["output"]["matches"][1]["named"], json!({ "n": "12" }));
    run(&room, ["call", "find", "pattern=(", "text=x"]).exits(3).says(&["is not an expression"]);
}
