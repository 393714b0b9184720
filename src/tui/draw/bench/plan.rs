//! What is to be run: an entry each, or the tools that one is chosen of.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::tui::draw::words::Words;
use crate::tui::draw::wrap::wrap;
use crate::tui::draw::{columns, pane};
use crate::tui::state::bench::{Bench, Entry, Picker, PlanForm, Side};
use crate::tui::theme::Meaning;
use crate::util::text;

/// Cells of the name of an entry.
const NAME: usize = 11;
/// Lines below the entries at most.
const FOOT: u16 = 6;

pub(super) fn title(bench: &Bench) -> String {
    match &bench.picker {
        Some(picker) => {
            let side = if picker.side == Side::A { "A" } else { "B" };
            format!("Choose {side}  {} found", picker.found().len())
        }
        None if bench.form.is_writing => "Plan  writing".to_owned(),
        None => "Plan".to_owned(),
    }
}

pub(super) fn draw(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    bench: &Bench,
    focused: bool,
    area: Rect,
) {
    match &bench.picker {
        Some(picker) => pick(frame, words, picker, area),
        None => form(frame, words, &bench.form, focused, area),
    }
}

fn form(frame: &mut Frame<'_>, words: &Words<'_>, form: &PlanForm, focused: bool, area: Rect) {
    let entries: Vec<Entry> = form.entries().collect();
    let foot = foot(words, form);
    let wrapped: usize = foot.iter().map(|line| wrap(line, area.width.into()).len()).sum();
    let below = u16::try_from(wrapped).unwrap_or(u16::MAX).min(FOOT).min(area.height / 3);
    let height = usize::from(area.height - below);
    let last = entries.len().saturating_sub(height);
    let first = form.at.saturating_sub(height / 2).min(last);
    for (at, entry) in entries.iter().enumerate().skip(first).take(height) {
        let y = area.y + u16::try_from(at - first).unwrap_or(0);
        let place = Rect { y, height: 1, ..area };
        let (line, cursor) = row(words, form, *entry, at == form.at, focused, area.width);
        frame.render_widget(line, place);
        if let Some(cursor) = cursor.filter(|_| focused && form.is_writing && at == form.at) {
            let x = u16::try_from(cursor).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
            frame.set_cursor_position((place.x + x, place.y));
        }
    }
    if below > 0 {
        let place = Rect { y: area.bottom() - below, height: below, ..area };
        pane::scrolled(frame, words, place, &foot, 0);
    }
}

/// One entry, and where the cursor is in it.
fn row(
    words: &Words<'_>,
    form: &PlanForm,
    entry: Entry,
    is_current: bool,
    focused: bool,
    width: u16,
) -> (Line<'static>, Option<usize>) {
    let named = match (is_current, focused) {
        (true, true) => Meaning::Chosen,
        (true, false) => Meaning::Marked,
        _ => Meaning::Name,
    };
    let pointer = if is_current { words.theme.pointer() } else { "  " };
    let mut spans = vec![
        words.span(named, format!("{pointer}{}", columns::left(entry.title(), NAME - 1))),
        words.span(Meaning::Plain, " "),
    ];
    let choice = |one: bool, words_of: [&str; 2]| {
        let [no, yes] = words_of;
        if one { format!("  {no}  < {yes} >") } else { format!("< {no} >  {yes}") }
    };
    let used: usize = spans.iter().map(Span::width).sum();
    let room = usize::from(width).saturating_sub(used);
    let mut cursor = None;
    match entry {
        Entry::Model => {
            spans.push(words.span(Meaning::Plain, choice(form.is_open, ["closed", "open"])));
        }
        Entry::Writes => {
            let said = choice(form.allow_writes, ["refused", "allowed"]);
            let meaning = if form.allow_writes { Meaning::Doubt } else { Meaning::Plain };
            spans.push(words.span(meaning, said));
        }
        _ if form.text(entry).is_empty() => {
            cursor = Some(used);
            let said = format!("({})", form.meant(entry));
            spans.push(words.span(Meaning::Dim, text::cut(&said, room)));
        }
        _ => {
            let (before, behind) =
                form.line(entry).map_or(("", ""), crate::tui::state::Line::split);
            let before = words.span(Meaning::Plain, before);
            // What is written is seen where it is written.
            let over = before.width().saturating_sub(room.saturating_sub(1));
            let is_written = is_current && form.is_writing;
            let before = if is_written && over > 0 {
                let tail: String = before.content.chars().skip(over).collect();
                words.span(Meaning::Plain, tail)
            } else {
                before
            };
            cursor = Some(used + before.width());
            spans.extend([before, words.span(Meaning::Plain, behind)]);
        }
    }
    (Line::from(spans), cursor)
}

/// What is wrong, or what the plan comes to.
fn foot(words: &Words<'_>, form: &PlanForm) -> Vec<Line<'static>> {
    if let Some(flaw) = &form.flaw {
        let said = format!("! {}: {}", flaw.entry.title(), flaw.fault.message());
        let mut lines = vec![words.line(Meaning::Bad, said)];
        let details = flaw.fault.detail_lines().iter();
        lines.extend(details.map(|line| words.line(Meaning::Plain, line)));
        let hint = flaw.fault.hint_text().map(|hint| words.line(Meaning::Dim, hint));
        lines.extend(hint);
        return lines;
    }
    if form.text(Entry::ToolA).is_empty() {
        return Vec::new();
    }
    vec![words.line(Meaning::Dim, form.command_line())]
}

fn pick(frame: &mut Frame<'_>, words: &Words<'_>, picker: &Picker, area: Rect) {
    let area = pane::asked(frame, words, area, "find: ", &picker.words);
    let height = usize::from(area.height);
    let first = picker.list.first(height, picker.found().len());
    for (at, row) in picker.found().enumerate().skip(first).take(height) {
        let y = area.y + u16::try_from(at - first).unwrap_or(0);
        let is_chosen = at == picker.list.chosen();
        let pointer = if is_chosen { words.theme.pointer() } else { "  " };
        let meaning = if is_chosen { Meaning::Chosen } else { Meaning::Plain };
        let mark = row.mark();
        let line = Line::from(vec![
            words.span(meaning, format!("{pointer}{}", row.name)),
            words.span(Meaning::Doubt, format!(" {mark}")),
            words.span(Meaning::Dim, format!(" {}", row.source())),
        ]);
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}
