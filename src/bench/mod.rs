//! Benchmarks: calls tools at a fixed rate or concurrency, and says what the figures mean.
//!
//! [`prepare`] finds the tools of a run and checks that they may be called so often,
//! [`Benchmark::run`] makes the run, and [`BenchResult`] is its report: figures as types, and
//! [rendered](BenchResult::render) as `toolhost bench --json` and its other formats. The command
//! line and the console do the same.
//!
//! Times are [`Duration`](std::time::Duration)s, rates are calls per second, shares are between 0
//! and 1. By default one call follows the other, 1,000 of them or 10 s at most, after a tenth as
//! many that do not count; a tool that asks a person first, or is marked as not read-only, is
//! refused. Time comes in by a clock, chance by a seed.
//!
//! ```no_run
//! use serde_json::json;
//! use toolhost::bench::{
//!     self, ArgumentInput, BenchPlan, Benchmark, LoadModel, TargetOptions, TargetSpec,
//! };
//! use toolhost::{CallArguments, Error, ToolHost};
//!
//! # async fn measure(host: &ToolHost) -> Result<(), Error> {
//! let arguments = json!({ "message": "hi" }).as_object().cloned().unwrap_or_default();
//! let arguments = ArgumentInput::Single(CallArguments::Object(arguments));
//! let tool = TargetSpec { name: "demo-echo".to_owned(), arguments };
//! let warn = |warning: &str| eprintln!("{warning}");
//! let tools = bench::prepare(vec![tool], &TargetOptions::default(), host, warn).await?;
//!
//! let model = LoadModel::Closed { concurrency: 8 };
//! let result = Benchmark::new(BenchPlan { model, ..BenchPlan::default() }).run(host, tools).await?;
//! let target = &result.report.targets[0];
//! println!("{} ok, p99 {:?}", target.ok, target.response.quantile(0.99));
//! # Ok(())
//! # }
//! ```

mod arrival_schedule;
pub(crate) mod baseline;
pub(crate) mod bench_result;
pub(crate) mod bench_runner;
pub(crate) mod bottlenecks;
pub(crate) mod caveats;
pub(crate) mod compare;
pub(crate) mod control;
pub(crate) mod environment;
pub(crate) mod export;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod formatting;
pub(crate) mod interval;
pub(crate) mod json;
pub(crate) mod meter;
pub(crate) mod plan;
pub(crate) mod report;
mod scheduler;
#[cfg(test)]
pub(crate) mod simulation;
pub(crate) mod snapshot;
pub(crate) mod statistic;
pub(crate) mod steps;
pub(crate) mod summary;
pub(crate) mod syntax;
mod target_worker;
pub(crate) mod targets;
pub(crate) mod threshold;

pub use baseline::{SavedRun, read as read_baseline};
pub use bench_result::{AcceptanceCriteria, BenchFindings, BenchResult, ExportFormat};
pub use bench_runner::{Benchmark, PreparedTarget};
pub use compare::TargetComparison;
pub use control::RunControl;
pub use environment::{BenchEnvironment, ServerIdentity};
pub use plan::{Arrivals, BenchPlan, LoadModel, OverflowPolicy, RunLimits, Sharing, WarmUp};
pub use report::{
    BenchReport, ColdStart, ErrorReport, GeneratorReport, Round, RunStatus, SampleBlock,
    TargetReport, TimelineSlice,
};
pub use targets::{ArgumentInput, TargetOptions, TargetSpec, prepare};
pub use threshold::{Threshold, ThresholdLine, ThresholdResult, parse as parse_thresholds};
