//! Error rates of the comparison, on simulated machines whose speed drifts.

use std::time::Duration;

use super::*;
use crate::bench::fixtures::{report, target};
use crate::bench::plan::{BenchPlan, RunLimits, Sharing};
use crate::bench::report::{Round, SampleBlock};
use crate::bench::simulation;

/// A tool whose times are log-normal around a base, with a heavy tail now and then.
struct Law {
    base: f64,
    sigma: f64,
}

/// A sample of the normal distribution (Box and Muller).
fn normal(random: &mut fastrand::Rng) -> f64 {
    let (u, v) = (1.0 - random.f64(), random.f64());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Interleaved rounds of tools on a machine whose speed drifts, alike for all in one round, and
/// which now and then does something else for a while.
fn interleaved(laws: &[Law], rounds: usize, calls: usize, seed: u64) -> BenchReport {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut wholes = vec![Vec::new(); laws.len()];
    let mut drift = 0.0;
    let rounds = (0..rounds).map(|_| {
        drift = 0.8 * drift + 0.15 * normal(&mut random);
        let turns = laws.iter().zip(&mut wholes).map(|(law, whole)| {
            let mut response = Durations::default();
            let mut elapsed = Duration::ZERO;
            // What hits a turn alone: the measurement has to find out how much that is.
            let own = 0.02 * normal(&mut random);
            for _ in 0..calls {
                let outlier = if random.f64() < 0.01 { 5.0 + 20.0 * random.f64() } else { 1.0 };
                let ln = drift + own + law.sigma * normal(&mut random);
                let time = Duration::try_from_secs_f64(law.base * ln.exp() * outlier).unwrap();
                response.record(time);
                whole.push(time);
                elapsed += time;
            }
            SampleBlock { elapsed, ok: calls as u64, failed: 0, response }
        });
        Round { turns: turns.collect() }
    });
    let rounds: Vec<Round> = rounds.collect();
    let targets = wholes.into_iter().zip(["a", "b", "c"]).map(|(times, name)| target(name, times));
    let mut report = report(targets.collect());
    report.plan.seed = seed;
    report.rounds = rounds;
    report
}

fn law(base: f64) -> Law {
    Law { base, sigma: 0.4 }
}

/// How often the headline, and how often any figure, said slower or faster in 100 seeded runs.
fn told(base: f64, rounds: usize, calls: usize) -> (usize, usize, usize) {
    let mut verdicts = (0, 0, 0);
    for seed in 0..100 {
        let report = interleaved(&[law(0.002), law(base)], rounds, calls, seed);
        let comparison = &compare(&report)[0];
        let verdict = comparison.headline().unwrap().verdict;
        verdicts.0 += usize::from(verdict == RatioVerdict::Slower);
        verdicts.1 += usize::from(verdict == RatioVerdict::Faster);
        let established = |ratio: &Ratio| ratio.verdict.reason().is_none();
        verdicts.2 += usize::from(comparison.ratios.iter().any(established));
    }
    verdicts
}

#[test]
fn a_tool_against_itself_is_not_told_apart() {
    let (slower, faster, any) = told(0.002, 10, 60);
    assert!(slower + faster <= 10, "told apart in {} of 100 runs", slower + faster);
    assert!(any <= 20, "some figure differs in {any} of 100 runs");
}

#[test]
fn few_rounds_do_not_tell_a_tool_apart_from_itself() {
    let (slower, faster, _) = told(0.002, 5, 60);
    assert!(slower + faster <= 10, "told apart in {} of 100 runs", slower + faster);
}

#[test]
fn a_tool_slowed_by_a_fifth_is_slower() {
    let (slower, faster, _) = told(0.002 * 1.2, 10, 60);
    assert!(slower >= 95, "slower in {slower} of 100 runs");
    assert_eq!(faster, 0);
}

#[test]
fn a_comparison_follows_from_its_seed() {
    let report = interleaved(&[law(0.002), law(0.003)], 10, 100, 7);
    assert_eq!(compare(&report), compare(&report));
}

#[test]
fn every_figure_has_its_ratio_and_a_percentile_of_few_calls_establishes_nothing() {
    let report = interleaved(&[law(0.002), law(0.004)], 10, 40, 7);
    let comparison = &compare(&report)[0];
    let names: Vec<_> = comparison.ratios.iter().map(|ratio| ratio.statistic.name()).collect();
    assert_eq!(names, ["p50", "mean", "p90", "p95", "p99", "throughput"]);
    let of = |statistic: Statistic| &comparison.ratios[statistic.index()];
    assert_eq!(of(Statistic::P99).verdict, RatioVerdict::NotEstablished(Inconclusive::TooFewCalls));
    assert_eq!(of(Statistic::Mean).verdict, RatioVerdict::Slower);
    assert!(of(Statistic::Mean).propagated.unwrap() > 0.5, "single calls vary a lot");
    let throughput = of(Statistic::Throughput);
    assert!(throughput.verdict == RatioVerdict::Slower && throughput.value < 0.7);
    assert!((of(Statistic::P50).level - 0.95).abs() < 1e-9);
    assert!((of(Statistic::P90).level - 0.99).abs() < 1e-9);
    assert!(comparison.headline_sentence().starts_with("B is slower than A: p50 "));
}

#[test]
fn three_rounds_establish_nothing() {
    let report = interleaved(&[law(0.002), law(0.004)], 3, 1_000, 7);
    let headline = compare(&report)[0].headline().unwrap().clone();
    assert_eq!(headline.verdict, RatioVerdict::NotEstablished(Inconclusive::TooFewBlocks));
    assert_eq!(headline.interval, None);
}

#[test]
fn several_others_are_held_to_a_stricter_level() {
    let report = interleaved(&[law(0.002), law(0.002), law(0.003)], 10, 100, 7);
    let all = compare(&report);
    assert_eq!(all.iter().map(|one| one.letter).collect::<String>(), "BC");
    assert!((all[0].headline().unwrap().level - 0.975).abs() < 1e-9);
}

#[test]
fn nothing_is_compared_without_rounds_or_answers() {
    let mut report = interleaved(&[law(0.002), law(0.002)], 10, 100, 7);
    report.rounds.clear();
    assert!(compare(&report).is_empty());
    let mut report = interleaved(&[law(0.002), law(0.002)], 10, 0, 7);
    report.targets[1].requests = 50;
    let comparison = &compare(&report)[0];
    assert!(comparison.ratios.is_empty());
    assert!(comparison.headline_sentence().contains("no successful calls"));
}

#[test]
fn a_round_that_was_broken_off_is_left_out() {
    let mut report = interleaved(&[law(0.002), law(0.003)], 10, 100, 7);
    report.rounds[9].turns.truncate(1);
    let comparison = &compare(&report)[0];
    assert_eq!(comparison.rounds, 9);
    assert_eq!(comparison.headline().unwrap().verdict, RatioVerdict::Slower);
}

#[test]
fn other_work_is_told() {
    let mut report = interleaved(&[law(0.002), law(0.002)], 10, 100, 7);
    assert!(compare(&report)[0].warnings.is_empty());
    report.targets[1].requests += 50;
    report.targets[1].errors = 50;
    report.targets[1].bytes_in *= 3;
    let warnings = &compare(&report)[0].warnings;
    assert!(warnings[0].contains("0.00% of the calls of A were not answered, 4.76% of B"));
    assert!(warnings[1].contains("200 bytes per answered call, B 600"), "{warnings:?}");
}

#[test]
fn whole_simulated_runs_in_turns_are_compared() {
    let plan = |seed| BenchPlan {
        limits: RunLimits { requests: Some(1_500), duration: None },
        sharing: Sharing::Interleaved { rounds: 10 },
        seed,
        ..BenchPlan::default()
    };
    let tool = |millis, seed| {
        simulation::SimulatedTool::new(
            simulation::DelayLaw::Exponential(Duration::from_millis(millis)),
            seed,
        )
    };
    let verdict = |millis, seed| {
        let report =
            simulation::simulate(&plan(seed), vec![tool(10, seed), tool(millis, seed + 50)]);
        let comparison = compare(&report).remove(0);
        assert_eq!(comparison.rounds, 10);
        comparison.headline().unwrap().verdict
    };
    let told = |millis, wanted| (0..10).filter(|seed| verdict(millis, *seed) == wanted).count();
    assert_eq!(told(15, RatioVerdict::Slower), 10);
    assert_eq!(told(6, RatioVerdict::Faster), 10);
    let same = told(10, RatioVerdict::NotEstablished(Inconclusive::WithinNoise));
    assert!(same >= 9, "not told apart in {same} of 10 runs");
}
