//! What a run that was reported ends as.

use std::collections::BTreeMap;

use crate::bench::report::Report;
use crate::model::{Fault, FaultKind};

/// The fault of a run in which no call succeeded: of the commonest kind of failure.
pub(super) fn of_failures(report: &Report) -> Option<Fault> {
    if report.targets.iter().any(|target| target.ok > 0) {
        return None;
    }
    let mut counts: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for (kind, error) in report.targets.iter().flat_map(|target| &target.errors_by_kind) {
        counts.entry(kind).or_insert((0, &error.sample)).0 += error.count;
    }
    let made: u64 = report.targets.iter().map(|target| target.requests).sum();
    let commonest = counts.into_iter().max_by_key(|(kind, (count, _))| {
        // Of equally common ones the one that would win among failures of single calls.
        (*count, std::cmp::Reverse(kind_of(kind).precedence()))
    });
    Some(match commonest {
        Some((kind, (count, sample))) => Fault::new(
            kind_of(kind),
            format!("none of {made} calls succeeded; {count} ended so: {sample}"),
        ),
        None if made == 0 => Fault::timeout("no call was made before the run ended")
            .hint("a longer --duration, or a shorter --warmup"),
        None => Fault::timeout(format!("none of {made} calls was answered before the run ended"))
            .hint("--timeout gives each call up earlier"),
    })
}

/// The kind of a word of the report.
fn kind_of(word: &str) -> FaultKind {
    use FaultKind::{
        Auth, Check, Config, Denied, Internal, Partial, Protocol, Timeout, Tool, Unreachable, Usage,
    };
    let known = [
        Usage,
        Tool,
        Unreachable,
        Auth,
        Denied,
        Timeout,
        Check,
        Config,
        Protocol,
        Partial,
        Internal,
    ];
    known.into_iter().find(|kind| kind.as_str() == word).unwrap_or(Internal)
}
