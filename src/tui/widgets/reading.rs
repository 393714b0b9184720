//! A text that needs an answer, and whether it was read.

use std::cell::Cell;

use crate::tui::context::MIN_VISIBLE_TIME;
use crate::tui::prelude::*;

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

/// A text that asks for an answer: a yes counts only after all of it was on the screen.
#[derive(Debug, Clone, Default)]
pub struct QuestionText {
    pub text: ScrollText,
    since: Option<Duration>,
    /// Whether its end was on the screen.
    is_read: Cell<bool>,
}

impl QuestionText {
    pub fn new(text: ScrollText) -> Self {
        Self { text, ..Self::default() }
    }

    /// Takes in the time; the moment starts over while something covers the text.
    pub fn tick(&mut self, now: Duration, is_covered: bool) {
        self.since = if is_covered { None } else { self.since.or(Some(now)) };
    }

    /// Draws the text, and on the last row what its readiness makes of that: only then is it known whether
    /// the end is on the screen.
    pub fn draw(
        &self,
        pen: &mut Pen<'_>,
        area: Rect,
        now: Duration,
        line: impl FnOnce(Readiness) -> (Role, String),
    ) {
        let [above, below] = bottom(area, 1);
        self.draw_text(pen, above);
        let (role, text) = line(self.readiness(now));
        pen.put(pen.line(role, text), below);
    }

    pub fn draw_text(&self, pen: &mut Pen<'_>, area: Rect) {
        pen.text(&self.text, area);
        self.is_read.set(self.is_read.get() || self.text.is_end_visible());
    }

    /// Whether it was on the screen long enough for a key to be meant for it.
    pub fn is_settled(&self, now: Duration) -> bool {
        self.since.is_some_and(|since| since + MIN_VISIBLE_TIME <= now)
    }

    /// Whether a yes counts now; says so when it never will here.
    pub fn accepts(&self, command: &str, context: &mut AppContext) -> bool {
        let readiness = self.readiness(context.now);
        if readiness == Readiness::TooLong {
            context.show_error(format!("too long to answer here; run: {command}"));
        }
        readiness == Readiness::Ready
    }

    /// Whether a yes counts now, and if not, why.
    pub fn readiness(&self, now: Duration) -> Readiness {
        if self.text.is_cut() {
            Readiness::TooLong
        } else if !self.is_settled(now) {
            Readiness::TooSoon
        } else if self.is_read.get() {
            Readiness::Ready
        } else {
            Readiness::Unread
        }
    }
}
