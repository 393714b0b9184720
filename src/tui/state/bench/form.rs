//! The plan of a run as a person fills it in: lines of text in the words of the command line.
//!
//! Owns: the entries, what is meant when one is empty, and making an order or a command line of
//! them.

use std::str::FromStr as _;

use serde_json::Value;

use crate::bench::brief::Brief;
use crate::bench::plan::{Model, Plan};
use crate::bench::spelling::{self, Rate};
use crate::bench::threshold;
use crate::model::{Fault, JsonObject};
use crate::tui::event::bench::Order;
use crate::tui::state::Line;
use crate::util::units;

/// How a time is written.
const TIME: &str = "a time such as 30s";

/// One of two tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first one.
    A,
    /// The one that it is compared with.
    B,
}

/// An entry of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entry {
    ToolA,
    ArgumentsA,
    ToolB,
    ArgumentsB,
    Rounds,
    Model,
    Rate,
    InFlight,
    Calls,
    Duration,
    WarmUp,
    Timeout,
    FailIf,
    Baseline,
    Worse,
    Seed,
    Writes,
}

impl Entry {
    const ALL: [Self; 17] = [
        Self::ToolA,
        Self::ArgumentsA,
        Self::ToolB,
        Self::ArgumentsB,
        Self::Rounds,
        Self::Model,
        Self::Rate,
        Self::InFlight,
        Self::Calls,
        Self::Duration,
        Self::WarmUp,
        Self::Timeout,
        Self::FailIf,
        Self::Baseline,
        Self::Worse,
        Self::Seed,
        Self::Writes,
    ];

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::ToolA => "A",
            Self::ToolB => "B",
            Self::ArgumentsA | Self::ArgumentsB => "arguments",
            Self::Rounds => "rounds",
            Self::Model => "model",
            Self::Rate => "rate",
            Self::InFlight => "in flight",
            Self::Calls => "calls",
            Self::Duration => "duration",
            Self::WarmUp => "warm-up",
            Self::Timeout => "timeout",
            Self::FailIf => "fail if",
            Self::Baseline => "baseline",
            Self::Worse => "worse by",
            Self::Seed => "seed",
            Self::Writes => "writes",
        }
    }

    /// Whether it is chosen of two instead of written.
    pub fn is_choice(self) -> bool {
        matches!(self, Self::Model | Self::Writes)
    }

    /// The option of the command line.
    fn option(self) -> Option<&'static str> {
        match self {
            Self::Rounds => Some("--rounds"),
            Self::Rate => Some("--rate"),
            Self::InFlight => Some("-c"),
            Self::Calls => Some("-n"),
            Self::Duration => Some("--duration"),
            Self::WarmUp => Some("--warmup"),
            Self::Timeout => Some("--timeout"),
            Self::Baseline => Some("--baseline"),
            Self::Worse => Some("--max-regression"),
            Self::Seed => Some("--seed"),
            _ => None,
        }
    }
}

/// What is wrong with an entry.
#[derive(Debug, Clone)]
pub struct Flaw {
    /// Which one.
    pub entry: Entry,
    /// What is wrong, and what to write instead.
    pub fault: Fault,
}

/// The plan of a run as a person fills it in.
#[derive(Debug, Clone, Default)]
pub struct PlanForm {
    lines: Vec<(Entry, Line)>,
    /// Calls come at a rate, whatever the tool does.
    pub is_open: bool,
    /// Tools that change something are called, too.
    pub allow_writes: bool,
    /// The current one of the entries that are shown.
    pub at: usize,
    /// Whether it is written.
    pub is_writing: bool,
    /// What was found wrong when it was to be run.
    pub flaw: Option<Flaw>,
}

impl PlanForm {
    /// The entries that mean something now, in their order.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let compares = !self.text(Entry::ToolB).is_empty();
        let judged = !self.text(Entry::Baseline).is_empty();
        Entry::ALL.into_iter().filter(move |entry| match entry {
            Entry::ArgumentsB | Entry::Rounds => compares,
            Entry::Rate => self.is_open,
            Entry::Worse => judged,
            _ => true,
        })
    }

    /// The current entry.
    pub fn current(&self) -> Entry {
        self.entries().nth(self.at).unwrap_or(Entry::ToolA)
    }

    /// So many entries on; back when negative.
    pub fn step(&mut self, by: isize) {
        let last = self.entries().count().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
        self.is_writing &= !self.current().is_choice();
    }

    /// What was written, without blanks around it.
    pub fn text(&self, entry: Entry) -> &str {
        let line = self.lines.iter().find(|(known, _)| *known == entry);
        line.map_or("", |(_, line)| line.text().trim())
    }

    /// The line of an entry.
    pub fn line(&self, entry: Entry) -> Option<&Line> {
        self.lines.iter().find(|(known, _)| *known == entry).map(|(_, line)| line)
    }

    /// The line of the current entry, to be written in.
    pub fn writing(&mut self) -> Option<&mut Line> {
        let entry = self.current();
        if !self.is_writing || entry.is_choice() {
            return None;
        }
        if self.line(entry).is_none() {
            self.lines.push((entry, Line::default()));
        }
        self.lines.iter_mut().find(|(known, _)| *known == entry).map(|(_, line)| line)
    }

    /// Writes an entry.
    pub fn set(&mut self, entry: Entry, text: impl Into<String>) {
        self.lines.retain(|(known, _)| *known != entry);
        self.lines.push((entry, Line::of(text)));
        self.flaw = None;
    }

    /// Leaves the current entry out: its default holds.
    pub fn clear(&mut self) {
        match self.current() {
            Entry::Model => self.is_open = false,
            Entry::Writes => self.allow_writes = false,
            entry => {
                self.lines.retain(|(known, _)| *known != entry);
                if entry == Entry::ToolB {
                    self.lines.retain(|(known, _)| *known != Entry::ArgumentsB);
                }
            }
        }
        self.flaw = None;
    }

    /// Turns the current entry over, when it is a choice.
    pub fn turn(&mut self) -> bool {
        match self.current() {
            Entry::Model => self.is_open = !self.is_open,
            Entry::Writes => self.allow_writes = !self.allow_writes,
            _ => return false,
        }
        self.flaw = None;
        true
    }

    /// Goes to an entry, when it is shown.
    pub fn go(&mut self, entry: Entry) {
        let at = self.entries().position(|shown| shown == entry);
        self.at = at.unwrap_or(self.at);
    }

    /// Puts a tool on a side, with these arguments.
    pub fn put(&mut self, side: Side, tool: &str, arguments: Option<&JsonObject>) {
        let (name, words) = match side {
            Side::A => (Entry::ToolA, Entry::ArgumentsA),
            Side::B => (Entry::ToolB, Entry::ArgumentsB),
        };
        self.set(name, tool);
        self.lines.retain(|(known, _)| *known != words);
        if let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) {
            self.set(words, Value::Object(arguments.clone()).to_string());
        }
    }

    /// What holds when an entry is empty.
    pub fn meant(&self, entry: Entry) -> &'static str {
        match entry {
            Entry::ToolA => "none; 'a' chooses a tool",
            Entry::ArgumentsA => "none",
            Entry::ToolB => "none; 'b' chooses one to compare",
            Entry::ArgumentsB => "those of A",
            Entry::Rounds => "20 turns each",
            Entry::Rate => "50, 50@10s,100@10s or 10..100:60s",
            Entry::InFlight if self.is_open => "100 at most",
            Entry::InFlight => "1",
            Entry::Calls if self.text(Entry::Duration).is_empty() => "1000",
            Entry::Calls => "as many as come",
            Entry::Duration if self.text(Entry::Calls).is_empty() => "10s",
            Entry::Duration => "as long as it takes",
            Entry::WarmUp => "a tenth, not counted",
            Entry::Timeout => "that of the tool",
            Entry::FailIf => "p99>50ms, error_rate>1%",
            Entry::Baseline => "none; B keeps a run as one",
            Entry::Worse => "not judged; such as 10%",
            Entry::Seed => "42",
            Entry::Model | Entry::Writes => "",
        }
    }

    /// What is to be run.
    ///
    /// # Errors
    /// The first entry that cannot be read, and why.
    pub fn order(&self) -> Result<Order, Flaw> {
        let flaw = |entry: Entry| move |fault: Fault| Flaw { entry, fault };
        let mut targets = Vec::new();
        for (name, words) in self.sides() {
            let own = self.text(words);
            let text = if own.is_empty() { self.text(Entry::ArgumentsA) } else { own };
            targets.push((self.text(name).to_owned(), object(text).map_err(flaw(words))?));
        }
        if targets.is_empty() {
            let fault = Fault::usage("no tool is chosen").hint("'a' shows all of them");
            return Err(Flaw { entry: Entry::ToolA, fault });
        }
        let thresholds = threshold::parse(&self.conditions(), targets.len());
        let thresholds = thresholds.map_err(flaw(Entry::FailIf))?;
        let brief = Brief {
            requests: self.read(Entry::Calls, "a number of calls, such as 1000", above_zero)?,
            duration: self.read(Entry::Duration, TIME, units::duration)?,
            concurrency: self.read(Entry::InFlight, "1 to 10000", |text| {
                text.parse().ok().filter(|calls| (1..=10_000).contains(calls))
            })?,
            rate: self.rate()?,
            warm_up: self.read(
                Entry::WarmUp,
                "calls such as 100, or a time such as 3s",
                |text| spelling::warm_up(text).ok(),
            )?,
            seed: self.read(Entry::Seed, "a whole number", |text| text.parse().ok())?,
            compares: targets.len() > 1,
            rounds: match targets.len() {
                1 => None,
                _ => self.read(Entry::Rounds, "1 to 1000", |text| {
                    text.parse().ok().filter(|rounds| (1..=1_000).contains(rounds))
                })?,
            },
            ..Brief::default()
        };
        let baseline = Some(self.text(Entry::Baseline)).filter(|path| !path.is_empty());
        let max_regression = match baseline {
            None => None,
            Some(_) => self.read(Entry::Worse, "a percentage such as 10%", |text| {
                spelling::percent(text).ok()
            })?,
        };
        Ok(Order {
            targets,
            plan: brief.plan().map_err(flaw(Entry::Rounds))?,
            timeout: self.read(Entry::Timeout, TIME, units::duration)?,
            allow_writes: self.allow_writes,
            thresholds,
            baseline: baseline.map(Into::into),
            max_regression,
        })
    }

    /// The command line that runs the same.
    pub fn command_line(&self) -> String {
        let mut words = vec!["toolhost".to_owned(), "bench".to_owned()];
        words.push(self.text(Entry::ToolA).to_owned());
        if !self.text(Entry::ArgumentsA).is_empty() {
            words.push(self.text(Entry::ArgumentsA).to_owned());
        }
        if !self.text(Entry::ToolB).is_empty() {
            words.extend(["--vs".to_owned(), self.text(Entry::ToolB).to_owned()]);
            if !self.text(Entry::ArgumentsB).is_empty() {
                words.extend(["--vs-args".to_owned(), self.text(Entry::ArgumentsB).to_owned()]);
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
        if self.allow_writes {
            words.push("--allow-writes".to_owned());
        }
        let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        quoted.join(" ")
    }

    /// How calls are made, in a word or two.
    pub fn load(plan: &Plan) -> String {
        match &plan.model {
            Model::Closed { concurrency } => format!("closed, {concurrency} in flight"),
            Model::Open { arrivals, in_flight, .. } => format!(
                "open, {}, {in_flight} in flight at most",
                crate::bench::words::arrivals(arrivals)
            ),
        }
    }

    fn sides(&self) -> impl Iterator<Item = (Entry, Entry)> + '_ {
        let sides = [(Entry::ToolA, Entry::ArgumentsA), (Entry::ToolB, Entry::ArgumentsB)];
        // Without a first one there is nothing that a second one could be compared with.
        let both = !self.text(Entry::ToolA).is_empty();
        sides.into_iter().filter(move |(name, _)| both && !self.text(*name).is_empty())
    }

    fn conditions(&self) -> Vec<String> {
        let all = self.text(Entry::FailIf).split([',', ';']).map(str::trim);
        all.filter(|condition| !condition.is_empty()).map(str::to_owned).collect()
    }

    fn rate(&self) -> Result<Option<Rate>, Flaw> {
        if !self.is_open {
            return Ok(None);
        }
        let rate = Rate::from_str(self.text(Entry::Rate));
        rate.map(Some).map_err(|why| Flaw { entry: Entry::Rate, fault: Fault::usage(why) })
    }

    fn read<T>(
        &self,
        entry: Entry,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Flaw> {
        let text = self.text(entry);
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = || {
            let fault = Fault::usage(format!("'{text}' is not understood: expected {expected}"));
            Flaw { entry, fault }
        };
        read(text).map(Some).ok_or_else(wrong)
    }
}

fn above_zero(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

fn object(text: &str) -> Result<JsonObject, Fault> {
    if text.is_empty() {
        return Ok(JsonObject::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Fault::usage("the arguments are no JSON object such as {\"key\": 1}")),
        Err(error) => Err(Fault::usage(format!("the arguments are not valid JSON: {error}"))
            .hint("write them as {\"key\": 1}; {{seq}} and {{int 1 9}} differ from call to call")),
    }
}

/// A word as a shell takes it for itself.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::bench::plan::{Arrivals, Bounds, Over, Sharing, WarmUp};

    fn form(entries: &[(Entry, &str)]) -> PlanForm {
        let mut form = PlanForm::default();
        for (entry, text) in entries {
            form.set(*entry, *text);
        }
        form
    }

    #[test]
    fn nothing_but_a_tool_is_what_the_command_line_does_by_itself() {
        let form = form(&[(Entry::ToolA, "srv-echo")]);
        let order = form.order().unwrap();
        assert_eq!(order.plan, Plan::default());
        assert_eq!(order.targets, [("srv-echo".to_owned(), JsonObject::new())]);
        assert!(!order.allow_writes);
        assert_eq!(form.command_line(), "toolhost bench srv-echo");
    }

    #[test]
    fn every_entry_is_an_option() {
        let mut form = form(&[
            (Entry::ToolA, "a"),
            (Entry::ArgumentsA, r#"{"text": "it's"}"#),
            (Entry::ToolB, "b"),
            (Entry::Rounds, "7"),
            (Entry::Rate, "50/s"),
            (Entry::InFlight, "8"),
            (Entry::Duration, "30s"),
            (Entry::WarmUp, "3s"),
            (Entry::Timeout, "500ms"),
            (Entry::FailIf, "p99>50ms, B.p95>A.p95*1.05"),
            (Entry::Baseline, "base.json"),
            (Entry::Worse, "10%"),
            (Entry::Seed, "7"),
        ]);
        form.is_open = true;
        form.allow_writes = true;
        let order = form.order().unwrap();
        let arrivals = Arrivals::Constant { rate: 50.0 };
        assert_eq!(order.plan.model, Model::Open { arrivals, in_flight: 8, over: Over::Queue });
        let thirty = Some(Duration::from_secs(30));
        assert_eq!(order.plan.until, Bounds { requests: None, duration: thirty });
        assert_eq!(order.plan.warm_up, WarmUp::Time(Duration::from_secs(3)));
        assert_eq!((order.plan.sharing, order.plan.seed), (Sharing::Turns { rounds: 7 }, 7));
        assert_eq!(order.targets[1].1, *json!({ "text": "it's" }).as_object().unwrap());
        assert_eq!((order.thresholds.len(), order.max_regression), (2, Some(0.1)));
        assert_eq!(
            form.command_line(),
            r#"toolhost bench a '{"text": "it'\''s"}' --vs b --rounds 7 --rate 50/s -c 8 --duration 30s --warmup 3s --timeout 500ms --baseline base.json --max-regression 10% --seed 7 --fail-if 'p99>50ms' --fail-if 'B.p95>A.p95*1.05' --allow-writes"#
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_entry() {
        for (entry, text) in [
            (Entry::ArgumentsA, "[1]"),
            (Entry::ArgumentsA, "{"),
            (Entry::InFlight, "0"),
            (Entry::Calls, "many"),
            (Entry::Duration, "soon"),
            (Entry::WarmUp, "-1"),
            (Entry::Timeout, "x"),
            (Entry::FailIf, "p99>"),
            (Entry::FailIf, "B.p95>A.p95"),
            (Entry::Seed, "x"),
        ] {
            let flaw = form(&[(Entry::ToolA, "a"), (entry, text)]).order().unwrap_err();
            assert_eq!(flaw.entry, entry, "{text}: {}", flaw.fault);
        }
        assert_eq!(form(&[]).order().unwrap_err().entry, Entry::ToolA);
        let mut open = form(&[(Entry::ToolA, "a")]);
        open.is_open = true;
        assert_eq!(open.order().unwrap_err().entry, Entry::Rate);
    }

    #[test]
    fn only_what_means_something_is_shown() {
        let mut form = form(&[(Entry::ToolA, "a")]);
        let has = |form: &PlanForm, entry| form.entries().any(|shown| shown == entry);
        assert!(!has(&form, Entry::Rate) && !has(&form, Entry::Rounds));
        form.is_open = true;
        form.put(Side::B, "b", None);
        assert!(has(&form, Entry::Rate) && has(&form, Entry::Rounds));
        form.go(Entry::ToolB);
        form.clear();
        assert!(!has(&form, Entry::Rounds));
    }
}
