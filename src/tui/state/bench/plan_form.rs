//! The plan form of a benchmark: text fields in the syntax of the command line's options.
//!
//! Owns: the entries, what is meant when one is empty, and making an order or a command line of
//! them.

use std::str::FromStr as _;

use serde_json::Value;

use super::plan_field::PlanField;
use super::plan_text::{mixed, object, parts, shell_quote};
use crate::bench::formatting;
use crate::bench::plan::{BenchPlan, LoadModel, Sharing};
use crate::bench::plan_options::PlanOptions;
use crate::bench::syntax::{self, ConcurrencySpec, RateSpec};
use crate::bench::threshold;
use crate::model::{Error, JsonObject};
use crate::tui::event::bench::{BenchArguments, BenchRunSpec, BenchRunTarget, TargetSide};
use crate::tui::state::LineInput;
use crate::util::units;

/// What is expected where a duration is read.
const TIME: &str = "a duration such as 30s";

/// What is wrong with an entry.
#[derive(Debug, Clone)]
pub struct PlanFieldError {
    /// The entry of the plan this row shows.
    pub entry: PlanField,
    /// What is wrong, and what to write instead.
    pub error: Error,
}

/// The plan of a run as a person fills it in.
#[derive(Debug, Clone, Default)]
pub struct PlanForm {
    lines: Vec<(PlanField, LineInput)>,
    /// Calls arrive at a fixed rate, regardless of the tool.
    pub is_open: bool,
    /// Calls of an open load come at random moments, as people do.
    pub is_poisson: bool,
    /// Tools that change something are called, too.
    pub allow_writes: bool,
    /// The current one of the entries that are shown.
    pub at: usize,
    /// Whether the chosen entry is being edited.
    pub is_writing: bool,
    /// What was found wrong when it was to be run.
    pub error: Option<PlanFieldError>,
}

impl PlanForm {
    /// The entries that mean something now, in their order.
    pub fn entries(&self) -> impl Iterator<Item = PlanField> + '_ {
        let compares = !self.text(PlanField::ToolB).is_empty();
        let judged = !self.text(PlanField::Baseline).is_empty();
        PlanField::ALL.into_iter().filter(move |entry| match entry {
            PlanField::ArgumentsB | PlanField::Rounds => compares,
            PlanField::ArgumentsA => self.text(PlanField::LinesA).is_empty(),
            PlanField::LinesA => self.text(PlanField::ArgumentsA).is_empty(),
            PlanField::Mix => !compares,
            PlanField::ToolB => self.text(PlanField::Mix).is_empty(),
            PlanField::Rate | PlanField::Arrivals => self.is_open,
            PlanField::MaxRegression => judged,
            PlanField::StepErrorLimit => self.has_steps(),
            _ => true,
        })
    }

    /// The entry of the chosen row.
    pub fn current(&self) -> PlanField {
        self.entries().nth(self.at).unwrap_or(PlanField::ToolA)
    }

    /// Moves the cursor by `by` entries; back when negative.
    pub fn step(&mut self, by: isize) {
        let last = self.entries().count().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
        self.is_writing &= !self.current().is_choice();
    }

    /// What was written, without blanks around it.
    pub fn text(&self, entry: PlanField) -> &str {
        let line = self.lines.iter().find(|(known, _)| *known == entry);
        line.map_or("", |(_, line)| line.text().trim())
    }

    /// The line of an entry.
    pub fn line(&self, entry: PlanField) -> Option<&LineInput> {
        self.lines.iter().find(|(known, _)| *known == entry).map(|(_, line)| line)
    }

    /// The line of the current entry, to be written in.
    pub fn active_input(&mut self) -> Option<&mut LineInput> {
        let entry = self.current();
        if !self.is_writing || entry.is_choice() {
            return None;
        }
        if self.line(entry).is_none() {
            self.lines.push((entry, LineInput::default()));
        }
        self.lines.iter_mut().find(|(known, _)| *known == entry).map(|(_, line)| line)
    }

    /// Replaces the text of an entry.
    pub fn set(&mut self, entry: PlanField, text: impl Into<String>) {
        self.lines.retain(|(known, _)| *known != entry);
        self.lines.push((entry, LineInput::of(text)));
        self.error = None;
    }

    /// Leaves the current entry out: its default holds.
    pub fn clear(&mut self) {
        match self.current() {
            PlanField::Model => self.is_open = false,
            PlanField::Arrivals => self.is_poisson = false,
            PlanField::AllowWrites => self.allow_writes = false,
            entry => {
                self.lines.retain(|(known, _)| *known != entry);
                if entry == PlanField::ToolB {
                    self.lines.retain(|(known, _)| *known != PlanField::ArgumentsB);
                }
            }
        }
        self.error = None;
    }

    /// Turns the current entry over, when it is a choice.
    pub fn toggle_choice(&mut self) -> bool {
        match self.current() {
            PlanField::Model => self.is_open = !self.is_open,
            PlanField::Arrivals => self.is_poisson = !self.is_poisson,
            PlanField::AllowWrites => self.allow_writes = !self.allow_writes,
            _ => return false,
        }
        self.error = None;
        true
    }

    /// Goes to an entry, when it is shown.
    pub fn focus_field(&mut self, entry: PlanField) {
        let at = self.entries().position(|shown| shown == entry);
        self.at = at.unwrap_or(self.at);
    }

    /// Puts a tool on a side, with these arguments.
    pub fn set_target(&mut self, side: TargetSide, tool: &str, arguments: Option<&JsonObject>) {
        let (name, words) = match side {
            TargetSide::A => (PlanField::ToolA, PlanField::ArgumentsA),
            TargetSide::B => (PlanField::ToolB, PlanField::ArgumentsB),
        };
        self.set(name, tool);
        let other = match side {
            // Arguments from a file were those of another tool, and two are not mixed.
            TargetSide::A => PlanField::LinesA,
            TargetSide::B => PlanField::Mix,
        };
        self.lines.retain(|(known, _)| *known != words && *known != other);
        if let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) {
            self.set(words, Value::Object(arguments.clone()).to_string());
        }
    }

    /// The default of an entry, shown while it is empty.
    pub fn placeholder(&self, entry: PlanField) -> &'static str {
        match entry {
            PlanField::ToolA => "none; press a to choose",
            PlanField::ArgumentsA => "none",
            PlanField::LinesA => "a file, one JSON object per line",
            PlanField::Mix => "2 other {\"key\": 1}; 0.5 third",
            PlanField::ToolB => "none; press b to choose",
            PlanField::ArgumentsB => "same as A",
            PlanField::Rounds => "20 rounds",
            PlanField::Rate => "50, 50@10s,100@10s or 10..100:60s",
            PlanField::InFlight if self.is_open => "100 at most",
            PlanField::InFlight => "1; steps as 1,4,16,64",
            PlanField::StepErrorLimit => "all steps run; 5% failed",
            PlanField::Calls if self.text(PlanField::Duration).is_empty() => "1000",
            PlanField::Duration if self.text(PlanField::Calls).is_empty() => "10s",
            PlanField::Calls | PlanField::Duration => "no limit",
            PlanField::WarmUp => "10% of the run, not counted",
            PlanField::Timeout => "the tool's own",
            PlanField::FailIf => "p99>50ms, error_rate>1%",
            PlanField::Baseline => "none; B saves a run as one",
            PlanField::MaxRegression => "not judged, e.g. 10%",
            PlanField::Seed => "42",
            PlanField::Model | PlanField::Arrivals | PlanField::AllowWrites => "",
        }
    }

    /// What is to be run.
    ///
    /// # Errors
    /// The first entry that cannot be read, and why.
    pub fn order(&self) -> Result<BenchRunSpec, PlanFieldError> {
        let flaw = |entry: PlanField| move |error: Error| PlanFieldError { entry, error };
        let mut targets = Vec::new();
        for (name, words) in self.target_fields() {
            let tool = self.text(name).to_owned();
            targets.push(BenchRunTarget { tool, arguments: self.arguments(words)?, weight: 1.0 });
        }
        let is_comparison = targets.len() > 1;
        let steps = self.in_flight()?.map_or(1, |spec| spec.steps().len());
        if !targets.is_empty() && !is_comparison {
            targets.extend(mixed(self.text(PlanField::Mix)).map_err(flaw(PlanField::Mix))?);
        }
        if targets.is_empty() {
            let error = Error::usage("no tool chosen").with_hint("press a to choose one");
            return Err(PlanFieldError { entry: PlanField::ToolA, error });
        }
        let thresholds = threshold::parse(&self.conditions(), targets.len().max(steps));
        let thresholds = thresholds.map_err(flaw(PlanField::FailIf))?;
        let brief = PlanOptions {
            requests: self.read(PlanField::Calls, "a number of calls, such as 1000", above_zero)?,
            duration: self.read(PlanField::Duration, TIME, units::duration)?,
            concurrency: self.in_flight()?,
            error_limit: if self.has_steps() {
                self.read(PlanField::StepErrorLimit, "0% to 100%, such as 5%", |text| {
                    syntax::part(text).ok()
                })?
            } else {
                None
            },
            rate: self.rate()?,
            warm_up: self.read(
                PlanField::WarmUp,
                "a number of calls such as 100, or a duration such as 3s",
                |text| syntax::warm_up(text).ok(),
            )?,
            seed: self.read(PlanField::Seed, "a whole number", |text| text.parse().ok())?,
            is_poisson: (self.is_open && self.is_poisson).then_some(true),
            is_comparison,
            is_mix: !is_comparison && targets.len() > 1,
            has_baseline: !self.text(PlanField::Baseline).is_empty(),
            rounds: if is_comparison {
                self.read(PlanField::Rounds, "1 to 1000", |text| {
                    text.parse().ok().filter(|rounds| (1..=1_000).contains(rounds))
                })?
            } else {
                None
            },
            ..PlanOptions::default()
        };
        let baseline = Some(self.text(PlanField::Baseline)).filter(|path| !path.is_empty());
        let max_regression = match baseline {
            None => None,
            Some(_) => self.read(PlanField::MaxRegression, "a percentage such as 10%", |text| {
                syntax::percent(text).ok()
            })?,
        };
        Ok(BenchRunSpec {
            targets,
            plan: brief.plan().map_err(flaw(if self.has_steps() {
                PlanField::InFlight
            } else if self.is_poisson {
                PlanField::Arrivals
            } else {
                PlanField::Rounds
            }))?,
            timeout: self.read(PlanField::Timeout, TIME, units::duration)?,
            allow_writes: self.allow_writes,
            thresholds,
            baseline: baseline.map(Into::into),
            max_regression,
        })
    }

    /// The command line that runs the same.
    pub fn command_line(&self) -> String {
        let mut words = vec!["toolhost".to_owned(), "bench".to_owned()];
        words.push(self.text(PlanField::ToolA).to_owned());
        if !self.text(PlanField::ArgumentsA).is_empty() {
            words.push(self.text(PlanField::ArgumentsA).to_owned());
        }
        if !self.text(PlanField::ToolB).is_empty() {
            words.extend(["--vs".to_owned(), self.text(PlanField::ToolB).to_owned()]);
            if !self.text(PlanField::ArgumentsB).is_empty() {
                words.extend(["--vs-args".to_owned(), self.text(PlanField::ArgumentsB).to_owned()]);
            }
        }
        for entry in self.entries() {
            let text = self.text(entry);
            if let Some(option) = entry.option().filter(|_| !text.is_empty()) {
                words.extend([option.to_owned(), text.to_owned()]);
            }
        }
        for condition in self.conditions() {
            words.extend(["--fail-if".to_owned(), condition]);
        }
        for call in
            parts(self.text(PlanField::Mix)).filter(|_| self.text(PlanField::ToolB).is_empty())
        {
            words.extend(["--mix".to_owned(), call.to_owned()]);
        }
        if self.is_open && self.is_poisson {
            words.extend(["--arrivals".to_owned(), "poisson".to_owned()]);
        }
        if self.allow_writes {
            words.push("--allow-writes".to_owned());
        }
        let quoted: Vec<String> = words.iter().map(|word| shell_quote(word)).collect();
        quoted.join(" ")
    }

    /// How calls are made, in a word or two.
    pub fn load(plan: &BenchPlan) -> String {
        if let Sharing::Steps { in_flight, .. } = &plan.sharing {
            return format!("closed, {} in flight", formatting::list(in_flight));
        }
        match &plan.model {
            LoadModel::Closed { concurrency } => format!("closed, {concurrency} in flight"),
            LoadModel::Open { arrivals, in_flight, .. } => {
                format!("open, {}, {in_flight} in flight at most", formatting::arrivals(arrivals))
            }
        }
    }

    fn target_fields(&self) -> impl Iterator<Item = (PlanField, PlanField)> + '_ {
        let sides =
            [(PlanField::ToolA, PlanField::ArgumentsA), (PlanField::ToolB, PlanField::ArgumentsB)];
        // Without a first one there is nothing that a second one could be compared with.
        let both = !self.text(PlanField::ToolA).is_empty();
        sides.into_iter().filter(move |(name, _)| both && !self.text(*name).is_empty())
    }

    /// What the tool whose arguments these are is called with. Without any, B gets those of A.
    fn arguments(&self, words: PlanField) -> Result<BenchArguments, PlanFieldError> {
        let lines = self.text(PlanField::LinesA);
        let own = self.text(words);
        if own.is_empty() && !lines.is_empty() {
            return Ok(BenchArguments::Lines(lines.into()));
        }
        let text = if own.is_empty() { self.text(PlanField::ArgumentsA) } else { own };
        let object = object(text).map_err(|error| PlanFieldError { entry: words, error })?;
        Ok(BenchArguments::Single(object))
    }

    fn conditions(&self) -> Vec<String> {
        let all = self.text(PlanField::FailIf).split([',', ';']).map(str::trim);
        all.filter(|condition| !condition.is_empty()).map(str::to_owned).collect()
    }

    fn in_flight(&self) -> Result<Option<ConcurrencySpec>, PlanFieldError> {
        self.read(PlanField::InFlight, "1 to 10000, or steps such as 1,4,16", |text| {
            text.parse().ok()
        })
    }

    /// Whether calls in flight are written as steps.
    fn has_steps(&self) -> bool {
        self.text(PlanField::InFlight).contains(',')
    }

    fn rate(&self) -> Result<Option<RateSpec>, PlanFieldError> {
        if !self.is_open {
            return Ok(None);
        }
        let rate = RateSpec::from_str(self.text(PlanField::Rate));
        rate.map(Some).map_err(|error| PlanFieldError {
            entry: PlanField::Rate,
            error: Error::usage(error.to_string()),
        })
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

fn above_zero(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::bench::plan::{Arrivals, OverflowPolicy, RunLimits, WarmUp};

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
        let order = form.order().unwrap();
        assert_eq!(order.plan, BenchPlan::default());
        let arguments = BenchArguments::Single(JsonObject::new());
        let only = BenchRunTarget { tool: "srv-echo".to_owned(), arguments, weight: 1.0 };
        assert_eq!(order.targets, [only]);
        assert!(!order.allow_writes);
        assert_eq!(form.command_line(), "toolhost bench srv-echo");
    }

    #[test]
    fn every_entry_is_an_option() {
        let mut form = form(&[
            (PlanField::ToolA, "a"),
            (PlanField::ArgumentsA, r#"{"text": "it's"}"#),
            (PlanField::ToolB, "b"),
            (PlanField::Rounds, "7"),
            (PlanField::Rate, "50/s"),
            (PlanField::InFlight, "8"),
            (PlanField::Duration, "30s"),
            (PlanField::WarmUp, "3s"),
            (PlanField::Timeout, "500ms"),
            (PlanField::FailIf, "p99>50ms, B.p95>A.p95*1.05"),
            (PlanField::Baseline, "base.json"),
            (PlanField::MaxRegression, "10%"),
            (PlanField::Seed, "7"),
        ]);
        form.is_open = true;
        form.allow_writes = true;
        let order = form.order().unwrap();
        let arrivals = Arrivals::Constant { rate: 50.0 };
        assert_eq!(
            order.plan.model,
            LoadModel::Open { arrivals, in_flight: 8, overflow: OverflowPolicy::Queue }
        );
        let thirty = Some(Duration::from_secs(30));
        assert_eq!(order.plan.limits, RunLimits { requests: None, duration: thirty });
        assert_eq!(order.plan.warm_up, WarmUp::Time(Duration::from_secs(3)));
        assert_eq!((order.plan.sharing, order.plan.seed), (Sharing::Interleaved { rounds: 7 }, 7));
        let same = json!({ "text": "it's" }).as_object().cloned().unwrap();
        assert_eq!(order.targets[1].arguments, BenchArguments::Single(same));
        assert_eq!((order.thresholds.len(), order.max_regression), (2, Some(0.1)));
        assert_eq!(
            form.command_line(),
            r#"toolhost bench a '{"text": "it'\''s"}' --vs b --rounds 7 --rate 50/s -c 8 --duration 30s --warmup 3s --timeout 500ms --baseline base.json --max-regression 10% --seed 7 --fail-if 'p99>50ms' --fail-if 'B.p95>A.p95*1.05' --allow-writes"#
        );
    }

    #[test]
    fn several_tools_are_mixed_and_arrive_at_random() {
        let mix = r#"2 b {"text": "a; b"}; 0.5 c"#;
        let mut form = form(&[
            (PlanField::ToolA, "a"),
            (PlanField::LinesA, "rows.jsonl"),
            (PlanField::Mix, mix),
            (PlanField::Rate, "20"),
        ]);
        (form.is_open, form.is_poisson) = (true, true);
        let order = form.order().unwrap();
        let weights: Vec<(&str, f64)> =
            order.targets.iter().map(|target| (target.tool.as_str(), target.weight)).collect();
        assert_eq!(weights, [("a", 1.0), ("b", 2.0), ("c", 0.5)]);
        assert_eq!(order.targets[0].arguments, BenchArguments::Lines("rows.jsonl".into()));
        let text = json!({ "text": "a; b" }).as_object().cloned().unwrap();
        assert_eq!(order.targets[1].arguments, BenchArguments::Single(text));
        assert_eq!(order.plan.sharing, Sharing::Mixed);
        let arrivals = Arrivals::Poisson { rate: 20.0 };
        assert!(
            matches!(&order.plan.model, LoadModel::Open { arrivals: own, .. } if *own == arrivals)
        );
        assert_eq!(
            form.command_line(),
            r#"toolhost bench a --args-lines rows.jsonl --rate 20 --mix '2 b {"text": "a; b"}' --mix '0.5 c' --arrivals poisson"#
        );
        // Two that are compared are not mixed.
        let has = |form: &PlanForm, entry| form.entries().any(|shown| shown == entry);
        assert!(!has(&form, PlanField::ToolB) && !has(&form, PlanField::ArgumentsA));
        form.set_target(TargetSide::B, "b", None);
        assert!(has(&form, PlanField::ToolB) && !has(&form, PlanField::Mix));
        for wrong in ["b", "0 b", "1 b {", "1 b x=1"] {
            let flaw = super::tests::form(&[(PlanField::ToolA, "a"), (PlanField::Mix, wrong)]);
            assert_eq!(flaw.order().unwrap_err().entry, PlanField::Mix, "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_entry() {
        for (entry, text) in [
            (PlanField::ArgumentsA, "[1]"),
            (PlanField::ArgumentsA, "{"),
            (PlanField::InFlight, "0"),
            (PlanField::Calls, "many"),
            (PlanField::Duration, "soon"),
            (PlanField::WarmUp, "-1"),
            (PlanField::Timeout, "x"),
            (PlanField::FailIf, "p99>"),
            (PlanField::FailIf, "B.p95>A.p95"),
            (PlanField::Seed, "x"),
        ] {
            let flaw = form(&[(PlanField::ToolA, "a"), (entry, text)]).order().unwrap_err();
            assert_eq!(flaw.entry, entry, "{text}: {}", flaw.error);
        }
        assert_eq!(form(&[]).order().unwrap_err().entry, PlanField::ToolA);
        let mut open = form(&[(PlanField::ToolA, "a")]);
        open.is_open = true;
        assert_eq!(open.order().unwrap_err().entry, PlanField::Rate);
    }

    #[test]
    fn only_what_means_something_is_shown() {
        let mut form = form(&[(PlanField::ToolA, "a")]);
        let has = |form: &PlanForm, entry| form.entries().any(|shown| shown == entry);
        assert!(!has(&form, PlanField::Rate) && !has(&form, PlanField::Rounds));
        form.is_open = true;
        form.set_target(TargetSide::B, "b", None);
        assert!(has(&form, PlanField::Rate) && has(&form, PlanField::Rounds));
        form.focus_field(PlanField::ToolB);
        form.clear();
        assert!(!has(&form, PlanField::Rounds));
    }
}
