//! Draws the plan of a benchmark, and its tool picker.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::tui::draw::styler::Styler;
use crate::tui::draw::wrap::wrap;
use crate::tui::draw::{columns, pane};
use crate::tui::event::bench::TargetSide;
use crate::tui::state::bench::{BenchView, PlanField, PlanForm, ToolPicker};
use crate::tui::theme::StyleRole;
use crate::util::text;

const NAME: usize = 11;
/// Lines below the entries at most.
const FOOT: u16 = 6;

pub(super) fn title(bench: &BenchView) -> String {
    match &bench.picker {
        Some(picker) => {
            let side = if picker.side == TargetSide::A { "A" } else { "B" };
            format!("Choose {side}  {} found", picker.found().len())
        }
        None if bench.form.is_writing => "Plan  editing".to_owned(),
        None => "Plan".to_owned(),
    }
}

pub(super) fn draw(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    bench: &BenchView,
    focused: bool,
    area: Rect,
) {
    match &bench.picker {
        Some(picker) => pick(frame, styler, picker, area),
        None => form(frame, styler, &bench.form, focused, area),
    }
}

fn form(frame: &mut Frame<'_>, styler: &Styler<'_>, form: &PlanForm, focused: bool, area: Rect) {
    let entries = PlanField::ALL;
    let foot = foot(styler, form);
    let wrapped: usize = foot.iter().map(|line| wrap(line, area.width.into()).len()).sum();
    let below = u16::try_from(wrapped).unwrap_or(u16::MAX).min(FOOT).min(area.height / 3);
    let height = usize::from(area.height - below);
    let last = entries.len().saturating_sub(height);
    let first = form.at.saturating_sub(height / 2).min(last);
    for (at, entry) in entries.iter().enumerate().skip(first).take(height) {
        let y = area.y + u16::try_from(at - first).unwrap_or(0);
        let place = Rect { y, height: 1, ..area };
        let (line, cursor) = row(styler, form, *entry, at == form.at, focused, area.width);
        frame.render_widget(line, place);
        if focused && form.is_writing && at == form.at {
            let x = u16::try_from(cursor).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
            frame.set_cursor_position((place.x + x, place.y));
        }
    }
    if below > 0 {
        let place = Rect { y: area.bottom() - below, height: below, ..area };
        pane::paragraph(frame, styler, place, &foot);
    }
}

/// One entry, and where the cursor is in it.
fn row(
    styler: &Styler<'_>,
    form: &PlanForm,
    entry: PlanField,
    is_current: bool,
    focused: bool,
    width: u16,
) -> (Line<'static>, usize) {
    let named = match (is_current, focused) {
        (true, true) => StyleRole::Selected,
        (true, false) => StyleRole::SelectedUnfocused,
        _ => StyleRole::Name,
    };
    let pointer = if is_current { styler.theme.pointer() } else { "  " };
    let mut spans = vec![
        styler.span(named, format!("{pointer}{}", columns::align_left(entry.title(), NAME - 1))),
        styler.span(StyleRole::Plain, " "),
    ];
    let used: usize = spans.iter().map(Span::width).sum();
    let room = usize::from(width).saturating_sub(used);
    let cursor = if form.text(entry).is_empty() {
        let placeholder = format!("({})", form.placeholder(entry));
        spans.push(styler.span(StyleRole::Example, text::cut(&placeholder, room)));
        used
    } else {
        let (before, behind) =
            form.line(entry).map_or(("", ""), crate::tui::state::LineInput::split);
        let before = styler.span(StyleRole::Plain, before);
        // What is written is seen where it is written.
        let over = before.width().saturating_sub(room.saturating_sub(1));
        let is_written = is_current && form.is_writing;
        let before = if is_written && over > 0 {
            let tail: String = before.content.chars().skip(over).collect();
            styler.span(StyleRole::Plain, tail)
        } else {
            before
        };
        let cursor = used + before.width();
        spans.extend([before, styler.span(StyleRole::Plain, behind)]);
        cursor
    };
    (Line::from(spans), cursor)
}

fn foot(styler: &Styler<'_>, form: &PlanForm) -> Vec<Line<'static>> {
    if let Some(flaw) = &form.error {
        let text = format!("! {}: {}", flaw.entry.title(), flaw.error.message());
        let mut lines = vec![styler.line(StyleRole::Error, text)];
        let details = flaw.error.details().iter();
        lines.extend(details.map(|line| styler.line(StyleRole::Plain, line)));
        let hint = flaw.error.hint().map(|hint| styler.line(StyleRole::Dim, hint));
        lines.extend(hint);
        return lines;
    }
    if form.text(PlanField::ToolA).is_empty() {
        return Vec::new();
    }
    vec![styler.line(StyleRole::Dim, form.command_line())]
}

fn pick(frame: &mut Frame<'_>, styler: &Styler<'_>, picker: &ToolPicker, area: Rect) {
    let area = pane::input_row(frame, styler, area, "find: ", &picker.words);
    let height = usize::from(area.height);
    let first = picker.list.first(height, picker.found().len());
    for (at, row) in picker.found().enumerate().skip(first).take(height) {
        let y = area.y + u16::try_from(at - first).unwrap_or(0);
        let is_chosen = at == picker.list.chosen();
        let pointer = if is_chosen { styler.theme.pointer() } else { "  " };
        let meaning = if is_chosen { StyleRole::Selected } else { StyleRole::Plain };
        let mark = row.status_mark();
        let line = Line::from(vec![
            styler.span(meaning, format!("{pointer}{}", row.name)),
            styler.span(StyleRole::Warning, format!(" {mark}")),
            styler.span(StyleRole::Dim, format!(" {}", row.source())),
        ]);
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}
