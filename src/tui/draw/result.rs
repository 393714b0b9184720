//! Draws the result pane of the selected tool.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::styler::Styler;
use super::{live_calls, pane, result_table, running_calls, scroll_text};
use crate::tui::state::{
    AppState, JsonTree, JsonTreeNode, Pane, ResultFormat, ResultViewer, json_role, schema_verdict,
};
use crate::tui::theme::StyleRole;
use crate::util::units::show_duration;

pub(super) fn draw(frame: &mut Frame<'_>, styler: &Styler<'_>, state: &AppState, area: Rect) {
    let focused = state.context.focus == Pane::Result;
    let viewer = &state.tools.viewer;
    let tool = state.tools.subject();
    if let Some(document) = tool.and_then(|tool| viewer.dry_run_of(tool)) {
        let title = "Dry run  (not sent)";
        let inner = pane::open(frame, styler, area, title, focused);
        return scroll_text::draw(frame, styler, document, inner);
    }
    let Some((tool, call)) =
        tool.and_then(|tool| Some((tool, viewer.call(tool, &state.context.calls)?)))
    else {
        let inner = pane::open(frame, styler, area, "Result", focused);
        let inner = live_calls::draw(frame, styler, state, inner);
        return frame.render_widget(styler.line(StyleRole::Dim, nothing(state)), inner);
    };
    let chip;
    let mut title = match call.outcome.as_deref() {
        None => {
            let status = running_calls::status_text(styler, state, call);
            chip = (StyleRole::Warning, status.replacen("running", "RUNNING", 1));
            "Result".to_owned()
        }
        Some(Ok(outcome)) => {
            let took = show_duration(outcome.metadata.duration);
            chip = match outcome.error() {
                None => (StyleRole::Success, format!("OK {took}")),
                Some(error) if error.is_cancelled() => {
                    (StyleRole::Warning, format!("CANCELLED {took}"))
                }
                Some(_) => (StyleRole::Error, format!("FAILED {took}")),
            };
            let verdict = schema_verdict(outcome).map(|said| format!("  {said}"));
            format!("Result{}", verdict.unwrap_or_default())
        }
        Some(Err(_)) => {
            chip = (StyleRole::Error, "NOT CALLED".to_owned());
            "Result".to_owned()
        }
    };
    let all = state.context.calls.all_of(tool).count();
    if all > 1 {
        title = format!("{title}  {} of {all}", all - viewer.newer_calls);
    }
    // An error has only one format.
    let has_faces = matches!(call.outcome.as_deref(), Some(Ok(outcome)) if outcome.result.is_ok());
    if viewer.format != ResultFormat::Text && has_faces {
        title = format!("{title}  {}", viewer.format.title());
    }
    if let Some(table) = viewer.table.as_ref().filter(|_| viewer.shows_table()) {
        title = format!("{title}  {}", result_table::summary(table));
    }
    for note in notes(viewer) {
        title = format!("{title}  {note}");
    }
    let inner = pane::open_with(frame, styler, area, &title, Some(&chip), focused);
    let inner = live_calls::draw(frame, styler, state, inner);
    let inner = match (viewer.search.is_typing, viewer.filter.is_typing) {
        (true, _) => pane::input_row(frame, styler, inner, "/", &viewer.search.line),
        (_, true) => pane::input_row(frame, styler, inner, "jq ", &viewer.filter.line),
        _ => inner,
    };
    if call.outcome.is_none() {
        let lines = running_calls::lines(styler, state, call, usize::from(inner.width));
        scroll_text::draw_lines(frame, styler, &lines, &viewer.position, inner);
    } else if let Some(text) = viewer.shown_text() {
        let inner = filter_error(frame, styler, viewer, inner);
        scroll_text::draw(frame, styler, text, inner);
    } else if let Some(table) = &viewer.table {
        result_table::draw(frame, styler, table, focused, inner);
    } else {
        tree(frame, styler, &viewer.tree, focused, inner);
    }
}

fn nothing(state: &AppState) -> &'static str {
    match (&state.tools.form, state.tools.catalogue.chosen()) {
        (Some(_), _) => "Not called yet. Enter on the last field or F5 runs it.",
        (None, Some(_)) => "Not called yet. Enter fills in its arguments and runs it.",
        (None, None) => "Results of calls appear here.",
    }
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

fn filter_error(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    viewer: &ResultViewer,
    area: Rect,
) -> Rect {
    let error = viewer.filter.error.as_ref().filter(|_| viewer.filter.is_on());
    let Some(error) = error.filter(|_| !area.is_empty()) else { return area };
    let line = styler.line(StyleRole::Error, format!("! {error}"));
    frame.render_widget(line, Rect { height: 1, ..area });
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

fn tree(frame: &mut Frame<'_>, styler: &Styler<'_>, tree: &JsonTree, focused: bool, area: Rect) {
    let height = usize::from(area.height);
    let first = tree.list.first(height, tree.len());
    for (line, node) in tree.from(first).take(height).enumerate() {
        let y = area.y + u16::try_from(line).unwrap_or(0);
        let chosen = first + line == tree.list.chosen();
        let place = Rect { y, height: 1, ..area };
        frame.render_widget(leaf(styler, node, chosen, focused), place);
    }
    if tree.is_cut() && first + height >= tree.len() && !area.is_empty() {
        let place = Rect { y: area.bottom() - 1, height: 1, ..area };
        let text = "The rest is not shown; E saves all of it.";
        frame.render_widget(styler.line(StyleRole::Warning, text).right_aligned(), place);
    }
}

fn leaf(styler: &Styler<'_>, node: &JsonTreeNode, chosen: bool, focused: bool) -> Line<'static> {
    let fold = match (node.is_branch, node.is_open) {
        (true, true) => "- ",
        (true, false) => "+ ",
        (false, _) => "  ",
    };
    let indent = "  ".repeat(node.depth.min(40));
    let colon = if node.key.is_empty() { "" } else { ": " };
    let (key, value) = match (chosen, focused) {
        (true, true) => (StyleRole::Selected, StyleRole::Selected),
        (true, false) => (StyleRole::SelectedUnfocused, StyleRole::SelectedUnfocused),
        (false, _) => (StyleRole::JsonKey, StyleRole::Plain),
    };
    let role = if chosen {
        value
    } else if node.is_branch {
        StyleRole::Dim
    } else {
        json_role(&node.text)
    };
    Line::from(vec![
        styler.span(StyleRole::Dim, format!("{indent}{fold}")),
        styler.span(key, format!("{}{colon}", node.key)),
        styler.span(role, &node.text),
    ])
}
