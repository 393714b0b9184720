//! Sending a person to an authorization server and receiving the redirect.
//!
//! Owns: [`TerminalBrowser`]: the URL is shown in full before anything opens it, the browser is
//! started without a shell, and the redirect goes to a local listener or is pasted by a person.
//! Never does: look at the code; it returns the redirect URL.
//!
//! The loopback listener to which a browser is redirected after a login.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::output::Output;
use super::prompt;
use crate::config::environment::Environment;
use crate::model::{AuthorizationRequest, Browser, Error};
use crate::present::{Line, Page, Role};
use crate::util::process::resolve;
use crate::util::units::show_duration;

const LOGIN_TIMEOUT: Duration = Duration::from_mins(5);

/// Programs that open a URL in the browser; the first one found is used.
const OPENERS: [&str; 2] =
    if cfg!(target_os = "macos") { ["/usr/bin/open", "open"] } else { ["xdg-open", "wslview"] };

pub struct TerminalBrowser {
    output: Arc<Output>,
    cancel: CancellationToken,
    /// The program that opens the browser; `None` leaves it to the person.
    opener: Option<PathBuf>,
    listener: Mutex<Option<Listener>>,
}

impl TerminalBrowser {
    /// Opens a browser if there is a desktop and `headless` is false.
    pub fn new(
        output: Arc<Output>,
        environment: &dyn Environment,
        cancel: CancellationToken,
        headless: bool,
    ) -> Self {
        let set = |name| environment.var(name).is_some_and(|value| !value.is_empty());
        let desktop = cfg!(target_os = "macos") || set("DISPLAY") || set("WAYLAND_DISPLAY");
        let remote = set("SSH_CONNECTION") || set("SSH_TTY");
        let path = environment.var("PATH");
        let cwd = environment.cwd();
        let find = || OPENERS.iter().find_map(|opener| resolve(opener, path.as_deref(), &cwd).ok());
        let opener = if headless || remote || !desktop { None } else { find() };
        Self { output, cancel, opener, listener: Mutex::default() }
    }

    fn print_address(&self, visit: &AuthorizationRequest, url: &Url) {
        let mut page = Page::from(
            Line::plain("Log in to ")
                .then(Role::Name, &visit.server)
                .then(Role::Plain, " at ")
                .then(Role::Name, &visit.issuer),
        );
        if !visit.scopes.is_empty() {
            page.push(Line::plain(format!("Requested scopes: {}", visit.scopes.join(" "))));
        }
        // `Url` writes non-ASCII hosts in ASCII, so that no host can look like another.
        page.push(Line::plain(url.as_str()));
        let next = if self.opener.is_some() {
            "Opening this address in the browser."
        } else {
            "Open this address in a browser. If the page it ends at does not load, \
             paste the address of that page here."
        };
        page.push(Line::styled(Role::Dim, next));
        self.output.stderr_page(&page);
    }

    /// The URL pasted by a person; never resolves without a terminal.
    async fn read_pasted_address(&self) -> String {
        if self.opener.is_none() {
            let what = "Address of the last page";
            if let Some(pasted) = prompt::ask_secret(&self.output, what, &self.cancel).await {
                return pasted;
            }
        }
        std::future::pending().await
    }
}

#[async_trait]
impl Browser for TerminalBrowser {
    async fn redirect_uri(&self, port: Option<u16>) -> Result<String, Error> {
        if self.opener.is_none() && !prompt::is_possible() {
            return Err(Error::auth("a login needs a browser or a terminal")
                .with_hint("run it where one is available: toolhost auth login SERVER"));
        }
        let listener = Listener::open(port).await?;
        let redirect = listener.redirect();
        *self.listener.lock().await = Some(listener);
        Ok(redirect)
    }

    async fn authorize(&self, visit: &AuthorizationRequest) -> Result<String, Error> {
        let listener = self.listener.lock().await.take();
        let listener = listener
            .ok_or_else(|| Error::internal("the login page was opened without a listener"))?;
        let url = Url::parse(&visit.url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let url =
            url.ok_or_else(|| Error::denied("the page to open is not an http or https URL"))?;
        self.print_address(visit, &url);
        if let Some(opener) = &self.opener {
            open(opener, &url)?;
        }
        let stopped = || Error::auth("the login was not completed");
        tokio::select! {
            end = listener.wait_for_callback(&visit.state) => Ok(end),
            pasted = self.read_pasted_address() => Ok(pasted),
            () = self.cancel.cancelled() => Err(stopped()),
            () = tokio::time::sleep(LOGIN_TIMEOUT) => {
                Err(stopped().with_detail(format!("the browser did not return within {}", show_duration(LOGIN_TIMEOUT))))
            }
        }
    }
}

/// Starts the browser: one argument, no shell, and no access to our streams.
fn open(opener: &PathBuf, url: &Url) -> Result<(), Error> {
    let mut command = tokio::process::Command::new(opener);
    command.arg(url.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| {
        Error::unreachable(format!("cannot open the browser: {error}"))
            .with_hint("open the address yourself, with --no-browser")
    })?;
    // It may be the browser itself, which outlives this process.
    drop(child);
    Ok(())
}

const PATH: &str = "/callback";
/// Maximum size of a request head in bytes.
const HEAD: usize = 32 << 10;
const REQUEST: Duration = Duration::from_secs(5);
const MAX_CONNECTIONS: usize = 16;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listener {
    /// Opens `port`, or another one if it is in use.
    async fn open(port: Option<u16>) -> Result<Self, Error> {
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

    fn redirect(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the request with this `state`; returns its full URL.
    async fn wait_for_callback(&self, state: &str) -> String {
        let mut visitors = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if visitors.len() < MAX_CONNECTIONS => {
                    let Ok((stream, _)) = accepted else {
                        // It may last, as when no descriptor is left.
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    };
                    let (base, state) = (self.redirect(), state.to_owned());
                    visitors.spawn(async move {
                        timeout(REQUEST, serve(stream, &base, &state)).await.ok().flatten()
                    });
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

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_listener_that_cannot_accept_is_not_asked_all_the_time() {
        use rustix::time::{ClockId, clock_gettime};
        let listener = Listener::open(None).await.unwrap();
        // From now on it fails at once, each time.
        let socket = std::os::fd::AsFd::as_fd(&listener.listener).try_clone_to_owned().unwrap();
        std::net::TcpStream::from(socket).shutdown(std::net::Shutdown::Read).unwrap();
        assert!(listener.listener.accept().await.is_err());
        let before = clock_gettime(ClockId::ThreadCPUTime);
        let waited = timeout(Duration::from_millis(600), listener.wait_for_callback("s")).await;
        let spent = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime) - before).unwrap();
        assert!(waited.is_err() && spent < Duration::from_millis(100), "{spent:?}");
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_replaced() {
        let first = Listener::open(None).await.unwrap();
        let second = Listener::open(Some(first.port)).await.unwrap();
        assert_ne!(first.port, second.port);
        drop(first);
    }
}
