//! The trust question while it is on the screen.

use std::sync::Arc;
use std::time::Duration;

use crate::config::consent::{TrustRequest, TrustRequestLine};
use crate::tui::state::ScrollText;
use crate::tui::state::StyledSpan;
use crate::tui::state::reading::{Readiness, ReadingProgress};
use crate::tui::theme::StyleRole;

/// How far the rest of a broken line is indented: more than any line begins with.
const CONTINUED: usize = 6;

/// The question about the project, while it is on the screen.
#[derive(Debug)]
pub struct TrustWindow {
    /// Exactly what a yes would store.
    pub request: Arc<TrustRequest>,
    pub text: ScrollText,
    /// Whether all of it is shown although only a part has changed.
    pub shows_whole: bool,
    progress: ReadingProgress,
}

impl TrustWindow {
    /// The question: the difference where the project was trusted before, else the whole.
    pub fn new(request: Arc<TrustRequest>) -> Self {
        let page = page(&request, false);
        Self { request, text: page, shows_whole: false, progress: ReadingProgress::default() }
    }

    /// Takes in the time; the moment starts over while something covers the window.
    pub fn tick(&mut self, now: Duration, is_covered: bool) {
        self.progress.tick(&self.text, now, is_covered);
    }

    /// Whether it was on the screen long enough for a key to be meant for it.
    pub fn is_settled(&self, now: Duration) -> bool {
        self.progress.is_settled(now)
    }

    /// Whether a yes counts now, and if not, why.
    pub fn readiness(&self, now: Duration) -> Readiness {
        self.progress.readiness(&self.text, now)
    }

    /// Scrolls by `by` rows; back when negative.
    pub fn scroll(&mut self, by: isize) {
        self.progress.note(&self.text);
        self.text.scroll(by);
    }

    pub fn toggle_whole(&mut self) {
        self.progress.note(&self.text);
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
