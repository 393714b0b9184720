//! The rows: a tool or a server each.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{quantile, share};
use crate::stats::Usage;
use crate::tui::draw::chart::sparkline;
use crate::tui::draw::columns::{self, Column};
use crate::tui::draw::pane;
use crate::tui::draw::words::Words;
use crate::tui::state::{Pane, State};
use crate::tui::theme::Meaning;
use crate::util::units::show_duration;

/// What stands in a column.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    Source,
    Calls,
    Now,
    Ok,
    Errors,
    Quantile(f64),
    Max,
    Mean,
    Rate,
    Trend,
}

const COLUMNS: [Column<Cell>; 13] = [
    column(Cell::Source, " FROM", 10, 4),
    column(Cell::Calls, "CALLS", 7, 0),
    column(Cell::Now, "NOW", 5, 9),
    column(Cell::Ok, "OK%", 7, 1),
    column(Cell::Errors, "ERR", 6, 3),
    column(Cell::Quantile(0.5), "P50", 9, 2),
    column(Cell::Quantile(0.9), "P90", 9, 10),
    column(Cell::Quantile(0.95), "P95", 9, 0),
    column(Cell::Quantile(0.99), "P99", 9, 7),
    column(Cell::Max, "MAX", 9, 8),
    column(Cell::Mean, "MEAN", 9, 11),
    column(Cell::Rate, "RATE/S", 8, 5),
    column(Cell::Trend, " P95 TREND", 12, 6),
];
/// The least cells of a name.
const NAME: usize = 12;

const fn column(what: Cell, title: &'static str, width: usize, spare: u8) -> Column<Cell> {
    Column { what, title, width, spare }
}

/// What a row is called.
pub(super) fn name_of(usage: &Usage, by_server: bool) -> &str {
    match (by_server, &usage.tool.server) {
        (false, _) => &usage.tool.name,
        (true, Some(server)) => server,
        (true, None) => "(no server)",
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let stats = &state.stats;
    let mut above = Vec::new();
    if let Some(fault) = &stats.fault {
        above.push(words.line(Meaning::Bad, format!("not read: {}", fault.message())));
        above.extend(
            fault.hint_text().map(|hint| words.line(Meaning::Dim, format!("hint: {hint}"))),
        );
    }
    above.extend(stats.notes.iter().map(|note| words.line(Meaning::Doubt, format!("! {note}"))));
    if stats.seen.as_ref().is_some_and(|seen| seen.summary.behind) {
        above.push(words.line(Meaning::Doubt, "! more calls wait in the spool; they come next"));
    }
    if stats.rows().is_empty() {
        let said = match (&stats.seen, &stats.fault) {
            (Some(_), _) => {
                "no call in this window: 'w' takes another one, '1' shows tools to call"
            }
            (None, None) => "reading what was counted",
            (None, Some(_)) => "",
        };
        above.push(words.line(Meaning::Dim, said));
        return pane::scrolled(frame, words, area, &above, 0);
    }
    let mut y = area.y;
    for line in above.into_iter().take(usize::from(area.height / 3)) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
        y += 1;
    }
    let room = usize::from(area.width).saturating_sub(2);
    let all: Vec<Column<Cell>> =
        COLUMNS.into_iter().filter(|c| !(stats.by_server && c.what == Cell::Source)).collect();
    let (kept, first) = columns::fitting(&all, room, NAME);
    if y < area.bottom() {
        let head = head(words, &kept, first, stats.by_server);
        frame.render_widget(head, Rect { y, height: 1, ..area });
        y += 1;
    }
    let height = usize::from(area.bottom().saturating_sub(y));
    let from = stats.list.first(height, stats.rows().len());
    for (at, usage) in stats.rows().iter().enumerate().skip(from).take(height) {
        let line = row(words, state, usage, at == stats.list.chosen(), &kept, first);
        frame.render_widget(line, Rect { y, height: 1, ..area });
        y += 1;
    }
}

fn head(words: &Words<'_>, kept: &[Column<Cell>], first: usize, by_server: bool) -> Line<'static> {
    let name = if by_server { "SERVER" } else { "TOOL" };
    let mut said = columns::left(&format!("  {name}"), first + 2);
    for column in kept {
        said.push_str(&if column.title.starts_with(' ') {
            columns::left(column.title, column.width)
        } else {
            columns::right(column.title, column.width)
        });
    }
    words.line(Meaning::Dim, said)
}

fn row(
    words: &Words<'_>,
    state: &State,
    usage: &Usage,
    is_chosen: bool,
    kept: &[Column<Cell>],
    first: usize,
) -> Line<'static> {
    let stats = &state.stats;
    let pointer = if is_chosen { words.theme.pointer() } else { "  " };
    let named = match (is_chosen, state.shell.focus == Pane::Usage) {
        (true, true) => Meaning::Chosen,
        (true, false) => Meaning::Marked,
        _ => Meaning::Plain,
    };
    let name = columns::left(name_of(usage, stats.by_server), first);
    let mut spans = vec![words.span(named, format!("{pointer}{name}"))];
    spans.extend(kept.iter().map(|column| cell(words, state, usage, column)));
    Line::from(spans)
}

fn cell(words: &Words<'_>, state: &State, usage: &Usage, column: &Column<Cell>) -> Span<'static> {
    let counts = &usage.counts;
    let durations = &counts.durations;
    let (said, meaning) = match column.what {
        Cell::Source => {
            let source = usage.tool.server.as_deref().unwrap_or("local");
            return words.span(Meaning::Dim, columns::left(&format!(" {source}"), column.width));
        }
        Cell::Trend => {
            let course = state.stats.course_of(&usage.tool);
            let times = course.iter().map(|p| p.p95.map_or(0.0, |p95| p95.as_secs_f64()));
            let times: Vec<f64> = times.collect();
            let drawn = sparkline(&times, column.width - 1, words.theme.ascii);
            return words.span(Meaning::Name, columns::left(&format!(" {drawn}"), column.width));
        }
        Cell::Calls => (counts.calls().to_string(), Meaning::Plain),
        Cell::Now => {
            let is_own = |tool: &str| match &usage.tool.server {
                Some(server) if state.stats.by_server => {
                    tool.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with('-'))
                }
                _ => tool == usage.tool.name,
            };
            match state.shell.calls.running().filter(|call| is_own(&call.tool)).count() {
                0 => (String::new(), Meaning::Dim),
                running => (running.to_string(), Meaning::Doubt),
            }
        }
        Cell::Ok if counts.failed() == 0 => (share(counts), Meaning::Good),
        Cell::Ok => (share(counts), Meaning::Doubt),
        Cell::Errors if counts.failed() == 0 => ("0".to_owned(), Meaning::Dim),
        Cell::Errors => (counts.failed().to_string(), Meaning::Bad),
        Cell::Quantile(share) => quantile(durations, share),
        Cell::Max => (durations.max().map(show_duration).unwrap_or_default(), Meaning::Plain),
        Cell::Mean => (durations.mean().map(show_duration).unwrap_or_default(), Meaning::Plain),
        Cell::Rate => {
            let rate = state.stats.rate_of(usage).unwrap_or_default();
            (super::per_second(rate), Meaning::Plain)
        }
    };
    words.span(meaning, columns::right(&said, column.width))
}
