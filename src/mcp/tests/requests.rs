//! Tests of requests, and of everything that can come instead of an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::peer::{FakeServer, refusal};
use super::{connected, limits};
use crate::mcp::connection::{Connection, RequestOptions};
use crate::mcp::message::RawJson;
use crate::model::{Error, ErrorCause, ErrorKind, Signal};

/// Sends a request while `server` plays the other side.
async fn ask(
    connection: &Connection,
    options: &RequestOptions,
    server: impl Future<Output = ()>,
) -> Result<RawJson, Error> {
    tokio::join!(connection.request("tools/call", json!({ "name": "t" }), options), server).0
}

async fn call(peer: &mut FakeServer) -> Value {
    peer.expect("tools/call").await
}

#[tokio::test(start_paused = true)]
async fn silence_ends_at_the_idle_limit_and_the_server_is_told() {
    let (connection, mut peer) = connected().await;
    let start = Instant::now();
    let answer = ask(&connection, &limits(), async {
        let request = call(&mut peer).await;
        let cancellation = peer.expect("notifications/cancelled").await;
        assert_eq!(cancellation["params"]["requestId"], request["id"]);
    })
    .await;
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn progress_puts_the_idle_limit_off_but_never_the_total() {
    let (connection, mut peer) = connected().await;
    let reports = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reports);
    let listener = move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    };
    let options = RequestOptions { progress: Some(Arc::new(listener)), ..limits() };
    let start = Instant::now();
    let answer = ask(&connection, &options, async {
        let request = call(&mut peer).await;
        let token = &request["params"]["_meta"]["progressToken"];
        assert!(!token.is_null(), "{request}");
        // Another request's token, and nonsense, are no signs of life of this request.
        for n in 0..30 {
            for token in [token, &json!(987_654), &json!(null)] {
                let params = json!({ "progressToken": token, "progress": n });
                let method = "notifications/progress";
                peer.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
            }
            sleep(Duration::from_secs(7)).await;
        }
    })
    .await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("60 s in total"), "{}", error.message());
    assert!(start.elapsed() >= Duration::from_mins(1));
    assert_eq!(reports.load(Ordering::SeqCst), 9);
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_an_unknown_id_ends_the_wait_soon_and_is_named() {
    let (connection, mut peer) = connected().await;
    let start = Instant::now();
    let answer = ask(&connection, &limits(), async {
        call(&mut peer).await;
        peer.send(&json!({ "jsonrpc": "2.0", "id": "Z".repeat(1 << 20), "result": {} }));
        peer.expect("notifications/cancelled").await;
    })
    .await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.message().contains("unknown id"), "{}", error.message());
    assert!(error.message().len() < 1000, "{} bytes are quoted", error.message().len());
    assert!(connection.protocol_warnings().iter().all(|doubt| doubt.len() < 1000));
    assert_eq!(start.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_right_answer_may_follow_a_wrong_one() {
    let (connection, mut peer) = connected().await;
    let answer = ask(&connection, &limits(), async {
        let request = call(&mut peer).await;
        peer.send(&refusal(&json!(null)));
        sleep(Duration::from_secs(1)).await;
        peer.answer(&request, &json!(1));
    })
    .await;
    assert_eq!(answer.unwrap().get(), "1");
}

#[tokio::test(start_paused = true)]
async fn a_second_answer_does_not_disturb_the_next_request() {
    let (connection, mut peer) = connected().await;
    let options = limits();
    let mut first = Value::Null;
    let answer = ask(&connection, &options, async {
        first = call(&mut peer).await;
        peer.answer(&first, &json!(1));
    })
    .await;
    assert_eq!(answer.unwrap().get(), "1");
    let answer = ask(&connection, &options, async {
        let second = call(&mut peer).await;
        peer.answer(&first, &json!("once more"));
        sleep(Duration::from_secs(8)).await;
        peer.answer(&second, &json!(2));
    })
    .await;
    assert_eq!(answer.unwrap().get(), "2");
    assert_eq!(
        connection.protocol_warnings(),
        ["a request got two responses; the first one counts"]
    );
}

#[tokio::test(start_paused = true)]
async fn of_two_answers_at_once_the_first_counts() {
    let (connection, mut peer) = connected().await;
    let answer = ask(&connection, &limits(), async {
        let request = call(&mut peer).await;
        peer.answer(&request, &json!(1));
        peer.answer(&request, &json!(2));
    })
    .await;
    assert_eq!(answer.unwrap().get(), "1");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_never_answers_another_request() {
    let (connection, mut peer) = connected().await;
    let options = limits();
    let mut first = Value::Null;
    let given_up = ask(&connection, &options, async { first = call(&mut peer).await }).await;
    assert_eq!(given_up.unwrap_err().kind(), ErrorKind::Timeout);
    peer.rest();
    let answer = ask(&connection, &options, async {
        let second = call(&mut peer).await;
        peer.answer(&first, &json!("late"));
        sleep(Duration::from_secs(8)).await;
        peer.answer(&second, &json!("own"));
    })
    .await;
    assert_eq!(answer.unwrap().get(), r#""own""#);
    assert!(
        connection.protocol_warnings()[0].contains("abandoned"),
        "{:?}",
        connection.protocol_warnings()
    );
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_wire_ends_every_wait_at_once() {
    let (connection, mut peer) = connected().await;
    let options = limits();
    let start = Instant::now();
    let (one, two, ()) = tokio::join!(
        connection.request("tools/call", json!({}), &options),
        connection.request("tools/list", json!({}), &options),
        async {
            peer.next().await;
            peer.next().await;
            peer.close("the process exited with 3");
        }
    );
    for error in [one.unwrap_err(), two.unwrap_err()] {
        assert_eq!(error.message(), "the process exited with 3");
    }
    let later = connection.request("ping", json!({}), &options).await.unwrap_err();
    assert_eq!(later.message(), "the process exited with 3");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(peer.rest().is_empty(), "a dead server is told nothing");
}

#[tokio::test(start_paused = true)]
async fn an_answer_followed_by_the_end_is_an_answer() {
    let (connection, mut peer) = connected().await;
    let answer = ask(&connection, &limits(), async {
        let request = call(&mut peer).await;
        peer.answer(&request, &json!("last words"));
        peer.close("the process exited with 0");
    })
    .await;
    assert_eq!(answer.unwrap().get(), r#""last words""#);
}

#[tokio::test(start_paused = true)]
async fn giving_up_is_told_to_the_server() {
    let (connection, mut peer) = connected().await;
    let options = limits();
    let cancel = options.cancel.clone();
    let answer = ask(&connection, &options, async {
        call(&mut peer).await;
        cancel.cancel();
        peer.expect("notifications/cancelled").await;
    })
    .await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted(Signal::Interrupt));
}

#[tokio::test(start_paused = true)]
async fn giving_up_waits_only_a_moment_for_a_server_that_does_not_read() {
    let (connection, mut peer) = connected().await;
    let options = limits();
    let cancel = options.cancel.clone();
    let start = Instant::now();
    let answer = ask(&connection, &options, async {
        call(&mut peer).await;
        peer.stop_reading();
        cancel.cancel();
    })
    .await;
    assert!(matches!(answer.unwrap_err().kind(), ErrorKind::Interrupted(_)));
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_leaves_nothing_behind() {
    let (connection, mut peer) = connected().await;
    let options = limits();
    let message = {
        let request = connection.request("tools/call", json!({}), &options);
        tokio::select! {
            _ = request => panic!("nobody answered"),
            message = call(&mut peer) => message,
        }
    };
    peer.answer(&message, &json!("to nobody"));
    let answer = ask(&connection, &options, async {
        let message = call(&mut peer).await;
        sleep(Duration::from_secs(8)).await;
        peer.answer(&message, &json!("own"));
    })
    .await;
    assert_eq!(answer.unwrap().get(), r#""own""#);
}

#[tokio::test(start_paused = true)]
async fn answers_find_their_requests_in_any_order() {
    let (connection, mut peer) = connected().await;
    let options = limits();
    let params = |n: usize| json!({ "name": "t", "arguments": { "n": n } });
    let requests = (0..8).map(|n| connection.request("tools/call", params(n), &options));
    let (answers, ()) = tokio::join!(futures_util::future::join_all(requests), async {
        let mut messages = Vec::new();
        for _ in 0..8 {
            messages.push(call(&mut peer).await);
        }
        for request in messages.iter().rev() {
            peer.answer(request, &request["params"]["arguments"]["n"]);
        }
    });
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap().get(), n.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_without_listening_costs_little() {
    let (connection, mut peer) = connected().await;
    peer.stop_reading();
    for n in 0..5_000 {
        peer.send(&json!({ "jsonrpc": "2.0", "id": n, "method": "ping" }));
    }
    // Every question is looked at before the first limit in this test can fire.
    sleep(Duration::from_millis(1)).await;
    assert!((1..=100).contains(&peer.waiting()), "{} answers are waiting", peer.waiting());
    assert!(connection.protocol_warnings().iter().any(|doubt| doubt.contains("too many")));
    connection.close().await;
    assert!(peer.is_closed());
    assert!(peer.rest().len() <= 100);
}

#[tokio::test(start_paused = true)]
async fn questions_with_odd_ids_are_noted() {
    let (connection, mut peer) = connected().await;
    peer.send(&json!({ "jsonrpc": "2.0", "id": { "a": 1 }, "method": "ping" }));
    peer.send(&json!({ "jsonrpc": "2.0", "id": "x".repeat(5000), "method": "ping" }));
    peer.send(&json!({ "jsonrpc": "2.0", "id": "fine", "method": "ping" }));
    let reply = peer.next().await;
    assert_eq!(reply["id"], "fine");
    assert_eq!(connection.protocol_warnings().len(), 2, "{:?}", connection.protocol_warnings());
    // An id may be used again once it is answered.
    peer.send(&json!({ "jsonrpc": "2.0", "id": "fine", "method": "ping" }));
    assert_eq!(peer.next().await["id"], "fine");
}

#[tokio::test(start_paused = true)]
async fn closing_twice_is_fine_and_ends_what_waits() {
    let (connection, mut peer) = connected().await;
    let options = limits();
    let answer = ask(&connection, &options, async {
        call(&mut peer).await;
        connection.close().await;
        connection.close().await;
    })
    .await;
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Unreachable);
    assert!(peer.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_line_that_breaks_the_protocol_ends_the_connection_and_says_why() {
    let (connection, mut peer) = connected().await;
    let answer = ask(&connection, &limits(), async {
        call(&mut peer).await;
        peer.line("{\"jsonrpc\":");
    })
    .await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.message().contains("spans lines"), "{}", error.message());
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_session_is_forgotten_is_over() {
    let (connection, mut peer) = connected().await;
    let answer = ask(&connection, &limits(), async {
        let request = call(&mut peer).await;
        let error = Error::unreachable("forgotten").with_cause(ErrorCause::SessionLost);
        peer.fail(&request, error);
    })
    .await;
    assert_eq!(answer.unwrap_err().message(), "forgotten");
    assert_eq!(connection.close_reason().unwrap().cause(), ErrorCause::SessionLost);
}
