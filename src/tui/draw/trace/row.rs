//! One line of the trace.

use ratatui::text::{Line, Span};

use crate::model::traffic::{Direction, Glance, Passed};
use crate::tui::draw::words::Words;
use crate::tui::state::trace::{Item, What};
use crate::tui::theme::Meaning;
use crate::util::units::{show_duration, show_size};
use crate::util::{moment, text};

/// Which columns there is room for, and how wide they are.
#[derive(Debug, Clone, Copy)]
pub(in crate::tui::draw) struct Columns {
    width: usize,
    /// To the millisecond.
    exact: bool,
    time: bool,
    server: usize,
    size: bool,
}

/// What a latency takes: `1.25 ms`.
const LATENCY: usize = 8;
/// What a size takes: `1023.9 KiB`.
const SIZE: usize = 11;

impl Columns {
    /// For so many cells.
    pub(in crate::tui::draw) fn of(width: usize) -> Self {
        let server = if width >= 90 { 12 } else { 9 };
        Self { width, exact: width >= 76, time: width >= 50, server, size: width >= 76 }
    }

    /// The same for the wire of one server.
    pub(in crate::tui::draw) fn without_server(self) -> Self {
        Self { server: 0, ..self }
    }
}

/// One line, styled as a whole when it is the chosen one.
pub(in crate::tui::draw) fn row(
    words: &Words<'_>,
    item: &Item,
    columns: Columns,
    mark: Option<Meaning>,
) -> Line<'static> {
    let (sign, meaning) = sign(words, item);
    let pointer = if mark.is_some() { words.theme.pointer() } else { "  " };
    let mut left = vec![words.span(Meaning::Plain, pointer)];
    if columns.time {
        let time = if columns.exact { moment::time_exact(item.at) } else { moment::time(item.at) };
        left.push(words.span(Meaning::Dim, format!("{time} ")));
    }
    left.push(words.span(meaning, format!("{sign} ")));
    if columns.server > 0 {
        left.push(words.span(Meaning::Name, padded(&item.server, columns.server)));
    }
    let right = figures(words, item, columns);
    let taken = |spans: &[Span<'_>]| spans.iter().map(Span::width).sum::<usize>();
    let room = columns.width.saturating_sub(taken(&left) + taken(&right));
    let said = words.span(said_as(item), what(item));
    // What was cut ends in one character, or in three.
    let slack = if words.theme.ascii { 3 } else { 1 };
    let said = text::cut(&said.content, room.saturating_sub(slack)).into_owned();
    let said = words.span(said_as(item), said);
    let gap = " ".repeat(room.saturating_sub(said.width()));
    let spans = left.into_iter().chain([said, words.span(Meaning::Plain, gap)]).chain(right);
    match mark {
        Some(mark) => {
            let style = words.theme.style(mark);
            Line::from(spans.map(|span| span.style(style)).collect::<Vec<_>>())
        }
        None => Line::from(spans.collect::<Vec<_>>()),
    }
}

/// Which way it went, or what it is.
fn sign(words: &Words<'_>, item: &Item) -> (&'static str, Meaning) {
    let ascii = words.theme.ascii;
    match &item.what {
        What::Wire(Passed::Message { direction, .. } | Passed::Head { direction, .. }) => {
            let sign = match (direction, ascii) {
                (Direction::Sent, true) => "->",
                (Direction::Sent, false) => "→ ",
                (Direction::Received, true) => "<-",
                (Direction::Received, false) => "← ",
            };
            (sign, if item.is_bad { Meaning::Bad } else { Meaning::Plain })
        }
        What::Wire(Passed::Stderr(_)) => ("!!", Meaning::Doubt),
        What::Wire(Passed::Noise(_)) | What::Log { .. } => ("..", Meaning::Doubt),
        What::Wire(Passed::Opened(_) | Passed::Closed(_)) => ("**", Meaning::Title),
    }
}

fn said_as(item: &Item) -> Meaning {
    if item.is_bad { Meaning::Bad } else { Meaning::Plain }
}

/// What it is, in one line.
fn what(item: &Item) -> String {
    let about = &item.about;
    match &item.what {
        What::Wire(Passed::Message { glance, .. }) => {
            let number = glance.number().map(|id| format!("#{} ", few(&id))).unwrap_or_default();
            let word = few(glance.word());
            let gap = if about.is_empty() { "" } else { " " };
            match glance {
                Glance::Answer { method: Some(method), .. } => {
                    format!("{number}{word}{gap}{about}  of {}", few(method))
                }
                _ => format!("{number}{word}{gap}{about}"),
            }
        }
        What::Wire(Passed::Stderr(_)) => format!("stderr | {about}"),
        What::Wire(Passed::Noise(_)) => format!("noise | {about}"),
        What::Log { level, .. } => format!("log {level} | {about}"),
        What::Wire(_) => about.clone(),
    }
}

/// As much of a name as fits anywhere.
fn few(name: &str) -> &str {
    name.get(..name.floor_char_boundary(200)).unwrap_or_default()
}

/// How long it took and how large it was, at the right.
fn figures(words: &Words<'_>, item: &Item, columns: Columns) -> Vec<Span<'static>> {
    let latency = item.latency().map(show_duration).unwrap_or_default();
    let mut spans = Vec::new();
    if columns.size || !latency.is_empty() {
        spans.push(words.span(Meaning::Plain, format!("{latency:>LATENCY$}")));
    }
    if columns.size {
        let is_message = matches!(item.what, What::Wire(Passed::Message { .. }));
        let size = if is_message { show_size(item.size as u64) } else { String::new() };
        spans.push(words.span(Meaning::Dim, format!("{size:>SIZE$}")));
    }
    spans
}

/// A name in so many cells, with a space behind it.
fn padded(name: &str, width: usize) -> String {
    let safe = text::safe_line(name);
    let cut = text::cut(&safe, width.saturating_sub(1));
    let pad = " ".repeat(width.saturating_sub(text::width(&cut)));
    format!("{cut}{pad}")
}
