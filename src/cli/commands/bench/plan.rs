//! Turning the options and the named tools into a plan, or into a locustfile (`--export-locust`).

use secrecy::ExposeSecret as _;
use tokio_util::sync::CancellationToken;

use super::args::BenchArgs;
use crate::bench::bench_runner::PreparedTarget;
use crate::bench::export::locust::{LocustHeader, LocustTarget, LocustValue, locust};
use crate::bench::plan::{BenchPlan, PlanOptions, read_lines};
use crate::bench::targets::{self, ArgumentInput, TargetOptions, TargetSpec};
use crate::cli::commands::prelude::*;
use crate::config::spec::{AuthSpec, Endpoint, ServerSpec, Transport};
use crate::util::text::variable_name;

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

/// The number of targets in the report: the tools of a command line, or the steps of one tool.
pub(super) fn count(args: &BenchArgs) -> usize {
    let steps = args.concurrency.as_ref().map_or(0, |spec| spec.further.len());
    1 + steps + usize::from(args.vs.is_some())
}

pub(super) async fn target_specs(
    args: &BenchArgs,
    context: &CommandContext,
) -> Result<Vec<TargetSpec>, Error> {
    if args.args.as_deref() == Some("-") && args.vs_args.as_deref() == Some("-") {
        return Err(Error::usage("--args - and --vs-args - cannot both read standard input"));
    }
    let arguments = match &args.args_lines {
        Some(file) => {
            ArgumentInput::Lines(read_lines("--args-lines", &context.environment.cwd().join(file))?)
        }
        None => {
            ArgumentInput::Single(read_arguments(&args.words, args.args.as_ref(), context).await?)
        }
    };
    let mut all = vec![TargetSpec { name: args.name.clone(), arguments: arguments.clone() }];
    if let Some(name) = args.vs.clone() {
        let arguments = match &args.vs_args {
            Some(_) => ArgumentInput::Single(
                read_arguments(&[], args.vs_args.as_ref(), context)
                    .await
                    .map_err(|error| Error::usage(format!("--vs-args: {}", error.message())))?,
            ),
            None => arguments,
        };
        all.push(TargetSpec { name, arguments });
    }
    Ok(all)
}

/// Finds each tool and checks that it may be benchmarked; `cancel` will end the run at once.
pub(super) async fn resolve(
    specs: Vec<TargetSpec>,
    args: &BenchArgs,
    context: &CommandContext,
    host: &ToolHost,
    cancel: &CancellationToken,
) -> Result<Vec<PreparedTarget>, Error> {
    let options = TargetOptions {
        servers: args.server.clone(),
        timeout: args.timeout,
        skips_validation: args.no_validate,
        allow_writes: args.allow_writes || args.yes_nested,
        assume_yes_nested: args.yes_nested,
        inspect_every: args.check_every,
        cancel: cancel.clone(),
    };
    targets::prepare(specs, &options, host, |warning| context.output.warn(warning)).await
}

const TOKEN: &str = "LOCUST_TOKEN";

pub(super) fn write(
    path: &Path,
    plan: &BenchPlan,
    prepared: &PreparedTarget,
    assembly: &Assembly,
    context: &CommandContext,
) -> CommandResult {
    let text = locust(plan, &target(prepared, &assembly.configuration.servers)?)?;
    super::write_one(path, &text, context)?;
    Ok(())
}

fn target(prepared: &PreparedTarget, servers: &[ServerSpec]) -> Result<LocustTarget, Error> {
    let name = &prepared.target.definition().name;
    let refused = |why: &str| {
        Err(Error::usage(format!("--export-locust: '{name}' {why}")).with_hint(
            "Locust speaks only HTTP; without the option, toolhost generates the load itself",
        ))
    };
    let server = servers.iter().find(|server| Some(server.name.as_str()) == name.component());
    let Some(server) = server else { return refused("is not a tool of an MCP server") };
    let Endpoint::Http { url, socket: None, transport, headers, auth, .. } = &server.endpoint
    else {
        return refused("is a tool of a server without an HTTP address");
    };
    if *transport == Transport::WebSocket {
        return refused("is a tool of a server without an HTTP address");
    }
    let keeps = |text: &str| prepared.target.masked(text) == text;
    if !keeps(url.as_str()) {
        return refused("has a secret in its URL, which would be written to the file");
    }
    let mut written: Vec<LocustHeader> = headers
        .iter()
        .map(|(name, value)| (name, value.expose_secret()))
        .map(|(name, value)| LocustHeader {
            name: name.clone(),
            value: if keeps(value) {
                LocustValue::Text(value.to_owned())
            } else {
                LocustValue::Variable { before: String::new(), variable: variable(name) }
            },
        })
        .collect();
    match &**auth {
        AuthSpec::Unset | AuthSpec::None => {}
        AuthSpec::Bearer { variable, .. } => written.push(bearer(variable.as_deref())),
        AuthSpec::OAuth(_) => written.push(bearer(None)),
    }
    Ok(LocustTarget {
        name: name.full(),
        tool: name.tool().to_owned(),
        url: url.to_string(),
        protocol: prepared.target.protocol().map(str::to_owned),
        headers: written,
        arguments: prepared.arguments.objects().cloned().collect(),
    })
}

/// The variable for the secret value of a header: `LOCUST_X_TEAM` for `X-Team`.
fn variable(header: &str) -> String {
    format!("LOCUST_{}", variable_name(header))
}

fn bearer(variable: Option<&str>) -> LocustHeader {
    let variable = variable.unwrap_or(TOKEN).to_owned();
    let value = LocustValue::Variable { before: "Bearer ".to_owned(), variable };
    LocustHeader { name: "Authorization".to_owned(), value }
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
