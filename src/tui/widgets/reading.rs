//! A text that needs an answer, and whether it was read.

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
    is_read: bool,
}

impl QuestionText {
    pub fn new(text: ScrollText) -> Self {
        Self { text, since: None, is_read: false }
    }

    /// Takes in the time; the moment starts over while something covers the text.
    pub fn tick(&mut self, now: Duration, is_covered: bool) {
        self.note();
        self.since = if is_covered { None } else { self.since.or(Some(now)) };
    }

    /// Scrolls by this many rows; negative moves up.
    pub fn scroll(&mut self, by: isize) {
        self.note();
        self.text.scroll(by);
    }

    pub fn show(&mut self, text: ScrollText) {
        self.note();
        self.text = text;
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
        pen.text(&self.text, above);
        let (role, text) = line(self.readiness(now));
        pen.put(pen.line(role, text), below);
    }

    /// Takes in what was drawn, before the text moves.
    fn note(&mut self) {
        self.is_read |= self.text.is_end_visible();
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
        } else if self.is_read || self.text.is_end_visible() {
            Readiness::Ready
        } else {
            Readiness::Unread
        }
    }
}
