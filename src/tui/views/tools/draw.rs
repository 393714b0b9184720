//! Draws the tools as a tree of their servers and kinds, or as what a filter finds.

use crate::model::{ServerState, ToolStatus};
use crate::present::messages;
use crate::tui::prelude::*;
use crate::tui::views::servers;
use crate::tui::views::tools::list::{ToolGroup, ToolLine, ToolRow, ToolSort, UsageFigures};
use crate::tui::views::trust;
use crate::tui::widgets::table::{ColumnSpec, TableLayout};

/// What is shown of the use of a tool behind its name; of one that is slow or not.
type UsageCell = fn(UsageFigures, bool) -> (String, Role);
const COLUMNS: [ColumnSpec<UsageCell>; 3] = [
    ColumnSpec::new("p50", 9, 1, |usage, is_slow| time(usage.p50, is_slow)),
    ColumnSpec::new("calls", 7, 3, |usage, _| (show_count(usage.calls), Role::Plain)),
    ColumnSpec::new("err", 5, 2, |usage, _| errors(usage.failed)),
];
/// The cells before a name: the pointer and the indentation.
const BEFORE: usize = 4;

pub fn draw(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let catalogue = &state.tools.catalogue;
    let mut title = format!("Tools {}", shown_of(catalogue.found.len(), catalogue.rows.len()));
    if !catalogue.order().is_empty() {
        title = format!("{title}  {}", catalogue.order());
    }
    let inner = pen.open(area, &title);
    // Columns go before names are cut.
    let first = catalogue.widest_name().min(usize::from(inner.width).saturating_sub(BEFORE));
    let figures = if catalogue.usage.is_empty() { &[] } else { &COLUMNS[..] };
    let mut layout = TableLayout::of(figures, usize::from(inner.width), first + BEFORE + 1);
    if catalogue.sort == ToolSort::P95
        && let Some(column) = layout.columns.first_mut()
    {
        let p95: UsageCell = |usage, is_slow| time(usage.p95, is_slow);
        (column.what, column.title) = (p95, "p95");
    }
    headings(pen, &layout.columns, area, text::width(&title));
    activity(pen, state, area);
    let rows = pen.filter(inner, &catalogue.filter, None);
    let rows = trust::notice(pen, state, rows);
    let lines = &catalogue.lines;
    if lines.is_empty() {
        let text = if catalogue.filter.is_shown() {
            NO_MATCHES
        } else {
            "No tools yet. Define them in tools.yaml,\nor servers in mcp.yaml; U reloads."
        };
        return pen.paragraph(rows, &pen.lines(Role::Dim, text));
    }
    let styler = pen.styler;
    pen.list(rows, catalogue.list, lines.len(), |at| match &lines[at] {
        ToolLine::Group(group) => heading(styler, state, group),
        ToolLine::Tool(row) => tool(styler, state, row, &layout),
    });
}

fn headings(pen: &mut Pen<'_>, columns: &[ColumnSpec<UsageCell>], area: Rect, title: usize) {
    let titles: String = columns.iter().map(|c| table::right(c.title, c.width)).collect();
    let width = cells(titles.len());
    if !pen.frames || columns.is_empty() || usize::from(area.width) < titles.len() + title + 6 {
        return;
    }
    let mut x = area.right().saturating_sub(width + 2);
    for column in columns {
        let own = cells(column.title.len()) + 1;
        let end = x + cells(column.width);
        // Up to the corner, which stays.
        let width = (own + 1).min(area.right().saturating_sub(end - own + 1));
        let place = Rect { x: end.saturating_sub(own), y: area.y, width, height: 1 };
        let text = format!(" {} ", column.title);
        pen.put(pen.line(Role::Dim, text), place);
        x = end;
    }
}

fn activity(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let seconds = state.live.all.by_second(state.context.now);
    let count: u64 = seconds.iter().sum();
    let text = format!(" {} in the last minute ", plural(count, "call", "calls"));
    let room = usize::from(area.width).saturating_sub(text.len() + 6).min(20);
    if !pen.frames || count == 0 || room < 6 {
        return;
    }
    let numbers: Vec<f64> = seconds.into_iter().map(float).collect();
    let line = Line::from(vec![
        pen.span(Role::Success, format!(" {}", chart::sparkline(&numbers, room).replace(' ', "▁"))),
        pen.dim(text),
    ]);
    let width = cells(line.width());
    pen.put(line, Rect { x: area.x + 2, y: area.bottom() - 1, width, height: 1 });
}

/// The line of a server or a kind: whether it is folded, how it is, and why not.
fn heading(styler: Styler, state: &AppState, group: &ToolGroup) -> Line<'static> {
    let fold = styler.theme.fold(!state.tools.catalogue.folded.contains(&group.name));
    let server = state.servers.find_by_name(&group.name).filter(|_| group.is_server);
    let (dot, role) = match server {
        Some(server) => servers::draw::dot(server),
        None => ("●", Role::Success),
    };
    let name = match server {
        Some(_) => Role::of_server(&group.name),
        None => Role::Plain,
    };
    let mut spans = vec![
        styler.dim(fold),
        styler.span(role, format!("{dot} ")),
        styler.bold(name, &group.name),
    ];
    let note = match server.map(|server| (&server.state, state.servers.error(server))) {
        Some((ServerState::Untrusted(_), _)) => (Role::Warning, "not trusted yet".to_owned()),
        Some((_, Some(error))) => (Role::Error, messages::in_one_line(error)),
        Some((ServerState::Starting, _)) => (Role::Warning, "connecting…".to_owned()),
        Some((ServerState::Idle, _)) if group.tools == 0 => (Role::Dim, "not started".to_owned()),
        Some((ServerState::Closed, _)) => (Role::Dim, "stopped".to_owned()),
        _ => (Role::Dim, plural(group.tools, "tool", "tools")),
    };
    spans.push(styler.span(note.0, format!("  {}", note.1)));
    Line::from(spans)
}

/// One tool: its name, what it does to the world, and how it was used.
fn tool(
    styler: Styler,
    state: &AppState,
    row: &ToolRow,
    layout: &TableLayout<UsageCell>,
) -> Line<'static> {
    let catalogue = &state.tools.catalogue;
    let is_tree = catalogue.is_tree();
    let name = if is_tree { row.short_name() } else { &row.name };
    let indent = if is_tree { "  " } else { "" };
    let role = match row.tool.status {
        ToolStatus::Unavailable | ToolStatus::Untrusted => Role::Dim,
        _ => Role::Plain,
    };
    let name = format!("{indent}{}", text::cut(name, layout.first.saturating_sub(BEFORE)));
    let mut spans = vec![styler.span(role, name)];
    let usage = catalogue.usage_of(row);
    // What was not used has no figures, which leaves their room to its marks.
    let figures = if usage.is_some() { 0 } else { layout.columns.iter().map(|c| c.width).sum() };
    // Behind the pointer.
    let room = (layout.first + figures).saturating_sub(2);
    let width = |spans: &[Span<'_>]| spans.iter().map(Span::width).sum::<usize>();
    let is_slow = state.stats.exceeded_speed_of(&row.tool).is_some();
    for (role, word) in marks(state, row) {
        if width(&spans) + word.len() + 4 <= room {
            spans.push(styler.plain("  "));
            spans.push(styler.chip(role, word));
        }
    }
    spans.push(styler.plain(" ".repeat(room.saturating_sub(width(&spans)))));
    if let Some(usage) = usage {
        spans.extend(layout.cells(styler, |column| (column.what)(usage, is_slow)));
    }
    Line::from(spans)
}

/// What one should know of a tool before it is called.
pub fn marks(state: &AppState, row: &ToolRow) -> Vec<(Role, &'static str)> {
    let tool = &row.tool;
    let claims = &tool.annotations;
    let mut marks = Vec::new();
    if state.context.breakpoints.iter().any(|rule| rule.is_about(&tool.name)) {
        marks.push((Role::Question, "BREAK"));
    }
    match tool.status {
        ToolStatus::Unavailable => marks.push((Role::Error, "UNAVAILABLE")),
        ToolStatus::Drifted | ToolStatus::Changed => marks.push((Role::Warning, "CHANGED")),
        _ => {}
    }
    if claims.destructive == Some(true) {
        marks.push((Role::Error, "DESTRUCTIVE"));
    } else if claims.read_only == Some(false) {
        marks.push((Role::Warning, "WRITE"));
    }
    if tool.requires_approval {
        marks.push((Role::Warning, "ASKS"));
    }
    if state.stats.exceeded_speed_of(tool).is_some() {
        marks.push((Role::Warning, "SLOW"));
    }
    marks
}

fn time(time: Option<Duration>, is_slow: bool) -> (String, Role) {
    let role = if is_slow { Role::Warning } else { Role::Plain };
    time.map_or(("-".to_owned(), Role::Dim), |time| (show_duration(time), role))
}

fn errors(failed: u64) -> (String, Role) {
    if failed == 0 { ("-".to_owned(), Role::Dim) } else { (show_count(failed), Role::Error) }
}

/// What there is to say of the group under the cursor: its server's health.
pub fn group_lines(
    styler: Styler,
    state: &AppState,
    width: usize,
) -> Option<(String, Vec<Line<'static>>)> {
    let group = state.tools.catalogue.chosen_group()?;
    let server = state.servers.find_by_name(&group.name).filter(|_| group.is_server);
    let lines = match server {
        Some(server) => servers::draw::facts(styler, state, server, width),
        None => vec![styler.line(Role::Dim, "Enter folds and unfolds.")],
    };
    Some((group.name.clone(), lines))
}
