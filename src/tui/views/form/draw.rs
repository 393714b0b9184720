//! Draws a form: the fields of an object with what was typed, or the object as JSON.

use jiff::civil::Date;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::host::form::{FieldInput, FieldKind, FormNode, RowPart};
use crate::tui::prelude::*;
use crate::tui::views::form::actions::is_date;
use crate::tui::views::form::{FormRow, folds};

const NAMES: usize = 28;
/// How many cells a value takes before what is said beside it.
const VALUES: usize = 22;

pub fn inside(pen: &mut Pen<'_>, form: &SchemaForm, area: Rect) {
    let foot = foot(pen.styler, form, area.width);
    let needed = foot_rows(&foot, area.width);
    let left = usize::from(area.height).saturating_sub(body_rows(form));
    let most = usize::from(area.height / 3).max(left).max(1);
    let [above, below] = bottom(area, needed.min(most));
    match &form.json {
        Some(json) => lines(pen, json, above),
        None => fields(pen, form, above),
    }
    pen.paragraph(below, &foot);
}

/// How many rows a form needs at this width, without a frame. The same for each of its fields, so
/// that nothing moves when another one is chosen.
pub fn rows_needed(styler: Styler, form: &SchemaForm, width: u16) -> u16 {
    // With a gap between them, unless a problem is said there.
    let gap = usize::from(problem(styler, form).is_none());
    cells(body_rows(form) + gap + foot_rows(&foot(styler, form, width), width))
}

fn body_rows(form: &SchemaForm) -> usize {
    if let Some(json) = &form.json {
        return json.line_count();
    }
    let own = |row: &FormRow| 1 + row.problems.len();
    let fields: usize = form.fields.iter().map(own).sum();
    let nodes = || form.fields.iter().filter_map(|row| form.node_of(row));
    let below = |node| 1 + choices(node).len().min(CHOICES);
    let below = nodes().map(below).max().unwrap_or(0);
    let written = form.fields.get(form.at).and_then(|row| form.node_of(row));
    let text = written.map_or(0, |node| text_rows(form, node) - 1);
    fields.max(1) + below + text + usize::from(form.draft_problem().is_some())
}

fn foot_rows(foot: &[Line<'static>], width: u16) -> usize {
    foot.iter().map(|line| wrap(line, usize::from(width)).len()).sum()
}

pub fn lines(pen: &mut Pen<'_>, written: &TextInput, area: Rect) {
    let (lines, (row, column)) =
        rows_seen(pen.styler, written, area.width.into(), usize::from(area.height).max(1));
    for (at, (spans, place)) in lines.into_iter().zip(area.rows()).enumerate() {
        pen.put(Line::from(spans), place);
        if at == row && pen.focused {
            pen.set_cursor(place, column);
        }
    }
}

/// The rows of a text that are seen around its cursor; and where among them that is.
fn rows_seen(
    styler: Styler,
    text: &TextInput,
    width: usize,
    height: usize,
) -> (Vec<Vec<Span<'static>>>, (usize, usize)) {
    let row = text.row();
    let first = row.saturating_sub(height / 2).min(text.line_count().saturating_sub(height));
    let mut cursor = 0;
    let seen = text.lines().enumerate().skip(first).take(height).map(|(at, line)| {
        let parts = if at == row { text.split_line() } else { ("", line) };
        let (spans, column) = spans_around_cursor(styler, parts, Role::Plain, width);
        if at == row {
            cursor = column;
        }
        spans
    });
    (seen.collect(), (row - first, cursor))
}

fn fields(pen: &mut Pen<'_>, form: &SchemaForm, area: Rect) {
    let name = |row: &FormRow| 2 * row.place.depth + text::width(&row.key);
    let Some(widest) = form.fields.iter().map(name).max() else {
        return pen.put(pen.line(Role::Dim, "No arguments."), area);
    };
    let widest = widest.min(NAMES);
    let (mut lines, mut starts, mut end, mut cursor) = (Vec::new(), Vec::new(), 0, None);
    // Each field has a line, so nothing further away than the height can be seen.
    let height = usize::from(area.height);
    let nearest = form.at.saturating_sub(height);
    for (at, row) in form.fields.iter().enumerate().skip(nearest).take(2 * height + 1) {
        let Some(node) = form.node_of(row) else { continue };
        let is_current = at == form.at;
        starts.push(lines.len());
        let has_focus = is_current && pen.focused;
        let shown =
            FieldLine { styler: pen.styler, form, row, node, is_current, has_focus, widest };
        let (own, place) = shown.lines(usize::from(area.width));
        if has_focus {
            cursor = place.map(|(row, column)| (lines.len() + row, column));
        }
        lines.extend(own);
        if has_focus {
            lines.extend(below(pen.styler, form, node, area.width));
        }
        let problem = |problem| pen.line(Role::Error, format!("    ! {problem}"));
        lines.extend(row.problems.iter().map(problem));
        if is_current {
            end = lines.len();
        }
    }
    // The chosen field is seen whole, with some of what follows.
    let least = (end + height / 3).min(lines.len()).saturating_sub(height);
    let chosen = starts.get(form.at - nearest).copied().unwrap_or(0);
    let first = starts.into_iter().find(|start| *start >= least).unwrap_or(chosen).min(chosen);
    for (line, place) in lines.into_iter().skip(first).zip(area.rows()) {
        pen.put(line, place);
    }
    let row = cursor.and_then(|(row, column)| Some((area.rows().nth(row - first)?, column)));
    if let Some((place, column)) = row {
        pen.set_cursor(place, column);
    }
}

struct FieldLine<'a> {
    styler: Styler,
    form: &'a SchemaForm,
    row: &'a FormRow,
    node: &'a FormNode,
    is_current: bool,
    has_focus: bool,
    widest: usize,
}

impl FieldLine<'_> {
    fn lines(&self, width: usize) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let Self { styler, row, node, .. } = self;
        let mark =
            if node.field.required && row.place.part == RowPart::Field { "* " } else { "  " };
        let indent = " ".repeat(2 * row.place.depth);
        let key = text::cut(&row.key, NAMES).into_owned();
        let meaning = if self.has_focus { Role::Selected } else { Role::Name };
        let mut spans = vec![styler.span(Role::Key, format!("{mark}{indent}"))];
        if let RowPart::Choice(at) = row.place.part {
            let ticked = matches!(&node.input, FieldInput::Choices(ticked) if ticked.contains(&at));
            let tick = if ticked { "[x] " } else { "[ ] " };
            spans.push(styler.plain(tick));
            spans.push(styler.span(meaning, key));
            return (vec![Line::from(spans)], None);
        }
        let pad = self.widest.saturating_sub(2 * row.place.depth + text::width(&key)) + 2;
        spans.push(styler.span(meaning, key));
        spans.push(styler.plain(" ".repeat(pad)));
        let before: usize = spans.iter().map(Span::width).sum();
        if self.is_current && text_rows(self.form, node) > 1 {
            let text = draft(self.form, node);
            let height = text_rows(self.form, node);
            let (rows, (row, column)) =
                rows_seen(*styler, &text, width.saturating_sub(before), height);
            let indent = vec![styler.plain(" ".repeat(before))];
            let heads = std::iter::once(spans).chain(std::iter::repeat(indent));
            let lines = heads.zip(rows).map(|(head, row)| Line::from([head, row].concat()));
            return (lines.collect(), Some((row, before + column)));
        }
        let (value, cursor) = self.value(width.saturating_sub(before));
        spans.extend(value);
        let mut line = Line::from(spans);
        // What it takes stands beside the others, and below this one.
        let gap = (before + VALUES).saturating_sub(line.width());
        let room = width.saturating_sub(before + VALUES);
        if !self.has_focus && gap > 1 && room > VALUES {
            let hint = styler.dim(text::cut(hint(node, true).trim_start(), room));
            line.extend([styler.plain(" ".repeat(gap)), hint]);
        }
        (vec![line], cursor.map(|cursor| (0, before + cursor)))
    }

    fn value(&self, width: usize) -> (Vec<Span<'static>>, Option<usize>) {
        let Self { styler, node, .. } = self;
        let plain = |text: String| (vec![styler.plain(text)], None);
        match (&node.input, &node.field.kind) {
            (FieldInput::Null, _) => (vec![styler.span(Role::Warning, "null")], Some(0)),
            (FieldInput::Json(_), _) => self.written(width),
            (FieldInput::Choice(_), FieldKind::Choice(_)) => {
                plain(format!("< {} >", node.text().unwrap_or_default()))
            }
            (FieldInput::Choice(at), FieldKind::Boolean) => plain(format!("< {} >", *at == 1)),
            (FieldInput::Choice(_), FieldKind::Constant(value)) => plain(format!("= {value}")),
            (FieldInput::Choice(at), FieldKind::Variants(titles)) => {
                plain(format!("< {} >", titles.get(*at).map_or("", String::as_str)))
            }
            (FieldInput::Choices(ticked), FieldKind::MultiChoice(choices)) => {
                plain(format!("{}{} of {}", self.fold(), ticked.len(), choices.len()))
            }
            (_, FieldKind::List) if node.is_present() => {
                let items = node.children.len();
                plain(format!("{}[{items}]  + adds an item", self.fold()))
            }
            (_, FieldKind::Object) if node.is_present() => plain(self.fold().to_owned()),
            (FieldInput::Unset, _) => (vec![styler.dim(self.unset())], Some(0)),
            _ => self.written(width),
        }
    }

    fn fold(&self) -> &'static str {
        self.styler.theme.fold(self.node.is_open)
    }

    fn unset(&self) -> String {
        let field = &self.node.field;
        let text = match (&field.default, &field.kind) {
            (Some(_), _) if field.secret => "has a default".to_owned(),
            (Some(default), _) => {
                let default = default.to_string();
                format!("default {}", text::cut(&default, 40))
            }
            (None, FieldKind::Variants(titles)) => format!("one of {} forms", titles.len()),
            (None, FieldKind::List) => "+ adds an item".to_owned(),
            (None, _) => String::new(),
        };
        if folds(&field.kind) { format!("{}{text}", self.fold()) } else { text }
    }

    /// The value as text; a secret is masked.
    fn written(&self, width: usize) -> (Vec<Span<'static>>, Option<usize>) {
        let Self { styler, node, .. } = self;
        let text = node.text().unwrap_or_default();
        let mut lines = text.split('\n');
        let line = match node.field.secret {
            true => TextInput::of("*".repeat(text.graphemes(true).count())),
            false if self.is_current => draft(self.form, node),
            false => TextInput::of(lines.next().unwrap_or_default()),
        };
        let more = if node.field.secret || self.is_current { 0 } else { lines.count() };
        let note = if more > 0 { format!("  (+{more} lines)") } else { String::new() };
        let (mut spans, cursor) = input_spans(*styler, &line, width.saturating_sub(note.len()));
        spans.push(styler.dim(note));
        (spans, Some(cursor))
    }
}

/// A line with a cursor, moved so that the cursor is seen; and where it is.
pub fn input_spans(styler: Styler, line: &TextInput, width: usize) -> (Vec<Span<'static>>, usize) {
    let role = if line.is_selected { Role::SelectedUnfocused } else { Role::Plain };
    spans_around_cursor(styler, line.split(), role, width)
}

fn spans_around_cursor(
    styler: Styler,
    (before, behind): (&str, &str),
    role: Role,
    width: usize,
) -> (Vec<Span<'static>>, usize) {
    let before = styler.span(role, before);
    let room = width.saturating_sub(1);
    let over = before.width().saturating_sub(room);
    let mut cut = 0;
    let kept: String = before
        .content
        .graphemes(true)
        .skip_while(|grapheme| {
            let is_cut = cut < over;
            cut += text::width(grapheme);
            is_cut
        })
        .collect();
    let cursor = text::width(&kept);
    (vec![styler.span(role, kept), styler.plain(behind)], cursor)
}

/// What is wrong, unless it is marked beside its field: it is said there.
fn problem(styler: Styler, form: &SchemaForm) -> Option<Line<'static>> {
    let marked = || form.fields.iter().flat_map(|row| &row.problems);
    let is_marked = |problem: &str| marked().any(|own| problem.ends_with(own.as_str()));
    let is_said = |problem: &&String| form.json.is_some() || !is_marked(problem);
    let problem = form.problem.as_ref().filter(is_said)?;
    Some(styler.line(Role::Error, format!("! {problem}")))
}

/// What is wrong, what is still to be done, and what will be sent; the most important first.
fn foot(styler: Styler, form: &SchemaForm, width: u16) -> Vec<Line<'static>> {
    let shown = &form.summary;
    let mut lines: Vec<Line<'static>> = problem(styler, form).into_iter().collect();
    // Two rows of it, with what stands behind it.
    let most = (2 * usize::from(width)).saturating_sub(24);
    let sends = lines.len();
    lines.push(Line::from(vec![
        styler.dim("sends "),
        styler.plain(text::cut(&shown.preview, most)),
    ]));
    if shown.is_valid {
        lines[sends].push_span(styler.span(Role::Success, "  valid"));
    } else if shown.filled < shown.required && form.json.is_none() {
        let text = format!("  {}/{} required", shown.filled, shown.required);
        lines[sends].push_span(styler.span(Role::Warning, text));
    }
    if let Some(command) = &shown.command {
        if form.asks_for_secret() {
            let text = "! a value that looks like a secret is hidden here but is sent";
            lines.push(styler.line(Role::Warning, text));
        }
        lines.push(Line::from(vec![styler.dim("$ "), styler.dim(command)]));
    }
    lines
}

const CHOICES: usize = 6;
/// How many rows a text of several lines gets while it is written.
const TEXT_ROWS: usize = 8;

fn draft(form: &SchemaForm, node: &FormNode) -> TextInput {
    form.written.clone().unwrap_or_else(|| form.fresh_draft(node))
}

fn text_rows(form: &SchemaForm, node: &FormNode) -> usize {
    let lines = match &form.written {
        Some(text) => text.line_count(),
        None => node.text().map_or(1, |text| text.split('\n').count()),
    };
    if node.field.secret { 1 } else { lines.clamp(1, TEXT_ROWS) }
}

/// The values that a field can have, where they are listed below it.
fn choices(node: &FormNode) -> Vec<&str> {
    match &node.field.kind {
        FieldKind::Choice(choices) => choices.iter().map(|choice| choice.title.as_str()).collect(),
        FieldKind::Boolean => vec!["false", "true"],
        FieldKind::Variants(titles) => titles.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The notes below the selected field: accepted values, errors so far, choices.
fn below(styler: Styler, form: &SchemaForm, node: &FormNode, width: u16) -> Vec<Line<'static>> {
    let mut hint = hint(node, false);
    if let Some(text) = form.written.as_ref().filter(|text| text.line_count() > 1) {
        hint = format!("{hint}  line {} of {}", text.row() + 1, text.line_count());
    }
    let hint = text::safe_line(&hint);
    let mut lines = vec![styler.line(Role::Dim, text::cut(&hint, usize::from(width)))];
    let problem = form.draft_problem();
    lines.extend(problem.map(|problem| styler.line(Role::Error, format!("    ! {problem}"))));
    for (title, is_chosen) in choices_seen(node) {
        let (mark, meaning) = if is_chosen { ("> ", Role::Selected) } else { ("  ", Role::Plain) };
        lines.push(Line::from(vec![
            styler.span(Role::Key, format!("    {mark}")),
            styler.span(meaning, title),
        ]));
    }
    lines
}

/// The choices of a field that are listed below it, and which of them is taken: those that begin
/// with what was typed, around the one that is taken.
fn choices_seen(node: &FormNode) -> Vec<(String, bool)> {
    let (begun, taken) = match &node.input {
        FieldInput::Text(text) => (text.to_lowercase(), None),
        FieldInput::Choice(at) => (String::new(), Some(*at)),
        _ => (String::new(), None),
    };
    let begins = |title: &str| title.to_lowercase().starts_with(&begun);
    let choices: Vec<(String, bool)> = choices(node)
        .into_iter()
        .enumerate()
        .filter(|(_, title)| begins(title))
        .map(|(at, title)| (title.to_owned(), taken == Some(at)))
        .collect();
    let chosen = choices.iter().position(|(_, is_chosen)| *is_chosen).unwrap_or(0);
    let first = chosen.saturating_sub(CHOICES / 2).min(choices.len().saturating_sub(CHOICES));
    choices.into_iter().skip(first).take(CHOICES).collect()
}

/// The type of a field with its limits, and its description. Choices are counted where a list of them
/// stands below.
fn hint(node: &FormNode, lists_choices: bool) -> String {
    let field = &node.field;
    let list = |titles: &[&str]| {
        let more = if titles.len() > CHOICES { " | …" } else { "" };
        format!("{}{more}", titles[..titles.len().min(CHOICES)].join(" | "))
    };
    let day = || node.text()?.parse::<Date>().ok().map(|day| day.strftime("%A").to_string());
    let takes = match (&node.input, &field.kind) {
        (FieldInput::Json(_), _) => "JSON".to_owned(),
        (_, FieldKind::Choice(choices)) if !lists_choices => format!("one of {}", choices.len()),
        (_, FieldKind::Choice(choices) | FieldKind::MultiChoice(choices)) => {
            let titles: Vec<&str> = choices.iter().map(|choice| choice.title.as_str()).collect();
            list(&titles)
        }
        (_, FieldKind::Boolean) => "true | false".to_owned(),
        (_, FieldKind::Variants(titles)) => format!("one of {} forms", titles.len()),
        _ if is_date(node) => day().unwrap_or_else(|| field.expectation()),
        _ => field.expectation(),
    };
    let null = if field.nullable { ", or null" } else { "" };
    let text = field.description.as_deref().unwrap_or_default();
    let title = if field.title == field.key { "" } else { field.title.as_str() };
    let about = [title, text.lines().next().unwrap_or_default()];
    let about: Vec<&str> = about.into_iter().filter(|part| !part.is_empty()).collect();
    let gap = if about.is_empty() { "" } else { "  " };
    format!("    {takes}{null}{gap}{}", about.join(": "))
}
