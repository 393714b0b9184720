//! Connections of clients that ask, wait, say half of something, or do not read.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::Response;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;

const ASK: &[u8] = b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n";
const LISTEN: &[u8] = b"GET /open HTTP/1.1\r\nHost: x\r\n\r\n";

struct Served {
    client: DuplexStream,
    asked: Arc<AtomicUsize>,
    events: mpsc::Sender<Bytes>,
    connection: JoinHandle<()>,
    stop: CancellationToken,
}

/// A connection that holds `buffer` bytes that were not read. `/echo` is answered with the number of
/// the request, `/large` with a megabyte, `/open` with the events, and `/refuse` without reading.
fn served(buffer: usize) -> Served {
    let (client, server) = tokio::io::duplex(buffer);
    let (requests, stop) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
    let (events, queue) = mpsc::channel(1);
    let (queue, counted) = (Arc::new(std::sync::Mutex::new(Some(queue))), Arc::clone(&requests));
    let answer = move |request: Request<RequestBody>| {
        let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
        let queue = Arc::clone(&queue);
        async move {
            let text = |text: String| Response::new(Full::from(text).boxed());
            match request.uri().path() {
                "/refuse" => text("refused".into()),
                "/large" => text("x".repeat(1 << 20)),
                "/open" => {
                    let mut queue = queue.lock().unwrap().take().unwrap();
                    let events = stream::poll_fn(move |context| queue.poll_recv(context));
                    let frames = events.map(|event| Ok(Frame::data(event)));
                    let mut answer = Response::new(BodyExt::boxed(StreamBody::new(frames)));
                    answer.extensions_mut().insert(StaysOpen);
                    answer
                }
                _ => {
                    request.into_body().collect().await.unwrap();
                    text(format!("answer {number}"))
                }
            }
        }
        .boxed()
    };
    let until = stop.clone();
    let connection = tokio::spawn(async move { serve(server, Bytes::new(), answer, &until).await });
    Served { client, asked: requests, events, connection, stop }
}

impl Served {
    /// What the client reads until it read these words; all there is when the connection ends.
    async fn read_until(&mut self, expected: &str) -> String {
        let (mut text, mut space) = (String::new(), [0; 4_096]);
        while !text.contains(expected) {
            let count = self.client.read(&mut space).await.unwrap_or(0);
            if count == 0 {
                break;
            }
            text.push_str(&String::from_utf8_lossy(&space[..count]));
        }
        text
    }

    async fn closes_within(mut self, time: Duration) -> bool {
        tokio::time::timeout(time, &mut self.connection).await.is_ok()
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_answered_in_turn_however_long_the_client_waits_between_them() {
    let mut served = served(64 << 10);
    for (number, pause) in [(1, 0), (2, 10), (3, 150), (4, 30_000)] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        served.client.write_all(ASK).await.unwrap();
        let answer = served.read_until(&format!("answer {number}")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
    // One whose length is not known before its end.
    let pieces =
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
    served.client.write_all(pieces).await.unwrap();
    tokio::time::sleep(IDLE * 3).await;
    served.client.write_all(b"0\r\n\r\n").await.unwrap();
    served.read_until("answer 5").await;
    tokio::time::sleep(HEAD_TIMEOUT * 2).await;
    // Several at once, of which the last is in two parts around a moment of silence.
    served.client.write_all(&[ASK, ASK, &ASK[..9]].concat()).await.unwrap();
    served.read_until("answer 7").await;
    tokio::time::sleep(IDLE * 3).await;
    served.client.write_all(&ASK[9..]).await.unwrap();
    served.read_until("answer 8").await;
    assert_eq!(served.asked.load(Ordering::Relaxed), 8);
    assert!(served.closes_within(KEEP_ALIVE + Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_or_never_says_the_rest_is_let_go() {
    assert!(served(64 << 10).closes_within(HEAD_TIMEOUT + Duration::from_secs(1)).await);
    let mut half = served(64 << 10);
    half.client.write_all(&ASK[..9]).await.unwrap();
    assert!(half.closes_within(HEAD_TIMEOUT + Duration::from_secs(1)).await);
    let mut second = served(64 << 10);
    second.client.write_all(&[ASK, &ASK[..9]].concat()).await.unwrap();
    second.read_until("answer 1").await;
    assert!(second.closes_within(HEAD_TIMEOUT + Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_body_is_not_taken_for_a_request() {
    let mut served = served(64 << 10);
    let head = b"POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";
    served.client.write_all(head).await.unwrap();
    let answer = served.read_until("refused").await;
    assert!(answer.contains("200 OK"), "{answer}");
    tokio::time::sleep(IDLE * 3).await;
    // The connection may have ended, which is right.
    let _ended = served.client.write_all(ASK).await;
    served.read_until("answer").await;
    assert_eq!(served.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stays_open_is_sent_piece_by_piece_and_ends_the_connection() {
    let mut served = served(64 << 10);
    served.client.write_all(ASK).await.unwrap();
    served.read_until("answer 1").await;
    served.client.write_all(LISTEN).await.unwrap();
    let head = served.read_until("\r\n\r\n").await.to_lowercase();
    assert!(head.starts_with("http/1.1 200 ok") && head.contains("transfer-encoding: chunked"));
    // A client that keeps connections does not send its next request into this one.
    assert!(head.contains("connection: close"), "{head}");
    served.events.send(Bytes::from_static(b"one")).await.unwrap();
    assert_eq!(served.read_until("one\r\n").await, "3\r\none\r\n");
    tokio::time::sleep(KEEP_ALIVE * 10).await;
    served.events.send(Bytes::from("x".repeat(20))).await.unwrap();
    assert_eq!(served.read_until("x\r\n").await, format!("14\r\n{}\r\n", "x".repeat(20)));
    // Requests that the client sends meanwhile are not answered, and are not kept either.
    served.client.write_all(&ASK.repeat(10_000)).await.unwrap();
    (served.events, _) = mpsc::channel(1);
    assert_eq!(served.read_until("end").await, "0\r\n\r\n");
    assert_eq!(served.asked.load(Ordering::Relaxed), 2);
    assert!(served.closes_within(Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stays_open_ends_when_its_client_leaves() {
    let mut served = served(64 << 10);
    served.client.write_all(LISTEN).await.unwrap();
    served.read_until("\r\n\r\n").await;
    drop(served.client);
    served.events.closed().await;
    served.connection.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_let_go() {
    let mut listening = served(300);
    listening.client.write_all(LISTEN).await.unwrap();
    listening.read_until("\r\n\r\n").await;
    listening.events.send(Bytes::from("x".repeat(1_000))).await.unwrap();
    assert!(listening.closes_within(WRITE_TIMEOUT + Duration::from_secs(1)).await);
    let mut asking = served(300);
    asking.client.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert!(asking.closes_within(WRITE_TIMEOUT + Duration::from_secs(1)).await);
    // One that reads slowly is not.
    let mut slow = served(300);
    slow.client.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut space = [0; 10_000];
    for _ in 0..10 {
        tokio::time::sleep(WRITE_TIMEOUT * 2 / 3).await;
        assert!(slow.client.read(&mut space).await.unwrap() > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_waits_ends_with_the_server_and_an_answer_is_finished_first() {
    let mut waiting = served(64 << 10);
    waiting.client.write_all(ASK).await.unwrap();
    waiting.read_until("answer 1").await;
    tokio::time::sleep(IDLE * 3).await;
    waiting.stop.cancel();
    assert!(waiting.closes_within(Duration::from_millis(1)).await);
    let mut busy = served(300);
    busy.client.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    busy.client.read_u8().await.unwrap();
    busy.stop.cancel();
    let answer = busy.read_until("end").await;
    assert!(answer.len() > 1 << 20, "{}", answer.len());
}
