//! Entries as people write them, against real sockets.

mod answers;
mod entries;
mod repeats;
mod requests;

use std::fmt::Write as _;

use serde_json::Value;

use crate::model::{Fault, FaultKind, ToolResult};
use crate::net::peer::{Heard, Peer, Reply};
use crate::providers::bench::Bench;

/// A bench with one tool `t`, whose keys are `keys`, one on each line; `URL` in them is `base`.
fn bench(base: &str, keys: &str) -> Bench {
    let mut yaml = "tools:\n  - name: t\n".to_owned();
    for line in keys.lines() {
        writeln!(yaml, "    {}", line.replace("URL", base)).unwrap();
    }
    Bench::prepared(&super::kind(), &yaml, |dir, environment| {
        std::fs::write(dir.join("token"), "from-a-file\n").unwrap();
        for (name, value) in [("API_TOKEN", "hunter2hunter2"), ("TEAM", "blue")] {
            environment.vars.insert(name.to_owned(), value.to_owned());
        }
    })
}

/// The same for a server, without problems.
#[track_caller]
fn tool(peer: &Peer, keys: &str) -> Bench {
    let bench = bench(peer.url("").as_str().trim_end_matches('/'), keys);
    assert!(bench.problems.is_empty(), "{:?}", bench.problems);
    bench
}

/// A server that says `{"ok":true}` to everything.
async fn agreeable() -> Peer {
    Peer::start(|_, _| Reply::json(r#"{"ok":true}"#)).await
}

/// What a call sent.
async fn sent(keys: &str, arguments: Value) -> Heard {
    let peer = agreeable().await;
    let bench = tool(&peer, keys);
    let result = bench.call("t", arguments).await.unwrap();
    assert!(result.success, "{result:?}");
    peer.heard().pop().unwrap()
}

/// What came of a GET that was answered by `reply`.
async fn answered(
    keys: &str,
    reply: impl Fn() -> Reply + Send + Sync + 'static,
) -> Result<ToolResult, Fault> {
    let peer = Peer::start(move |_, _| reply()).await;
    tool(&peer, &format!("endpoint_url: URL/x\n{keys}")).call("t", serde_json::json!({})).await
}

#[track_caller]
fn failed(outcome: Result<ToolResult, Fault>, kind: FaultKind, part: &str) -> Fault {
    let fault = match outcome {
        Err(fault) => fault,
        Ok(result) => {
            assert!(!result.success, "{result:?}");
            result.fault.unwrap()
        }
    };
    assert_eq!(fault.kind(), kind, "{fault:?}");
    let text = format!("{} {:?} {:?}", fault.message(), fault.detail_lines(), fault.hint_text());
    assert!(text.contains(part), "'{part}' is not in: {text}");
    fault
}
