//! Tests of conversations with a replay.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::model::traffic::{Direction, MessageInfo, TrafficKind};
use crate::model::{CallId, Traffic};

/// A recorded message: `>` was sent by the client, `<` by the server.
fn item(line: &str) -> Traffic {
    let (way, text) = line.split_at(1);
    let value: Value = serde_json::from_str(text).unwrap();
    let id = value.get("id").cloned();
    let method = value.get("method").and_then(Value::as_str).map(str::to_owned);
    let info = match (id, method) {
        (Some(id), Some(method)) => MessageInfo::Request { id, method },
        (None, Some(method)) => MessageInfo::Notification { method },
        (id, None) => {
            MessageInfo::Response { id: id.unwrap_or_default(), method: None, is_error: false }
        }
    };
    Traffic {
        server: "a".to_owned(),
        sequence: 1,
        at: Duration::ZERO,
        call: None::<CallId>,
        kind: TrafficKind::Message {
            direction: if way == ">" { Direction::Sent } else { Direction::Received },
            bytes: Bytes::copy_from_slice(text.as_bytes()),
            info,
            latency: None,
        },
    }
}

fn recording(lines: &[&str]) -> ServerRecording {
    let items: Vec<Traffic> = lines.iter().map(|line| item(line)).collect();
    ServerRecording::for_server(&items, None).unwrap()
}

/// Everything a replay says to a client that says `lines` and leaves.
async fn replay(recording: ServerRecording, strict: bool, lines: &[&str]) -> Vec<Value> {
    let (mut client, input) = tokio::io::duplex(1 << 20);
    let (output, mut answers) = tokio::io::duplex(1 << 20);
    client.write_all((lines.join("\n") + "\n").as_bytes()).await.unwrap();
    drop(client);
    serve(recording, strict, input, output, &|_| {}).await.unwrap();
    let mut text = String::new();
    answers.read_to_string(&mut text).await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const RECORDED: [&str; 8] = [
    r#">{"id":0,"method":"initialize","params":{"clientInfo":{"name":"toolhost"}}}"#,
    r#"<{"id":0,"result":{"protocolVersion":"2025-11-25"}}"#,
    r#">{"id":1,"method":"tools/call","params":{"name":"roll","arguments":{"a":1,"b":2},"_meta":{"progressToken":7}}}"#,
    r#"<{"method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#,
    r#"<{"id":1,"result":{"n":1}}"#,
    r#"<{"method":"notifications/tools/list_changed"}"#,
    r#">{"id":2,"method":"tools/call","params":{"name":"roll","arguments":{"a":1,"b":2}}}"#,
    r#"<{"id":2,"result":{"n":2}}"#,
];

const ROLL: &str = r#""method":"tools/call","params":{"arguments":{"b":2,"a":1},"name":"roll""#;

#[tokio::test]
async fn requests_are_answered_as_they_were_with_the_clients_ids_and_tokens() {
    let roll = |id: &str, meta: &str| format!(r#"{{"id":{id},{ROLL}{meta}}}}}"#);
    let messages = replay(
        recording(&RECORDED),
        false,
        &[
            r#"{"id":"x","method":"initialize","params":{"clientInfo":{"name":"somebody"}}}"#,
            r#"{"method":"notifications/initialized"}"#,
            &roll("5", r#","_meta":{"progressToken":"mine"}"#),
            &roll("6", ""),
            &roll("7", ""),
            r#"{"id":8,"method":"ping"}"#,
        ],
    )
    .await;
    let progress = json!({ "progressToken": "mine", "progress": 1 });
    assert_eq!(
        messages,
        [
            json!({ "id": "x", "result": { "protocolVersion": "2025-11-25" } }),
            json!({ "method": "notifications/progress", "params": progress }),
            json!({ "id": 5, "result": { "n": 1 } }),
            json!({ "method": "notifications/tools/list_changed" }),
            json!({ "id": 6, "result": { "n": 2 } }),
            json!({ "id": 7, "result": { "n": 2 } }),
            json!({ "jsonrpc": "2.0", "id": 8, "result": {} }),
        ]
    );
}

#[tokio::test]
async fn what_was_not_recorded_is_an_error_that_says_what_was() {
    let answers = replay(
        recording(&RECORDED),
        false,
        &[
            r#"{"id":1,"method":"server/discover"}"#,
            r#"{"id":2,"method":"tools/call","params":{"name":"other"}}"#,
            "{ rubbish",
            "[]",
        ],
    )
    .await;
    let codes: Vec<&Value> = answers.iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [-32601, -32603, -32700, -32600]);
    let text = answers[1]["error"]["message"].as_str().unwrap();
    assert!(text.contains("roll") && text.contains("initialize"), "{text}");
}

#[tokio::test]
async fn a_strict_replay_wants_the_recorded_order() {
    let roll = format!(r#"{{"id":2,{ROLL}}}}}"#);
    let init = r#"{"id":1,"method":"initialize"}"#;
    let answers = replay(recording(&RECORDED), true, &[&roll, init, &roll, &roll, &roll]).await;
    let text = |at: usize| answers[at]["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(text(0), "request 1 of the recording is initialize");
    assert_eq!(answers[1]["result"]["protocolVersion"], "2025-11-25");
    // Without a token there is no progress to send.
    assert_eq!(answers[2]["result"]["n"], 1);
    assert_eq!(answers[4]["result"]["n"], 2);
    assert_eq!(text(5), "the recording ends after 3 requests");
}

#[tokio::test]
async fn a_recorded_question_is_put_again_and_its_answer_waited_for() {
    let recording = recording(&[
        r#">{"id":1,"method":"tools/call","params":{"name":"ask"}}"#,
        r#"<{"id":"q","method":"elicitation/create","params":{"message":"name?"}}"#,
        r#">{"id":"q","result":{"action":"decline"}}"#,
        r#"<{"id":1,"result":{"ok":true}}"#,
    ]);
    let messages = replay(
        recording,
        false,
        &[
            r#"{"id":1,"method":"tools/call","params":{"name":"ask"}}"#,
            r#"{"id":2,"method":"ping"}"#,
            r#"{"id":"replay-1","result":{"action":"cancel"}}"#,
        ],
    )
    .await;
    let ids: Vec<&Value> = messages.iter().map(|message| &message["id"]).collect();
    assert_eq!(ids, [&json!("replay-1"), &json!(1), &json!(2)]);
    assert_eq!(messages[0]["params"]["message"], "name?");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_answers_a_question_gets_the_rest_all_the_same() {
    let recording = recording(&[
        r#">{"id":1,"method":"tools/call"}"#,
        r#"<{"id":"q","method":"sampling/createMessage"}"#,
        r#"<{"id":1,"result":{}}"#,
    ]);
    let (mut client, input) = tokio::io::duplex(1 << 20);
    let (output, answers) = tokio::io::duplex(1 << 20);
    let notes = Mutex::new(Vec::new());
    let note = |text: &str| notes.lock().unwrap().push(text.to_owned());
    let served = serve(recording, false, input, output, &note);
    let client_side = async {
        client.write_all(b"{\"id\":1,\"method\":\"tools/call\"}\n").await.unwrap();
        let mut lines = tokio::io::BufReader::new(answers);
        for expected in ["sampling", "result"] {
            let mut line = String::new();
            tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut line).await.unwrap();
            assert!(line.contains(expected), "{line}");
        }
        drop(client);
    };
    let (served, ()) = tokio::join!(served, client_side);
    served.unwrap();
    assert_eq!(notes.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_was_never_answered_is_an_error_and_a_subscription_stays_open() {
    let recording = recording(&[
        r#">{"id":1,"method":"tools/call"}"#,
        r#">{"id":2,"method":"subscriptions/listen"}"#,
        r#"<{"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#,
    ]);
    let lines =
        [r#"{"id":8,"method":"tools/call"}"#, r#"{"id":9,"method":"subscriptions/listen"}"#];
    let messages = replay(recording, false, &lines).await;
    assert_eq!(messages[0]["error"]["code"], -32603);
    assert_eq!(messages[1]["params"]["_meta"][SUBSCRIPTION], 9);
    assert_eq!(messages.len(), 2);
}

#[test]
fn it_must_be_clear_which_server_is_meant() {
    let mut other = item(RECORDED[0]);
    other.server = "b".to_owned();
    let items = [item(RECORDED[0]), other];
    assert!(
        ServerRecording::for_server(&items, None).is_err()
            && ServerRecording::for_server(&items, Some("c")).is_err()
    );
    assert_eq!(ServerRecording::for_server(&items, Some("b")).unwrap().len(), 1);
    assert!(ServerRecording::for_server(&[], None).is_err());
}
