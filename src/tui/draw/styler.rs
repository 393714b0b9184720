//! Sanitised and styled text for the screen.

use ratatui::style::{Modifier, Stylize as _};
use ratatui::text::{Line, Span};

use crate::tui::theme::{StyleRole, Theme};
use crate::util::text;

/// The maximum number of lines of a text that are laid out.
const LINES: usize = 5_000;

/// Makes spans and lines that are safe for the terminal and styled by their role.
pub(super) struct Styler<'a> {
    /// The theme, which decides colours and whether only ASCII is written.
    pub(super) theme: &'a Theme,
    /// Whether panes have borders; the smallest terminals have no room for them.
    pub(super) frames: bool,
}

impl<'a> Styler<'a> {
    pub(super) fn new(theme: &'a Theme) -> Self {
        Self { theme, frames: true }
    }

    /// One piece of text on one line.
    pub(super) fn span(&self, meaning: StyleRole, text: impl AsRef<str>) -> Span<'static> {
        let safe = text::safe_line(text.as_ref()).into_owned();
        let safe = if self.theme.ascii { ascii(&safe) } else { safe };
        Span::styled(safe, self.theme.style(meaning))
    }

    pub(super) fn bold(&self, meaning: StyleRole, text: impl AsRef<str>) -> Span<'static> {
        self.span(meaning, text).add_modifier(Modifier::BOLD)
    }

    /// A small filled badge.
    pub(super) fn chip(&self, meaning: StyleRole, text: impl AsRef<str>) -> Span<'static> {
        let span = self.span(meaning, format!(" {} ", text.as_ref()));
        Span::styled(span.content, self.theme.chip(meaning))
    }

    pub(super) fn line(&self, meaning: StyleRole, text: impl AsRef<str>) -> Line<'static> {
        Line::from(self.span(meaning, text))
    }

    pub(super) fn fact(&self, name: &str, value: impl AsRef<str>) -> Line<'static> {
        Line::from(vec![
            self.span(StyleRole::Dim, format!("{name:<10}")),
            self.span(StyleRole::Plain, value),
        ])
    }

    pub(super) fn lines(&self, meaning: StyleRole, text: &str) -> Vec<Line<'static>> {
        text.lines().take(LINES).map(|line| self.line(meaning, line)).collect()
    }
}

fn ascii(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '…' => out.push_str("..."),
            '·' => out.push('-'),
            'µ' => out.push('u'),
            '→' => out.push_str("->"),
            '●' => out.push('*'),
            '◐' => out.push('~'),
            '○' => out.push('o'),
            '✗' => out.push('x'),
            '✓' => out.push('+'),
            '›' | '▸' | '▹' => out.push('>'),
            '‹' => out.push('<'),
            '↑' => out.push('^'),
            '▾' | '↓' => out.push('v'),
            c if c.is_ascii() => out.push(c),
            // Writing into a string cannot fail.
            c => drop(write!(out, "<U+{:04X}>", u32::from(c))),
        }
    }
    out
}
