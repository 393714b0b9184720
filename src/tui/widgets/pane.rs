//! Shared parts of all panes: the frame with its title, an input row, and a placeholder text.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use crate::tui::theme::{ColourScheme, StyleRole, Theme};
use crate::tui::widgets::page;
use crate::tui::widgets::scroll_text::ScrollPosition;
use crate::util::text;

/// Draws the frame and returns the area inside.
pub fn open(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    title: &str,
    focused: bool,
) -> Rect {
    open_with(frame, styler, area, title, None, focused)
}

/// The frame of a window that asks something, in the colour of what it asks.
pub fn window(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    title: &str,
    role: StyleRole,
) -> Rect {
    let inner = open_with(frame, styler, area, "", Some(&(role, title.to_owned())), true);
    if styler.theme.palette != ColourScheme::Mono {
        let style = styler.theme.style(role);
        for at in area.positions().filter(|at| !inner.contains(*at)) {
            let cell = &mut frame.buffer_mut()[at];
            // The badge keeps its own.
            if cell.bg == Color::Reset {
                cell.set_style(style);
            }
        }
    }
    inner
}

/// The same, with a badge behind the first word of the title.
pub fn open_with(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    title: &str,
    chip: Option<&(StyleRole, String)>,
    focused: bool,
) -> Rect {
    let title_role = if focused { StyleRole::Name } else { StyleRole::Title };
    let (first, rest) = match chip {
        Some(_) => title.split_at(title.find(' ').unwrap_or(title.len())),
        None => (title, ""),
    };
    let mut title = vec![styler.span(title_role, first)];
    if let Some((role, word)) = chip {
        title.extend([styler.span(StyleRole::Plain, " "), styler.chip(*role, word)]);
    }
    title.push(styler.span(StyleRole::Title, rest));
    let meaning = if focused { StyleRole::FocusedFrame } else { StyleRole::Frame };
    if !styler.frames {
        let [head, inner] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        frame.render_widget(Line::from(title), head);
        return inner;
    }
    title.insert(0, styler.span(StyleRole::Plain, " "));
    title.push(styler.span(StyleRole::Plain, " "));
    let title = Line::from(title);
    let block = Block::bordered()
        .border_set(styler.theme.border(focused))
        .border_style(styler.theme.style(meaning))
        .title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// Takes the colours from what is behind a window.
pub fn dim(frame: &mut Frame<'_>, theme: Theme) {
    if theme.palette == ColourScheme::Mono {
        return;
    }
    let style = theme.style(StyleRole::Dim);
    let area = frame.area();
    // The footer has the keys of the window.
    for at in area.positions().filter(|at| at.y + 1 < area.bottom()) {
        let cell = &mut frame.buffer_mut()[at];
        cell.set_style(Style::reset());
        cell.set_style(style);
    }
}

/// A row of a list: filled to its end when it is the chosen one, which says whether the list has the
/// focus.
pub fn chosen(
    styler: &Styler<'_>,
    mut line: Line<'static>,
    focused: Option<bool>,
    room: usize,
) -> Line<'static> {
    let role = match focused {
        None => return line,
        Some(true) => StyleRole::Selected,
        Some(false) => StyleRole::SelectedUnfocused,
    };
    line.spans.push(styler.span(StyleRole::Plain, " ".repeat(room)));
    let style = styler.theme.style(role);
    let own = |span: Span<'static>| match span.style.bg {
        Some(_) => span,
        None => span.patch_style(style),
    };
    Line::from(line.spans.into_iter().map(own).collect::<Vec<_>>())
}

/// Draws a line being edited, and its error.
pub fn prompt(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    written: &crate::tui::widgets::input::LineInput,
    problem: Option<&str>,
    area: Rect,
) {
    let (before, behind) = written.split();
    let role = if written.is_selected() { StyleRole::SelectedUnfocused } else { StyleRole::Plain };
    let mut spans = vec![styler.span(StyleRole::Key, "/ "), styler.span(role, before)];
    let at: usize = spans.iter().map(ratatui::text::Span::width).sum();
    spans.push(styler.span(StyleRole::Plain, behind));
    spans.extend(problem.map(|problem| styler.span(StyleRole::Error, format!("  {problem}"))));
    frame.render_widget(Line::from(spans), area);
    let x = area.x + u16::try_from(at).unwrap_or(0).min(area.width.saturating_sub(1));
    frame.set_cursor_position((x, area.y));
}

/// Draws short text from the start and says how much does not fit.
pub fn paragraph(frame: &mut Frame<'_>, styler: &Styler<'_>, area: Rect, lines: &[Line<'static>]) {
    page::draw_lines(frame, styler, lines, &ScrollPosition::default(), area);
}

/// Asks for a line of text on the last row; gives the rows above it.
pub fn input_row(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    question: &str,
    line: &crate::tui::widgets::input::LineInput,
) -> Rect {
    if area.is_empty() {
        return area;
    }
    let (before, behind) = line.split();
    let asked = [styler.span(StyleRole::Key, question), styler.span(StyleRole::Plain, before)];
    let cursor: usize = asked.iter().map(ratatui::text::Span::width).sum();
    let place = Rect { y: area.bottom() - 1, height: 1, ..area };
    let behind = styler.span(StyleRole::Plain, behind);
    let asked: Line<'static> = asked.into_iter().chain([behind]).collect();
    frame.render_widget(asked, place);
    let x = place.x + u16::try_from(cursor).unwrap_or(u16::MAX).min(place.width - 1);
    frame.set_cursor_position((x, place.y));
    Rect { height: area.height - 1, ..area }
}

/// The maximum number of lines of a text that are laid out.
const LINES: usize = 5_000;

/// Makes spans and lines that are safe for the terminal and styled by their role.
pub struct Styler<'a> {
    /// The theme, which decides colours and whether only ASCII is written.
    pub theme: &'a Theme,
    /// Whether panes have borders; the smallest terminals have no room for them.
    pub frames: bool,
}

impl<'a> Styler<'a> {
    pub fn new(theme: &'a Theme) -> Self {
        Self { theme, frames: true }
    }

    /// One piece of text on one line.
    pub fn span(&self, meaning: StyleRole, text: impl AsRef<str>) -> Span<'static> {
        let safe = text::safe_line(text.as_ref()).into_owned();
        let safe = if self.theme.ascii { ascii(&safe) } else { safe };
        Span::styled(safe, self.theme.style(meaning))
    }

    pub fn bold(&self, meaning: StyleRole, text: impl AsRef<str>) -> Span<'static> {
        self.span(meaning, text).add_modifier(Modifier::BOLD)
    }

    /// A small filled badge.
    pub fn chip(&self, meaning: StyleRole, text: impl AsRef<str>) -> Span<'static> {
        let span = self.span(meaning, format!(" {} ", text.as_ref()));
        Span::styled(span.content, self.theme.chip(meaning))
    }

    pub fn line(&self, meaning: StyleRole, text: impl AsRef<str>) -> Line<'static> {
        Line::from(self.span(meaning, text))
    }

    pub fn fact(&self, name: &str, value: impl AsRef<str>) -> Line<'static> {
        Line::from(vec![
            self.span(StyleRole::Dim, format!("{name:<10}")),
            self.span(StyleRole::Plain, value),
        ])
    }

    pub fn lines(&self, meaning: StyleRole, text: &str) -> Vec<Line<'static>> {
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
