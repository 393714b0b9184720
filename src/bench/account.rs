//! A run that is over: what became of it, where, what follows, and the forms it is written in.
//!
//! Owns: what a run ends as. Never does: write a file.

use std::collections::BTreeMap;

use super::environment::BenchEnvironment;
use super::export;
use super::findings::Findings;
use super::json;
use super::report::Report;
use crate::model::{Fault, FaultKind};
use crate::util::json::pretty;

/// A run that is over.
#[derive(Debug, Clone)]
pub struct Account {
    /// What became of it.
    pub report: Report,
    /// Where it was made.
    pub environment: BenchEnvironment,
    /// What follows from it.
    pub findings: Findings,
}

/// A form that the account of a run is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All of it, as later runs are compared with.
    Json,
    /// One row for each tool and figure.
    Csv,
    /// A table for a page.
    Markdown,
    /// The percentile text of HdrHistogram, of the first tool.
    Hgrm,
    /// JSON as hyperfine writes it.
    Hyperfine,
    /// A picture of the times and their spread.
    Svg,
}

impl Form {
    /// The form that a file name ends in, if it is one.
    pub fn of(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        Some(match extension {
            "json" => Self::Json,
            "csv" => Self::Csv,
            "md" | "markdown" => Self::Markdown,
            "hgrm" => Self::Hgrm,
            "svg" => Self::Svg,
            _ => return None,
        })
    }
}

impl Account {
    /// Why the run failed (its exit code is that of the fault): what was asked of it, or that no
    /// call succeeded.
    pub fn fault(&self) -> Option<Fault> {
        let lost = self.report.lost_record.clone();
        lost.or_else(|| self.findings.fault()).or_else(|| of_failures(&self.report))
    }

    /// The run in this form.
    pub fn text(&self, form: Form) -> String {
        let report = &self.report;
        match form {
            Form::Json => pretty(&json::report(report, &self.environment, &self.findings)) + "\n",
            Form::Csv => export::csv::csv(report),
            Form::Markdown => export::markdown::markdown(report, &self.findings.comparisons),
            Form::Hyperfine => pretty(&export::hyperfine::hyperfine(report)) + "\n",
            Form::Svg => export::svg::svg(report, None),
            Form::Hgrm => {
                let first = report.targets.first();
                first.map(|target| export::hgrm::hgrm(&target.response)).unwrap_or_default()
            }
        }
    }
}

/// The fault of a run in which no call succeeded: of the commonest kind of failure.
fn of_failures(report: &Report) -> Option<Fault> {
    if report.targets.iter().any(|target| target.ok > 0) {
        return None;
    }
    let made: u64 = report.targets.iter().map(|target| target.requests).sum();
    let Some(kind) = report.deciding() else {
        return Some(if made == 0 {
            Fault::timeout("no call was made before the run ended")
                .hint("a longer --duration, or a shorter --warmup")
        } else {
            Fault::timeout(format!("none of {made} calls was answered before the run ended"))
                .hint("--timeout gives each call up earlier")
        });
    };
    let said = said(report, kind);
    Some(Fault::new(kind, format!("none of {made} calls succeeded: {said}")))
}

/// What was said at the first failure of this kind.
fn said(report: &Report, kind: FaultKind) -> String {
    let samples: BTreeMap<u64, &str> = report
        .targets
        .iter()
        .filter_map(|target| target.errors_by_kind.get(kind.as_str()))
        .map(|error| (error.count, error.sample.as_str()))
        .collect();
    let faults = report.targets.iter().filter_map(|target| target.fault.as_ref());
    match samples.into_values().next_back() {
        Some(sample) => sample.to_owned(),
        None => faults.map(Fault::message).next().unwrap_or(kind.as_str()).to_owned(),
    }
}
