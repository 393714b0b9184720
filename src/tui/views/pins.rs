//! The difference between a tool and its pin, and the question whether to pin it as it is.

use crate::assembly::pin_update::PinUpdate;
use crate::assembly::pins::PinFile;
use crate::catalogue::Catalogue;
use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::pins::report::ServerReport;
use crate::catalogue::pins::{PinReport, PinReportState, ToolReport};
use crate::config::environment::Environment;
use crate::host::ToolHost;
use crate::host::request::{ListScope, LookupScope};
use crate::model::Origin;
use crate::tui::prelude::*;
use crate::tui::tasks::error_message;
use crate::tui::widgets::reading::QuestionText;

#[derive(Debug)]
pub struct PinWindow {
    pub review: PinReview,
    pub text: QuestionText,
}

impl PinWindow {
    pub fn is_question(&self) -> bool {
        self.review.tool.state != PinReportState::Same
    }

    /// Asks to pin the tool as it was shown, when a yes counts.
    pub fn accept(&self, context: &mut AppContext) {
        let tool = &self.review.tool.name;
        let command = format!("toolhost pin {tool}");
        if self.text.accepts(&command, context) && self.is_question() {
            context.overlay = None;
            context.show_status(format!("pinning {tool}…"));
            context.emit(accept(self.review.clone()));
        }
    }
}

impl AppState {
    fn show_pin(&mut self, review: PinReview) {
        let text = QuestionText::new(page(&review));
        self.pin_window = Some(PinWindow { review, text });
        self.context.overlay = Some(Overlay::Pin);
    }

    pub fn compared(&mut self, compared: Result<PinReview, Error>) {
        match compared {
            Ok(review) => {
                self.context.message = None;
                self.show_pin(review);
            }
            Err(error) => self.context.show_error(error_message(&error)),
        }
    }

    pub fn accepted(&mut self, accepted: Result<Accepted, Error>) {
        match accepted {
            Ok(Accepted::ChangedMeanwhile(review)) => {
                self.context.show_error(format!("{} changed again: not pinned", review.tool.name));
                self.show_pin(review);
            }
            Ok(Accepted::Pinned(review)) => {
                self.context.show_status(format!("pinned {} as it is now", review.tool.name));
                self.context.emit(AppEffect::ListDeclared);
                self.context.effects.extend(review.tool.server.map(AppEffect::ListServer));
            }
            Err(error) => self.context.show_error(error_message(&error)),
        }
    }
}

fn page(review: &PinReview) -> ScrollText {
    let mut page = ScrollText::with_indent(6);
    match review.tool.state {
        PinReportState::Same => page.line(Role::Success, "It matches its pin."),
        PinReportState::New => {
            page.line(Role::Plain, "Not pinned yet. Once pinned, calls stop when its");
            page.line(Role::Plain, "definition changes, until the change is accepted.");
        }
        _ => page.line(Role::Warning, "It differs from its pin:"),
    }
    for ServerReport { name, changes } in &review.servers {
        page.heading(format!("server {name} (applies to all its tools)"));
        parts(&mut page, changes);
    }
    parts(&mut page, &review.tool.changes);
    if let Some(now) = &review.tool.now {
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

/// A tool compared with its pin, and its server if that changed, as shown to the user; secrets
/// masked.
#[derive(Debug, Clone, PartialEq)]
pub struct PinReview {
    pub tool: ToolReport,
    servers: Vec<ServerReport>,
}

#[derive(Debug)]
pub enum Accepted {
    /// The tool was pinned as it was shown.
    Pinned(PinReview),
    /// The tool was not what was shown any more; this is what it is now.
    ChangedMeanwhile(PinReview),
}

pub fn compare(tool: String) -> Task {
    let name = ("compare with pin", tool.clone());
    let work = async move |context: TaskContext| {
        compare_now(&tool, &context.deps.host).await.map(|compared| compared.review)
    };
    Task::new(name, work, AppState::compared).of_host()
}

/// Pins the tool as it was shown, if it still is that.
pub fn accept(shown: PinReview) -> Task {
    let name = ("pin", shown.clone());
    let work = async move |context: TaskContext| {
        accept_now(shown, &context.deps.host, &*context.host_factory.environment).await
    };
    Task::new(name, work, AppState::accepted).of_host()
}

struct Comparison {
    review: PinReview,
    report: PinReport,
    catalogue: Catalogue,
}

async fn compare_now(tool: &str, host: &ToolHost) -> Result<Comparison, Error> {
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
    let review = PinReview { tool: compared.clone(), servers: report.servers.clone() };
    Ok(Comparison { review, report, catalogue })
}

async fn accept_now(
    shown: PinReview,
    host: &ToolHost,
    environment: &dyn Environment,
) -> Result<Accepted, Error> {
    let Comparison { review, report, catalogue } = compare_now(&shown.tool.name, host).await?;
    if review != shown {
        return Ok(Accepted::ChangedMeanwhile(review));
    }
    let Some(file) = PinFile::own(environment) else {
        return Err(Error::config("no state directory for pins").with_hint("set HOME"));
    };
    let update = PinUpdate { host, report: &report, catalogue: &catalogue, accepted: true };
    file.change(|pinned| update.apply(pinned, file.own))?;
    host.replace_pins(file.read()?.unwrap_or_default());
    Ok(Accepted::Pinned(review))
}
