//! Draws the result pane of the selected tool.

use ratatui::text::Text;

use crate::bench::formatting::per_second;
use crate::present::page::json_role;
use crate::tui::calls::{CallProgress, ConsoleCall, LIVE_SECONDS, LiveToolCalls, OtherCall};
use crate::tui::prelude::*;
use crate::tui::views::result::presentation::{ResultBody, ResultFormat, schema_verdict};
use crate::tui::views::result::{ResultInput, ResultViewer, log_lines, nested_calls};
use crate::tui::widgets::json_tree::{JsonTree, JsonTreeNode};

pub fn draw(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let viewer = &state.tools.viewer;
    let tool = state.tools.subject();
    if let Some(document) = tool.and_then(|tool| viewer.dry_run_of(tool)) {
        let inner = pen.open(area, "Dry run  (not sent)");
        return pen.text(document, inner);
    }
    let Some((tool, call)) =
        tool.and_then(|tool| Some((tool, viewer.call(tool, &state.context.calls)?)))
    else {
        let inner = pen.open(area, "Result");
        let inner = live_line(pen, state, inner);
        let lines = nothing(pen.styler, state, inner.height);
        return pen.paragraph(inner, &lines);
    };
    let chip;
    let mut title = match call.outcome.as_deref() {
        None => {
            let status = status_text(pen.styler, state, call);
            chip = (Role::Warning, status.replacen("running", "RUNNING", 1));
            "Result".to_owned()
        }
        Some(Ok(outcome)) => {
            let took = show_duration(outcome.metadata.duration);
            chip = match outcome.error() {
                None => (Role::Success, format!("OK {took}")),
                Some(error) if error.is_cancelled() => (Role::Warning, format!("CANCELLED {took}")),
                Some(_) => (Role::Error, format!("FAILED {took}")),
            };
            let verdict = schema_verdict(outcome).map(|verdict| format!("  {verdict}"));
            format!("Result{}", verdict.unwrap_or_default())
        }
        Some(Err(_)) => {
            chip = (Role::Error, "NOT CALLED".to_owned());
            "Result".to_owned()
        }
    };
    let all = state.context.calls.all_of(tool).count();
    if all > 1 {
        title = format!("{title}  {} of {all}", all - viewer.newer_calls);
    }
    // An error has only one format.
    let has_faces = matches!(call.outcome.as_deref(), Some(Ok(outcome)) if outcome.result.is_ok());
    if viewer.format != ResultFormat::Best && has_faces {
        title = format!("{title}  {}", viewer.format.title());
    }
    if let Some(table) = viewer.table() {
        title = format!("{title}  {}", table::summary(table));
    }
    for note in notes(viewer) {
        title = format!("{title}  {note}");
    }
    let inner = pen.open_with(area, &title, Some(&chip));
    let inner = live_line(pen, state, inner);
    let inner = match viewer.typing {
        Some(ResultInput::Search) => pen.input_row(inner, "/", &viewer.search.line),
        Some(ResultInput::Filter) => pen.input_row(inner, "jq ", &viewer.filter.line),
        None => inner,
    };
    if call.outcome.is_none() {
        let lines = lines(pen.styler, state, call, usize::from(inner.width));
        return pen.page(&lines, &viewer.position, inner);
    }
    match viewer.shown() {
        ResultBody::Text(text) => {
            let inner = filter_error(pen, viewer, inner);
            pen.text(text, inner);
        }
        ResultBody::Table(table) => table::draw(pen, table, inner),
        ResultBody::Tree(shown) => tree(pen, shown, inner),
    }
}

fn nothing(styler: Styler, state: &AppState, height: u16) -> Vec<Line<'static>> {
    let chosen = state.tools.catalogue.chosen();
    let keys: &[_] = match (&state.tools.form, chosen) {
        (Some(form), _) if form.json.is_some() => &[("F5", "runs it")],
        (Some(_), _) => &[("Enter", "on the last field runs it"), ("F5", "runs it at once")],
        (None, Some(_)) => {
            &[("Enter", "fills in its arguments and runs it"), ("b", "benchmarks it")]
        }
        (None, None) => &[("/", "finds a tool"), (":", "finds anything")],
    };
    let text = match chosen.map(|row| state.tools.catalogue.usage_of(row)) {
        None => "No tool chosen.",
        Some(None) => "Not called yet.",
        Some(Some(_)) => "Not called in this session.",
    };
    styler.empty(text, keys, height)
}

/// What is applied to the shown result: search, filter, comparison.
fn notes(viewer: &ResultViewer) -> Vec<String> {
    let compared = viewer.difference.as_ref().map(|_| "compared with the previous call".to_owned());
    let filter = viewer.filter.line.text().trim();
    let filtered =
        (!filter.is_empty() && compared.is_none()).then(|| match viewer.filter.results {
            1 => format!("jq {filter}  1 value"),
            results => format!("jq {filter}  {results} values"),
        });
    [viewer.search.summary(), compared, filtered].into_iter().flatten().collect()
}

fn filter_error(pen: &mut Pen<'_>, viewer: &ResultViewer, area: Rect) -> Rect {
    let error = viewer.filter.error.as_ref().filter(|_| viewer.is_filtered());
    let Some(error) = error.filter(|_| !area.is_empty()) else { return area };
    let line = pen.line(Role::Error, format!("! {error}"));
    pen.put(line, Rect { height: 1, ..area });
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

fn tree(pen: &mut Pen<'_>, tree: &JsonTree, area: Rect) {
    let height = usize::from(area.height);
    let first = pen.selectable(area, tree.list, tree.len());
    for ((at, node), place) in (first..).zip(tree.from(first)).zip(area.rows()) {
        let mark = pen.mark(at == tree.list.chosen());
        pen.put(leaf(pen.styler, node, mark, usize::from(place.width)), place);
    }
    if tree.is_cut && first + height >= tree.len() && !area.is_empty() {
        let place = Rect { y: area.bottom() - 1, height: 1, ..area };
        let text = "The rest is not shown; E saves all of it.";
        pen.put(pen.line(Role::Warning, text).right_aligned(), place);
    }
}

fn leaf(styler: Styler, node: &JsonTreeNode, mark: Option<Role>, width: usize) -> Line<'static> {
    let fold = if node.is_branch { styler.theme.fold(node.is_open) } else { "  " };
    let indent = "  ".repeat(node.depth.min(40));
    let colon = if node.key.is_empty() { "" } else { ": " };
    let value = if node.is_branch { Role::Dim } else { json_role(&node.text) };
    let (key, role) = (mark.unwrap_or(Role::JsonKey), mark.unwrap_or(value));
    let mut spans = vec![
        styler.dim(format!("{indent}{fold}")),
        styler.span(key, format!("{}{colon}", node.key)),
    ];
    let room = width.saturating_sub(spans.iter().map(Span::width).sum());
    spans.push(styler.span(role, styler.cell(&node.text, room).trim_end()));
    Line::from(spans)
}

const BAR: usize = 40;

/// `running` with the seconds since its start, and a spinner.
pub fn status_text(styler: Styler, state: &AppState, call: &ConsoleCall) -> String {
    let now = state.context.now;
    let since = call.activity.since.map(|since| now.saturating_sub(since));
    // Whole seconds: what changes less often is read more easily.
    let time = since.map(|since| format!(" {} s", since.as_secs())).unwrap_or_default();
    if state.context.appearance.has_reduced_motion {
        return format!("running{time}");
    }
    let turns =
        if styler.theme.ascii { ["|", "/", "-", "\\"] } else { ["◐", "◓", "◑", "◒"] };
    let turn = usize::try_from(now.subsec_millis() / 250).unwrap_or(0);
    format!("running{time} {}", turns[turn % turns.len()])
}

pub fn lines(
    styler: Styler,
    state: &AppState,
    call: &ConsoleCall,
    width: usize,
) -> Vec<Line<'static>> {
    let live = &call.activity;
    let mut lines = Vec::new();
    if let Some(progress) = &live.progress {
        lines.push(styler.line(Role::Success, bar(progress, width)));
        if let Some(message) = &progress.message {
            lines.push(styler.line(Role::Plain, message));
        }
    }
    if let Some(retry) = &live.retry {
        let left = retry.remaining(state.context.now);
        let text = format!("attempt {} failed: {}", retry.attempt, retry.reason);
        lines.push(styler.line(Role::Warning, text));
        let next = format!("attempt {} in {}", retry.attempt + 1, show_duration(left));
        lines.push(styler.line(Role::Plain, next));
    }
    if lines.is_empty() {
        let stop = cancel_key(state);
        lines.push(styler.line(Role::Dim, format!("waiting for a response; {stop} cancels")));
    }
    let reported = nested_calls(live, true).into_iter().chain(log_lines(live));
    lines.extend(reported.map(|(role, text)| styler.line(role, text)));
    lines
}

fn cancel_key(state: &AppState) -> String {
    let key = state.context.keys.key_of(Action::Cancel, &[&ANYWHERE]);
    key.map_or_else(|| "^C".to_owned(), |key| key.to_string())
}

fn bar(progress: &CallProgress, width: usize) -> String {
    let Some(share) = progress.share() else {
        return format!("progress {}", number(progress.at));
    };
    let [done, left] = chart::progress(share, width.saturating_sub(24).min(BAR));
    let total = progress.total.map(number).unwrap_or_default();
    format!("{done}{left} {:.0}%  {} of {total}", share * 100.0, number(progress.at))
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

/// The calls that run, to stop one of them.
pub fn list(pen: &mut Pen<'_>, state: &AppState, list: ListCursor, area: Rect) {
    let running: Vec<&ConsoleCall> = state.context.calls.running().collect();
    let others: Vec<&OtherCall> = state.others.running().collect();
    let count = running.len() + others.len();
    let size = (76, cells(count.clamp(1, 16)) + 4);
    let inner = pen.open_over(area, size, &format!("Running {count}"));
    let [above, below] = bottom(inner, 1);
    pen.put(pen.line(Role::Key, "Enter cancel call   Esc close"), below);
    if count == 0 {
        return pen.put(pen.line(Role::Dim, "No running calls."), above);
    }
    let mut list = list;
    list.choose(list.chosen(), running.len());
    // Those of other clients come below: only their clients can cancel them.
    let below = running.len() - list.first(usize::from(above.height), running.len());
    let styler = pen.styler;
    let name = |tool: &str| styler.cell(tool, 30) + "  ";
    for (place, call) in above.rows().skip(below).zip(others) {
        let seconds = state.context.now.saturating_sub(call.since).as_secs();
        let state = format!("running {seconds}s");
        let line = format!("  {}{state:<14}[{}]", name(&call.tool), call.client);
        pen.put(pen.line(Role::Dim, line), place);
    }
    pen.list(above, list, running.len(), |at| {
        let call = running[at];
        let text = match (&call.activity.retry, &call.activity.progress) {
            (Some(retry), _) => {
                let left = show_duration(retry.remaining(state.context.now));
                format!("attempt {} in {left}", retry.attempt + 1)
            }
            (None, Some(progress)) => {
                let share = progress.share().map(|share| format!("{:.0}% ", share * 100.0));
                let message = progress.message.as_deref().unwrap_or_default();
                format!("{}{message}", share.unwrap_or_default())
            }
            (None, None) => String::new(),
        };
        let status = status_text(styler, state, call);
        styler.line(Role::Plain, format!("{}{status:<14}{text}", name(&call.tool)))
    });
}

/// From how many calls on their rate is drawn, too.
const ENOUGH: u64 = 10;

/// Says above a result how its tool was called in this session; gives the rows below that.
pub fn live_line(pen: &mut Pen<'_>, state: &AppState, area: Rect) -> Rect {
    let tool = state.tools.subject().unwrap_or_default();
    let Some(calls) = state.live.of(tool).filter(|_| area.height >= 8) else { return area };
    let running = state.context.calls.running().filter(|call| call.tool == tool).count()
        + state.others.running().filter(|call| call.tool == tool).count();
    let now = calls.by_second(state.context.now);
    let width = usize::from(area.width);
    let mut lines = vec![counts(pen.styler, calls, running, width)];
    if calls.counts.calls() >= ENOUGH {
        lines.push(rate(pen.styler, &now, width));
    }
    let [above, below] = top(area, lines.len());
    pen.put(Text::from(lines), above);
    below
}

/// How often it was called and how long that took, as much as fits.
fn counts(styler: Styler, calls: &LiveToolCalls, running: usize, width: usize) -> Line<'static> {
    let counts = &calls.counts;
    let (failed, durations) = (counts.failed(), &counts.durations);
    let mut parts = vec![vec![styler.plain(format!("calls {}", show_count(counts.calls())))]];
    let role = if failed > 0 { Role::Error } else { Role::Dim };
    parts.push(vec![styler.span(role, format!("  errors {}", show_count(failed)))]);
    if counts.cancelled > 0 {
        let text = format!("  cancelled {}", show_count(counts.cancelled));
        parts.push(vec![styler.dim(text)]);
    }
    for (name, share) in [("p50", 0.5), ("p95", 0.95)] {
        if let Some(time) = durations.quantile(share) {
            let is_sure = durations.is_reliable_at(share);
            let (role, mark) = if is_sure { (Role::Plain, "") } else { (Role::Dim, "?") };
            let time = format!("{}{mark}", show_duration(time));
            parts.push(vec![styler.dim(format!("  {name} ")), styler.span(role, time)]);
        }
    }
    if running > 0 {
        parts.push(vec![styler.span(Role::Success, format!("  running {running}"))]);
    }
    for (client, count) in &calls.clients {
        let name = styler.span(Role::Name, format!("  [{client}] "));
        parts.push(vec![name, styler.plain(show_count(*count))]);
    }
    let mut line = Line::default();
    for part in parts.into_iter().map(Line::from) {
        if line.width() + part.width() <= width {
            line.extend(part);
        }
    }
    line
}

fn rate(styler: Styler, seconds: &[u64], width: usize) -> Line<'static> {
    let numbers: Vec<f64> = seconds.iter().map(|count| float(*count)).collect();
    let mean = float(seconds.iter().sum()) / float(LIVE_SECONDS);
    let text = format!(" {}/s in the last minute", per_second(mean));
    let cells = width.saturating_sub(5 + text.len()).min(seconds.len());
    Line::from(vec![
        styler.dim("rate "),
        styler.span(Role::Success, chart::sparkline(&numbers, cells)),
        styler.plain(text),
    ])
}
