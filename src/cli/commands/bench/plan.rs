//! The options as a plan.
//!
//! Owns: what is said when nothing is said, and which options contradict each other.

use std::time::Duration;

use super::args::{ArrivalsWord, BenchArgs, OverWord};
use super::parse::Rate;
use crate::bench::plan::{
    Arrivals, Bounds, DURATION, Model, Over, Plan, REQUESTS, Sharing, StopRule, WarmUp,
};
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

/// What a run is to do.
///
/// # Errors
/// A usage fault that names the options that do not go together.
pub(super) fn plan(args: &BenchArgs) -> Result<Plan, Fault> {
    let plan = Plan {
        model: model(args)?,
        until: until(args),
        sharing: sharing(args)?,
        warm_up: args.warmup.unwrap_or_else(|| warm_up(args)),
        stop_rules: args.stop_after_failures.map(StopRule::Failures).into_iter().collect(),
        ..Plan::default()
    };
    Ok(Plan { seed: args.seed.unwrap_or(plan.seed), ..plan })
}

fn sharing(args: &BenchArgs) -> Result<Sharing, Fault> {
    if args.vs.is_some() {
        let rounds = args.rounds.unwrap_or(ROUNDS);
        return match args.requests {
            Some(requests) if args.rounds.is_none() => {
                let most = u32::try_from(requests).unwrap_or(u32::MAX);
                Ok(Sharing::Turns { rounds: rounds.min(most) })
            }
            Some(requests) if u64::from(rounds) > requests => Err(Fault::usage(format!(
                "--rounds {rounds} needs as many calls, and -n says {requests}"
            ))),
            _ => Ok(Sharing::Turns { rounds }),
        };
    }
    for (given, option) in
        [(args.rounds.is_some(), "--rounds"), (args.vs_args.is_some(), "--vs-args")]
    {
        if given {
            return Err(Fault::usage(format!("{option} says nothing without --vs")));
        }
    }
    Ok(Sharing::Mixed)
}

fn until(args: &BenchArgs) -> Bounds {
    match (args.requests, args.duration, &args.rate) {
        // The last step ends such a run.
        (None, None, Some(Rate::Changing(steps))) => {
            Bounds { requests: None, duration: Some(steps.iter().map(|step| step.lasting).sum()) }
        }
        (None, None, _) => Bounds { requests: Some(REQUESTS), duration: Some(DURATION) },
        (requests, duration, _) => Bounds { requests, duration },
    }
}

fn warm_up(args: &BenchArgs) -> WarmUp {
    match (args.requests, args.duration) {
        (None, Some(duration)) => WarmUp::Time((duration / WARM_UP).min(LONGEST_WARM_UP)),
        (requests, _) => {
            let calls = requests.unwrap_or(REQUESTS) / u64::from(WARM_UP);
            WarmUp::Calls(calls.min(MOST_WARM_UP))
        }
    }
}

fn model(args: &BenchArgs) -> Result<Model, Fault> {
    let concurrency = args.concurrency.and_then(|calls| usize::try_from(calls).ok());
    let Some(rate) = &args.rate else {
        for (given, option) in
            [(args.arrivals.is_some(), "--arrivals"), (args.over.is_some(), "--over")]
        {
            if given {
                return Err(Fault::usage(format!("{option} says nothing without --rate"))
                    .hint("without a rate a call is made as soon as another one has ended"));
            }
        }
        return Ok(Model::Closed { concurrency: concurrency.unwrap_or(1) });
    };
    let arrivals = match (rate, args.arrivals) {
        (Rate::Steady(rate), Some(ArrivalsWord::Poisson)) => Arrivals::Poisson { rate: *rate },
        (Rate::Steady(rate), _) => Arrivals::Constant { rate: *rate },
        (Rate::Changing(_), Some(ArrivalsWord::Poisson)) => {
            return Err(Fault::usage("--arrivals poisson needs one --rate, not several")
                .hint("calls at rates that change come evenly"));
        }
        (Rate::Changing(steps), _) => Arrivals::Steps(steps.clone()),
    };
    let over = match args.over {
        Some(OverWord::Drop) => Over::Drop,
        Some(OverWord::Queue) | None => Over::Queue,
    };
    Ok(Model::Open { arrivals, in_flight: concurrency.unwrap_or(IN_FLIGHT), over })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::bench::plan::Step;
    use crate::cli::args::{Cli, Command};

    fn planned(words: &[&str]) -> Result<Plan, Fault> {
        let all = ["toolhost", "bench", "t"].iter().chain(words);
        match Cli::try_parse_from(all).unwrap().command {
            Some(Command::Bench(args)) => plan(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_said_is_a_bounded_run_of_one_call_after_the_other() {
        assert_eq!(planned(&[]).unwrap(), Plan::default());
    }

    #[test]
    fn a_warm_up_is_a_tenth_and_bounded() {
        for (words, expected) in [
            (&["-n", "50"][..], WarmUp::Calls(5)),
            (&["-n", "10000000"], WarmUp::Calls(1_000)),
            (&["--duration", "20s"], WarmUp::Time(Duration::from_secs(2))),
            (&["--duration", "1h"], WarmUp::Time(Duration::from_secs(5))),
            (&["--warmup", "0", "-n", "50"], WarmUp::Calls(0)),
            (&["--warmup", "3s"], WarmUp::Time(Duration::from_secs(3))),
        ] {
            assert_eq!(planned(words).unwrap().warm_up, expected, "{words:?}");
        }
    }

    #[test]
    fn a_rate_makes_an_open_load() {
        let plan = planned(&["--rate", "50", "--arrivals", "poisson", "--over", "drop", "-c", "8"]);
        let arrivals = Arrivals::Poisson { rate: 50.0 };
        assert_eq!(plan.unwrap().model, Model::Open { arrivals, in_flight: 8, over: Over::Drop });
    }

    #[test]
    fn the_steps_of_a_rate_bound_a_run_that_nothing_else_bounds() {
        let plan = planned(&["--rate", "5@10s,10@20s"]).unwrap();
        let thirty = Some(Duration::from_secs(30));
        assert_eq!(plan.until, Bounds { requests: None, duration: thirty });
        let step = |rate, seconds| Step { rate, lasting: Duration::from_secs(seconds) };
        let arrivals = Arrivals::Steps(vec![step(5.0, 10), step(10.0, 20)]);
        assert_eq!(plan.model, Model::Open { arrivals, in_flight: 100, over: Over::Queue });
    }

    #[test]
    fn a_comparison_takes_turns_and_no_more_than_there_are_calls() {
        for (words, rounds) in [
            (&["--vs", "b"][..], 20),
            (&["--vs", "b", "-n", "7"], 7),
            (&["--vs", "b", "--rounds", "50"], 50),
        ] {
            assert_eq!(planned(words).unwrap().sharing, Sharing::Turns { rounds }, "{words:?}");
        }
    }

    #[test]
    fn options_that_do_not_go_together_are_named() {
        for (words, named) in [
            (&["--over", "drop"][..], ["--over", "--rate"]),
            (&["--arrivals", "poisson"], ["--arrivals", "--rate"]),
            (&["--rounds", "9"], ["--rounds", "--vs"]),
            (&["--vs-args", "{}"], ["--vs-args", "--vs"]),
            (&["--vs", "b", "--rounds", "9", "-n", "5"], ["--rounds 9", "-n"]),
            (&["--arrivals", "poisson", "--rate", "1@1s"], ["--arrivals", "--rate"]),
        ] {
            let fault = planned(words).unwrap_err();
            assert_eq!(fault.kind().exit_code(), 2);
            assert!(named.iter().all(|name| fault.message().contains(name)), "{fault}");
        }
    }
}
