//! Turning the options of a benchmark into a plan.

use std::time::Duration;

use super::plan::{
    Arrivals, BenchPlan, DEFAULT_DURATION, DEFAULT_REQUESTS, LoadModel, OverflowPolicy, RunLimits,
    Sharing, WarmUp,
};
use super::syntax::ConcurrencySpec;
use crate::model::Error;

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
