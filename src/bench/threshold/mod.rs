//! What must not happen in a run: `--fail-if`.
//!
//! Owns: the words of an expression and whether it is true of a report. All expressions are read
//! before anything is called. An expression that is true fails the run, and so does one about
//! something that was not measured: silence is no pass.

mod figure;
mod parse;

use std::fmt::Write as _;

use super::compare::letter;
use super::report::Report;
use crate::model::Fault;
pub use figure::{Figure, Measure, Population};

/// One expression, such as `p99>50ms` or `B.p95>A.p95*1.05`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// As it was typed.
    pub text: String,
    left: Term,
    sign: Sign,
    right: Term,
}

/// `base × factor + plus`.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    base: Base,
    factor: f64,
    plus: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Base {
    /// A figure of one target, or of each.
    Figure { target: Option<usize>, figure: Figure },
    /// Seconds, calls a second, a share or a number, as the figure on the other side.
    Constant(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    More,
    AtLeast,
    Less,
    AtMost,
    Equal,
    Unequal,
}

/// What became of one expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The expression.
    pub expression: String,
    /// One for each target that it speaks of.
    pub lines: Vec<JudgementLine>,
}

/// What became of one expression for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgementLine {
    /// With the values: `p99 61 ms > 50 ms: FAIL`.
    pub text: String,
    /// Whether it fails the run.
    pub failed: bool,
    /// Whether it rests on a percentile of too few calls.
    pub unsure: bool,
}

impl Judgement {
    /// Whether it fails the run.
    pub fn failed(&self) -> bool {
        self.lines.iter().any(|line| line.failed)
    }
}

/// Reads the expressions of a run on so many targets.
///
/// # Errors
/// Everything that is wrong with any of them, each with its place and what to write instead.
pub fn parse(expressions: &[String], targets: usize) -> Result<Vec<Threshold>, Fault> {
    let mut read = Vec::new();
    let mut wrong = Vec::new();
    let mut details = Vec::new();
    for text in expressions {
        match parse::expression(text, targets) {
            Ok(threshold) => read.push(threshold),
            Err(flaws) => {
                details.push(format!("  {text}"));
                for flaw in flaws {
                    let before = " ".repeat(flaw.at);
                    let caret = "^".repeat(flaw.len.max(1));
                    details.push(format!("  {before}{caret} {}", flaw.message));
                    wrong.push(flaw.message);
                }
            }
        }
    }
    let message = match wrong.as_slice() {
        [] => return Ok(read),
        [one] => format!("--fail-if cannot be read: {one}"),
        several => format!("--fail-if cannot be read, for {} reasons", several.len()),
    };
    Err(Fault::usage(message)
        .details(details)
        .hint("write it like 'p99>50ms', 'error_rate>1%', 'throughput<1000' or 'B.p95>A.p95*1.05'"))
}

/// Judges a report by all of them.
pub fn judge(thresholds: &[Threshold], report: &Report) -> Vec<Judgement> {
    thresholds.iter().map(|threshold| threshold.judge(report)).collect()
}

impl Threshold {
    /// Judges a report by it.
    pub fn judge(&self, report: &Report) -> Judgement {
        let several = report.targets.len() > 1;
        let open = [&self.left, &self.right]
            .into_iter()
            .any(|term| matches!(term.base, Base::Figure { target: None, .. }));
        // Without a letter it holds for each.
        let targets = if open { report.targets.len() } else { 1 };
        let mut lines: Vec<JudgementLine> = (0..targets)
            .map(|target| {
                let mut line = self.line(report, target);
                if open && several {
                    line.text.insert_str(0, &format!("{}: ", letter(target)));
                }
                line
            })
            .collect();
        if lines.is_empty() {
            let text = format!("{}: nothing was measured: FAIL", self.text);
            lines.push(JudgementLine { text, failed: true, unsure: false });
        }
        Judgement { expression: self.text.clone(), lines }
    }

    fn line(&self, report: &Report, target: usize) -> JudgementLine {
        let left = self.left.value(report, target);
        let right = self.right.value(report, target);
        let (left, right) = match (left, right) {
            (Ok(left), Ok(right)) => (left, right),
            (Err(missing), _) | (_, Err(missing)) => {
                let failed = !missing.is_fine;
                let verdict = if failed { "FAIL" } else { "pass" };
                let text = format!("{}: {}: {verdict}", self.text, missing.why);
                return JudgementLine { text, failed, unsure: false };
            }
        };
        let failed = self.sign.holds(left, right);
        let sign = if failed { self.sign } else { self.sign.opposite() };
        let measure = self.measure();
        let mut text = format!(
            "{} {} {}: {}",
            self.left.told(left, measure),
            sign.as_str(),
            self.right.told(right, measure),
            if failed { "FAIL" } else { "pass" }
        );
        let doubts: Vec<String> = [&self.left, &self.right]
            .into_iter()
            .filter_map(|term| term.doubt(report, target))
            .collect();
        if !doubts.is_empty() {
            let _infallible = write!(text, " ({})", doubts.join(", "));
        }
        JudgementLine { text, failed, unsure: !doubts.is_empty() }
    }

    fn measure(&self) -> Measure {
        let of = |term: &Term| match &term.base {
            Base::Figure { figure, .. } => Some(figure.measure()),
            Base::Constant(_) => None,
        };
        of(&self.left).or_else(|| of(&self.right)).unwrap_or(Measure::Count)
    }
}

/// A figure that has no value.
struct Missing {
    why: String,
    /// That there is none is good.
    is_fine: bool,
}

impl Term {
    fn value(&self, report: &Report, target: usize) -> Result<f64, Missing> {
        let base = match &self.base {
            Base::Constant(value) => *value,
            Base::Figure { target: own, figure } => {
                let at = own.unwrap_or(target);
                let Some(of) = report.targets.get(at) else {
                    let why = format!("there is no {}", letter(at));
                    return Err(Missing { why, is_fine: false });
                };
                figure.value(of, &report.generator).ok_or_else(|| {
                    let (why, is_fine) = figure.absence(of);
                    Missing { why: format!("{}: {why}", self.name()), is_fine }
                })?
            }
        };
        Ok(base * self.factor + self.plus)
    }

    fn doubt(&self, report: &Report, target: usize) -> Option<String> {
        let Base::Figure { target: own, figure } = &self.base else { return None };
        figure.doubt(report.targets.get(own.unwrap_or(target))?, &report.generator)
    }

    /// The figure as typed.
    fn name(&self) -> String {
        match &self.base {
            Base::Constant(_) => String::new(),
            Base::Figure { target: None, figure } => figure.to_string(),
            Base::Figure { target: Some(at), figure } => format!("{}.{figure}", letter(*at)),
        }
    }

    #[expect(clippy::float_cmp, reason = "whether anything was written beside the figure")]
    fn told(&self, value: f64, measure: Measure) -> String {
        let value = measure.show(value);
        let mut name = self.name();
        if name.is_empty() {
            return value;
        }
        if self.factor != 1.0 {
            let _infallible = write!(name, "*{}", self.factor);
        }
        if self.plus != 0.0 {
            let sign = if self.plus < 0.0 { '-' } else { '+' };
            let _infallible = write!(name, "{sign}{}", measure.show(self.plus.abs()));
        }
        format!("{name} {value}")
    }
}

impl Sign {
    #[expect(clippy::float_cmp, reason = "what was asked for")]
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::More => left > right,
            Self::AtLeast => left >= right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Equal => left == right,
            Self::Unequal => left != right,
        }
    }

    fn opposite(self) -> Self {
        match self {
            Self::More => Self::AtMost,
            Self::AtLeast => Self::Less,
            Self::Less => Self::AtLeast,
            Self::AtMost => Self::More,
            Self::Equal => Self::Unequal,
            Self::Unequal => Self::Equal,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "=",
            Self::Unequal => "≠",
        }
    }
}

#[cfg(test)]
mod tests;
