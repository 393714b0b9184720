//! What a person says of a run, as a plan.
//!
//! Owns: what is meant when nothing is said, and which words contradict each other.

use std::time::Duration;

use super::plan::{
    Arrivals, Bounds, DURATION, Model, Over, Plan, REQUESTS, Sharing, StopRule, WarmUp,
};
use super::spelling::Rate;
use crate::model::Fault;

/// Calls in flight at most in an open load that says nothing about it.
const IN_FLIGHT: usize = 100;
/// Turns of each tool of a comparison.
const ROUNDS: u32 = 20;
/// The share of a run that warms it up.
const WARM_UP: u32 = 10;
/// The longest warm-up that nobody asked for.
const LONGEST_WARM_UP: Duration = Duration::from_secs(5);
/// The most calls of one that nobody asked for.
const MOST_WARM_UP: u64 = 1_000;

/// What a person says of a run; what is not said has a default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Brief {
    /// Calls that are made.
    pub requests: Option<u64>,
    /// For how long calls are made.
    pub duration: Option<Duration>,
    /// Calls in flight; with a rate, at most.
    pub concurrency: Option<u32>,
    /// The rate of an open load; a closed one has none.
    pub rate: Option<Rate>,
    /// Whether calls of an open load come at random moments.
    pub at_random: Option<bool>,
    /// What becomes of a call of an open load when too many are in flight.
    pub over: Option<Over>,
    /// Calls before the first one that counts.
    pub warm_up: Option<WarmUp>,
    /// Ends the run when so many calls have failed.
    pub stop_after_failures: Option<u64>,
    /// What is left to chance follows from it.
    pub seed: Option<u64>,
    /// Two tools take turns.
    pub compares: bool,
    /// How many turns each.
    pub rounds: Option<u32>,
}

impl Brief {
    /// What the run is to do.
    ///
    /// # Errors
    /// A usage fault that names the options that do not go together.
    pub fn plan(&self) -> Result<Plan, Fault> {
        let plan = Plan {
            model: model(self)?,
            until: until(self),
            sharing: sharing(self)?,
            warm_up: self.warm_up.unwrap_or_else(|| warm_up(self)),
            stop_rules: self.stop_after_failures.map(StopRule::Failures).into_iter().collect(),
            ..Plan::default()
        };
        Ok(Plan { seed: self.seed.unwrap_or(plan.seed), ..plan })
    }
}

fn sharing(brief: &Brief) -> Result<Sharing, Fault> {
    if brief.compares {
        let rounds = brief.rounds.unwrap_or(ROUNDS);
        return match brief.requests {
            Some(requests) if brief.rounds.is_none() => {
                let most = u32::try_from(requests).unwrap_or(u32::MAX);
                Ok(Sharing::Turns { rounds: rounds.min(most) })
            }
            Some(requests) if u64::from(rounds) > requests => Err(Fault::usage(format!(
                "--rounds {rounds} needs as many calls, and -n says {requests}"
            ))),
            _ => Ok(Sharing::Turns { rounds }),
        };
    }
    if brief.rounds.is_some() {
        return Err(Fault::usage("--rounds says nothing without --vs"));
    }
    Ok(Sharing::Mixed)
}

fn until(brief: &Brief) -> Bounds {
    match (brief.requests, brief.duration, &brief.rate) {
        // The last step ends such a run.
        (None, None, Some(Rate::Changing(steps))) => {
            Bounds { requests: None, duration: Some(steps.iter().map(|step| step.lasting).sum()) }
        }
        (None, None, _) => Bounds { requests: Some(REQUESTS), duration: Some(DURATION) },
        (requests, duration, _) => Bounds { requests, duration },
    }
}

fn warm_up(brief: &Brief) -> WarmUp {
    match (brief.requests, brief.duration) {
        (None, Some(duration)) => WarmUp::Time((duration / WARM_UP).min(LONGEST_WARM_UP)),
        (requests, _) => {
            let calls = requests.unwrap_or(REQUESTS) / u64::from(WARM_UP);
            WarmUp::Calls(calls.min(MOST_WARM_UP))
        }
    }
}

fn model(brief: &Brief) -> Result<Model, Fault> {
    let concurrency = brief.concurrency.and_then(|calls| usize::try_from(calls).ok());
    let Some(rate) = &brief.rate else {
        for (given, option) in
            [(brief.at_random.is_some(), "--arrivals"), (brief.over.is_some(), "--over")]
        {
            if given {
                return Err(Fault::usage(format!("{option} says nothing without --rate"))
                    .hint("without a rate a call is made as soon as another one has ended"));
            }
        }
        return Ok(Model::Closed { concurrency: concurrency.unwrap_or(1) });
    };
    let arrivals = match (rate, brief.at_random) {
        (Rate::Steady(rate), Some(true)) => Arrivals::Poisson { rate: *rate },
        (Rate::Steady(rate), _) => Arrivals::Constant { rate: *rate },
        (Rate::Changing(_), Some(true)) => {
            return Err(Fault::usage("--arrivals poisson needs one --rate, not several")
                .hint("calls at rates that change come evenly"));
        }
        (Rate::Changing(steps), _) => Arrivals::Steps(steps.clone()),
    };
    let in_flight = concurrency.unwrap_or(IN_FLIGHT);
    Ok(Model::Open { arrivals, in_flight, over: brief.over.unwrap_or_default() })
}
