//! The plan of a run: its targets, load and bounds.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

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
