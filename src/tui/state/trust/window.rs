//! The trust question while it is on the screen.
//!
//! Owns: its text, and that a yes counts only after the end of that text was drawn.

use std::sync::Arc;
use std::time::Duration;

use crate::config::consent::{TrustRequest, TrustRequestLine};
use crate::tui::state::ScrollText;
use crate::tui::state::context::MIN_VISIBLE_TIME;
use crate::tui::state::scroll_text::StyledSpan;
use crate::tui::theme::StyleRole;

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
    /// A yes counts now.
    Ready,
}

/// The question about the project, while it is on the screen.
#[derive(Debug)]
pub struct TrustWindow {
    /// Exactly what a yes would store.
    pub request: Arc<TrustRequest>,
    /// What is shown of it.
    pub text: ScrollText,
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
        Self { request, text: page, shows_whole: false, since: None, is_read: false }
    }

    /// Takes in the time; while something covers the window the moment begins anew.
    pub fn tick(&mut self, now: Duration, is_covered: bool) {
        self.is_read |= self.text.is_end_visible();
        self.since = if is_covered { None } else { self.since.or(Some(now)) };
    }

    /// Whether it was on the screen long enough for a key to be meant for it.
    pub fn is_settled(&self, now: Duration) -> bool {
        self.since.is_some_and(|since| since + MIN_VISIBLE_TIME <= now)
    }

    /// Whether a yes counts now, and if not, why.
    pub fn readiness(&self, now: Duration) -> Readiness {
        if self.text.is_cut() {
            Readiness::TooLong
        } else if !self.is_settled(now) {
            Readiness::TooSoon
        } else if self.is_read || self.text.is_end_visible() {
            Readiness::Ready
        } else {
            Readiness::Unread
        }
    }

    /// Scrolls by `by` rows; back when negative.
    pub fn scroll(&mut self, by: isize) {
        self.is_read |= self.text.is_end_visible();
        self.text.scroll(by);
    }

    /// Shows the whole instead of the difference, or the difference again.
    pub fn toggle_whole(&mut self) {
        self.is_read |= self.text.is_end_visible();
        self.shows_whole = !self.shows_whole && self.request.previous.is_some();
        self.text = page(&self.request, self.shows_whole);
    }
}

fn page(request: &TrustRequest, is_whole: bool) -> ScrollText {
    let mut page = ScrollText::with_indent(CONTINUED);
    let root = request.root.display().to_string();
    page.push(vec![
        (StyleRole::Plain, "The project ".to_owned()),
        (StyleRole::Name, root),
        (StyleRole::Plain, " would:".to_owned()),
    ]);
    let is_difference = request.previous.is_some() && !is_whole;
    if is_difference {
        page.line(StyleRole::Warning, "It changed since it was trusted:");
    }
    let lines = if is_difference { request.difference_lines() } else { request.full_lines() };
    for line in lines {
        page.push(pieces(line));
    }
    page
}

fn pieces(line: TrustRequestLine) -> Vec<StyledSpan> {
    match line {
        TrustRequestLine::Heading(text) => vec![(StyleRole::Title, text)],
        TrustRequestLine::Entry { name, text } => {
            vec![(StyleRole::Name, format!("  {name}")), (StyleRole::Plain, format!("  {text}"))]
        }
        TrustRequestLine::Detail(text) => vec![(StyleRole::Plain, format!("    {text}"))],
        TrustRequestLine::Warning(text) => {
            vec![(StyleRole::Warning, format!("    warning: {text}"))]
        }
        TrustRequestLine::Previous(text) => vec![(StyleRole::Dim, format!("    before: {text}"))],
    }
}
