//! The plan of a run: its targets, load and bounds.

use std::time::Duration;

use serde_json::Value;

use crate::model::JsonObject;

/// How long what is in flight at the end may take to end.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Calls of a run without its own limit.
pub const DEFAULT_REQUESTS: u64 = 1_000;

/// Maximum duration of a run without its own limit.
pub const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchPlan {
    /// When calls are made.
    pub model: LoadModel,
    /// When no more calls are made; whichever comes first.
    pub limits: RunLimits,
    /// How several targets share the run.
    pub sharing: Sharing,
    /// Calls before the first one that counts.
    pub warm_up: WarmUp,
    /// How long what is in flight at the end may take to end.
    pub drain_timeout: Duration,
    /// Ends the run early.
    pub stop_rules: Vec<StopRule>,
    /// Before that the stop rules are not looked at.
    pub minimum_sample: MinimumSample,
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
            stop_rules: Vec::new(),
            minimum_sample: MinimumSample::default(),
            seed: 42,
        }
    }
}

impl BenchPlan {
    /// How load is made, as reports write it: `model`, `concurrency` and `rate`. The rate is that of
    /// an even or random load; steps are in the plan.
    pub fn load_values(&self) -> [Value; 3] {
        match &self.model {
            LoadModel::Closed { concurrency } => {
                ["closed".into(), (*concurrency).into(), Value::Null]
            }
            LoadModel::Open { arrivals, in_flight, .. } => {
                let rate = match arrivals {
                    Arrivals::Constant { rate } | Arrivals::Poisson { rate } => Value::from(*rate),
                    Arrivals::Steps(_) => Value::Null,
                };
                ["open".into(), (*in_flight).into(), rate]
            }
        }
    }
}

/// When calls are made.
#[derive(Debug, Clone, PartialEq)]
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
        overflow: OverflowPolicy,
    },
}

/// The schedule of an open load. Rates are calls per second, finite and above 0.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Evenly.
    Constant {
        /// The rate.
        rate: f64,
    },
    /// As independent people come: exponential gaps.
    Poisson {
        /// The mean rate.
        rate: f64,
    },
    /// Evenly, at rates that change; the run ends with the last step.
    Steps(Vec<RateStep>),
}

/// A rate for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateStep {
    /// Calls per second.
    pub rate: f64,
    /// For how long.
    pub lasting: Duration,
}

/// What happens to a call that finds too many in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverflowPolicy {
    /// It waits, and the wait is part of its response time.
    #[default]
    Queue,
    /// It is counted as dropped and not made.
    Drop,
}

/// What bounds a run; at least one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunLimits {
    /// Calls that are made, to all targets together; when they take turns, to each.
    pub requests: Option<u64>,
    /// Time in which calls are made; when targets take turns, for each of them.
    pub duration: Option<Duration>,
}

/// How several targets, or the steps of one, share a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Sharing {
    /// All at once: each call is for one of them, chosen by weight.
    #[default]
    Mixed,
    /// One after the other in so many rounds, in an order that chance changes from round to round,
    /// so that whatever else the machine does hits all alike. Each target has the whole load while it
    /// is its turn.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// So many.
    Calls(u64),
    /// For so long.
    Time(Duration),
}

/// A reason to end a run early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRule {
    /// This many calls failed in a row.
    ConsecutiveFailures(u64),
    /// This many calls failed.
    Failures(u64),
}

/// How much has to be known of a run before it may be ended early: all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MinimumSample {
    /// Counted calls that have ended.
    pub calls: u64,
    /// Time since the first counted call.
    pub time: Duration,
}

/// One tool of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetPlan {
    /// The name as typed.
    pub name: String,
    /// How often it is chosen among several; above 0.
    pub weight: f64,
    /// Where arguments come from.
    pub arguments: ArgumentSource,
}

/// Where the arguments of calls come from.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentSource {
    /// The same for all.
    Constant(JsonObject),
    /// Used in order, then from the start again; at least one.
    Rows(Vec<JsonObject>),
    /// Made for each call; see `bench::template`.
    Template(JsonObject),
}
