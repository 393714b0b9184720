//! Thresholds that fail a run: `--fail-if`.
//!
//! Owns: the syntax of an expression and whether it is true of a report. All expressions are read
//! before anything is called. An expression that is true fails the run, and so does one about
//! something that was not measured: silence is no pass.

mod metric;
mod parse;

use std::fmt::Write as _;

use super::compare::letter;
use super::report::BenchReport;
use crate::model::Error;
pub use metric::{Metric, MetricUnit};

/// One expression, such as `p99>50ms` or `B.p95>A.p95*1.05`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// The expression as typed.
    pub text: String,
    left: Term,
    comparator: Comparator,
    right: Term,
}

/// `base × factor + plus`.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    operand: Operand,
    factor: f64,
    offset: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    /// A metric of one target, or of each.
    Metric { target: Option<usize>, metric: Metric },
    /// Seconds, calls per second, a share or a number, as the metric on the other side.
    Constant(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparator {
    Greater,
    AtLeast,
    Less,
    AtMost,
    Equal,
    NotEqual,
}

/// The result of one expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThresholdResult {
    /// The expression.
    pub expression: String,
    /// One for each target that it speaks of.
    pub lines: Vec<ThresholdLine>,
}

/// The result of one expression for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThresholdLine {
    /// With the values: `p99 61 ms > 50 ms: FAIL`.
    pub text: String,
    /// Whether it fails the run.
    pub failed: bool,
    /// Whether it rests on a percentile of too few calls.
    pub is_unreliable: bool,
}

impl ThresholdResult {
    /// Whether it fails the run.
    pub fn failed(&self) -> bool {
        self.lines.iter().any(|line| line.failed)
    }
}

/// Reads the expressions of a run on this many targets.
///
/// # Errors
/// Everything that is wrong with any of them, each with its place and what to write instead.
pub fn parse(expressions: &[String], targets: usize) -> Result<Vec<Threshold>, Error> {
    let mut read = Vec::new();
    let mut wrong = Vec::new();
    let mut details = Vec::new();
    for text in expressions {
        match parse::expression(text, targets) {
            Ok(threshold) => read.push(threshold),
            Err(errors) => {
                details.push(format!("  {text}"));
                for error in errors {
                    let before = " ".repeat(error.at);
                    let caret = "^".repeat(error.len.max(1));
                    details.push(format!("  {before}{caret} {}", error.message));
                    wrong.push(error.message);
                }
            }
        }
    }
    let message = match wrong.as_slice() {
        [] => return Ok(read),
        [one] => format!("invalid --fail-if: {one}"),
        several => format!("invalid --fail-if: {} errors", several.len()),
    };
    Err(Error::usage(message).with_details(details).with_hint(
        "write it like 'p99>50ms', 'error_rate>1%', 'throughput<1000' or 'B.p95>A.p95*1.05'",
    ))
}

/// Judges a report by all of them.
pub fn judge(thresholds: &[Threshold], report: &BenchReport) -> Vec<ThresholdResult> {
    thresholds.iter().map(|threshold| threshold.judge(report)).collect()
}

impl Threshold {
    /// Judges a report by it.
    pub fn judge(&self, report: &BenchReport) -> ThresholdResult {
        let several = report.targets.len() > 1;
        let open = [&self.left, &self.right]
            .into_iter()
            .any(|term| matches!(term.operand, Operand::Metric { target: None, .. }));
        // Without a letter it holds for each.
        let targets = if open { report.targets.len() } else { 1 };
        let mut lines: Vec<ThresholdLine> = (0..targets)
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
            lines.push(ThresholdLine { text, failed: true, is_unreliable: false });
        }
        ThresholdResult { expression: self.text.clone(), lines }
    }

    fn line(&self, report: &BenchReport, target: usize) -> ThresholdLine {
        let left = self.left.value(report, target);
        let right = self.right.value(report, target);
        let (left, right) = match (left, right) {
            (Ok(left), Ok(right)) => (left, right),
            (Err(missing), _) | (_, Err(missing)) => {
                let failed = !missing.is_pass;
                let verdict = if failed { "FAIL" } else { "pass" };
                let text = format!("{}: {}: {verdict}", self.text, missing.why);
                return ThresholdLine { text, failed, is_unreliable: false };
            }
        };
        let failed = self.comparator.holds(left, right);
        let sign = if failed { self.comparator } else { self.comparator.opposite() };
        let measure = self.measure();
        let mut text = format!(
            "{} {} {}: {}",
            self.left.format_value(left, measure),
            sign.as_str(),
            self.right.format_value(right, measure),
            if failed { "FAIL" } else { "pass" }
        );
        let doubts: Vec<String> = [&self.left, &self.right]
            .into_iter()
            .filter_map(|term| term.caveat(report, target))
            .collect();
        if !doubts.is_empty() {
            let _infallible = write!(text, " ({})", doubts.join(", "));
        }
        ThresholdLine { text, failed, is_unreliable: !doubts.is_empty() }
    }

    fn measure(&self) -> MetricUnit {
        let of = |term: &Term| match &term.operand {
            Operand::Metric { metric, .. } => Some(metric.measure()),
            Operand::Constant(_) => None,
        };
        of(&self.left).or_else(|| of(&self.right)).unwrap_or(MetricUnit::Count)
    }
}

/// A metric that has no value.
struct MissingMetric {
    why: String,
    /// That there is none is good.
    is_pass: bool,
}

impl Term {
    fn value(&self, report: &BenchReport, target: usize) -> Result<f64, MissingMetric> {
        let base = match &self.operand {
            Operand::Constant(value) => *value,
            Operand::Metric { target: own, metric } => {
                let at = own.unwrap_or(target);
                let Some(of) = report.targets.get(at) else {
                    let why = format!("there is no {}", letter(at));
                    return Err(MissingMetric { why, is_pass: false });
                };
                metric.value(of, &report.generator).ok_or_else(|| {
                    let (why, is_fine) = metric.missing_reason(of);
                    MissingMetric { why: format!("{}: {why}", self.name()), is_pass: is_fine }
                })?
            }
        };
        Ok(base * self.factor + self.offset)
    }

    fn caveat(&self, report: &BenchReport, target: usize) -> Option<String> {
        let Operand::Metric { target: own, metric } = &self.operand else { return None };
        metric.caveat(report.targets.get(own.unwrap_or(target))?, &report.generator)
    }

    /// The metric as typed.
    fn name(&self) -> String {
        match &self.operand {
            Operand::Constant(_) => String::new(),
            Operand::Metric { target: None, metric } => metric.to_string(),
            Operand::Metric { target: Some(at), metric } => format!("{}.{metric}", letter(*at)),
        }
    }

    #[expect(clippy::float_cmp, reason = "whether anything was written beside the figure")]
    fn format_value(&self, value: f64, measure: MetricUnit) -> String {
        let value = measure.show(value);
        let mut name = self.name();
        if name.is_empty() {
            return value;
        }
        if self.factor != 1.0 {
            let _infallible = write!(name, "*{}", self.factor);
        }
        if self.offset != 0.0 {
            let sign = if self.offset < 0.0 { '-' } else { '+' };
            let _infallible = write!(name, "{sign}{}", measure.show(self.offset.abs()));
        }
        format!("{name} {value}")
    }
}

impl Comparator {
    #[expect(clippy::float_cmp, reason = "what was asked for")]
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Equal => left == right,
            Self::NotEqual => left != right,
        }
    }

    fn opposite(self) -> Self {
        match self {
            Self::Greater => Self::AtMost,
            Self::AtLeast => Self::Less,
            Self::Less => Self::AtLeast,
            Self::AtMost => Self::Greater,
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "=",
            Self::NotEqual => "≠",
        }
    }
}

#[cfg(test)]
mod tests;
