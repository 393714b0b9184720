//! The difference between a tool and its pin, and the question whether to pin it as it is.

use std::time::Duration;

use crate::assembly::pin_update::PinUpdate;
use crate::assembly::pins::PinFile;
use crate::catalogue::Catalogue;
use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::pins::{PinReport, PinReportState};
use crate::config::environment::Environment;
use crate::host::ToolHost;
use crate::host::request::{ListScope, LookupScope};
use crate::model::{Error, Origin};
use crate::present::{self, Page};
use crate::tui::prelude::*;
use crate::tui::widgets::reading::{Readiness, ReadingProgress};

/// The comparison on the screen.
#[derive(Debug)]
pub struct PinWindow {
    pub review: PinReview,
    pub text: ScrollText,
    progress: ReadingProgress,
}

impl PinWindow {
    fn new(review: PinReview) -> Self {
        let text = page(&review);
        Self { review, text, progress: ReadingProgress::default() }
    }

    /// Whether there is anything to accept.
    pub fn is_question(&self) -> bool {
        self.review.state != PinReportState::Same
    }

    /// Whether a yes counts now, and if not, why.
    pub fn readiness(&self, now: Duration) -> Readiness {
        self.progress.readiness(&self.text, now)
    }

    /// Takes in the time since the Unix epoch.
    pub fn tick(&mut self, now: Duration, is_covered: bool) {
        self.progress.tick(&self.text, now, is_covered);
    }

    /// Scrolls by this many rows; negative moves up.
    pub fn scroll(&mut self, by: isize) {
        self.progress.note(&self.text);
        self.text.scroll(by);
    }

    /// Asks to pin the tool as it was shown, when a yes counts.
    pub fn accept(&self, context: &mut AppContext) -> Effects {
        let command = format!("toolhost pin {}", self.review.tool);
        match self.readiness(context.now) {
            Readiness::Ready if self.is_question() => {
                context.overlay = None;
                context.show_status(format!("pinning {}…", self.review.tool));
                let review = Box::new(self.review.clone());
                return vec![AppEffect::Pins(PinsEffect::Accept(review))];
            }
            Readiness::TooLong => {
                context.show_error(format!("too long to answer here; run: {command}"));
            }
            Readiness::Ready | Readiness::TooSoon | Readiness::Unread => {}
        }
        Vec::new()
    }
}

/// Takes in the outcome of an effect; `window` is what is shown then.
pub fn handle_event(
    event: PinsEvent,
    window: &mut Option<PinWindow>,
    context: &mut AppContext,
) -> Effects {
    match event {
        PinsEvent::Compared(Ok(review)) => {
            context.message = None;
            show(review, window, context);
        }
        PinsEvent::ChangedMeanwhile(review) => {
            context.show_error(format!("{} changed again: not pinned", review.tool));
            show(review, window, context);
        }
        PinsEvent::Accepted(review) => {
            context.show_status(format!("pinned {} as it is now", review.tool));
            let server = review.server.map(AppEffect::ListServer);
            return [AppEffect::ListDeclared].into_iter().chain(server).collect();
        }
        PinsEvent::Compared(Err(error)) | PinsEvent::Failed(error) => {
            let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            context.show_error(format!("{error}{hint}"));
        }
    }
    Vec::new()
}

fn show(review: PinReview, window: &mut Option<PinWindow>, context: &mut AppContext) {
    *window = Some(PinWindow::new(review));
    context.overlay = Some(Overlay::Pin);
}

fn page(review: &PinReview) -> ScrollText {
    let mut page = ScrollText::with_indent(6);
    match review.state {
        PinReportState::Same => page.line(Role::Success, "It matches its pin."),
        PinReportState::New => {
            page.line(Role::Plain, "Not pinned yet. Once pinned, calls stop when its");
            page.line(Role::Plain, "definition changes, until the change is accepted.");
        }
        _ => page.line(Role::Warning, "It differs from its pin:"),
    }
    if let (Some(server), false) = (&review.server, review.server_changes.is_empty()) {
        page.heading(format!("server {server} (applies to all its tools)"));
        parts(&mut page, &review.server_changes);
    }
    parts(&mut page, &review.changes);
    if let Some(now) = &review.now {
        page.gap();
        page.fact("fingerprint", now);
    }
    page
}

/// All of what changed: who pins it must be able to read it to the end.
fn parts(page: &mut ScrollText, changes: &[DefinitionChange]) {
    let mut parts = Page::default();
    present::pins::parts(&mut parts, changes, usize::MAX);
    page.gap();
    page.page(&parts);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinsEffect {
    Compare(String),
    /// Pin the tool as it was shown, if it still is that.
    Accept(Box<PinReview>),
}

/// A tool compared with its pin, as shown to the user; secrets masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinReview {
    pub tool: String,
    /// The server of the tool; `None` for internal tools.
    pub server: Option<String>,
    /// How it compares: new, same or changed.
    pub state: PinReportState,
    /// The fingerprint of what would be pinned.
    pub now: Option<String>,
    /// What changed of the whole server: its entry, endpoint or instructions.
    pub server_changes: Vec<DefinitionChange>,
    pub changes: Vec<DefinitionChange>,
}

#[derive(Debug)]
pub enum PinsEvent {
    Compared(Result<PinReview, Error>),
    /// The tool was pinned as it was shown.
    Accepted(PinReview),
    /// The tool was not what was shown any more; this is what it is now.
    ChangedMeanwhile(PinReview),
    /// The tool was not pinned, and why.
    Failed(Error),
}

pub async fn perform(
    effect: PinsEffect,
    host: &ToolHost,
    environment: &dyn Environment,
) -> PinsEvent {
    match effect {
        PinsEffect::Compare(tool) => {
            PinsEvent::Compared(compare(&tool, host).await.map(|compared| compared.review))
        }
        PinsEffect::Accept(shown) => {
            accept(*shown, host, environment).await.unwrap_or_else(PinsEvent::Failed)
        }
    }
}

struct Comparison {
    review: PinReview,
    report: PinReport,
    catalogue: Catalogue,
}

async fn compare(tool: &str, host: &ToolHost) -> Result<Comparison, Error> {
    let definition = host.find(tool, &LookupScope::default()).await?;
    if let Some(error) = definition.unavailable_reason {
        return Err(error);
    }
    let server = match &definition.origin {
        Origin::Server(server) => Some(server.clone()),
        _ => None,
    };
    let scope = server.clone().map_or(ListScope::Declared, |name| ListScope::Servers(vec![name]));
    let catalogue = host.catalogue(&scope).await;
    let mut report = host.compare(&host.pins(), &catalogue);
    report.tools.retain(|compared| compared.name == tool);
    report.servers.retain(|compared| Some(&compared.name) == server.as_ref());
    let Some(compared) = report.tools.first().filter(|compared| compared.now.is_some()) else {
        let failed = catalogue.servers.into_iter().find_map(|listing| listing.error);
        return Err(failed.unwrap_or_else(|| {
            Error::denied(format!("'{tool}' cannot be pinned: it is not currently listed"))
        }));
    };
    let review = PinReview {
        tool: tool.to_owned(),
        server,
        state: compared.state,
        now: compared.now.clone(),
        server_changes: report.servers.iter().flat_map(|server| server.changes.clone()).collect(),
        changes: compared.changes.clone(),
    };
    Ok(Comparison { review, report, catalogue })
}

async fn accept(
    shown: PinReview,
    host: &ToolHost,
    environment: &dyn Environment,
) -> Result<PinsEvent, Error> {
    let Comparison { review, report, catalogue } = compare(&shown.tool, host).await?;
    if review != shown {
        return Ok(PinsEvent::ChangedMeanwhile(review));
    }
    let Some(file) = PinFile::own(environment) else {
        return Err(Error::config("no state directory for pins").with_hint("set HOME"));
    };
    let update = PinUpdate { host, report: &report, catalogue: &catalogue, accepted: true };
    file.change(|pinned| update.apply(pinned, file.own))?;
    host.replace_pins(file.read()?.unwrap_or_default());
    Ok(PinsEvent::Accepted(review))
}
