//! Turning the options into a plan.

use super::args::BenchArgs;
use crate::bench::plan::BenchPlan;
use crate::bench::plan_options::PlanOptions;
use crate::cli::commands::prelude::*;

pub(super) fn plan(args: &BenchArgs) -> Result<BenchPlan, Error> {
    if args.vs_args.is_some() && args.vs.is_none() {
        return Err(Error::usage("--vs-args requires --vs"));
    }
    let options = PlanOptions {
        requests: args.requests,
        duration: args.duration,
        concurrency: args.concurrency.clone(),
        error_limit: args.step_error_limit,
        rate: args.rate,
        is_poisson: args.is_poisson,
        overflow: args.over,
        warm_up: args.warmup,
        stop_after_failures: args.stop_after_failures,
        seed: args.seed,
        is_comparison: args.vs.is_some(),
        has_baseline: args.baseline.is_some(),
    };
    options.plan()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::bench::plan::{Arrivals, LoadModel, OverflowPolicy, Sharing, WarmUp};
    use crate::cli::args::{Cli, CliCommand};

    fn planned(words: &[&str]) -> Result<BenchPlan, Error> {
        let all = ["toolhost", "bench", "t"].iter().chain(words);
        match Cli::try_parse_from(all).unwrap().command {
            Some(CliCommand::Bench(args)) => plan(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_said_is_a_bounded_run_of_one_call_after_the_other() {
        assert_eq!(planned(&[]).unwrap(), BenchPlan::default());
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
        assert_eq!(
            plan.unwrap().model,
            LoadModel::Open { arrivals, in_flight: 8, overflow: OverflowPolicy::Drop }
        );
    }

    #[test]
    fn a_comparison_takes_turns_and_no_more_than_there_are_calls() {
        for (words, rounds) in [(&["--vs", "b"][..], 20), (&["--vs", "b", "-n", "7"], 7)] {
            assert_eq!(
                planned(words).unwrap().sharing,
                Sharing::Interleaved { rounds },
                "{words:?}"
            );
        }
    }

    #[test]
    fn several_numbers_in_flight_are_steps_of_a_closed_load() {
        let plan = planned(&["-c", "2,8", "--step-error-limit", "5%", "-n", "50"]).unwrap();
        assert_eq!(plan.model, LoadModel::Closed { concurrency: 2 });
        let steps = Sharing::Steps { in_flight: vec![2, 8], error_limit: Some(0.05) };
        assert_eq!(plan.sharing, steps);
        assert_eq!((plan.limits.requests, plan.warm_up), (Some(50), WarmUp::Calls(5)));
    }

    #[test]
    fn options_that_do_not_go_together_are_named() {
        for (words, named) in [
            (&["--over", "drop"][..], ["--over", "--rate"]),
            (&["--arrivals", "poisson"], ["--arrivals", "--rate"]),
            (&["--vs-args", "{}"], ["--vs-args", "--vs"]),
            (&["-c", "1,2", "--rate", "5"], ["-c", "--rate"]),
            (&["-c", "1,2", "--vs", "b"], ["-c", "--vs"]),
            (&["-c", "1,2", "--baseline", "b.json"], ["-c", "--baseline"]),
            (&["--step-error-limit", "5%"], ["--step-error-limit", "steps"]),
        ] {
            let error = planned(words).unwrap_err();
            assert_eq!(error.kind().exit_code(), 2);
            assert!(named.iter().all(|name| error.message().contains(name)), "{error}");
        }
    }
}
