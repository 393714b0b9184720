//! Whether a text that needs an answer was read.

use std::time::Duration;

use crate::tui::context::MIN_VISIBLE_TIME;
use crate::tui::theme::Role;
use crate::tui::widgets::scroll_text::ScrollText;

/// Whether the question can be answered with a yes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It was on the screen for less than a moment.
    TooSoon,
    /// Its end was not shown yet.
    Unread,
    TooLong,
    /// A yes counts now, for it was read.
    Ready,
}

impl Readiness {
    /// What is said below the text: the question once it counts, else what is missing.
    pub fn line(self, question: &str, command: &str) -> (Role, String) {
        match self {
            Self::Ready => (Role::Title, question.to_owned()),
            Self::TooSoon => (Role::Dim, "One moment… (ignoring keys typed ahead)".to_owned()),
            Self::Unread => (Role::Warning, "Read to the end to answer (G)".to_owned()),
            Self::TooLong => (Role::Error, format!("Too long to show here. Run: {command}")),
        }
    }
}

/// How far a text that asks for an answer was read.
#[derive(Debug, Default)]
pub struct ReadingProgress {
    since: Option<Duration>,
    /// Whether its end was drawn.
    is_read: bool,
}

impl ReadingProgress {
    /// Takes in the time; the moment starts over while something covers the text.
    pub fn tick(&mut self, text: &ScrollText, now: Duration, is_covered: bool) {
        self.note(text);
        self.since = if is_covered { None } else { self.since.or(Some(now)) };
    }

    /// Takes in what was drawn, before the text moves.
    pub fn note(&mut self, text: &ScrollText) {
        self.is_read |= text.is_end_visible();
    }

    /// Whether it was on the screen long enough for a key to be meant for it.
    pub fn is_settled(&self, now: Duration) -> bool {
        self.since.is_some_and(|since| since + MIN_VISIBLE_TIME <= now)
    }

    /// Whether a yes counts now, and if not, why.
    pub fn readiness(&self, text: &ScrollText, now: Duration) -> Readiness {
        if text.is_cut() {
            Readiness::TooLong
        } else if !self.is_settled(now) {
            Readiness::TooSoon
        } else if self.is_read || text.is_end_visible() {
            Readiness::Ready
        } else {
            Readiness::Unread
        }
    }
}
