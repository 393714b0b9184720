//! The plan form of a benchmark: text fields in the syntax of the command line's options.

use serde_json::Value;

use crate::bench::plan::{BenchPlan, LoadModel, PlanOptions, Sharing};
use crate::bench::{formatting, syntax};
use crate::tui::prelude::*;
use crate::tui::views::bench::BenchView;
use crate::tui::views::bench::tasks::BenchRunSpec;
use crate::tui::views::form::draw::input_spans;
use crate::tui::views::form::object;
use crate::tui::views::tools::draw::marks;
use crate::tui::views::tools::list::ToolRow;
use crate::tui::widgets::filter::Picker;
use crate::util::text::shell_quoted;
use crate::util::units;

/// Which of the two tools of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetSide {
    /// The tool that is measured.
    A,
    /// The tool it is compared with.
    B,
}

#[derive(Debug, Clone, Default)]
pub struct PlanForm {
    /// What was written in each of the fields.
    lines: [TextInput; PlanField::VARIANTS.len()],
    pub at: usize,
    pub is_writing: bool,
    /// What was found wrong when it was to be run, and in which field.
    pub error: Option<(PlanField, Error)>,
}

impl PlanForm {
    pub fn current(&self) -> PlanField {
        PlanField::VARIANTS.get(self.at).copied().unwrap_or(PlanField::ToolA)
    }

    /// Moves the cursor by `by` entries; back when negative.
    pub fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(PlanField::VARIANTS.len() - 1);
    }

    /// What was written, without blanks around it.
    pub fn text(&self, entry: PlanField) -> &str {
        self.lines[entry as usize].text().trim()
    }

    pub fn active_input(&mut self) -> Option<&mut TextInput> {
        self.is_writing.then(|| &mut self.lines[self.at])
    }

    pub fn set(&mut self, entry: PlanField, text: impl Into<String>) {
        self.lines[entry as usize] = TextInput::of(text);
        self.error = None;
    }

    /// Leaves the current entry out: its default holds.
    pub fn clear(&mut self) {
        self.set(self.current(), "");
    }

    pub fn focus_field(&mut self, entry: PlanField) {
        self.at = entry as usize;
    }

    /// Puts a tool on a side; the arguments are those of both.
    pub fn set_target(&mut self, side: TargetSide, tool: &str, arguments: Option<&JsonObject>) {
        if side == TargetSide::B {
            return self.set(PlanField::ToolB, tool);
        }
        self.set(PlanField::ToolA, tool);
        let arguments = arguments.filter(|arguments| !arguments.is_empty());
        let arguments = arguments.map(|arguments| Value::Object(arguments.clone()).to_string());
        self.set(PlanField::ArgumentsA, arguments.unwrap_or_default());
    }

    /// What holds while an entry is empty, and an example of what may be written.
    pub fn placeholder(&self, entry: PlanField) -> (&'static str, &'static str) {
        let is_empty = |entry| self.text(entry).is_empty();
        match entry {
            PlanField::ToolA => ("a chooses one", ""),
            PlanField::ArgumentsA => ("none", ""),
            PlanField::ToolB => ("b chooses one", ""),
            PlanField::InFlight if is_empty(PlanField::Rate) => ("1", "e.g. 1,4,16,64"),
            PlanField::InFlight => ("100 at most", ""),
            PlanField::Rate => ("full speed", "e.g. 50/s"),
            PlanField::Calls if is_empty(PlanField::Duration) => ("1000", ""),
            PlanField::Duration if is_empty(PlanField::Calls) => ("10s", ""),
            PlanField::Calls | PlanField::Duration => ("no limit", ""),
        }
    }

    pub fn run_spec(&self) -> Result<BenchRunSpec, (PlanField, Error)> {
        let at = |entry: PlanField| move |error: Error| (entry, error);
        if self.text(PlanField::ToolA).is_empty() {
            let error = Error::usage("no tool chosen").with_hint("press a to choose one");
            return Err(at(PlanField::ToolA)(error));
        }
        let is_comparison = !self.text(PlanField::ToolB).is_empty();
        let mut tools = vec![self.text(PlanField::ToolA).to_owned()];
        if is_comparison {
            tools.push(self.text(PlanField::ToolB).to_owned());
        }
        let arguments = match self.text(PlanField::ArgumentsA) {
            "" => JsonObject::new(),
            text => object(text).map_err(at(PlanField::ArgumentsA))?,
        };
        let options = PlanOptions {
            requests: self.read(PlanField::Calls, "a number of calls, such as 1000", above_zero)?,
            duration: self.read(PlanField::Duration, "a duration such as 30s", units::duration)?,
            concurrency: self.read(
                PlanField::InFlight,
                "1 to 10000, or steps such as 1,4,16",
                |text| text.parse().ok(),
            )?,
            rate: self.read(PlanField::Rate, "calls per second, such as 50", |text| {
                syntax::rate(text).ok()
            })?,
            is_comparison,
            ..PlanOptions::default()
        };
        let plan = options.plan().map_err(at(PlanField::InFlight))?;
        Ok(BenchRunSpec { tools, arguments, plan })
    }

    /// The same run as a command, with what such a line ends with in this console.
    pub fn command_line(&self, command_end: &str) -> String {
        let mut command = vec!["toolhost".to_owned(), "bench".to_owned()];
        for &entry in PlanField::VARIANTS {
            let text = self.text(entry);
            if entry == PlanField::ToolA || !text.is_empty() {
                command.extend(entry.names().1.map(str::to_owned));
                command.push(text.to_owned());
            }
        }
        shell_quoted(&command) + command_end
    }

    /// How calls are made, in a word or two.
    pub fn load(plan: &BenchPlan) -> String {
        if let Sharing::Steps { in_flight, .. } = &plan.sharing {
            return format!("closed, {} in flight", formatting::list(in_flight));
        }
        match plan.model {
            LoadModel::Closed { concurrency } => format!("closed, {concurrency} in flight"),
            LoadModel::Open { arrivals, in_flight, .. } => {
                format!("open, {}, {in_flight} in flight at most", formatting::arrivals(arrivals))
            }
        }
    }

    fn read<T>(
        &self,
        entry: PlanField,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, (PlanField, Error)> {
        let text = self.text(entry);
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = || Error::usage(format!("invalid value '{text}': expected {expected}"));
        read(text).map(Some).ok_or_else(|| (entry, wrong()))
    }
}

fn above_zero(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::VariantArray)]
pub enum PlanField {
    ToolA,
    ArgumentsA,
    ToolB,
    InFlight,
    Rate,
    Calls,
    Duration,
}

impl PlanField {
    /// The label in the form, and the option of the command line.
    fn names(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::ToolA => ("tool", None),
            Self::ArgumentsA => ("arguments", None),
            Self::ToolB => ("compare with", Some("--vs")),
            Self::InFlight => ("in flight", Some("-c")),
            Self::Rate => ("rate", Some("--rate")),
            Self::Calls => ("calls", Some("-n")),
            Self::Duration => ("duration", Some("--duration")),
        }
    }

    pub fn title(self) -> &'static str {
        self.names().0
    }
}

/// The tool of a side is chosen.
#[derive(Debug)]
pub struct ToolPicker {
    pub side: TargetSide,
    pub tools: Picker<Arc<ToolRow>>,
}

const NAME: usize = 13;
/// Lines below the entries at most.
const FOOT: usize = 6;

pub fn title(bench: &BenchView) -> String {
    match &bench.picker {
        Some(picker) => {
            let side = if picker.side == TargetSide::A { "A" } else { "B" };
            format!("Choose {side}  {} found", picker.tools.found().len())
        }
        None if bench.form.is_writing => "Plan  editing".to_owned(),
        None => "Plan".to_owned(),
    }
}

pub fn draw(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    match &state.bench.picker {
        Some(picker) => pick(pen, state, &picker.tools, area),
        None => form(pen, state, area),
    }
}

fn form(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let (form, entries) = (&state.bench.form, PlanField::VARIANTS);
    let foot = foot(pen.styler, form, &state.context.command_end);
    let wrapped: usize = foot.iter().map(|line| wrap(line, area.width.into()).len()).sum();
    let height = usize::from(area.height);
    let [above, below] = bottom(area, wrapped.min(FOOT).min(height / 3));
    let mut cursor = ListCursor::default();
    cursor.choose(form.at, entries.len());
    let first = pen.selectable(above, cursor, entries.len());
    let seen = entries.iter().enumerate().skip(first);
    for ((at, entry), place) in seen.zip(above.rows()) {
        let (line, cursor) = row(pen, form, *entry, at == form.at, area.width);
        pen.put(line, place);
        if pen.focused && form.is_writing && at == form.at {
            pen.set_cursor(place, cursor);
        }
    }
    pen.paragraph(below, &foot);
}

/// One entry, and where the cursor is in it.
fn row(
    pen: &Pen<'_>,
    form: &PlanForm,
    entry: PlanField,
    is_current: bool,
    width: u16,
) -> (Line<'static>, usize) {
    let styler = pen.styler;
    let named = pen.mark(is_current).unwrap_or(Role::Name);
    let pointer = if is_current { styler.theme.pointer() } else { "  " };
    let mut spans = vec![
        styler.span(named, format!("{pointer}{}", styler.cell(entry.title(), NAME - 1))),
        styler.plain(" "),
    ];
    let used: usize = spans.iter().map(Span::width).sum();
    let room = usize::from(width).saturating_sub(used);
    let cursor = if form.text(entry).is_empty() {
        let (default, example) = form.placeholder(entry);
        spans.push(styler.dim(text::cut(default, room)));
        let room = room.saturating_sub(default.len() + 2);
        if !example.is_empty() && room >= example.len() {
            spans.extend([styler.plain("  "), styler.span(Role::Example, example)]);
        }
        used
    } else if is_current && form.is_writing {
        // What is written is seen where it is written.
        let (written, cursor) = input_spans(styler, &form.lines[entry as usize], room);
        spans.extend(written);
        used + cursor
    } else {
        spans.push(styler.plain(text::cut(form.lines[entry as usize].text(), room)));
        used
    };
    (Line::from(spans), cursor)
}

fn foot(styler: Styler, form: &PlanForm, command_end: &str) -> Vec<Line<'static>> {
    if let Some((field, error)) = &form.error {
        let text = format!("! {}: {}", field.title(), error.message());
        let mut lines = vec![styler.line(Role::Error, text)];
        lines.extend(error.details().iter().map(|line| styler.line(Role::Plain, line)));
        lines.extend(error.hint().map(|hint| styler.line(Role::Dim, hint)));
        return lines;
    }
    if form.text(PlanField::ToolA).is_empty() {
        return Vec::new();
    }
    vec![styler.line(Role::Dim, form.command_line(command_end))]
}

fn pick(pen: &mut Pen<'_>, state: &AppState, tools: &Picker<Arc<ToolRow>>, area: Rect) {
    let area = pen.input_row(area, "find: ", &tools.list.filter.line);
    let styler = pen.styler;
    let rows: Vec<_> = tools.found().collect();
    if rows.is_empty() {
        return pen.put(pen.line(Role::Dim, "No matches."), area);
    }
    pen.list(area, tools.list.cursor, rows.len(), |at| {
        let row = rows[at];
        let marks = marks(state, row).into_iter();
        let mut line = Line::from(vec![styler.plain(&row.name)]);
        line.extend(marks.flat_map(|(role, word)| [styler.plain("  "), styler.chip(role, word)]));
        line.push_span(styler.dim(format!("  {}", row.source())));
        line
    });
}

#[cfg(test)]
mod tests {

    use serde_json::json;

    use super::*;
    use crate::bench::plan::{Arrivals, OverflowPolicy, RunLimits};

    fn form(entries: &[(PlanField, &str)]) -> PlanForm {
        let mut form = PlanForm::default();
        for (entry, text) in entries {
            form.set(*entry, *text);
        }
        form
    }

    #[test]
    fn nothing_but_a_tool_is_what_the_command_line_does_by_itself() {
        let form = form(&[(PlanField::ToolA, "srv-echo")]);
        let spec = form.run_spec().unwrap();
        assert_eq!(spec.plan, BenchPlan::default());
        assert_eq!((spec.tools, spec.arguments), (vec!["srv-echo".to_owned()], JsonObject::new()));
        assert_eq!(form.command_line(""), "toolhost bench srv-echo");
    }

    #[test]
    fn every_entry_is_an_option() {
        let form = form(&[
            (PlanField::ToolA, "a"),
            (PlanField::ArgumentsA, r#"{"text": "it's"}"#),
            (PlanField::ToolB, "b"),
            (PlanField::Rate, "50/s"),
            (PlanField::InFlight, "8"),
            (PlanField::Duration, "30s"),
        ]);
        let spec = form.run_spec().unwrap();
        let arrivals = Arrivals::Constant { rate: 50.0 };
        assert_eq!(
            spec.plan.model,
            LoadModel::Open { arrivals, in_flight: 8, overflow: OverflowPolicy::Queue }
        );
        let thirty = Some(Duration::from_secs(30));
        assert_eq!(spec.plan.limits, RunLimits { requests: None, duration: thirty });
        assert_eq!(spec.plan.sharing, Sharing::Interleaved { rounds: 20 });
        assert_eq!(Value::Object(spec.arguments), json!({ "text": "it's" }));
        assert_eq!(
            form.command_line(""),
            r#"toolhost bench a '{"text": "it'\''s"}' --vs b -c 8 --rate 50/s --duration 30s"#
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_entry() {
        for (entry, text) in [
            (PlanField::ArgumentsA, "[1]"),
            (PlanField::ArgumentsA, "{"),
            (PlanField::InFlight, "0"),
            (PlanField::Rate, "fast"),
            (PlanField::Calls, "many"),
            (PlanField::Duration, "soon"),
        ] {
            let flaw = form(&[(PlanField::ToolA, "a"), (entry, text)]).run_spec().unwrap_err();
            assert_eq!(flaw.0, entry, "{text}: {}", flaw.1);
        }
        assert_eq!(form(&[]).run_spec().unwrap_err().0, PlanField::ToolA);
        let steps = [(PlanField::ToolA, "a"), (PlanField::InFlight, "1,4"), (PlanField::Rate, "5")];
        assert_eq!(form(&steps).run_spec().unwrap_err().0, PlanField::InFlight);
    }
}
