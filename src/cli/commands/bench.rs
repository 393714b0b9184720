//! `toolhost bench`.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::bench::driver::{Arguments, Control};
use crate::bench::plan::{Arrivals, Bounds, DURATION, Model, Over, Plan, REQUESTS, WarmUp};
use crate::bench::run::{self, Prepared};
use crate::bench::watch::Watch;
use crate::cli::arguments::{self, Sources};
use crate::cli::complete;
use crate::cli::context::{Context, Outcome, Starts};
use crate::cli::output::Format;
use crate::cli::views;
use crate::host::repeat::TargetRequest;
use crate::provider::repeat::Payload;
use crate::util::clock::SystemClock;

/// Calls at once in an open load that says nothing about it.
const IN_FLIGHT: usize = 100;

/// Call a tool many times and show how fast it answers.
///
/// A run is bounded: by -n, by --duration, or by 1000 calls and 10 s. A tool that asks before it
/// runs, or says that it is not read-only, needs --allow-writes.
#[derive(Debug, Default, Args)]
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
    /// Look for the tool at this server only; repeatable
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Make so many calls
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Make calls for so long, such as 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = super::call::parse_timeout)]
    pub duration: Option<Duration>,
    /// Keep so many calls in flight
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub concurrency: Option<u32>,
    /// Make so many calls a second, whatever the tool does
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// Give a call up after this time
    #[arg(long, value_name = "TIME", value_parser = super::call::parse_timeout)]
    pub timeout: Option<Duration>,
    /// Call even what asks before it runs, or says that it is not read-only
    #[arg(long)]
    pub allow_writes: bool,
}

/// Runs the command.
///
/// # Errors
/// Why the tool cannot be called at all.
pub async fn run(args: &BenchArgs, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Yaml])?;
    let sources = Sources {
        words: args.words.clone(),
        whole: args.args.clone(),
        cwd: context.environment.cwd(),
    };
    let given = arguments::read(&sources, &mut std::io::stdin())?;
    let assembly = context.assemble(Starts::Named(&args.name, &args.server)).await?;
    let request = TargetRequest {
        servers: args.server.clone(),
        timeout: args.timeout,
        allow_writes: args.allow_writes,
        ..TargetRequest::new(&args.name)
    };
    let target = assembly.host.target(&request).await?;
    for warning in target.warnings() {
        context.door.warn(warning);
    }
    let payload = Arc::new(target.payload(given).await?);
    let prepared = Prepared { target, arguments: Box::new(Same(payload)), weight: 1.0 };
    let control = Control::default();
    let stop = control.clone();
    let cancel = context.cancel.clone();
    let plan = plan(args);
    let watch = Watch::default();
    let work = run::run(&plan, vec![prepared], Arc::new(SystemClock), &control, &watch);
    let mut work = std::pin::pin!(work);
    let report = tokio::select! {
        report = &mut work => report?,
        () = cancel.cancelled() => {
            stop.stop();
            work.await?
        }
    };
    match format {
        Format::Text => context.door.page(&views::bench::page(&report)),
        _ => context.door.value(format, &views::bench::json(&report)),
    }
}

fn plan(args: &BenchArgs) -> Plan {
    let unbounded = args.requests.is_none() && args.duration.is_none();
    let until = if unbounded {
        Bounds { requests: Some(REQUESTS), duration: Some(DURATION) }
    } else {
        Bounds { requests: args.requests, duration: args.duration }
    };
    let concurrency = args.concurrency.map(|n| usize::try_from(n).unwrap_or(1));
    let model = match args.rate {
        Some(rate) => Model::Open {
            arrivals: Arrivals::Constant { rate },
            in_flight: concurrency.unwrap_or(IN_FLIGHT),
            over: Over::Queue,
        },
        None => Model::Closed { concurrency: concurrency.unwrap_or(1) },
    };
    let warm_up = WarmUp::Calls(args.requests.unwrap_or(REQUESTS) / 10);
    Plan { model, until, warm_up, ..Plan::default() }
}

/// The same arguments for every call.
struct Same(Arc<Payload>);

impl Arguments for Same {
    fn of(&mut self, _ticket: u64) -> Arc<Payload> {
        Arc::clone(&self.0)
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    match number.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("expected calls a second, such as 50".to_owned()),
    }
}
