//! Commands and events of the benchmark view.

use std::path::PathBuf;
use std::time::Duration;

use crate::bench::bench_result::BenchResult;
use crate::bench::plan::BenchPlan;
use crate::bench::snapshot::BenchSnapshot;
use crate::bench::threshold::Threshold;
use crate::model::{Error, JsonObject};

/// Which of the two tools of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetSide {
    /// The tool that is measured.
    A,
    /// The tool it is compared with.
    B,
}

/// A tool of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchRunTarget {
    /// The full name of the tool, with the component in front.
    pub tool: String,
    /// What it is called with.
    pub arguments: BenchArguments,
    /// How often it is called among several.
    pub weight: f64,
}

/// What a tool of a run is called with.
#[derive(Debug, Clone, PartialEq)]
pub enum BenchArguments {
    /// The same in every call, or a template of them.
    Single(JsonObject),
    /// A file with one object on each line, taken in turn; relative to where the console was opened.
    Lines(PathBuf),
}

/// What the benchmark view asks the effects to do.
#[derive(Debug, Clone, PartialEq)]
pub enum BenchEffect {
    /// Make a run; at most one goes on at a time.
    Start {
        /// The number of the run, from 1 on.
        run: u64,
        /// The tools, the load and the thresholds of the run.
        spec: Box<BenchRunSpec>,
    },
    /// Make no calls for now, or go on.
    Pause(bool),
    /// End the run and keep what was measured.
    Stop,
    /// Write a run to a file that later ones are compared with. Only what is such a run itself is
    /// replaced.
    SaveBaseline {
        /// Relative to where the console was opened.
        path: PathBuf,
        /// The whole run as JSON.
        text: String,
    },
}

/// Everything that defines a benchmark run.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchRunSpec {
    /// Its tools: one, two that are compared, or several that are mixed.
    pub targets: Vec<BenchRunTarget>,
    /// The load model and the limits of the run.
    pub plan: BenchPlan,
    /// Replaces every configured timeout; `None` keeps them.
    pub timeout: Option<Duration>,
    /// Call even tools that need approval or declare that they write.
    pub allow_writes: bool,
    /// The conditions that make the run fail when they are true.
    pub thresholds: Vec<Threshold>,
    /// The file of the run that it is compared with.
    pub baseline: Option<PathBuf>,
    /// The share by which it may be worse than that.
    pub max_regression: Option<f64>,
}

/// What the effects report to the benchmark view.
#[derive(Debug)]
pub enum BenchEvent {
    /// The tools were found; calls are made from now on.
    Started {
        /// The number of the run this is about.
        run: u64,
        /// Warnings that are shown before the run.
        warnings: Vec<String>,
    },
    /// The run is in progress; sent several times a second.
    Progress {
        /// The number of the run this is about.
        run: u64,
        /// The figures so far.
        snapshot: Box<BenchSnapshot>,
    },
    /// The run has ended, by itself, by request or with an error.
    Finished {
        /// The number of the run this is about.
        run: u64,
        /// The last figures, for the final frame.
        snapshot: Box<BenchSnapshot>,
        /// The result; `Err` when no call could be made at all.
        outcome: Box<Result<BenchResult, Error>>,
    },
    /// A run was written to be compared with.
    BaselineSaved(PathBuf),
}
