//! Tests of prompts, resources, completion and log levels, in both eras.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use super::peer::FakeServer;
use super::{connected, limits, open, options};
use crate::mcp::connection::Connection;
use crate::mcp::{listing, offering_requests};
use crate::model::{
    CompletionQuery, CompletionReference, Era, Error, ErrorKind, JsonObject, OfferingListing,
    Prompt, QuestionReply, Resource, ResourceTemplate,
};

async fn of(era: Era) -> (Connection, FakeServer) {
    let capabilities = json!({ "prompts": {}, "resources": { "subscribe": true },
        "completions": {}, "logging": {} });
    let (opened, peer) = open(options(), async |peer| {
        let request = peer.expect("server/discover").await;
        if era == Era::Modern {
            let versions = [super::MODERN];
            let result = json!({ "supportedVersions": versions, "capabilities": capabilities });
            return peer.answer(&request, &result);
        }
        peer.refuse(&request);
        let request = peer.expect("initialize").await;
        let info = json!({ "name": "x" });
        peer.answer(
            &request,
            &json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
                "serverInfo": info }),
        );
        peer.expect("notifications/initialized").await;
    })
    .await;
    (opened.unwrap(), peer)
}

const TEN: Duration = Duration::from_secs(10);

/// Does something while `server` answers one request.
async fn answered<T>(
    work: impl Future<Output = T>,
    peer: &mut FakeServer,
    method: &str,
    result: &Value,
) -> (T, Value) {
    tokio::join!(work, async {
        let request = peer.expect(method).await;
        peer.answer(&request, result);
        request["params"].clone()
    })
}

#[tokio::test(start_paused = true)]
async fn prompts_come_page_by_page_and_a_bad_one_costs_itself() {
    for era in [Era::Legacy, Era::Modern] {
        let (connection, mut peer) = of(era).await;
        let listed = listing::all::<Prompt>(&connection, TEN);
        let (listed, ()) = tokio::join!(listed, async {
            let request = peer.expect("prompts/list").await;
            let first = json!([{ "name": "a" }, { "title": "no name" }, 7]);
            peer.answer(&request, &json!({ "prompts": first, "nextCursor": "", "ttlMs": 9 }));
            let request = peer.expect("prompts/list").await;
            assert_eq!(request["params"]["cursor"], "");
            let second = json!([{ "name": "b" }, { "name": "a" }]);
            peer.answer(&request, &json!({ "prompts": second }));
        });
        let OfferingListing { items, diagnostics, is_partial, freshness, .. } = listed.unwrap();
        let names: Vec<String> = items.iter().map(|prompt| prompt.name.full()).collect();
        assert_eq!(names, ["srv-a", "srv-b"]);
        assert_eq!((diagnostics.len(), is_partial, freshness.ttl_ms), (2, true, Some(9)));
        assert!(
            connection.protocol_warnings()[0].contains("prompt \"a\" twice"),
            "{:?}",
            connection.protocol_warnings()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn lists_that_are_not_declared_are_empty_and_not_asked_for() {
    let (connection, mut peer) = connected().await;
    assert!(listing::all::<Prompt>(&connection, TEN).await.unwrap().items.is_empty());
    assert!(listing::all::<Resource>(&connection, TEN).await.unwrap().items.is_empty());
    assert!(peer.rest().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_with_resources_may_not_know_templates() {
    let (connection, mut peer) = of(Era::Legacy).await;
    let refuse = async |peer: &mut FakeServer, method: &str| {
        let request = peer.expect(method).await;
        peer.refuse(&request);
    };
    let (templates, ()) = tokio::join!(
        listing::all::<ResourceTemplate>(&connection, TEN),
        refuse(&mut peer, "resources/templates/list")
    );
    assert!(templates.unwrap().items.is_empty());
    let (resources, ()) = tokio::join!(
        listing::all::<Resource>(&connection, TEN),
        refuse(&mut peer, "resources/list")
    );
    assert_eq!(resources.unwrap_err().kind(), ErrorKind::Tool);
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_read_whole() {
    let (connection, mut peer) = of(Era::Modern).await;
    let answer = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "public", "contents":
        [{ "uri": "a:1", "text": "t" }, { "uri": "a:1/b", "blob": "AAAA", "x": 1 }] });
    let options = limits();
    let work = offering_requests::read(&connection, "a:1", &options);
    let (read, params) = answered(work, &mut peer, "resources/read", &answer).await;
    let read = read.unwrap();
    assert_eq!(params["uri"], "a:1");
    assert_eq!(read.contents[1]["x"], 1);
    assert_eq!(read.freshness.scope.as_deref(), Some("public"));
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_none_say_why() {
    let (connection, mut peer) = of(Era::Modern).await;
    let options = limits();
    for (answer, expected) in [
        (json!([]), "not an object"),
        (json!({}), "no contents"),
        (json!({ "contents": "x" }), "not an array"),
        (json!({ "contents": [{ "text": "x" }] }), "no uri"),
        (json!({ "contents": [{ "uri": "a:1" }] }), "neither text nor blob"),
        (json!({ "contents": [{ "uri": "a:1", "blob": 5 }] }), "not a string"),
        (json!({ "contents": [], "resultType": "perhaps" }), "unknown resultType"),
    ] {
        let work = offering_requests::read(&connection, "a:1", &options);
        let (read, _) = answered(work, &mut peer, "resources/read", &answer).await;
        let error = read.unwrap_err();
        assert_eq!((error.kind(), error.server()), (ErrorKind::Protocol, Some("srv")));
        assert!(error.message().contains(expected), "{}", error.message());
    }
    for (answer, expected) in [
        (json!({ "messages": {} }), "not an array"),
        (json!({ "messages": [{ "content": { "type": "text", "text": "x" } }] }), "no role"),
        (json!({ "messages": [{ "role": "user", "content": "x" }] }), "not an object"),
        (json!({ "messages": [{ "role": "user", "content": { "type": "odour" } }] }), "odour"),
    ] {
        let arguments = JsonObject::new();
        let work = offering_requests::prompt(&connection, "p", &arguments, &options);
        let (filled, _) = answered(work, &mut peer, "prompts/get", &answer).await;
        let error = filled.unwrap_err();
        assert!(error.message().contains(expected), "{}", error.message());
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_gets_its_arguments_and_a_completion_what_is_known() {
    let (connection, mut peer) = of(Era::Legacy).await;
    let options = limits();
    let arguments = JsonObject::from_iter([("who".to_owned(), json!("Ada"))]);
    let text = json!({ "type": "text", "text": "Hello" });
    let answer = json!({ "messages": [{ "role": "user", "content": text }], "description": "d" });
    let work = offering_requests::prompt(&connection, "greet", &arguments, &options);
    let (filled, params) = answered(work, &mut peer, "prompts/get", &answer).await;
    assert_eq!(params["arguments"], json!({ "who": "Ada" }));
    assert_eq!(filled.unwrap().description.as_deref(), Some("d"));

    let query = CompletionQuery {
        reference: CompletionReference::Template("a:{x}/{y}".to_owned()),
        argument: "y".to_owned(),
        value: "b".to_owned(),
        context: BTreeMap::from([("x".to_owned(), "1".to_owned())]),
    };
    let answer = json!({ "completion": { "values": ["b1", "b2"], "total": 9, "hasMore": true } });
    let work = offering_requests::complete(&connection, &query, &options);
    let (completion, params) = answered(work, &mut peer, "completion/complete", &answer).await;
    assert_eq!(params["ref"], json!({ "type": "ref/resource", "uri": "a:{x}/{y}" }));
    assert_eq!(params["argument"], json!({ "name": "y", "value": "b" }));
    assert_eq!(params["context"], json!({ "arguments": { "x": "1" } }));
    let completion = completion.unwrap();
    assert_eq!(
        (completion.values.len(), completion.total, completion.has_more),
        (2, Some(9), Some(true))
    );
    for answer in [json!({}), json!({ "completion": { "values": [1] } })] {
        let work = offering_requests::complete(&connection, &query, &options);
        let (completion, _) = answered(work, &mut peer, "completion/complete", &answer).await;
        assert_eq!(completion.unwrap_err().kind(), ErrorKind::Protocol);
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_level_is_set_in_the_legacy_era_only() {
    let options = limits();
    let (connection, mut peer) = of(Era::Legacy).await;
    let work = offering_requests::set_level(&connection, "debug", &options);
    let (set, params) = answered(work, &mut peer, "logging/setLevel", &json!({})).await;
    set.unwrap();
    assert_eq!(params["level"], "debug");
    let (connection, mut peer) = of(Era::Modern).await;
    offering_requests::set_level(&connection, "debug", &options).await.unwrap();
    assert!(peer.rest().is_empty());
}

mod subscriptions {
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::mcp::subscription::{Subscription, SubscriptionEnd};
    use crate::model::{ListKind, SubscriptionEvent, SubscriptionFilter};

    fn word(change: &SubscriptionEvent) -> String {
        match change {
            SubscriptionEvent::Subscribed { refused } if refused.is_empty() => {
                "listening".to_owned()
            }
            SubscriptionEvent::Subscribed { refused } => format!("without {}", refused.join(" ")),
            SubscriptionEvent::ListChanged(list) => list.as_str().to_owned(),
            SubscriptionEvent::ResourceUpdated { uri, times } => format!("{uri} {times}"),
            SubscriptionEvent::Interrupted(error) | SubscriptionEvent::Failed(error) => {
                error.to_string()
            }
        }
    }

    /// Follows one subscription while `server` plays the other side; `stop` after so many changes.
    async fn follow(
        connection: &Connection,
        filter: &SubscriptionFilter,
        stop_after: usize,
        server: impl Future<Output = ()>,
    ) -> (SubscriptionEnd, Vec<String>) {
        let (changes, mut receiver) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let subscription = Subscription {
            connection,
            filter,
            ack_timeout: TEN,
            changes: &changes,
            acknowledged: &OnceLock::new(),
            cancel: &cancel,
        };
        let mut lines = Vec::new();
        let watching = async {
            while let Some(change) = receiver.recv().await {
                lines.push(word(&change));
                if lines.len() == stop_after {
                    cancel.cancel();
                }
            }
        };
        let ended = tokio::select! {
            (ended, ()) = async { tokio::join!(subscription.run(), server) } => ended,
            () = watching => unreachable!("the sender is kept"),
        };
        // What was told last may still be on its way.
        lines.extend(receiver.try_recv().iter().map(word));
        (ended, lines)
    }

    fn subscription_filter(lists: &[ListKind], uris: &[&str]) -> SubscriptionFilter {
        SubscriptionFilter {
            lists: lists.to_vec(),
            uris: uris.iter().map(|uri| (*uri).to_owned()).collect(),
        }
    }

    fn notify(peer: &FakeServer, method: &str, id: &Value, mut params: Value) {
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
        let method = format!("notifications/{method}");
        peer.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn acknowledge(peer: &FakeServer, id: &Value, filter: &Value) {
        notify(peer, "subscriptions/acknowledged", id, json!({ "notifications": filter }));
    }

    #[tokio::test(start_paused = true)]
    async fn what_belongs_to_the_subscription_is_told_and_nothing_else() {
        let (connection, mut peer) = of(Era::Modern).await;
        let subscription = subscription_filter(&[ListKind::Prompts], &["a:1", "a:2"]);
        let (ended, lines) = follow(&connection, &subscription, 4, async {
            let request = peer.expect("subscriptions/listen").await;
            let filter = &request["params"]["notifications"];
            let both =
                json!({ "promptsListChanged": true, "resourceSubscriptions": ["a:1", "a:2"] });
            assert_eq!(*filter, both);
            let id = &request["id"];
            notify(&peer, "resources/updated", id, json!({ "uri": "a:1" }));
            let accepted = json!({ "promptsListChanged": true, "resourceSubscriptions": ["a:1"] });
            acknowledge(&peer, id, &accepted);
            notify(&peer, "resources/updated", &json!(999), json!({ "uri": "a:1" }));
            notify(&peer, "tools/list_changed", id, json!({}));
            notify(&peer, "prompts/list_changed", id, json!({}));
            for _ in 0..3 {
                notify(&peer, "resources/updated", &json!(id.to_string()), json!({ "uri": "a:1" }));
            }
            notify(&peer, "resources/updated", id, json!({ "uri": "a:2" }));
            let cancelled = peer.expect("notifications/cancelled").await;
            assert_eq!(cancelled["params"]["requestId"], *id);
        })
        .await;
        assert!(matches!(ended, SubscriptionEnd::Cancelled), "{ended:?}");
        assert_eq!(lines[..3], ["without a:2", "prompts", "a:1 3"]);
        let warnings = connection.protocol_warnings().join("\n");
        assert!(
            warnings.contains("before it acknowledged") && warnings.contains("unrequested"),
            "{warnings}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_a_graceful_end_and_a_broken_stream_is_none() {
        let (connection, mut peer) = of(Era::Modern).await;
        let subscription = subscription_filter(&[], &["a:1"]);
        let accepted = json!({ "resourceSubscriptions": ["a:1"] });
        let (ended, lines) = follow(&connection, &subscription, 99, async {
            let request = peer.expect("subscriptions/listen").await;
            acknowledge(&peer, &request["id"], &accepted);
            notify(&peer, "resources/updated", &request["id"], json!({ "uri": "a:1" }));
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": request["id"] });
            peer.answer(&request, &json!({ "resultType": "complete", "_meta": meta }));
        })
        .await;
        assert!(matches!(ended, SubscriptionEnd::Gracefully), "{ended:?}");
        assert_eq!(lines, ["listening", "a:1 1"]);
        assert!(connection.protocol_warnings().is_empty(), "{:?}", connection.protocol_warnings());
        let (ended, _) = follow(&connection, &subscription, 99, async {
            let request = peer.expect("subscriptions/listen").await;
            acknowledge(&peer, &request["id"], &accepted);
            peer.close("the process exited with 1");
        })
        .await;
        let SubscriptionEnd::Broken(error) = ended else { panic!("{ended:?}") };
        assert_eq!(error.message(), "the process exited with 1");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_agree_is_told_from_who_refuses() {
        let (connection, mut peer) = of(Era::Modern).await;
        let subscription = subscription_filter(&[], &["a:1"]);
        let kind = |ended: SubscriptionEnd| match ended {
            SubscriptionEnd::Refused(error) => (true, error.kind()),
            SubscriptionEnd::Broken(error) => (false, error.kind()),
            other => panic!("{other:?}"),
        };
        let (ended, _) = follow(&connection, &subscription, 99, async {
            let request = peer.expect("subscriptions/listen").await;
            peer.refuse(&request);
        })
        .await;
        assert_eq!(kind(ended), (true, ErrorKind::Tool));
        let (ended, _) = follow(&connection, &subscription, 99, async {
            let request = peer.expect("subscriptions/listen").await;
            acknowledge(&peer, &request["id"], &json!({}));
            peer.expect("notifications/cancelled").await;
        })
        .await;
        assert_eq!(kind(ended), (true, ErrorKind::Tool));
        let (ended, _) = follow(&connection, &subscription, 99, async {
            let request = peer.expect("subscriptions/listen").await;
            peer.answer(&request, &json!({}));
        })
        .await;
        assert_eq!(kind(ended), (false, ErrorKind::Protocol));
        let (ended, _) = follow(&connection, &subscription, 99, async {
            peer.expect("subscriptions/listen").await;
            peer.expect("notifications/cancelled").await;
        })
        .await;
        assert_eq!(kind(ended), (false, ErrorKind::Timeout));
    }

    #[tokio::test(start_paused = true)]
    async fn the_legacy_era_subscribes_to_each_and_takes_it_back() {
        let (connection, mut peer) = of(Era::Legacy).await;
        let subscription = subscription_filter(&[ListKind::Resources], &["a:1", "a:2"]);
        let (ended, lines) = follow(&connection, &subscription, 3, async {
            let request = peer.expect("resources/subscribe").await;
            assert_eq!(request["params"]["uri"], "a:1");
            peer.answer(&request, &json!({}));
            let request = peer.expect("resources/subscribe").await;
            peer.refuse(&request);
            let say = |method: &str, params: Value| {
                peer.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
            };
            say("notifications/tools/list_changed", json!({}));
            say("notifications/resources/list_changed", json!({}));
            say("notifications/resources/updated", json!({ "uri": "a:1/part" }));
            let request = peer.expect("resources/unsubscribe").await;
            assert_eq!(request["params"]["uri"], "a:1");
            peer.answer(&request, &json!({}));
        })
        .await;
        assert!(matches!(ended, SubscriptionEnd::Cancelled), "{ended:?}");
        assert_eq!(lines[..2], ["without a:2", "resources"]);
        assert!(peer.rest().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_legacy_server_that_refuses_every_address_refuses() {
        let (connection, mut peer) = of(Era::Legacy).await;
        let (ended, lines) = follow(&connection, &subscription_filter(&[], &["a:1"]), 9, async {
            let request = peer.expect("resources/subscribe").await;
            peer.refuse(&request);
        })
        .await;
        assert!(matches!(ended, SubscriptionEnd::Refused(_)), "{ended:?}");
        assert!(lines.is_empty());
        let error: Option<Error> = connection.close_reason();
        assert!(error.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_may_ask_before_it_fills_in_or_lets_read() {
    let options =
        super::questions::with_fixed_reply(QuestionReply::Accept(json!({ "name": "Ada" })));
    let (connection, mut peer) = super::connected_with(options).await;
    let limits = limits();
    let form =
        json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
    let ask = json!({ "resultType": "input_required", "requestState": "s",
        "inputRequests": { "who": { "method": "elicitation/create", "params": form } } });
    let answers = json!({ "who": { "action": "accept", "content": { "name": "Ada" } } });

    let arguments = JsonObject::new();
    let filled = offering_requests::prompt(&connection, "greet", &arguments, &limits);
    let (filled, ()) = tokio::join!(filled, async {
        let first = peer.expect("prompts/get").await;
        peer.answer(&first, &ask);
        let second = peer.expect("prompts/get").await;
        assert_eq!(second["params"]["inputResponses"], answers);
        assert_eq!(second["params"]["requestState"], "s");
        peer.answer(&second, &json!({ "messages": [] }));
    });
    assert_eq!(filled.unwrap().messages, Vec::<Value>::new());

    let read = offering_requests::read(&connection, "file:///a", &limits);
    let (read, ()) = tokio::join!(read, async {
        let first = peer.expect("resources/read").await;
        peer.answer(&first, &ask);
        let second = peer.expect("resources/read").await;
        assert_eq!(second["params"]["inputResponses"], answers);
        let contents = json!([{ "uri": "file:///a", "text": "hello" }]);
        peer.answer(&second, &json!({ "contents": contents }));
    });
    assert_eq!(read.unwrap().contents.len(), 1);
}
