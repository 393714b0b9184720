//! The difference between a tool and its pin, and the question whether to pin it as it is.

use std::time::Duration;

use super::reading::{Readiness, ReadingProgress};
use super::{AppContext, Overlay, ScrollText};
use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::pins::PinReportState;
use crate::tui::event::AppEffect;
use crate::tui::event::pins::{PinReview, PinsEffect, PinsEvent};
use crate::tui::theme::StyleRole;
use crate::util::diff::DiffMark;

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
    pub fn accept(&self, context: &mut AppContext) -> Vec<AppEffect> {
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
pub(super) fn handle_event(
    event: PinsEvent,
    window: &mut Option<PinWindow>,
    context: &mut AppContext,
) -> Vec<AppEffect> {
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
        PinReportState::Same => page.line(StyleRole::Success, "It matches its pin."),
        PinReportState::New => {
            page.line(StyleRole::Plain, "Not pinned yet. Once pinned, calls stop when its");
            page.line(StyleRole::Plain, "definition changes, until the change is accepted.");
        }
        _ => page.line(StyleRole::Warning, "It differs from its pin:"),
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

fn parts(page: &mut ScrollText, changes: &[DefinitionChange]) {
    for change in changes {
        page.heading(change.part);
        let hunks = change.hunks();
        if hunks.is_empty() {
            page.line(StyleRole::Dim, "  differs beyond what is compared line by line");
        }
        for (at, hunk) in hunks.iter().enumerate() {
            if at > 0 {
                page.line(StyleRole::Dim, "  …");
            }
            for line in &hunk.lines {
                let role = match line.mark {
                    DiffMark::Removed => StyleRole::Error,
                    DiffMark::Added => StyleRole::Success,
                    DiffMark::Same => StyleRole::Plain,
                };
                page.line(role, format!("  {}{}", line.mark.sign(), line.text));
            }
        }
    }
}
