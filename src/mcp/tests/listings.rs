//! Tests of lists that are too long, too large, or partly invalid.

use std::time::Duration;

use serde_json::{Value, json};

use super::peer::FakeServer;
use super::{connected, connected_legacy, options};
use crate::mcp::listing;
use crate::model::{Error, ErrorKind, ToolListing};

/// Lists the tools while `pages` makes up the answer to each request.
async fn list(mut pages: impl FnMut(&Value) -> String) -> (Result<ToolListing, Error>, usize) {
    let (connection, mut peer) = connected().await;
    let mut requests = 0;
    let listed = tokio::select! {
        listed = listing::tools(&connection, Duration::from_secs(10)) => listed,
        () = serve(&mut peer, &mut requests, &mut pages) => unreachable!("it serves for ever"),
    };
    (listed, requests)
}

async fn serve(
    peer: &mut FakeServer,
    requests: &mut usize,
    pages: &mut impl FnMut(&Value) -> String,
) {
    loop {
        let request = peer.expect("tools/list").await;
        *requests += 1;
        let (id, page) = (&request["id"], pages(&request["params"]["cursor"]));
        peer.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{page}}}"#));
    }
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

fn says(listing: &ToolListing, text: &str) -> bool {
    listing.diagnostics.iter().any(|problem| problem.message.contains(text))
}

#[tokio::test(start_paused = true)]
async fn large_pages_do_not_add_up() {
    let (listed, requests) = list(|cursor| {
        let n = cursor.as_str().map_or(0, |c| c.parse::<u32>().unwrap());
        let mut tool = tool(&format!("t{n}"));
        tool["description"] = json!("d".repeat(6 << 20));
        json!({ "tools": [tool], "nextCursor": (n + 1).to_string() }).to_string()
    })
    .await;
    let listing = listed.unwrap();
    assert!(listing.is_partial && says(&listing, "MiB"), "{:?}", listing.diagnostics);
    assert_eq!((listing.tools.len(), requests), (5, 6));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_declares_other_things_is_not_asked_for_tools() {
    for other in ["resources", "prompts"] {
        let (connection, _peer) = connected_legacy(options(), &json!({ (other): {} })).await;
        // Nobody answers: a request would time out.
        let listing = listing::tools(&connection, Duration::from_secs(10)).await.unwrap();
        assert!(listing.tools.is_empty() && !listing.is_partial, "{:?}", listing.diagnostics);
    }
}

#[tokio::test(start_paused = true)]
async fn millions_of_items_that_are_no_tools_cost_little() {
    let page = format!(r#"{{"tools":[{}0]}}"#, "0,".repeat(2_000_000));
    let listing = list(|_| page.clone()).await.0.unwrap();
    assert!(listing.tools.is_empty() && listing.is_partial);
    assert!(listing.diagnostics.len() < 200, "{} problems", listing.diagnostics.len());
    assert!(says(&listing, "more findings"));
}

#[tokio::test(start_paused = true)]
async fn a_definition_of_too_many_values_costs_itself() {
    let bomb = "0,".repeat(600_000);
    let page = format!(
        r#"{{"tools":[{},{{"name":"bomb","inputSchema":{{"enum":[{bomb}0]}}}}]}}"#,
        tool("good")
    );
    let listing = list(|_| page.clone()).await.0.unwrap();
    assert_eq!(listing.tools.len(), 1);
    assert!(listing.is_partial && says(&listing, "bomb"), "{:?}", listing.diagnostics);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_repeats_is_followed_once() {
    let (listed, requests) =
        list(|_| json!({ "tools": [tool("t")], "nextCursor": "again" }).to_string()).await;
    let listing = listed.unwrap();
    assert_eq!((listing.tools.len(), requests), (1, 2));
    assert!(listing.is_partial);
}

#[tokio::test(start_paused = true)]
async fn cursors_that_never_end_are_followed_to_the_limit() {
    let mut n = 0;
    let (listed, requests) = list(|_| {
        n += 1;
        json!({ "tools": [tool(&format!("t{n}"))], "nextCursor": n.to_string() }).to_string()
    })
    .await;
    assert_eq!((listed.unwrap().tools.len(), requests), (100, 100));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_none_fails_as_a_whole() {
    for page in [r#"{"tools":"echo"}"#, r#"{"tools":{}}"#, "{}", "null", "[]"] {
        let error = list(|_| page.to_owned()).await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{page}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_in_the_middle_keeps_what_it_gave() {
    let (connection, mut peer) = connected().await;
    let (listed, ()) = tokio::join!(listing::tools(&connection, Duration::from_secs(10)), async {
        let request = peer.expect("tools/list").await;
        peer.answer(&request, &json!({ "tools": [tool("a")], "nextCursor": "b" }));
        peer.expect("tools/list").await;
        peer.close("the process exited with 1");
    });
    let listing = listed.unwrap();
    assert_eq!(listing.tools.len(), 1);
    assert!(listing.is_partial && says(&listing, "exited with 1"));
}
