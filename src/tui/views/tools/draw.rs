//! Draws the tools as a tree of their servers and kinds, or as what a filter finds.

use crate::model::{ServerState, ToolStatus};
use crate::present::table::GAP;
use crate::present::{TableColumn, TableLayout, messages};
use crate::tui::prelude::*;
use crate::tui::views::tools::list::{
    ToolGroup, ToolLine, ToolListState, ToolRow, ToolSort, UsageFigures,
};
use crate::tui::views::{servers, trust};

/// What is shown of the use of a tool behind its name; of one that is slow or not.
type UsageCell = fn(UsageFigures, bool) -> present::Line;

fn columns(catalogue: &ToolListState) -> [(TableColumn, usize, UsageCell); 3] {
    let figures = || catalogue.usage.values().flatten().map(|(_, figures)| figures);
    let widest = |count: fn(&UsageFigures) -> u64| {
        figures().map(|figures| show_count(count(figures)).len()).max().unwrap_or(0)
    };
    let column = |title, rank| TableColumn::new(title).right().droppable(rank);
    let times: (TableColumn, usize, UsageCell) = match catalogue.sort {
        ToolSort::P95 => (column("p95", 1), 7, |usage, is_slow| time(usage.p95, is_slow)),
        _ => (column("p50", 1), 7, |usage, is_slow| time(usage.p50, is_slow)),
    };
    [
        times,
        (column("calls", 3), widest(|figures| figures.calls), |usage, _| {
            show_count(usage.calls).into()
        }),
        (column("err", 2), widest(|figures| figures.failed), |usage, _| errors(usage.failed)),
    ]
}

/// The names of tools and what stands behind them.
struct ToolColumns {
    /// The cells of a name, with what is before it.
    name: usize,
    cells: [(TableColumn, usize, UsageCell); 3],
    layout: TableLayout,
}

/// The cells before a name: the pointer, and in the tree the mark and the dot of its group.
fn before(catalogue: &ToolListState) -> usize {
    if catalogue.is_tree() { 6 } else { 2 }
}

pub fn draw(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let catalogue = &state.tools.catalogue;
    let mut title = format!("Tools {}", shown_of(catalogue.found.len(), catalogue.rows.len()));
    if !catalogue.order().is_empty() {
        title = format!("{title}  {}", catalogue.order());
    }
    let inner = pen.open(area, &title);
    // Columns go before names are cut.
    let width = usize::from(inner.width);
    let before = before(catalogue);
    let first = catalogue.widest_name().min(width.saturating_sub(before)) + before + 1;
    let cells = columns(catalogue);
    let figures = if catalogue.usage.is_empty() { &[] } else { &cells[..] };
    let figures = figures.iter().map(|(column, cells, _)| (column.clone(), *cells));
    let layout = TableLayout::of(figures, Some(width.saturating_sub(first + GAP)));
    let name = width - figures_width(&layout);
    let columns = ToolColumns { name, cells, layout };
    headings(pen, &columns.layout, area, text::width(&title));
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
        ToolLine::Group(group) => heading(styler, state, group, rows.width.into()),
        ToolLine::Tool(row) => tool(styler, state, row, &columns),
    });
}

/// The cells that the figures take with the gap before them.
fn figures_width(layout: &TableLayout) -> usize {
    match layout.head().width() {
        0 => 0,
        width => width + GAP,
    }
}

/// The headings of the figures, in the frame.
fn headings(pen: &mut Pen<'_>, layout: &TableLayout, area: Rect, title: usize) {
    let head = layout.head();
    if !pen.frames || head.is_empty() || usize::from(area.width) < head.width() + title + 8 {
        return;
    }
    let mut x = area.right().saturating_sub(cells(head.width()) + 2);
    for (role, text) in head.spans() {
        let width = cells(text::width(text));
        if *role == Role::Title {
            // Up to the corner, which stays.
            let width = (width + 2).min((area.right() - 1).saturating_sub(x - 1));
            let place = Rect { x: x - 1, y: area.y, width, height: 1 };
            pen.put(pen.line(Role::Dim, format!(" {text} ")), place);
        }
        x += width;
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
fn heading(styler: Styler, state: &AppState, group: &ToolGroup, width: usize) -> Line<'static> {
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
    // Behind the pointer.
    let room = width.saturating_sub(2 + spans.iter().map(Span::width).sum::<usize>());
    let text = styler.cell(&format!("  {}", note.1), room);
    spans.push(styler.span(note.0, text.trim_end()));
    Line::from(spans)
}

/// The letters that are left of a mark that does not fit.
const CUT_MARK: usize = 5;

/// One tool: its name, what it does to the world, and how it was used.
fn tool(styler: Styler, state: &AppState, row: &ToolRow, columns: &ToolColumns) -> Line<'static> {
    let catalogue = &state.tools.catalogue;
    let is_tree = catalogue.is_tree();
    let name = if is_tree { row.short_name() } else { &row.name };
    let indent = if is_tree { "    " } else { "" };
    let role = match row.tool.status {
        ToolStatus::Unavailable | ToolStatus::Untrusted => Role::Dim,
        _ => Role::Plain,
    };
    let name = format!(
        "{indent}{}",
        styler.cell(name, columns.name.saturating_sub(before(catalogue))).trim_end()
    );
    let mut spans = vec![styler.span(role, name)];
    let width = |spans: &[Span<'_>]| spans.iter().map(Span::width).sum::<usize>();
    let marks = marks(state, row);
    // Behind the pointer.
    let room = columns.name.saturating_sub(2);
    let left = |spans: &[Span<'_>], room: usize| room.saturating_sub(width(spans) + 4);
    // A warning goes before figures; and what was not used has none, which leaves their room to its marks.
    let is_hidden =
        |(role, _): &(Role, &str)| *role == Role::Error && left(&spans, room) < CUT_MARK;
    let usage = catalogue.usage_of(row).filter(|_| !marks.first().is_some_and(is_hidden));
    let figures = if usage.is_some() { 0 } else { figures_width(&columns.layout) };
    let room = room + figures;
    let is_slow = state.stats.exceeded_speed_of(&row.tool).is_some();
    for (role, word) in marks {
        let left = left(&spans, room);
        if word.len() <= left || left >= CUT_MARK {
            spans.push(styler.plain("  "));
            let shown = if word.len() <= left { word.len() } else { CUT_MARK };
            spans.push(styler.chip(role, word.get(..shown).unwrap_or(word)));
        }
    }
    spans.push(styler.plain(" ".repeat(room.saturating_sub(width(&spans)))));
    if let Some(usage) = usage {
        let cells = columns.cells.iter().map(|(.., cell)| cell(usage, is_slow));
        spans.push(styler.plain(" ".repeat(GAP)));
        spans.extend(styler.row(&columns.layout, cells));
    }
    Line::from(spans)
}

/// What one should know of a tool before it is called.
pub fn marks(state: &AppState, row: &ToolRow) -> Vec<(Role, &'static str)> {
    let tool = &row.tool;
    let claims = &tool.annotations;
    let mut marks = Vec::new();
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
    if state.context.breakpoints.iter().any(|rule| rule.is_about(&tool.name)) {
        marks.push((Role::Question, "BREAK"));
    }
    if tool.requires_approval {
        marks.push((Role::Warning, "ASKS"));
    }
    if tool.requires_task {
        marks.push((Role::Hint, "TASK"));
    }
    if state.stats.exceeded_speed_of(tool).is_some() {
        marks.push((Role::Warning, "SLOW"));
    }
    marks
}

fn time(time: Option<Duration>, is_slow: bool) -> present::Line {
    let role = if is_slow { Role::Warning } else { Role::Plain };
    time.map_or_else(nothing, |time| present::Line::styled(role, show_duration(time)))
}

fn errors(failed: u64) -> present::Line {
    if failed == 0 { nothing() } else { present::Line::styled(Role::Error, show_count(failed)) }
}

fn nothing() -> present::Line {
    present::Line::styled(Role::Dim, "-")
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
