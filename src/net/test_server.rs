//! A small HTTP/1.1 server for tests: real sockets, scripted per test.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

#[derive(Debug, Clone)]
pub(crate) struct TestRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// Which connection it came on, counted from 0.
    pub(crate) connection: usize,
}

impl TestRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn id(&self) -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(&self.body).unwrap()["id"].clone()
    }

    /// Method and path, for comparing what was asked.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

pub(crate) enum TestResponse {
    /// These bytes as they are; the connection stays open for the next request.
    Raw(Vec<u8>),
    /// These bytes, then the end of the connection.
    Last(Vec<u8>),
    /// These bytes, then nothing more until the client goes away.
    Hang(Vec<u8>),
    Reset(Vec<u8>),
    /// These bytes again and again until the client goes away.
    Endless(Vec<u8>, Vec<u8>),
}

impl TestResponse {
    pub(crate) fn full(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = format!("Content-Length: {}", body.len());
        let mut bytes = head(status, &[headers, &[length.as_str()]].concat());
        bytes.extend_from_slice(body);
        Self::Raw(bytes)
    }

    pub(crate) fn json(body: impl AsRef<[u8]>) -> Self {
        Self::full("200 OK", &["Content-Type: application/json"], body)
    }

    /// 202 without a body.
    pub(crate) fn accepted() -> Self {
        Self::full("202 Accepted", &[], "")
    }

    pub(crate) fn result(request: &TestRequest) -> Self {
        Self::json(answer(&request.id()))
    }

    /// An event stream that ends after `events`.
    pub(crate) fn events(events: &str) -> Self {
        let mut bytes = head("200 OK", &EVENTS);
        bytes.extend_from_slice(chunk(events).as_bytes());
        bytes.extend_from_slice(b"0\r\n\r\n");
        Self::Raw(bytes)
    }
}

pub(crate) const EVENTS: [&str; 2] =
    ["Content-Type: text/event-stream", "Transfer-Encoding: chunked"];

pub(crate) fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

pub(crate) fn head(status: &str, headers: &[&str]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

pub(crate) fn answer(id: &serde_json::Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

type TestScript = dyn Fn(usize, &TestRequest) -> TestResponse + Send + Sync;

pub(crate) struct TestServer {
    address: std::net::SocketAddr,
    requests: Arc<Mutex<Vec<TestRequest>>>,
    hangups: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl TestServer {
    /// Starts a server that answers the n-th request (from 0, over all connections) by `script`.
    pub(crate) async fn start(
        script: impl Fn(usize, &TestRequest) -> TestResponse + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<TestScript> = Arc::new(script);
        let log = Arc::clone(&requests);
        let gone = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&gone);
        let task = tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                let left = Arc::clone(&left);
                // A client that goes away is part of many tests.
                tokio::spawn(
                    async move { serve(stream, connection, &*script, &log, &left).await.ok() },
                );
            }
        });
        Self { address, requests, hangups: gone, task }
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        format!("http://{}{path}", self.address).parse().unwrap()
    }

    pub(crate) fn requests(&self) -> Vec<TestRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a client went away that a [`TestResponse::Hang`] had kept waiting.
    pub(crate) async fn wait_for_hangup(&self) {
        while self.hangups.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until something was asked `n` times.
    pub(crate) async fn wait_for_requests(&self, n: usize) -> Vec<TestRequest> {
        loop {
            let requests = self.requests();
            if requests.len() >= n {
                return requests;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    script: &TestScript,
    log: &Mutex<Vec<TestRequest>>,
    gone: &AtomicUsize,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer, connection).await? {
        let number = {
            let mut log = log.lock().unwrap();
            log.push(request.clone());
            log.len() - 1
        };
        match script(number, &request) {
            TestResponse::Raw(bytes) => stream.write_all(&bytes).await?,
            TestResponse::Last(bytes) => return stream.write_all(&bytes).await,
            TestResponse::Hang(bytes) => {
                stream.write_all(&bytes).await?;
                let mut rest = Vec::new();
                let end = stream.read_to_end(&mut rest).await;
                gone.fetch_add(1, Ordering::Relaxed);
                return end.map(drop);
            }
            TestResponse::Reset(bytes) => {
                stream.write_all(&bytes).await?;
                return stream.set_zero_linger();
            }
            TestResponse::Endless(first, again) => {
                stream.write_all(&first).await?;
                loop {
                    stream.write_all(&again).await?;
                }
            }
        }
    }
    Ok(())
}

fn read_request<'a>(
    stream: &'a mut TcpStream,
    buffer: &'a mut Vec<u8>,
    connection: usize,
) -> Pin<Box<dyn Future<Output = io::Result<Option<TestRequest>>> + Send + 'a>> {
    Box::pin(async move {
        let end = loop {
            if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            if stream.read_buf(buffer).await? == 0 {
                return Ok(None);
            }
        };
        let text = String::from_utf8_lossy(&buffer[..end]).into_owned();
        buffer.drain(..end + 4);
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let headers: BTreeMap<_, _> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        while buffer.len() < length {
            if stream.read_buf(buffer).await? == 0 {
                return Ok(None);
            }
        }
        let body = String::from_utf8(buffer.drain(..length).collect()).unwrap();
        let (method, path) = (method.to_owned(), path.to_owned());
        Ok(Some(TestRequest { method, path, headers, body, connection }))
    })
}
