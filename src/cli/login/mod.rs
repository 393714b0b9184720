//! Sending a person to an authorization server and receiving the redirect.
//!
//! Owns: [`TerminalBrowser`]: the URL is shown in full before anything opens it, the browser is
//! started without a shell, and the redirect goes to a local listener or is pasted by a person.
//! Never does: look at the code; it returns the redirect URL.

mod listener;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use url::Url;

use self::listener::Listener;
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
