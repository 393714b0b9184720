//! The plan of a run, made from the options of a benchmark: its targets, load and bounds, and the arguments
//! of its calls, the same for all or rows of a file.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::syntax::ConcurrencySpec;
use crate::host::load::{LoadCall, LoadTarget};
use crate::host::request::CallArguments;
use crate::model::{Error, JsonObject, unreadable_file};

/// How long what is in flight at the end may take to end.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Calls of a run without its own limit.
pub const DEFAULT_REQUESTS: u64 = 1_000;

/// Maximum duration of a run without its own limit.
pub const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// What a run was asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BenchPlan {
    /// When calls are made.
    pub model: LoadModel,
    /// When no more calls are made; whichever comes first.
    #[serde(flatten)]
    pub limits: RunLimits,
    /// How several targets share the run.
    pub sharing: Sharing,
    /// Calls before the first one that counts.
    pub warm_up: WarmUp,
    /// How long to wait for answers at the end, in seconds.
    #[serde(rename = "patience_s", serialize_with = "seconds")]
    #[schemars(with = "f64")]
    pub drain_timeout: Duration,
    /// Ends the run early, when this many calls have failed.
    pub stop_after_failures: Option<u64>,
    /// The seed of every random choice of the run.
    pub seed: u64,
}

impl Default for BenchPlan {
    /// One call after the other, 1,000 of them or 10 s, after a tenth as many to warm up.
    fn default() -> Self {
        Self {
            model: LoadModel::Closed { concurrency: 1 },
            limits: RunLimits {
                requests: Some(DEFAULT_REQUESTS),
                duration: Some(DEFAULT_DURATION),
            },
            sharing: Sharing::default(),
            warm_up: WarmUp::Calls(DEFAULT_REQUESTS / 10),
            drain_timeout: DRAIN_TIMEOUT,
            stop_after_failures: None,
            seed: 42,
        }
    }
}

impl BenchPlan {
    /// How load is made, as reports write it: the word for it, the calls in flight, and the rate of
    /// an open load.
    pub fn load(&self) -> (&'static str, usize, Option<f64>) {
        match &self.model {
            LoadModel::Closed { concurrency } => ("closed", *concurrency, None),
            LoadModel::Open { arrivals, in_flight, .. } => {
                ("open", *in_flight, Some(arrivals.rate()))
            }
        }
    }
}

/// When calls are made.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LoadModel {
    /// A call starts as soon as another ends. Such a load waits for a slow tool and so hides how
    /// long others would have waited: it knows service times only.
    Closed {
        /// Calls in flight; at least 1.
        concurrency: usize,
    },
    /// On a schedule, however fast the tool answers. Times count from the intended starts.
    Open {
        /// The moments.
        arrivals: Arrivals,
        /// Calls in flight at most; at least 1.
        in_flight: usize,
        /// What happens to a call that finds that many in flight.
        #[serde(rename = "over")]
        overflow: OverflowPolicy,
    },
}

/// The schedule of an open load. Rates are calls per second, finite and above 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly.
    Constant {
        /// The rate.
        rate: f64,
    },
    /// As independent people come: exponential gaps.
    Poisson {
        /// The rate.
        rate: f64,
    },
}

impl Arrivals {
    /// Calls per second, on average.
    pub fn rate(self) -> f64 {
        match self {
            Self::Constant { rate } | Self::Poisson { rate } => rate,
        }
    }
}

/// What happens to a call that finds too many in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverflowPolicy {
    /// It waits, and the wait is part of its response time.
    #[default]
    Queue,
    /// It is counted as dropped and not made.
    Drop,
}

/// What bounds a run; at least one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct RunLimits {
    /// Calls that are made, to each target.
    pub requests: Option<u64>,
    /// Time in which calls are made, for each target; in seconds.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub duration: Option<Duration>,
}

/// How two targets, or the steps of one, share a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Sharing {
    /// One target has the whole run.
    #[default]
    Single,
    /// One after the other in so many rounds, in an order that chance changes from round to round,
    /// so that whatever else the machine does hits all alike. Each target has the whole load while it
    /// is its turn.
    #[serde(rename = "turns")]
    Interleaved {
        /// The rounds; at least 1.
        rounds: u32,
    },
    /// One target again and again, with so many calls in flight in each step. A step has the limits,
    /// the warm-up and the connections of a run of its own, and its part of the report.
    Steps {
        /// Calls in flight of each step; at least 1 each.
        in_flight: Vec<usize>,
        /// No step is made after one of whose calls a larger share failed.
        error_limit: Option<f64>,
    },
}

impl Sharing {
    /// What a part of the run is called.
    pub fn part(&self) -> &'static str {
        if matches!(self, Self::Steps { .. }) { "step" } else { "round" }
    }
}

/// Calls that are made first and counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarmUp {
    /// So many.
    Calls(u64),
    /// For so long, in seconds.
    #[serde(rename = "time_s")]
    Time(
        #[serde(serialize_with = "seconds")]
        #[schemars(with = "f64")]
        Duration,
    ),
}

/// A time as seconds; null without one.
pub(super) fn seconds<T: Copy + Into<Option<Duration>>, S: Serializer>(
    time: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let time: Option<Duration> = (*time).into();
    time.map(|time| time.as_secs_f64()).serialize(serializer)
}

const DEFAULT_IN_FLIGHT: usize = 100;
/// Turns of each tool of a comparison, if there are as many calls.
const ROUNDS: u32 = 20;
const WARM_UP_DIVISOR: u32 = 10;
const MAX_WARM_UP_TIME: Duration = Duration::from_secs(5);
const MAX_WARM_UP_CALLS: u64 = 1_000;

/// What a person specifies for a run; the rest has defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanOptions {
    pub requests: Option<u64>,
    /// For how long calls are made.
    pub duration: Option<Duration>,
    /// Calls in flight, or those of each step; with a rate, at most.
    pub concurrency: Option<ConcurrencySpec>,
    /// With steps: no step is made after one of whose calls a larger share failed.
    pub error_limit: Option<f64>,
    /// Calls per second of an open load; a closed one has none.
    pub rate: Option<f64>,
    /// Whether calls of an open load come at random moments.
    pub is_poisson: Option<bool>,
    pub overflow: Option<OverflowPolicy>,
    /// Calls before the first one that counts.
    pub warm_up: Option<WarmUp>,
    /// Ends the run when this many calls have failed.
    pub stop_after_failures: Option<u64>,
    /// The seed of every random choice; 42 without one.
    pub seed: Option<u64>,
    pub is_comparison: bool,
    /// The run is compared with a saved one.
    pub has_baseline: bool,
}

impl PlanOptions {
    pub fn plan(&self) -> Result<BenchPlan, Error> {
        let plan = BenchPlan {
            model: model(self)?,
            limits: limits(self),
            sharing: sharing(self)?,
            warm_up: self.warm_up.unwrap_or_else(|| warm_up(self)),
            stop_after_failures: self.stop_after_failures,
            ..BenchPlan::default()
        };
        Ok(BenchPlan { seed: self.seed.unwrap_or(plan.seed), ..plan })
    }
}

fn sharing(options: &PlanOptions) -> Result<Sharing, Error> {
    if let Some(steps) = options.concurrency.as_ref().filter(|spec| spec.has_steps()) {
        let others = [
            (options.rate.is_some(), "--rate", "run it once for each rate"),
            (options.is_comparison, "--vs", "compare at one number of calls in flight"),
            (options.has_baseline, "--baseline", "compare at one number of calls in flight"),
        ];
        if let Some((_, option, hint)) = others.into_iter().find(|(is_given, ..)| *is_given) {
            return Err(Error::usage(format!("steps of -c cannot be combined with {option}"))
                .with_hint(hint));
        }
        return Ok(Sharing::Steps { in_flight: steps.steps(), error_limit: options.error_limit });
    }
    if options.error_limit.is_some() {
        return Err(Error::usage("--step-error-limit requires steps")
            .with_hint("write steps as -c 1,4,16,64"));
    }
    if options.is_comparison {
        let most = options.requests.map_or(ROUNDS, |all| u32::try_from(all).unwrap_or(u32::MAX));
        return Ok(Sharing::Interleaved { rounds: ROUNDS.min(most) });
    }
    Ok(Sharing::Single)
}

fn limits(options: &PlanOptions) -> RunLimits {
    match (options.requests, options.duration) {
        (None, None) => {
            RunLimits { requests: Some(DEFAULT_REQUESTS), duration: Some(DEFAULT_DURATION) }
        }
        (requests, duration) => RunLimits { requests, duration },
    }
}

fn warm_up(options: &PlanOptions) -> WarmUp {
    match (options.requests, options.duration) {
        (None, Some(duration)) => WarmUp::Time((duration / WARM_UP_DIVISOR).min(MAX_WARM_UP_TIME)),
        (requests, _) => {
            let calls = requests.unwrap_or(DEFAULT_REQUESTS) / u64::from(WARM_UP_DIVISOR);
            WarmUp::Calls(calls.min(MAX_WARM_UP_CALLS))
        }
    }
}

fn model(options: &PlanOptions) -> Result<LoadModel, Error> {
    let concurrency = options.concurrency.as_ref().map(|spec| spec.first);
    let Some(rate) = options.rate else {
        for (given, option) in
            [(options.is_poisson.is_some(), "--arrivals"), (options.overflow.is_some(), "--over")]
        {
            if given {
                return Err(Error::usage(format!("{option} requires --rate"))
                    .with_hint("without --rate, each call starts when another one ends"));
            }
        }
        return Ok(LoadModel::Closed { concurrency: concurrency.unwrap_or(1) });
    };
    let arrivals = match options.is_poisson {
        Some(true) => Arrivals::Poisson { rate },
        _ => Arrivals::Constant { rate },
    };
    let in_flight = concurrency.unwrap_or(DEFAULT_IN_FLIGHT);
    Ok(LoadModel::Open { arrivals, in_flight, overflow: options.overflow.unwrap_or_default() })
}

const MAX_BYTES: u64 = 64 << 20;

/// Used in order, then from the start again; at least one.
#[derive(Debug, Clone)]
pub struct ArgumentRows(Vec<Arc<LoadCall>>);

impl ArgumentRows {
    pub async fn check(rows: Vec<JsonObject>, target: &LoadTarget) -> Result<Self, Error> {
        let mut calls = Vec::with_capacity(rows.len());
        let place = |number: usize| format!("row {number} of the arguments, blank lines aside");
        for (number, row) in (1..).zip(rows) {
            let call = target.prepare(CallArguments::Object(row)).await;
            calls.push(Arc::new(call.map_err(|error| error.context(&place(number)))?));
        }
        if calls.is_empty() {
            return Err(Error::usage("there are no rows of arguments"));
        }
        Ok(Self(calls))
    }

    pub fn of_call(&self, number: u64) -> &Arc<LoadCall> {
        let at = number % self.0.len() as u64;
        &self.0[usize::try_from(at).unwrap_or_default()]
    }

    pub fn objects(&self) -> impl Iterator<Item = &JsonObject> {
        self.0.iter().map(|row| &row.call.arguments)
    }
}

impl From<LoadCall> for ArgumentRows {
    fn from(call: LoadCall) -> Self {
        Self(vec![Arc::new(call)])
    }
}

/// Reads a file with one JSON object on each line, at least one; `option` says in errors what named the file.
pub fn read_lines(option: &str, path: &Path) -> Result<Vec<JsonObject>, Error> {
    let named = || format!("{option}: '{}'", path.display());
    let refused = |why: &str| Error::usage(format!("{}: {why}", named()));
    let mut text = String::new();
    // A person may name a pipe, whose size is unknown before it was read.
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| unreadable_file(option, path, &error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(refused("it is larger than 64 MiB"));
    }
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(Value::Object(object)) => rows.push(object),
            Ok(_) => {
                let why = format!("line {} is not a JSON object such as {{\"key\": 1}}", index + 1);
                return Err(refused(&why));
            }
            Err(error) => {
                let (line, column) = (index + 1, error.column());
                let why = error.to_string();
                let why = why.split(" at line ").next().unwrap_or_default();
                let what = format!("line {line}, column {column} is not valid JSON: {why}");
                return Err(refused(&what));
            }
        }
    }
    if rows.is_empty() {
        return Err(refused("it has no lines"));
    }
    Ok(rows)
}
