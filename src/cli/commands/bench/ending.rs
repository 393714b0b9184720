//! What a run that was reported ends as.

use std::collections::BTreeMap;

use crate::bench::report::Report;
use crate::model::{Fault, FaultKind};

/// The fault of a run in which no call succeeded: of the commonest kind of failure.
pub(super) fn of_failures(report: &Report) -> Option<Fault> {
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
