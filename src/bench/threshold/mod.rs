//! Thresholds that fail a run: `--fail-if`.
//!
//! Owns: the syntax of an expression, `METRIC COMPARISON VALUE`, and whether it is true of a report.
//! All expressions are read before anything is called. An expression that is true fails the run,
//! and so does one about something that was not measured: silence is no pass.

mod metric;

use schemars::JsonSchema;
use serde::Serialize;

use super::compare::letter;
use super::report::BenchReport;
use super::summary::LineTone;
use crate::model::Error;
use crate::util::units;
use metric::{Metric, MetricUnit};

/// One expression, such as `p99>50ms` or `B.p95>1s`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// The expression as typed.
    pub text: String,
    /// The target it is about; without one it holds for each.
    target: Option<usize>,
    metric: Metric,
    comparator: usize,
    /// Seconds, calls per second, a share or a number, as the metric.
    limit: f64,
}

type Comparison = fn(f64, f64) -> bool;

/// How a comparison is written, its sign and that of its opposite, and whether a value and a limit
/// are so. The longer ones come first: the shorter ones begin like them.
#[expect(clippy::float_cmp, reason = "what was asked for")]
const COMPARATORS: [(&str, &str, &str, Comparison); 7] = [
    (">=", ">=", "<", |value, limit| value >= limit),
    ("<=", "<=", ">", |value, limit| value <= limit),
    ("==", "=", "≠", |value, limit| value == limit),
    ("!=", "≠", "=", |value, limit| value != limit),
    (">", ">", "<=", |value, limit| value > limit),
    ("<", "<", ">=", |value, limit| value < limit),
    ("=", "=", "≠", |value, limit| value == limit),
];

/// The result of one expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThresholdResult {
    /// The expression.
    pub expression: String,
    /// One for each target that it speaks of.
    pub lines: Vec<ThresholdLine>,
}

/// The result of one expression for one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThresholdLine {
    /// With the values: `p99 61 ms > 50 ms: FAIL`.
    pub text: String,
    /// Whether it fails the run.
    pub failed: bool,
    /// Whether it rests on a percentile of too few calls.
    #[serde(rename = "unsure")]
    pub is_unreliable: bool,
}

impl ThresholdLine {
    pub(crate) fn tone(&self) -> LineTone {
        match (self.failed, self.is_unreliable) {
            (true, _) => LineTone::Bad,
            (false, true) => LineTone::Warning,
            (false, false) => LineTone::Good,
        }
    }
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
/// What is wrong with the first one that cannot be read, and what to write instead.
pub fn parse(expressions: &[String], targets: usize) -> Result<Vec<Threshold>, Error> {
    let read = |text: &String| {
        expression(text, targets).map_err(|error| {
            error
                .context(&format!("--fail-if '{text}'"))
                .with_hint("write it like 'p99>50ms', 'error_rate>1%' or 'throughput<1000'")
        })
    };
    expressions.iter().map(read).collect()
}

fn expression(text: &str, targets: usize) -> Result<Threshold, Error> {
    let Some(at) = text.find(['<', '>', '=', '!']) else {
        return Err(Error::usage("expected a comparison such as '>50ms'"));
    };
    let (name, rest) = text.split_at(at);
    let comparator = COMPARATORS.iter().enumerate().find_map(|(comparator, (written, ..))| {
        Some((comparator, rest.strip_prefix(written)?.trim()))
    });
    let (comparator, value) =
        comparator.ok_or_else(|| Error::usage("expected one of > >= < <= == !="))?;
    let name = name.trim();
    let (target, name) = match name.split_once('.') {
        Some((letter, name)) if matches!(letter.as_bytes(), [b'A'..=b'Z']) => {
            let at = usize::from(letter.as_bytes()[0] - b'A');
            if at >= targets {
                return Err(Error::usage(match targets {
                    0 | 1 => format!("there is no {letter}: --vs adds a second tool"),
                    _ => format!("there is no {letter}: the run has {targets}"),
                }));
            }
            (Some(at), name)
        }
        _ => (None, name),
    };
    let metric = Metric::parse(name).map_err(Error::usage)?;
    let limit = limit(value, metric.unit())?;
    Ok(Threshold { text: text.to_owned(), target, metric, comparator, limit })
}

fn limit(text: &str, unit: MetricUnit) -> Result<f64, Error> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let (value, example) = match unit {
        _ if text == "0" => (Some(0.0), ""),
        MetricUnit::Time if number(text).is_some() => {
            let message = format!("a time needs a unit: write {text}ms or {text}s");
            return Err(Error::usage(message));
        }
        MetricUnit::Time => {
            (units::duration(text).map(|limit| limit.as_secs_f64()), "a time such as 50ms")
        }
        MetricUnit::Share => match text.strip_suffix('%') {
            Some(percent) => (number(percent).map(|percent| percent / 100.0), "a share such as 1%"),
            None => (number(text).filter(|share| *share < 1.0), "a share such as 1%"),
        },
        MetricUnit::Rate => {
            (number(text.strip_suffix("/s").unwrap_or(text)), "calls per second such as 1000")
        }
        MetricUnit::Count => (number(text), "a number such as 10"),
    };
    value.ok_or_else(|| Error::usage(format!("expected {example}, found '{text}'")))
}

pub fn judge(thresholds: &[Threshold], report: &BenchReport) -> Vec<ThresholdResult> {
    thresholds.iter().map(|threshold| threshold.judge(report)).collect()
}

impl Threshold {
    /// Judges a report by it.
    pub fn judge(&self, report: &BenchReport) -> ThresholdResult {
        let several = report.targets.len() > 1;
        let mut lines: Vec<ThresholdLine> = match self.target {
            Some(target) => vec![self.line(report, target)],
            None => (0..report.targets.len()).map(|target| self.line(report, target)).collect(),
        };
        if self.target.is_none() && several {
            for (target, line) in lines.iter_mut().enumerate() {
                line.text.insert_str(0, &format!("{}: ", letter(target)));
            }
        }
        if lines.is_empty() {
            let text = format!("{}: nothing was measured: FAIL", self.text);
            lines.push(ThresholdLine { text, failed: true, is_unreliable: false });
        }
        ThresholdResult { expression: self.text.clone(), lines }
    }

    fn line(&self, report: &BenchReport, target: usize) -> ThresholdLine {
        let verdict = |failed| if failed { "FAIL" } else { "pass" };
        let missing = |why: &str, failed| {
            let text = format!("{}: {why}: {}", self.text, verdict(failed));
            ThresholdLine { text, failed, is_unreliable: false }
        };
        // A run that ended early may lack its last steps.
        let Some(of) = report.targets.get(target) else {
            return missing(&format!("there is no {}", letter(target)), true);
        };
        let name = match self.target {
            Some(target) => format!("{}.{}", letter(target), self.metric),
            None => self.metric.to_string(),
        };
        let Some(value) = self.metric.value(of, &report.generator) else {
            let (why, is_pass) = self.metric.missing_reason(of);
            return missing(&format!("{name}: {why}"), !is_pass);
        };
        let (_, sign, opposite, holds) = COMPARATORS[self.comparator];
        let failed = holds(value, self.limit);
        let unit = self.metric.unit();
        let caveat = self.metric.caveat(of, &report.generator);
        let mut text = format!(
            "{name} {} {} {}: {}",
            unit.show(value),
            if failed { sign } else { opposite },
            unit.show(self.limit),
            verdict(failed)
        );
        if let Some(caveat) = &caveat {
            text = format!("{text} ({caveat})");
        }
        ThresholdLine { text, failed, is_unreliable: caveat.is_some() }
    }
}

#[cfg(test)]
mod tests;
