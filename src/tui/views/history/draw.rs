//! Draws the history view: recorded calls, and the selected one.

use crate::present::{TableColumn, TableLayout};
use crate::tui::prelude::*;
use crate::tui::views::history::HistoryView;
use crate::tui::views::history::tasks::{PastCall, PastCalls};

pub fn draw(pen: &mut Pen<'_>, state: &AppState, shown: Pane, area: Rect) {
    match shown {
        Pane::HistoryList => list(pen, state, area),
        _ => entry(pen, &state.history, area),
    }
}

fn list(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let (history, projects) = (&state.history, state.context.shown_projects.title());
    let count = history.found().len();
    let mut title = format!("History {}", shown_of(count, history.calls().len()));
    if let Some(Ok(PastCalls { damaged, has_more, .. })) = &history.file {
        title.push_str(if *has_more { "+" } else { "" });
        title.extend(projects.iter().flat_map(|whose| ["  ", whose]));
        if *damaged > 0 {
            title = format!("{title}  {} damaged lines skipped", show_count(*damaged));
        }
    }
    let inner = pen.open(area, &title);
    let rows = pen.filter(inner, &history.list.filter, history.query.problem.as_deref());
    let problem = recording_problem(state);
    let [above, below] = top(rows, usize::from(problem.is_some()));
    if count == 0 {
        let lines = match problem {
            Some(problem) if history.calls().is_empty() => pen.lines(Role::Warning, &problem),
            _ => nothing(pen.styler, history),
        };
        return pen.paragraph(rows, &lines);
    }
    pen.put(pen.line(Role::Warning, problem.unwrap_or_default()), above);
    let rows = below;
    let [head, rows] = top(rows, 1);
    let (room, styler) = (usize::from(rows.width).saturating_sub(2), pen.styler);
    // How much of the time is shown: all of it, without the year, or the time of day.
    let skipped = [0, 5, 11].into_iter().find(|skipped| WHEN - skipped <= room / 5).unwrap_or(11);
    let widest = |text: fn(&PastCall) -> &str| {
        history.found().map(|call| text::width(text(call))).max().unwrap_or(0)
    };
    let column = TableColumn::new;
    // Beside the result and the arguments; all else goes before names are cut.
    let columns = [
        (column(" WHEN"), WHEN + 1 - skipped),
        (column("TOOL").shrinks_last_to(12), widest(|call| &call.tool).min(36)),
        (column("RESULT"), widest(|call| call.error.as_deref().unwrap_or("ok")).min(12)),
        (column("TOOK").right().droppable(2), 7),
        (column("FROM").droppable(4), widest(|call| &call.source).min(11)),
        (
            column("CLIENT").droppable(3),
            widest(|call| call.client.as_deref().unwrap_or("")).min(16),
        ),
        (column("ARGUMENTS").shrinks_to(ARGUMENTS), room),
    ];
    let layout = TableLayout::of(columns, Some(room));
    pen.put(pen.titles(&layout), head);
    pen.filtered(rows, &history.list, |at| {
        let call = &history.calls()[at];
        let mark = if history.marked.as_ref() == Some(&call.id) { "*" } else { " " };
        let result = match &call.error {
            None => present::Line::styled(Role::Success, "ok"),
            Some(kind) => present::Line::styled(Role::Error, kind),
        };
        let time = call.time.get(skipped..).unwrap_or_default();
        let cells = [
            present::Line::plain(mark).then(Role::Dim, time),
            present::Line::styled(Role::Name, &call.tool),
            result,
            present::Line::plain(show_duration(call.duration)),
            present::Line::styled(Role::Dim, &call.source),
            present::Line::styled(Role::Name, call.client.as_deref().unwrap_or_default()),
            present::Line::styled(Role::Dim, &call.arguments),
        ];
        styler.row(&layout, cells)
    });
}

/// The characters of a time such as `2026-11-27 00:33:19`.
const WHEN: usize = 19;
const ARGUMENTS: usize = 11;

fn recording_problem(state: &AppState) -> Option<String> {
    let Some(Ok(PastCalls { is_recording, .. })) = &state.history.file else { return None };
    state.context.calls.recording_problem("history", *is_recording)
}

fn nothing(styler: Styler, history: &HistoryView) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    match &history.file {
        None => lines.push(styler.line(Role::Dim, "reading")),
        Some(Err(error)) => {
            lines.push(styler.line(Role::Error, error.message()));
            let hint = error.hint();
            lines.extend(hint.map(|hint| styler.line(Role::Dim, format!("hint: {hint}"))));
        }
        Some(Ok(_)) if history.list.filter.text().is_empty() => {
            let keys = [("1", "tools: Enter calls one"), ("P", "the calls of all projects")];
            lines.extend(styler.empty("No calls yet.", &keys, 12));
        }
        Some(Ok(_)) => lines.push(styler.line(Role::Dim, NO_MATCHES)),
    }
    lines
}

fn entry(pen: &mut Pen<'_>, history: &HistoryView, area: Rect) {
    let inner = match &history.entry {
        _ if history.comparison.is_some() => pen.open(area, "Diff  (Esc closes it)"),
        Some(entry) => pen.open_tabs(area, &entry.tool, &tabs(history.format)),
        None => pen.open(area, "Call"),
    };
    pen.text(&history.details, inner);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tui::app::AppState;
    use crate::tui::event::{AppEvent, UserInput};
    use crate::tui::tests::drawing::{ASCII, picture};
    use crate::tui::tests::press;
    use crate::tui::theme::Theme;
    use crate::tui::views::history::tasks::PastCalls;
    use crate::tui::views::history::tests::{entry, opened, past, shown};

    fn sized(width: u16, height: u16) -> AppState {
        let mut state = shown();
        state.update(AppEvent::Input(UserInput::Resize { width, height }));
        let arguments = json!({ "expression": "1/0", "precision": 3 });
        let mut call = entry("c-3", "calculator", &arguments, &json!({ "value": null }));
        call.unix = f64::MAX;
        opened(&mut state, call);
        state.history.definition_checked("c-3", Ok(Some(true)));
        press(&mut state, &["j", "m", "k"]);
        state
    }

    #[test]
    fn the_history_in_120_by_40() {
        insta::assert_snapshot!(picture(&sized(120, 40), ASCII));
    }

    #[test]
    fn the_history_in_80_by_24() {
        insta::assert_snapshot!(picture(&sized(80, 24), Theme::default()));
    }

    #[test]
    fn the_history_in_60_by_16_and_40_by_10() {
        let mut state = sized(60, 16);
        let list = picture(&state, ASCII);
        press(&mut state, &["<enter>"]);
        let call = picture(&state, ASCII);
        insta::assert_snapshot!(format!("{list}\n{call}\n{}", picture(&sized(40, 10), ASCII)));
    }

    #[test]
    fn hostile_calls_are_shown_escaped() {
        let evil = "\u{1b}]0;x\u{7}\u{202e}\u{9b}31m";
        let mut state = sized(120, 40);
        let calls = vec![past(evil, evil, Some(evil), evil)];
        let read = Ok(PastCalls { calls, ..PastCalls::default() });
        state.history.read(read, &mut state.context);
        let call = entry(evil, evil, &json!({ evil: evil }), &json!(evil));
        opened(&mut state, call);
        let seen = picture(&state, Theme::default());
        assert!(!seen.chars().any(|c| c.is_control() && c != '\n'), "{seen}");
        assert!(seen.contains("␛]0;x") && !seen.contains('\u{202e}'), "{seen}");
        assert!(seen.contains("Recording is off"), "{seen}");
    }
}
