//! A finished run: its report, its environment and its findings.

use super::environment::BenchEnvironment;
use super::findings::BenchFindings;
use super::report::BenchReport;
use crate::model::{Error, ErrorKind};

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
