//! The loopback listener to which a browser is redirected after a login.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

use crate::model::Error;

const PATH: &str = "/callback";
/// Maximum size of a request head in bytes.
const HEAD: usize = 32 << 10;
const REQUEST: Duration = Duration::from_secs(5);
const MAX_CONNECTIONS: usize = 16;

pub(super) struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listener {
    /// Opens `port`, or another one if it is in use.
    pub(super) async fn open(port: Option<u16>) -> Result<Self, Error> {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
        let listener = match listener {
            Err(_) if port.is_some() => TcpListener::bind(("127.0.0.1", 0)).await,
            opened => opened,
        };
        let failed = |error| Error::auth(format!("cannot open a port on 127.0.0.1: {error}"));
        let listener = listener.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    pub(super) fn redirect(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the request with this `state`; returns its full URL.
    pub(super) async fn wait_for_callback(&self, state: &str) -> String {
        let mut visitors = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if visitors.len() < MAX_CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        let (base, state) = (self.redirect(), state.to_owned());
                        visitors.spawn(async move {
                            timeout(REQUEST, serve(stream, &base, &state)).await.ok().flatten()
                        });
                    }
                }
                Some(served) = visitors.join_next(), if !visitors.is_empty() => {
                    if let Ok(Some(end)) = served {
                        return end;
                    }
                }
            }
        }
    }
}

/// Answers one request; returns its URL if it is the expected one.
async fn serve(mut stream: TcpStream, base: &str, state: &str) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        if head.len() > HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let end = callback_url(&head, base, state);
    let (status, text) = match &end {
        Some(end) if end.query_pairs().any(|(key, _)| key == "error") => {
            ("200 OK", "The login failed. See the terminal for details.")
        }
        Some(_) => ("200 OK", "You can close this page and return to the terminal."),
        None => ("404 Not Found", "Not found."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // The login ended, whether the page arrives or not.
    stream.write_all(answer.as_bytes()).await.ok();
    stream.shutdown().await.ok();
    end.map(String::from)
}

/// The URL of a request, if it is the redirect of this login.
fn callback_url(head: &[u8], base: &str, state: &str) -> Option<Url> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let url = Url::parse(base).ok()?.join(target).ok()?;
    let own = method == "GET" && url.path() == PATH && url.as_str().starts_with(base);
    let stated = url.query_pairs().any(|(key, value)| key == "state" && value == state);
    (own && stated).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(port: u16, target: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_the_request_with_the_state_ends_the_wait() {
        let listener = Listener::open(None).await.unwrap();
        let port = listener.port;
        let visits = async {
            // A silent connection does not block the others.
            let silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            for target in [
                "/",
                "/favicon.ico",
                "/callback?code=x&state=other",
                "//evil.example/callback?code=x&state=s-1",
                "/callback/../x?state=s-1",
            ] {
                assert!(get(port, target).await.starts_with("HTTP/1.1 404"), "{target}");
            }
            let answer = get(port, "/callback?code=c%20d&state=s-1").await;
            assert!(answer.contains("You can close this page"), "{answer}");
            drop(silent);
        };
        let (end, ()) = tokio::join!(listener.wait_for_callback("s-1"), visits);
        assert_eq!(end, format!("http://127.0.0.1:{port}/callback?code=c%20d&state=s-1"));
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_replaced() {
        let first = Listener::open(None).await.unwrap();
        let second = Listener::open(Some(first.port)).await.unwrap();
        assert_ne!(first.port, second.port);
        drop(first);
    }
}
