//! Comparing a run with a saved baseline.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::compare::{
    ComparedSide, ComparisonSettings, Inconclusive, Ratio, RatioVerdict, SIGNIFICANCE_LEVEL,
    ratios, work_warnings,
};
use super::environment::BenchEnvironment;
use super::interval::{self, BlockSet, Pairing};
use super::report::{BenchReport, SampleBlock, TargetReport};
use super::statistic::Statistic;
use super::summary::LineTone;
use crate::model::{Error, unreadable_file};
use crate::util::histogram::Durations;
use crate::util::{base64, regular_file};

/// The figures that `--max-regression` judges: what most calls take at worst, what they take on
/// average, and how many there are. Together they are wrong once in twenty runs.
pub const GATED_STATISTICS: [Statistic; 3] =
    [Statistic::Mean, Statistic::P95, Statistic::Throughput];

/// The version of what `--save` writes; it changes when a field changes its meaning.
pub const FORMAT: u64 = 1;

const MAX_FILE_BYTES: u64 = 64 << 20;
const MAX_ITEMS: usize = 1_000;

/// A run that was saved.
#[derive(Debug, Clone)]
pub struct SavedRun {
    /// Where it was read from, as typed.
    pub file: String,
    /// When it began, as written.
    pub began: Option<String>,
    /// The version of the program that made it.
    pub toolhost: Option<String>,
    /// The processor that it was made on.
    pub cpu: Option<String>,
    /// How load was made: `model`, `concurrency` and `rate` as written.
    pub load: [Value; 3],
    /// Its targets.
    pub targets: Vec<SavedTarget>,
}

#[derive(Debug, Clone)]
pub struct SavedTarget {
    /// Its name, program, counts, throughput and response times, which are all that is compared;
    /// files of earlier versions do not say the program.
    pub report: TargetReport,
    /// The stretches that show how much the run varied.
    pub blocks: Vec<SampleBlock>,
}

/// What changed since a saved run.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineReport {
    pub file: String,
    pub began: Option<String>,
    /// The share by which a figure may be worse; `None`: nothing is judged.
    pub max_regression: Option<f64>,
    pub targets: Vec<BaselineChange>,
    /// Differences that make the two runs hard to compare.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BaselineChange {
    /// The full name, in this run.
    pub tool: String,
    /// This run divided by the saved one, for each statistic that both have.
    pub ratios: Vec<Ratio>,
    /// What follows for the judged ones, in the order of [`GATED_STATISTICS`]; empty without a limit.
    pub verdicts: Vec<(Statistic, RegressionVerdict)>,
}

/// Whether a figure is worse by more than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegressionVerdict {
    /// It is not.
    Pass,
    Fail,
    /// The runs vary too much, or are too short, to tell. That does not fail a run.
    NotEstablished,
}

impl RegressionVerdict {
    /// A word or two: `pass`, `FAIL`, `not established`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::NotEstablished => "not established",
        }
    }

    pub(crate) fn tone(self) -> LineTone {
        match self {
            Self::Pass => LineTone::Good,
            Self::Fail => LineTone::Bad,
            Self::NotEstablished => LineTone::Warning,
        }
    }
}

impl BaselineReport {
    /// Whether a regression is established, or there was nothing to compare.
    pub fn failed(&self) -> bool {
        let fails = |change: &BaselineChange| change.verdict() == Some(RegressionVerdict::Fail);
        self.max_regression.is_some()
            && (self.targets.iter().all(|change| change.ratios.is_empty())
                || self.targets.iter().any(fails))
    }
}

impl BaselineChange {
    /// Whether the target regressed; `None` without a limit.
    pub fn verdict(&self) -> Option<RegressionVerdict> {
        let has = |verdict| self.verdicts.iter().any(|(_, gate)| *gate == verdict);
        match self.verdicts.as_slice() {
            [] => None,
            _ if has(RegressionVerdict::Fail) => Some(RegressionVerdict::Fail),
            _ if has(RegressionVerdict::NotEstablished) => Some(RegressionVerdict::NotEstablished),
            _ => Some(RegressionVerdict::Pass),
        }
    }

    /// One line for each statistic: `p95 12.3 ms, was 10.1 ms: +21.8% (+15.2% to +29.0%), slower`.
    pub fn lines(&self) -> Vec<String> {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let line = |ratio: &Ratio| {
            let statistic = ratio.statistic;
            let (now, was) = (statistic.show(ratio.other), statistic.show(ratio.reference));
            let within = ratio.interval.map_or_else(String::new, |(low, high)| {
                format!(" ({:+.1}% to {:+.1}%)", percent(low), percent(high))
            });
            let gate = self.verdicts.iter().find(|(judged, _)| *judged == statistic);
            let gate = gate.map_or_else(String::new, |(_, gate)| format!(": {}", gate.label()));
            format!(
                "{} {now}, was {was}: {:+.1}%{within}, {}{gate}",
                statistic.name(),
                percent(ratio.value),
                ratio.verdict.label(),
            )
        };
        self.ratios.iter().map(line).collect()
    }
}

/// Reads a file that `--save` wrote.
pub fn read(path: &Path) -> Result<SavedRun, Error> {
    let name = path.display().to_string();
    let text = regular_file::text(path, MAX_FILE_BYTES).map_err(|error| {
        unreadable_file("the baseline", path, &error)
            .with_hint("write one with `toolhost bench NAME --save FILE`")
    })?;
    parse(&text, &name)
}

pub fn parse(text: &str, file: &str) -> Result<SavedRun, Error> {
    let ours = "a baseline is a file written by `toolhost bench NAME --save FILE`";
    let wrong = |what: &str| Error::usage(format!("the baseline {file} {what}")).with_hint(ours);
    let value: Value =
        serde_json::from_str(text).map_err(|error| wrong(&format!("is not JSON: {error}")))?;
    match value.get("format_version").and_then(Value::as_u64) {
        Some(FORMAT) => {}
        Some(version) if version > FORMAT => {
            let newer = format!(
                "was saved by a newer toolhost (format {version}; this one reads up to {FORMAT})"
            );
            return Err(Error::usage(format!("the baseline {file} {newer}"))
                .with_hint("save it again with this version, or compare with the newer one"));
        }
        _ if value.get("results").is_some() => {
            return Err(wrong("looks like hyperfine's JSON"));
        }
        _ => return Err(wrong("was not written by toolhost bench: it has no format_version")),
    }
    let targets = value.get("targets").and_then(Value::as_array);
    let all = targets.map_or(std::slice::from_ref(&value), Vec::as_slice);
    if all.is_empty() || all.len() > MAX_ITEMS {
        return Err(wrong(&format!("has {} targets", all.len())));
    }
    let targets: Result<Vec<_>, String> = all.iter().map(saved_target).collect();
    let word = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Ok(SavedRun {
        file: file.to_owned(),
        began: word("/began"),
        toolhost: word("/environment/toolhost"),
        cpu: word("/environment/cpu"),
        load: ["model", "concurrency", "rate"]
            .map(|key| value.get(key).cloned().unwrap_or_default()),
        targets: targets.map_err(|why| wrong(&why))?,
    })
}

fn saved_target(value: &Value) -> Result<SavedTarget, String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let tool = text("tool").ok_or("has a target without a tool")?;
    let count = |key: &str| {
        let count = value.get(key).and_then(Value::as_u64);
        count.ok_or_else(|| format!("has no usable '{key}' for '{tool}'"))
    };
    let histogram = |value: Option<&Value>| {
        let bytes = value.and_then(Value::as_str).and_then(base64::decode);
        let times = bytes.and_then(|bytes| Durations::decode(&bytes));
        times.ok_or_else(|| format!("has an unreadable histogram for '{tool}'"))
    };
    let block = |block: &Value| -> Result<SampleBlock, String> {
        let seconds = block.get("elapsed_s").and_then(Value::as_f64);
        let elapsed = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let calls = |key: &str| block.get(key).and_then(Value::as_u64).unwrap_or_default();
        Ok(SampleBlock {
            elapsed: elapsed.ok_or_else(|| format!("has a block of '{tool}' without a length"))?,
            ok: calls("ok"),
            failed: calls("failed"),
            response: histogram(block.get("data"))?,
        })
    };
    let blocks = value.get("blocks").and_then(Value::as_array);
    let blocks = blocks.into_iter().flatten().take(MAX_ITEMS).map(block);
    Ok(SavedTarget {
        blocks: blocks.collect::<Result<_, _>>()?,
        report: TargetReport {
            program: text("program"),
            requests: count("requests")?,
            ok: count("ok")?,
            bytes_in: count("bytes_in")?,
            throughput: value.get("throughput").and_then(Value::as_f64).unwrap_or_default(),
            response: histogram(value.pointer("/histogram/data"))?,
            tool,
            ..TargetReport::default()
        },
    })
}

/// Compares a run with a saved one. `max_regression` is the share by which a figure may be worse:
/// 0.1 for 10%.
pub fn compare_with_baseline(
    saved: &SavedRun,
    report: &BenchReport,
    environment: &BenchEnvironment,
    max_regression: Option<f64>,
) -> BaselineReport {
    let mut warnings = environment_warnings(saved, report, environment);
    let mut targets = Vec::new();
    for (at, target) in report.targets.iter().enumerate() {
        // The same place first: a tool may be compared with itself.
        let mut placed = saved.targets.get(at).into_iter().chain(&saved.targets);
        let same = placed.find(|saved| saved.report.tool == target.tool);
        let only = match (saved.targets.as_slice(), report.targets.len()) {
            ([only], 1) => Some(only),
            _ => None,
        };
        let Some(was) = same.or(only) else {
            warnings
                .push(format!("'{}' is not in {}, so it is not compared", target.tool, saved.file));
            continue;
        };
        if let (Some(before), Some(now)) = (&was.report.program, &target.program)
            && before != now
        {
            let name = &target.tool;
            warnings.push(format!("'{name}' was a different program then (@{before}, now @{now})"));
        }
        if same.is_none() {
            warnings.push(format!("'{}' is compared with '{}'", target.tool, was.report.tool));
        }
        warnings.extend(work_warnings(&was.report, target, "the saved run", "this one"));
        let side = |target, blocks: &[SampleBlock]| ComparedSide {
            target,
            throughput: target.throughput,
            blocks: BlockSet::of(blocks),
        };
        let (a, b) = (side(&was.report, &was.blocks), side(target, &blocks_of_run(report, at)));
        targets.push(target_change(&a, &b, report.plan.seed, max_regression));
    }
    BaselineReport {
        file: saved.file.clone(),
        began: saved.began.clone(),
        max_regression,
        targets,
        warnings,
    }
}

fn target_change(
    was: &ComparedSide<'_>,
    now: &ComparedSide<'_>,
    seed: u64,
    max_regression: Option<f64>,
) -> BaselineChange {
    let settings = ComparisonSettings {
        decisive: &GATED_STATISTICS,
        alpha: SIGNIFICANCE_LEVEL,
        pairing: Pairing::Independent,
        seed,
    };
    let ratios = ratios(was, now, &settings);
    let judge = |most: f64, statistic: Statistic| {
        let ratio = ratios.iter().find(|ratio| ratio.statistic == statistic);
        (statistic, ratio.map_or(RegressionVerdict::Fail, |ratio| judge_ratio(ratio, most)))
    };
    let gates = max_regression
        .map_or_else(Vec::new, |most| GATED_STATISTICS.map(|gated| judge(most, gated)).to_vec());
    BaselineChange { tool: now.target.tool.clone(), ratios, verdicts: gates }
}

/// A figure fails when all of its interval is worse than allowed, and passes when none of it is.
fn judge_ratio(ratio: &Ratio, most: f64) -> RegressionVerdict {
    let (Some((low, high)), false) = (ratio.interval, ratio.verdict == FEW_CALLS) else {
        return RegressionVerdict::NotEstablished;
    };
    let (fails, passes) = if ratio.statistic.is_higher_worse() {
        (low > 1.0 + most, high <= 1.0 + most)
    } else {
        (high < 1.0 - most, low >= 1.0 - most)
    };
    match (fails, passes) {
        (true, _) => RegressionVerdict::Fail,
        (_, true) => RegressionVerdict::Pass,
        _ => RegressionVerdict::NotEstablished,
    }
}

const FEW_CALLS: RatioVerdict = RatioVerdict::NotEstablished(Inconclusive::TooFewCalls);

fn environment_warnings(
    saved: &SavedRun,
    report: &BenchReport,
    environment: &BenchEnvironment,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let (model, concurrency, rate) = report.plan.load();
    let now = [json!(model), json!(concurrency), json!(rate)];
    for ((name, was), now) in
        ["model", "concurrency", "rate"].into_iter().zip(&saved.load).zip(&now)
    {
        if was != now {
            warnings.push(format!("the saved run had a different {name}: {was}, not {now}"));
        }
    }
    if let (Some(was), Some(now)) = (&saved.cpu, &environment.cpu)
        && was != now
    {
        warnings.push(format!("the saved run used a different processor: {was}, not {now}"));
    }
    if let Some(was) = &saved.toolhost
        && *was != environment.toolhost
    {
        warnings.push(format!(
            "the saved run was made by toolhost {was}, this one by {}",
            environment.toolhost
        ));
    }
    warnings
}

/// The stretches of a run that show how much it varied: its rounds, or its timeline.
pub(super) fn blocks_of_run(report: &BenchReport, target: usize) -> Vec<SampleBlock> {
    if report.rounds.is_empty() {
        let of = report.targets.get(target);
        return of.map_or_else(Vec::new, |of| interval::blocks(&of.timeline, report.elapsed));
    }
    report.rounds.iter().filter_map(|round| round.turns.get(target)).cloned().collect()
}

#[cfg(test)]
mod tests;
