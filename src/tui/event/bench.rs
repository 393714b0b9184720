//! Commands and events of the benchmark view.

use crate::bench::bench_result::BenchResult;
use crate::bench::plan::BenchPlan;
use crate::bench::snapshot::BenchSnapshot;
use crate::model::{Error, JsonObject};

/// Which of the two tools of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetSide {
    /// The tool that is measured.
    A,
    /// The tool it is compared with.
    B,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BenchEffect {
    /// Make a run; at most one goes on at a time.
    Start {
        /// The number of the run, from 1 on.
        run: u64,
        spec: Box<BenchRunSpec>,
    },
    Pause(bool),
    /// End the run and keep what was measured.
    Stop,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BenchRunSpec {
    /// The full names of its tools: one, or two that are compared.
    pub tools: Vec<String>,
    pub arguments: JsonObject,
    pub plan: BenchPlan,
}

#[derive(Debug)]
pub enum BenchEvent {
    /// The tools were found; calls are made from now on.
    Started {
        run: u64,
        /// Warnings that are shown before the run.
        warnings: Vec<String>,
    },
    /// The run is in progress; sent several times a second.
    Progress {
        run: u64,
        /// The figures so far.
        snapshot: Box<BenchSnapshot>,
    },
    /// The run has ended, by itself, by request or with an error.
    Finished {
        run: u64,
        /// The last figures, for the final frame.
        snapshot: Box<BenchSnapshot>,
        /// The result; `Err` when no call could be made at all.
        outcome: Box<Result<BenchResult, Error>>,
    },
}
