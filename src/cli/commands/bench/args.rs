//! The options of `toolhost bench`. Doc comments are the help texts.
//!
//! Parsing of `--export FORMAT=FILE`.

use std::str::FromStr;

use crate::bench::bench_result::ExportFormat;
use crate::bench::plan::{OverflowPolicy, WarmUp};
use crate::bench::syntax::{self, ConcurrencySpec};
use crate::cli::commands::call::parse_timeout;
use crate::cli::commands::prelude::*;

/// Benchmark a tool: call it many times and report latencies and throughput.
///
/// A run ends after -n calls or --duration, by default after 1,000 calls or 10 s. The report has
/// about ten lines; -v shows everything. A tool that needs approval, or is marked as not read-only,
/// needs --allow-writes.
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
#[command(arg = formats::option(formats::MEASUREMENTS), arg = ad_hoc::command())]
pub struct BenchArgs {
    /// Tool to call: its full name, or its bare name if that is unique
    #[arg(add = ArgValueCompleter::new(complete::tools))]
    pub name: String,
    /// key=value, key:=json, key=@file, or one object: '{"key": 1}'
    #[arg(value_name = "ARGS", add = ArgValueCompleter::new(complete::arguments))]
    pub words: Vec<String>,
    /// All arguments as one JSON object; @FILE reads a file, - reads stdin
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub args: Option<String>,
    /// File with one JSON object of arguments per line, used in turn
    #[arg(long, hide_short_help = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          conflicts_with_all = ["args", "words"])]
    pub args_lines: Option<PathBuf>,
    /// Only look for the tool on this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Allow benchmarking a tool that needs approval or may write
    #[arg(long)]
    pub allow_writes: bool,
    /// Like --allow-writes, and also approve calls made by the tool
    #[arg(long, hide_short_help = true)]
    pub yes_nested: bool,
    /// Skip validation of the arguments
    #[arg(long, hide_short_help = true)]
    pub no_validate: bool,
    /// Fully check every Nth result against the tool's output schema; the others only for errors
    #[arg(long, hide_short_help = true,
          value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with = "no_validate")]
    pub check_every: Option<u64>,

    /// Number of calls
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
          help_heading = LOAD)]
    pub requests: Option<u64>,
    /// Duration of the run, such as 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, help_heading = LOAD)]
    pub duration: Option<Duration>,
    /// Calls in flight (default 1; 100 with --rate), or steps such as 1,4,16
    #[arg(short, long, value_name = "N[,N]", help_heading = LOAD)]
    pub concurrency: Option<ConcurrencySpec>,
    /// With steps of -c: stop after a step with more failed calls than this
    #[arg(long, hide_short_help = true,
          value_name = "PERCENT", value_parser = syntax::part, help_heading = LOAD)]
    pub step_error_limit: Option<f64>,
    /// Start calls at a fixed rate, however slow the tool is
    #[arg(long, value_name = "PER_SECOND", value_parser = syntax::rate, help_heading = LOAD)]
    pub rate: Option<f64>,
    /// With --rate: space calls evenly or as a random (Poisson) process
    #[arg(long = "arrivals", hide_short_help = true, value_name = "HOW",
          value_parser = choice(ARRIVALS), help_heading = LOAD)]
    pub is_poisson: Option<bool>,
    /// With --rate: queue or drop a call when too many are in flight
    #[arg(long, hide_short_help = true, value_name = "WHAT", value_parser = choice(OVERFLOW),
          help_heading = LOAD)]
    pub over: Option<OverflowPolicy>,
    /// Calls or time to warm up; 0 for none (default: a tenth of the run)
    #[arg(long, value_name = "N|TIME", value_parser = syntax::warm_up, help_heading = LOAD)]
    pub warmup: Option<WarmUp>,
    /// Time limit for each call
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, help_heading = LOAD)]
    pub timeout: Option<Duration>,
    /// Stop after this many failed calls
    #[arg(long, hide_short_help = true,
          value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
          help_heading = LOAD)]
    pub stop_after_failures: Option<u64>,
    /// Seed for everything random (default 42)
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = LOAD)]
    pub seed: Option<u64>,

    /// Compare with this tool: call both alternately
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::tools),
          help_heading = LOAD)]
    pub vs: Option<String>,
    /// Arguments of the --vs tool, if different: one JSON object; @FILE reads a file, - reads stdin
    #[arg(long, hide_short_help = true, value_name = "JSON|@FILE|-", allow_hyphen_values = true,
          help_heading = LOAD)]
    pub vs_args: Option<String>,

    /// Exit with 8 if true, such as 'p99>50ms' or 'throughput<1000' (repeatable)
    #[arg(long, value_name = "EXPR", help_heading = JUDGING)]
    pub fail_if: Vec<String>,
    /// Save the report to this file as JSON
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING)]
    pub save: Option<PathBuf>,
    /// Compare with a report saved by --save
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING)]
    pub baseline: Option<PathBuf>,
    /// With --baseline: exit with 8 if mean, p95 or throughput is worse by more than this
    #[arg(long, hide_short_help = true,
          value_name = "PERCENT", value_parser = syntax::percent, help_heading = JUDGING)]
    pub max_regression: Option<f64>,
    /// Save the report to this file as an HTML page with plots (also --plot)
    #[arg(long, alias = "plot", value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING)]
    pub html: Option<PathBuf>,
    /// Export the report (repeatable): FILE.csv or FILE.md
    #[arg(long, hide_short_help = true,
          value_name = "[FORMAT=]FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING)]
    pub export: Vec<ExportSpec>,
    /// Write a locustfile for a tool of an HTTP server, without running it
    #[arg(long, hide_short_help = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          help_heading = JUDGING,
          conflicts_with_all = ["vs", "save", "baseline", "html", "export", "fail_if"])]
    pub export_locust: Option<PathBuf>,
}

const LOAD: &str = "Load";
const JUDGING: &str = "Thresholds and output";

const EXAMPLES: &str = "\
Examples:
  toolhost bench demo-echo message=hi                 one call after the other
  toolhost bench demo-echo message=hi -c 8 -n 10000   8 in flight, 10000 calls
  toolhost bench demo-echo message=hi -c 1,4,16,64    how much do more in flight bring?
  toolhost bench demo-echo message=hi --rate 200      200 a second, whatever it takes
  toolhost bench old-search q=x --vs new-search       which one is faster?
  toolhost bench demo-echo message=hi --fail-if 'p99>50ms' --fail-if 'error_rate>1%'
                                                      for a CI job";

/// Whether calls start at random moments.
const ARRIVALS: &[Choice<bool>] =
    &[("constant", "At even intervals", false), ("poisson", "At random moments", true)];
const OVERFLOW: &[Choice<OverflowPolicy>] = &[
    ("queue", "The call waits, and the wait counts as latency", OverflowPolicy::Queue),
    ("drop", "The call is skipped and counted as dropped", OverflowPolicy::Drop),
];

/// `--export`: a format and a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSpec {
    pub form: ExportFormat,
    pub path: PathBuf,
}

impl FromStr for ExportSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let form_of = |word: &str| match word {
            "csv" => Some(ExportFormat::Csv),
            "md" | "markdown" => Some(ExportFormat::Markdown),
            _ => None,
        };
        if let Some((word, path)) = text.split_once('=')
            && let Some(form) = form_of(word)
            && !path.is_empty()
        {
            return Ok(Self { form, path: path.into() });
        }
        let path = PathBuf::from(text);
        match path.extension().and_then(|extension| form_of(extension.to_str()?)) {
            Some(form) => Ok(Self { form, path }),
            None => Err(Error::usage(
                "expected FILE.csv, FILE.md, csv=FILE or md=FILE; use --save FILE for JSON",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_named_or_follows_from_the_file() {
        let export = |text: &str| text.parse::<ExportSpec>().map(|export| export.form).ok();
        assert_eq!(export("a.csv"), Some(ExportFormat::Csv));
        assert_eq!(export("b.md"), Some(ExportFormat::Markdown));
        assert_eq!(export("csv=a=b.txt"), Some(ExportFormat::Csv));
        assert_eq!("csv=a=b.txt".parse::<ExportSpec>().unwrap().path, Path::new("a=b.txt"));
        for text in ["", "csv=", "a.json", "html=a.html", "a", "a.hgrm", "hyperfine=a.json"] {
            assert!(export(text).is_none(), "{text}");
        }
    }
}
