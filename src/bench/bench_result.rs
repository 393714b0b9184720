//! A finished run: its report, its environment, the facts of its load and how well it was kept, and what
//! is concluded from it: comparisons, thresholds, bottlenecks, caveats.

use super::baseline::{self, BaselineChange, BaselineReport, SavedRun};
use super::compare::{self, TargetComparison};
use super::environment::BenchEnvironment;
use super::plan::{DEFAULT_DURATION, DEFAULT_REQUESTS, LoadModel, RunLimits, Sharing};
use super::report::{BenchReport, throughput};
use super::summary::LineTone;
use super::threshold::{self, Threshold, ThresholdResult};
use super::{bottlenecks, formatting};
use crate::model::{Error, ErrorKind};
use crate::util::units::show_duration;

/// A run that is over.
#[derive(Debug, Clone)]
pub struct BenchResult {
    /// The report of the finished run.
    pub report: BenchReport,
    /// The machine, program and servers of the run.
    pub environment: BenchEnvironment,
    /// Comparisons, thresholds, bottlenecks and caveats.
    pub findings: BenchFindings,
}

/// A form that the account of a run is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// All of it, as later runs are compared with.
    Json,
    /// One row for each tool and figure.
    Csv,
    /// A table for a page.
    Markdown,
    /// A page for people that needs nothing else.
    Html,
}

impl ExportFormat {
    /// The form that a file name ends in, if it is one.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        Some(match extension {
            "json" => Self::Json,
            "csv" => Self::Csv,
            "md" | "markdown" => Self::Markdown,
            "html" => Self::Html,
            _ => return None,
        })
    }
}

impl BenchResult {
    /// Why the run failed (its exit code is that of the error): what was asked of it, or that no
    /// call succeeded.
    pub fn failure(&self) -> Option<Error> {
        let lost = self.report.lost_record.clone();
        lost.or_else(|| self.findings.failure()).or_else(|| most_common_failure(&self.report))
    }
}

/// The error of a run in which no call succeeded: of the commonest kind of failure.
fn most_common_failure(report: &BenchReport) -> Option<Error> {
    if report.targets.iter().any(|target| target.ok > 0) {
        return None;
    }
    let made: u64 = report.total(|target| target.requests);
    let Some(kind) = report.exit_kind() else {
        return Some(if made == 0 {
            Error::timeout("no calls were made before the run ended")
                .with_hint("use a longer --duration or a shorter --warmup")
        } else {
            Error::timeout(format!("none of {made} calls got a response before the run ended"))
                .with_hint("--timeout limits each call")
        });
    };
    let message = first_message(report, kind);
    Some(Error::new(kind, format!("none of {made} calls succeeded: {message}")))
}

fn first_message(report: &BenchReport, kind: ErrorKind) -> String {
    let targets = &report.targets;
    let causes = targets.iter().filter_map(|target| target.errors_by_kind.get(kind.as_str()));
    let sample = causes.max_by_key(|cause| cause.count).map(|cause| cause.sample.as_str());
    let error = || targets.iter().find_map(|target| target.error.as_ref()).map(Error::message);
    sample.or_else(error).unwrap_or(kind.as_str()).to_owned()
}

/// What a run is held to.
#[derive(Debug, Clone, Default)]
pub struct AcceptanceCriteria {
    /// The thresholds that fail the run.
    pub thresholds: Vec<Threshold>,
    /// The run that it is compared with.
    pub baseline: Option<SavedRun>,
    /// The share by which it may be worse than that: 0.1 for 10%.
    pub max_regression: Option<f64>,
}

/// What was concluded.
#[derive(Debug, Clone, Default)]
pub struct BenchFindings {
    /// Every other target against the first one, when they took turns.
    pub comparisons: Vec<TargetComparison>,
    /// The comparison with the saved run.
    pub baseline: Option<BaselineReport>,
    /// The results of the thresholds.
    pub thresholds: Vec<ThresholdResult>,
    /// What limits the run, one sentence each.
    pub bottlenecks: Vec<String>,
    /// What a reader should know before believing the figures: those of the run, of the machine and
    /// of the comparisons.
    pub warnings: Vec<String>,
}

impl BenchFindings {
    /// Concludes what there is to conclude.
    pub fn conclude(
        report: &BenchReport,
        environment: &BenchEnvironment,
        demands: &AcceptanceCriteria,
    ) -> Self {
        let comparisons = compare::compare(report);
        let baseline = demands.baseline.as_ref().map(|saved| {
            baseline::compare_with_baseline(saved, report, environment, demands.max_regression)
        });
        let mut warnings = report.warnings.clone();
        warnings.extend(environment.warnings());
        warnings.extend(comparisons.iter().flat_map(|one| one.warnings.clone()));
        warnings.extend(baseline.iter().flat_map(|one| one.warnings.clone()));
        Self {
            comparisons,
            baseline,
            thresholds: threshold::judge(&demands.thresholds, report),
            bottlenecks: bottlenecks::find(report),
            warnings,
        }
    }

    /// Why the run failed what was asked of it (exit code 8); `None` when it did not.
    pub fn failure(&self) -> Option<Error> {
        let mut lines: Vec<String> = self
            .thresholds
            .iter()
            .flat_map(|judged| &judged.lines)
            .filter(|line| line.failed)
            .map(|line| line.text.clone())
            .collect();
        let failed = self.thresholds.iter().filter(|judged| judged.failed()).count();
        let mut what = Vec::new();
        if failed > 0 {
            what.push(format!("{failed} of {} thresholds", self.thresholds.len()));
        }
        if let Some(baseline) = self.baseline.as_ref().filter(|baseline| baseline.failed()) {
            what.push(format!("the comparison with {}", baseline.file));
            let gates = baseline.targets.iter().flat_map(BaselineChange::lines);
            lines.extend(gates.filter(|line| line.ends_with(": FAIL")));
        }
        if what.is_empty() {
            return None;
        }
        Some(
            Error::new(ErrorKind::Check, format!("failed: {}", what.join(" and ")))
                .with_details(lines),
        )
    }
}

/// A word, how the rest is meant, and the rest.
type Fact = (&'static str, LineTone, String);

/// What there is to say about the run as a whole.
pub fn facts(report: &BenchReport) -> Vec<Fact> {
    let plan = &report.plan;
    let mut facts = vec![("load", LineTone::Plain, formatting::load(plan))];
    if let Some(sharing) = formatting::sharing(report) {
        facts.push(("sharing", LineTone::Plain, sharing));
    }
    facts.push(bound(report));
    facts.push(("warm-up", LineTone::Plain, formatting::warm_up(report)));
    if let Some(ending) = formatting::ending(report) {
        facts.push(("ended", LineTone::Warning, ending));
    }
    facts.extend(generator(report));
    if let Some(time) = report.generator.cpu {
        let text = format!("toolhost itself used {} of processor time", show_duration(time));
        facts.push(("cost", LineTone::Plain, text));
    }
    facts
}

fn bound(report: &BenchReport) -> Fact {
    let mut bounds = formatting::bounds(&report.plan);
    match report.plan.sharing {
        Sharing::Interleaved { .. } => bounds.push_str(" for each"),
        Sharing::Steps { .. } => bounds.push_str(" for each step"),
        Sharing::Single => {}
    }
    let default_limits =
        RunLimits { requests: Some(DEFAULT_REQUESTS), duration: Some(DEFAULT_DURATION) };
    let text = if report.plan.limits == default_limits {
        format!("{bounds} (default; set with -n and --duration)")
    } else {
        bounds
    };
    ("bounded by", LineTone::Plain, text)
}

/// Whether the load was made as it was meant, which is what an open load is believed for.
fn generator(report: &BenchReport) -> Vec<Fact> {
    let peak: u64 = report.total(|target| target.peak_in_flight);
    let dropped: u64 = report.total(|target| target.dropped);
    let plan = &report.plan;
    let LoadModel::Open { arrivals, .. } = &plan.model else {
        return Vec::new();
    };
    let sent: u64 = report.total(|target| target.requests);
    let achieved = throughput(sent, report.elapsed);
    let mut made = format!(
        "{}/s of {}; {peak} in flight at most",
        formatting::per_second(achieved),
        formatting::arrivals(*arrivals)
    );
    if dropped > 0 {
        made = format!("{made}; {dropped} {}", formatting::dropped_reason(&plan.model));
    }
    if report.generator.queued > 0 {
        made = format!("{made}; {} had to wait", report.generator.queued);
    }
    let lag = &report.generator.lag;
    let mut facts = vec![("made", LineTone::Plain, made)];
    if let (Some(median), Some(high)) = (lag.quantile(0.5), lag.quantile(0.99)) {
        let text = format!(
            "p50 {}, p99 {} after it could be sent; {} of {} more than 1 ms late",
            show_duration(median),
            show_duration(high),
            report.generator.late,
            lag.count()
        );
        facts.push(("sent", LineTone::Plain, text));
    }
    facts
}

/// The machine, the program and the servers.
pub fn machine(environment: &BenchEnvironment) -> Vec<Fact> {
    let mut machine = vec![environment.os.clone()];
    machine.extend(environment.kernel.clone());
    machine.push(environment.architecture.clone());
    if let Some(cpus) = environment.cpus {
        let cpu = environment.cpu.as_deref().map_or_else(String::new, |cpu| format!(" ({cpu})"));
        machine.push(format!("{cpus} cpu{cpu}"));
    }
    let mut facts = vec![
        ("machine", LineTone::Dim, machine.join(", ")),
        ("toolhost", LineTone::Dim, environment.toolhost.clone()),
    ];
    if let Some([load, ..]) = environment.load_before {
        let after = environment
            .load_after
            .map_or_else(String::new, |[after, ..]| format!(", {after:.1} after"));
        facts.push(("load average", LineTone::Dim, format!("{load:.1} before{after}")));
    }
    for server in &environment.servers {
        let names: Vec<&str> =
            [&server.name, &server.version].into_iter().flatten().map(String::as_str).collect();
        let mut text = names.join(" ");
        if let Some(protocol) = &server.protocol {
            let comma = if text.is_empty() { "" } else { ", " };
            text = format!("{text}{comma}protocol {protocol}");
        }
        if let Some(time) = server.cpu {
            let comma = if text.is_empty() { "" } else { ", " };
            text = format!("{text}{comma}{} of processor time", show_duration(time));
        }
        let fact = ("server", LineTone::Dim, text);
        if !fact.2.is_empty() && !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}
