//! The plan form of a benchmark: text fields in the syntax of the command line's options.

use serde_json::Value;

use super::plan_field::PlanField;
use crate::bench::formatting;
use crate::bench::plan::{BenchPlan, LoadModel, Sharing};
use crate::bench::plan_options::PlanOptions;
use crate::bench::syntax;
use crate::config::consent::shell_quoted;
use crate::model::{Error, JsonObject};
use crate::tui::event::bench::{BenchRunSpec, TargetSide};
use crate::tui::state::LineInput;
use crate::util::units;

/// What is wrong with an entry.
#[derive(Debug, Clone)]
pub struct PlanFieldError {
    pub entry: PlanField,
    /// What is wrong, and what to write instead.
    pub error: Error,
}

#[derive(Debug, Clone, Default)]
pub struct PlanForm {
    lines: Vec<(PlanField, LineInput)>,
    /// The current entry.
    pub at: usize,
    /// Whether the chosen entry is being edited.
    pub is_writing: bool,
    /// What was found wrong when it was to be run.
    pub error: Option<PlanFieldError>,
}

impl PlanForm {
    /// The entry of the chosen row.
    pub fn current(&self) -> PlanField {
        PlanField::ALL.get(self.at).copied().unwrap_or(PlanField::ToolA)
    }

    /// Moves the cursor by `by` entries; back when negative.
    pub fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(PlanField::ALL.len() - 1);
    }

    /// What was written, without blanks around it.
    pub fn text(&self, entry: PlanField) -> &str {
        self.line(entry).map_or("", |line| line.text().trim())
    }

    pub fn line(&self, entry: PlanField) -> Option<&LineInput> {
        self.lines.iter().find(|(known, _)| *known == entry).map(|(_, line)| line)
    }

    pub fn active_input(&mut self) -> Option<&mut LineInput> {
        if !self.is_writing {
            return None;
        }
        let entry = self.current();
        if self.line(entry).is_none() {
            self.lines.push((entry, LineInput::default()));
        }
        self.lines.iter_mut().find(|(known, _)| *known == entry).map(|(_, line)| line)
    }

    pub fn set(&mut self, entry: PlanField, text: impl Into<String>) {
        self.lines.retain(|(known, _)| *known != entry);
        self.lines.push((entry, LineInput::of(text)));
        self.error = None;
    }

    /// Leaves the current entry out: its default holds.
    pub fn clear(&mut self) {
        let entry = self.current();
        self.lines.retain(|(known, _)| *known != entry);
        self.error = None;
    }

    pub fn focus_field(&mut self, entry: PlanField) {
        if let Some(row) = PlanField::ALL.iter().position(|shown| *shown == entry) {
            self.at = row;
        }
    }

    /// Puts a tool on a side; the arguments are those of both.
    pub fn set_target(&mut self, side: TargetSide, tool: &str, arguments: Option<&JsonObject>) {
        if side == TargetSide::B {
            return self.set(PlanField::ToolB, tool);
        }
        self.set(PlanField::ToolA, tool);
        self.lines.retain(|(known, _)| *known != PlanField::ArgumentsA);
        if let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) {
            self.set(PlanField::ArgumentsA, Value::Object(arguments.clone()).to_string());
        }
    }

    /// The default of an entry, shown while it is empty.
    pub fn placeholder(&self, entry: PlanField) -> &'static str {
        match entry {
            PlanField::ToolA => "none; press a to choose",
            PlanField::ArgumentsA => "none",
            PlanField::ToolB => "none; press b to compare with one",
            PlanField::InFlight if self.text(PlanField::Rate).is_empty() => "1; steps as 1,4,16,64",
            PlanField::InFlight => "100 at most",
            PlanField::Rate => "none; 50 calls a second, however slow the tool",
            PlanField::Calls if self.text(PlanField::Duration).is_empty() => "1000",
            PlanField::Duration if self.text(PlanField::Calls).is_empty() => "10s",
            PlanField::Calls | PlanField::Duration => "no limit",
        }
    }

    pub fn run_spec(&self) -> Result<BenchRunSpec, PlanFieldError> {
        let at = |entry: PlanField| move |error: Error| PlanFieldError { entry, error };
        if self.text(PlanField::ToolA).is_empty() {
            let error = Error::usage("no tool chosen").with_hint("press a to choose one");
            return Err(at(PlanField::ToolA)(error));
        }
        let is_comparison = !self.text(PlanField::ToolB).is_empty();
        let mut tools = vec![self.text(PlanField::ToolA).to_owned()];
        if is_comparison {
            tools.push(self.text(PlanField::ToolB).to_owned());
        }
        let arguments =
            object(self.text(PlanField::ArgumentsA)).map_err(at(PlanField::ArgumentsA))?;
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

    pub fn command_line(&self) -> String {
        let mut words = vec!["toolhost".to_owned(), "bench".to_owned()];
        for entry in PlanField::ALL {
            let text = self.text(entry);
            if entry == PlanField::ToolA || !text.is_empty() {
                words.extend(entry.option().map(str::to_owned));
                words.push(text.to_owned());
            }
        }
        shell_quoted(&words)
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
    ) -> Result<Option<T>, PlanFieldError> {
        let text = self.text(entry);
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = || {
            let error = Error::usage(format!("invalid value '{text}': expected {expected}"));
            PlanFieldError { entry, error }
        };
        read(text).map(Some).ok_or_else(wrong)
    }
}

/// The object that a text is; no text is an empty one.
fn object(text: &str) -> Result<JsonObject, Error> {
    if text.is_empty() {
        return Ok(JsonObject::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Error::usage("the arguments must be a JSON object such as {\"key\": 1}")),
        Err(error) => Err(Error::usage(format!("the arguments are not valid JSON: {error}"))
            .with_hint("write them as {\"key\": 1}")),
    }
}

fn above_zero(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        assert_eq!(form.command_line(), "toolhost bench srv-echo");
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
            form.command_line(),
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
            assert_eq!(flaw.entry, entry, "{text}: {}", flaw.error);
        }
        assert_eq!(form(&[]).run_spec().unwrap_err().entry, PlanField::ToolA);
        let steps = [(PlanField::ToolA, "a"), (PlanField::InFlight, "1,4"), (PlanField::Rate, "5")];
        assert_eq!(form(&steps).run_spec().unwrap_err().entry, PlanField::InFlight);
    }
}
