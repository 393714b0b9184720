//! The options of `toolhost bench`. Doc comments are the help texts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use super::export_spec::ExportSpec;
use crate::bench::mix::MixSpec;
use crate::bench::plan::WarmUp;
use crate::bench::syntax::{self, ConcurrencySpec, RateSpec};
use crate::cli::ad_hoc::ServerCommandArgs;
use crate::cli::commands::call::parse_timeout;
use crate::cli::complete;
use crate::cli::formats;

/// Benchmark a tool: call it many times and report how fast it answers.
///
/// A run ends after -n calls or --duration, by default after 1,000 calls or 10 s, and is told in
/// about ten lines; -v shows everything. A tool that needs approval, or says that it is not
/// read-only, needs --allow-writes.
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
#[command(arg = formats::option(formats::MEASUREMENTS))]
pub struct BenchArgs {
    /// The tool: its full name, or its bare name when only one tool has it
    #[arg(add = ArgValueCompleter::new(complete::tools))]
    pub name: String,
    /// key=value, key:=json, key=@file, or one object: '{"key": 1}'
    #[arg(value_name = "ARGS", add = ArgValueCompleter::new(complete::arguments))]
    pub words: Vec<String>,
    /// All arguments as one JSON object; @FILE reads a file, - standard input
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub args: Option<String>,
    /// Arguments that change: a file with one JSON object on each line, taken in turn
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          conflicts_with_all = ["args", "words"])]
    pub args_lines: Option<PathBuf>,
    /// Look for tools at this server only; repeatable
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Benchmark a tool that needs approval or may write
    #[arg(long)]
    pub allow_writes: bool,
    /// As --allow-writes, and approve the calls that the tool makes without being asked
    #[arg(long)]
    pub yes_nested: bool,
    /// Send the arguments as they are
    #[arg(long)]
    pub no_validate: bool,
    /// Read one answer of so many whole and check it against the tool's output schema; 1 is every
    /// answer. Of the others only whether they say no
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with = "no_validate")]
    pub check_every: Option<u64>,

    /// Number of calls to make
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
          help_heading = LOAD)]
    pub requests: Option<u64>,
    /// Time to make calls for, such as 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, help_heading = LOAD)]
    pub duration: Option<Duration>,
    /// Number of calls in flight, or of each step, such as 1,4,16,64; with --rate, the maximum
    /// (default 1; with --rate 100)
    #[arg(short, long, value_name = "N[,N]", help_heading = LOAD)]
    pub concurrency: Option<ConcurrencySpec>,
    /// With steps of -c: make no further step after one in which more calls failed than this
    #[arg(long, value_name = "PERCENT", value_parser = syntax::part, help_heading = LOAD)]
    pub step_error_limit: Option<f64>,
    /// Make calls at this rate, however slow the tool is: 50 or 50/s; steps as 50@10s,100@10s;
    /// rising as 10..100:60s
    #[arg(long, value_name = "PER_SECOND", help_heading = LOAD)]
    pub rate: Option<RateSpec>,
    /// With --rate: space calls evenly, or randomly as people do
    #[arg(long, value_name = "HOW", value_enum, help_heading = LOAD)]
    pub arrivals: Option<ArrivalsArg>,
    /// With --rate: what to do with a call when too many are in flight
    #[arg(long, value_name = "WHAT", value_enum, help_heading = LOAD)]
    pub over: Option<OverflowArg>,
    /// Calls, or time, to warm up with before the first call that counts; 0 for none (default a
    /// tenth of -n or of --duration)
    #[arg(long, value_name = "N|TIME", value_parser = syntax::warm_up, help_heading = LOAD)]
    pub warmup: Option<WarmUp>,
    /// Give a call up after this time
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, help_heading = LOAD)]
    pub timeout: Option<Duration>,
    /// End the run after this many failed calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
          help_heading = LOAD)]
    pub stop_after_failures: Option<u64>,
    /// Seed of everything random (default 42)
    #[arg(long, value_name = "N", help_heading = LOAD)]
    pub seed: Option<u64>,

    /// Call this tool too, in turns with the first one, and say which is faster
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::tools),
          conflicts_with = "mix", help_heading = SEVERAL)]
    pub vs: Option<String>,
    /// Its arguments, when they are others: one JSON object; @FILE reads a file, - standard input
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true, help_heading = SEVERAL)]
    pub vs_args: Option<String>,
    /// With --vs: take so many turns each; at least 5 tell something (default 20)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000),
          help_heading = SEVERAL)]
    pub rounds: Option<u32>,
    /// Make this call too, so much more often than the first one, which has weight 1; repeatable.
    /// Such as '2 notes-get key=milk'
    #[arg(long, value_name = "'WEIGHT NAME [ARGS]'", help_heading = SEVERAL)]
    pub mix: Vec<MixSpec>,

    /// Exit with 8 if this is true of the run, such as 'p99>50ms' or 'throughput<1000'; repeatable
    #[arg(long, value_name = "EXPR", help_heading = JUDGING)]
    pub fail_if: Vec<String>,
    /// Write the report to this file as JSON
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING)]
    pub save: Option<PathBuf>,
    /// Compare with the run that --save wrote to this file
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING)]
    pub baseline: Option<PathBuf>,
    /// With --baseline: exit with 8 if mean, p95 or throughput is worse by more than this
    #[arg(long, value_name = "PERCENT", value_parser = syntax::percent, help_heading = JUDGING)]
    pub max_regression: Option<f64>,
    /// Draw times and their spread into this file, an SVG picture
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING)]
    pub plot: Option<PathBuf>,
    /// Write the report to this file as a page: what came of it, pictures and tables; it needs no
    /// network and no script
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING)]
    pub html: Option<PathBuf>,
    /// Write the report for other programs: FILE.csv, FILE.md, FILE.hgrm, or hyperfine=FILE;
    /// repeatable
    #[arg(long, value_name = "[FORMAT=]FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING)]
    pub export: Vec<ExportSpec>,
    /// Write the plan as a locustfile, for a tool of an HTTP server, and make no calls
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING,
          conflicts_with_all = ["save", "baseline", "plot", "html", "export", "fail_if"])]
    pub export_locust: Option<PathBuf>,
    /// A server that is in no file.
    #[command(flatten)]
    pub target: ServerCommandArgs,
}

const LOAD: &str = "Load";
const SEVERAL: &str = "Several tools";
const JUDGING: &str = "Judging and keeping";

const EXAMPLES: &str = "\
Arguments may differ from call to call:
  {{seq}}  {{int 1 100}}  {{float 0 1}}  {{pick a b c}}  {{uuid}}  {{word}}  {{now}}

Examples:
  toolhost bench demo-echo message=hi                 one call after the other
  toolhost bench demo-echo message=hi -c 8 -n 10000   8 in flight, 10000 calls
  toolhost bench demo-echo message=hi -c 1,4,16,64    how much do more in flight bring?
  toolhost bench demo-echo message=hi --rate 200      200 a second, whatever it takes
  toolhost bench demo-add a={{seq}} b:=1              other arguments each time
  toolhost bench old-search q=x --vs new-search       which one is faster?
  toolhost bench demo-echo message=hi --fail-if 'p99>50ms' --fail-if 'error_rate>1%'
                                                      for a CI job";

/// `--arrivals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsArg {
    /// Evenly.
    Constant,
    /// At random moments.
    Poisson,
}

/// `--over`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OverflowArg {
    /// It waits, and the wait counts.
    Queue,
    /// It is not made, and counted as dropped.
    Drop,
}
