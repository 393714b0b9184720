//! The question about the project while it is on the screen.
//!
//! Owns: its text, and that a yes counts only after the end of that text was drawn.

use std::sync::Arc;
use std::time::Duration;

use crate::config::consent::{QuestionLine, TrustRequest};
use crate::tui::state::Page;
use crate::tui::state::page::Piece;
use crate::tui::theme::Meaning;

/// Keys that come sooner than this after the question were typed for something else.
const TYPED_AHEAD: Duration = Duration::from_millis(300);

/// How far the rest of a broken line is indented: more than any line begins with.
const CONTINUED: usize = 6;

/// Whether the question can be answered with a yes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It was on the screen for less than a moment.
    TooSoon,
    /// Its end was not shown yet.
    Unread,
    /// It is longer than what can be shown here.
    TooLong,
    /// It can.
    Ready,
}

/// The question about the project, while it is on the screen.
#[derive(Debug)]
pub struct TrustWindow {
    /// Exactly what a yes would store.
    pub request: Arc<TrustRequest>,
    /// What is shown of it.
    pub page: Page,
    /// Whether all of it is shown although only a part has changed.
    pub shows_whole: bool,
    /// Since when it is uncovered.
    since: Option<Duration>,
    /// Whether the end of a text that covers all that would be trusted anew was drawn.
    is_read: bool,
}

impl TrustWindow {
    /// The question: the difference where the project was trusted before, else the whole.
    pub fn new(request: Arc<TrustRequest>) -> Self {
        let page = page(&request, false);
        Self { request, page, shows_whole: false, since: None, is_read: false }
    }

    /// Takes in the time; while something covers the window the moment begins anew.
    pub fn tick(&mut self, now: Duration, is_covered: bool) {
        self.is_read |= self.page.was_drawn_to_its_end();
        self.since = if is_covered { None } else { self.since.or(Some(now)) };
    }

    /// Whether it was on the screen long enough for a key to be meant for it.
    pub fn is_settled(&self, now: Duration) -> bool {
        self.since.is_some_and(|since| since + TYPED_AHEAD <= now)
    }

    /// Whether a yes counts.
    pub fn readiness(&self, now: Duration) -> Readiness {
        if self.page.is_cut() {
            Readiness::TooLong
        } else if !self.is_settled(now) {
            Readiness::TooSoon
        } else if self.is_read || self.page.was_drawn_to_its_end() {
            Readiness::Ready
        } else {
            Readiness::Unread
        }
    }

    /// So many rows on; back when negative.
    pub fn scroll(&mut self, by: isize) {
        self.is_read |= self.page.was_drawn_to_its_end();
        self.page.scroll(by);
    }

    /// Shows the whole instead of the difference, or the difference again.
    pub fn turn(&mut self) {
        self.is_read |= self.page.was_drawn_to_its_end();
        self.shows_whole = !self.shows_whole && self.request.previous.is_some();
        self.page = page(&self.request, self.shows_whole);
    }
}

fn page(request: &TrustRequest, is_whole: bool) -> Page {
    let mut page = Page::hanging(CONTINUED);
    let root = request.root.display().to_string();
    page.push(vec![
        (Meaning::Plain, "The project ".to_owned()),
        (Meaning::Name, root),
        (Meaning::Plain, " would:".to_owned()),
    ]);
    let is_difference = request.previous.is_some() && !is_whole;
    if is_difference {
        page.line(Meaning::Doubt, "It changed since it was trusted:");
    }
    let lines = if is_difference { request.difference() } else { request.whole() };
    for line in lines {
        page.push(pieces(line));
    }
    page
}

fn pieces(line: QuestionLine) -> Vec<Piece> {
    match line {
        QuestionLine::Heading(text) => vec![(Meaning::Title, text)],
        QuestionLine::Entry { name, text } => {
            vec![(Meaning::Name, format!("  {name}")), (Meaning::Plain, format!("  {text}"))]
        }
        QuestionLine::Detail(text) => vec![(Meaning::Plain, format!("    {text}"))],
        QuestionLine::Warning(text) => vec![(Meaning::Doubt, format!("    warning: {text}"))],
        QuestionLine::Before(text) => vec![(Meaning::Dim, format!("    before: {text}"))],
    }
}
