//! Leading a person to an authorization server and back.
//!
//! Owns: [`TerminalBrowser`]: the address is shown in full before anything opens it, a browser is
//! started without a shell, and the way back is a listener on this machine or what a person pastes.
//! Never does: look at a code; it hands back where the visit ended.

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
use super::output::{Door, Label, Line, Page};
use super::prompt;
use crate::config::environment::Environment;
use crate::model::{Browser, Fault, Visit};
use crate::util::process::resolve;
use crate::util::units::show_duration;

/// How long a person has.
const PATIENCE: Duration = Duration::from_mins(5);

/// Programs that open an address in the browser of the person, the first that is there.
const OPENERS: [&str; 2] =
    if cfg!(target_os = "macos") { ["/usr/bin/open", "open"] } else { ["xdg-open", "wslview"] };

/// Leads the person at this terminal.
pub struct TerminalBrowser {
    door: Arc<Door>,
    cancel: CancellationToken,
    /// What opens the browser; `None` leaves it to the person.
    opener: Option<PathBuf>,
    listener: Mutex<Option<Listener>>,
}

impl TerminalBrowser {
    /// Opens a browser if there is a desktop to open it on and `headless` is not wished for.
    pub fn new(
        door: Arc<Door>,
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
        Self { door, cancel, opener, listener: Mutex::default() }
    }

    fn tell(&self, visit: &Visit, url: &Url) {
        let mut page = Page::from(
            Line::plain("Log in to ")
                .then(Label::Name, &visit.server)
                .then(Label::Plain, " at ")
                .then(Label::Name, &visit.issuer),
        );
        if !visit.scopes.is_empty() {
            page.push(Line::plain(format!("It asks for: {}", visit.scopes.join(" "))));
        }
        // `Url` writes hosts of other alphabets in ASCII, so that none looks like another.
        page.push(Line::plain(url.as_str()));
        let next = if self.opener.is_some() {
            "The browser is opened with this address."
        } else {
            "Open this address in a browser. When the page it ends at cannot be reached from \
             there, paste the address of that page here."
        };
        page.push(Line::of(Label::Dim, next));
        self.door.tell(&page);
    }

    /// What a person pastes; waits for ever when nobody is there to paste.
    async fn pasted(&self) -> String {
        if self.opener.is_none() {
            let what = "Address of the page it ended at";
            if let Some(pasted) = prompt::ask_secret(&self.door, what, &self.cancel).await {
                return pasted;
            }
        }
        std::future::pending().await
    }
}

#[async_trait]
impl Browser for TerminalBrowser {
    async fn redirect(&self, port: Option<u16>) -> Result<String, Fault> {
        if self.opener.is_none() && !prompt::is_possible() {
            return Err(Fault::auth("a login needs a browser or a terminal")
                .hint("run it where there is one: toolhost auth login SERVER"));
        }
        let listener = Listener::open(port).await?;
        let redirect = listener.redirect();
        *self.listener.lock().await = Some(listener);
        Ok(redirect)
    }

    async fn visit(&self, visit: &Visit) -> Result<String, Fault> {
        let listener = self.listener.lock().await.take();
        let listener = listener.ok_or_else(|| Fault::internal("a visit that was not prepared"))?;
        let url = Url::parse(&visit.url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| Fault::denied("the page to open is no http or https page"))?;
        self.tell(visit, &url);
        if let Some(opener) = &self.opener {
            open(opener, &url)?;
        }
        let stopped = || Fault::auth("the login was not made");
        tokio::select! {
            end = listener.end(&visit.state) => Ok(end),
            pasted = self.pasted() => Ok(pasted),
            () = self.cancel.cancelled() => Err(stopped()),
            () = tokio::time::sleep(PATIENCE) => {
                Err(stopped().detail(format!("nobody came back within {}", show_duration(PATIENCE))))
            }
        }
    }
}

/// Starts the browser: one argument, no shell, and nothing of ours to write to.
fn open(opener: &PathBuf, url: &Url) -> Result<(), Fault> {
    let mut command = tokio::process::Command::new(opener);
    command.arg(url.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| {
        Fault::unreachable(format!("the browser cannot be opened: {error}"))
            .hint("open the address yourself, with --no-browser")
    })?;
    // It may be the browser itself, which outlives this.
    drop(child);
    Ok(())
}
