//! Tests of the reports' accuracy, against simulated tools with known delays.

use std::time::Duration;

use proptest::prelude::*;

use super::{DelayLaw, SimulatedTool, simulate, simulate_with};
use crate::bench::arrival_schedule::starts;
use crate::bench::plan::{
    Arrivals, BenchPlan, LoadModel, OverflowPolicy, RunLimits, Sharing, WarmUp,
};
use crate::bench::report::{BenchReport, RunStatus, TargetReport};
use crate::model::{Error, ErrorKind};
use crate::util::clock::Clock as _;
use crate::util::histogram::Durations;

const MS: Duration = Duration::from_millis(1);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn plan(model: LoadModel, requests: Option<u64>, duration: Option<Duration>) -> BenchPlan {
    let until = RunLimits { requests, duration };
    BenchPlan { model, limits: until, warm_up: WarmUp::Calls(0), ..BenchPlan::default() }
}

fn closed(concurrency: usize) -> LoadModel {
    LoadModel::Closed { concurrency }
}

fn open(arrivals: Arrivals, in_flight: usize) -> LoadModel {
    LoadModel::Open { arrivals, in_flight, overflow: OverflowPolicy::Queue }
}

fn constant(rate: f64, in_flight: usize) -> LoadModel {
    open(Arrivals::Constant { rate }, in_flight)
}

fn alone(plan: &BenchPlan, tool: SimulatedTool) -> BenchReport {
    simulate(plan, vec![tool])
}

/// Within the bar: 2% or 0.2 ms.
#[track_caller]
fn near(read: Option<Duration>, truth: Duration) {
    let read = read.expect("something was measured");
    let bar = truth.mul_f64(0.02).max(Duration::from_micros(200));
    assert!(read.abs_diff(truth) <= bar, "{read:?} is not {truth:?}");
}

fn sum(target: &TargetReport) -> u64 {
    target.ok + target.tool_errors + target.errors + target.timeouts + target.unanswered
}

#[test]
fn a_fixed_delay_is_every_percentile() {
    for model in [closed(4), constant(500.0, 50)] {
        let report =
            alone(&plan(model, Some(5_000), None), SimulatedTool::new(DelayLaw::Fixed(7 * MS), 1));
        for share in [0.0, 0.5, 0.9, 0.99, 0.999, 1.0] {
            near(report.targets[0].response.quantile(share), 7 * MS);
            near(report.targets[0].service.quantile(share), 7 * MS);
        }
    }
}

#[test]
fn two_delays_are_told_apart_where_they_meet() {
    let tool = || SimulatedTool::new(DelayLaw::Bimodal(2 * MS, 50 * MS, 0.95), 2);
    for model in [closed(8), constant(200.0, 1_000)] {
        let report = alone(&plan(model, Some(40_000), None), tool());
        let response = &report.targets[0].response;
        near(response.quantile(0.5), 2 * MS);
        near(response.quantile(0.94), 2 * MS);
        near(response.quantile(0.96), 50 * MS);
        near(response.quantile(0.99), 50 * MS);
    }
}

#[test]
fn exponential_delays_have_the_percentiles_of_the_law() {
    let mean = 10 * MS;
    let report = alone(
        &plan(closed(16), Some(100_000), None),
        SimulatedTool::new(DelayLaw::Exponential(mean), 3),
    );
    for share in [0.5, 0.9, 0.99] {
        let truth = mean.mul_f64(-(1.0_f64 - share).ln());
        near(report.targets[0].response.quantile(share), truth);
    }
}

/// The response times of a single server with exponential work that calls come to by chance, by
/// Lindley's recursion on the same chances.
fn waited(rate: f64, calls: usize, mean: Duration, (seed, tool): (u64, u64)) -> Durations {
    let mut random = fastrand::Rng::with_seed(tool);
    let (mut free, mut all) = (Duration::ZERO, Durations::default());
    for comes in starts(Arrivals::Poisson { rate }, RunLimits::default(), seed).take(calls) {
        let works = mean.mul_f64(-(1.0 - random.f64()).ln());
        // The tool also draws whether the call fails.
        let _fails = random.f64();
        free = free.max(comes) + works;
        all.record(free - comes);
    }
    all
}

#[test]
fn a_queue_before_one_server_is_as_long_as_the_theory_says() {
    let calls = 20_000;
    for rate in [30.0, 90.0] {
        let plan = plan(open(Arrivals::Poisson { rate }, 100_000), Some(calls), None);
        let tool = SimulatedTool::new(DelayLaw::Exponential(10 * MS), 4).servers(1);
        let report = alone(&plan, tool);
        let truth = waited(rate, 20_000, 10 * MS, (plan.seed, 4));
        for share in [0.5, 0.9, 0.99, 0.999] {
            near(report.targets[0].response.quantile(share), truth.quantile(share).unwrap());
        }
    }
}

/// A tool of 2 ms that stands still for a second in every ten.
fn staller() -> SimulatedTool {
    SimulatedTool::new(DelayLaw::Fixed(2 * MS), 5).stalls(secs(10), secs(1))
}

#[test]
fn an_open_load_shows_a_stall_in_its_percentiles() {
    // From 10 s on a tenth of all moments lie in a stall and wait between 1 s and nothing for its
    // end: of 110 s ten stalls of one second.
    let report = alone(&plan(constant(100.0, 1_000), None, Some(secs(110))), staller());
    let response = &report.targets[0].response;
    near(response.quantile(0.5), 2 * MS);
    // A share of 10/110 is late, evenly between 0 and 1 s.
    for share in [0.95, 0.99] {
        let truth = Duration::from_secs_f64(1.0 - (1.0 - share) * 11.0) + 2 * MS;
        near(response.quantile(share), truth);
    }
    assert!(report.warnings.iter().all(|warning| !warning.contains("closed load")));
}

#[test]
fn a_closed_load_does_not_show_it_and_says_so() {
    let report = alone(&plan(closed(1), None, Some(secs(110))), staller());
    near(report.targets[0].response.quantile(0.99), 2 * MS);
    let is_warned =
        report.warnings.iter().any(|warning| warning.contains("a closed load sends nothing"));
    assert!(is_warned, "{:?}", report.warnings);
}

#[test]
fn lanes_that_are_too_few_are_part_of_the_response_time() {
    // 2 calls in flight of 10 ms each: 200 a second are possible, 250 are asked for. The n-th call
    // ends when n/2 have had 10 ms each.
    let report = alone(
        &plan(constant(250.0, 2), Some(1_000), None),
        SimulatedTool::new(DelayLaw::Fixed(10 * MS), 6),
    );
    near(report.targets[0].response.max(), secs(5) - secs(4) + 14 * MS);
    near(report.targets[0].service.max(), 10 * MS);
    assert_eq!(
        report.generator.lag.max(),
        Some(Duration::ZERO),
        "that is not the generator's doing"
    );
    assert!(report.generator.queued > 900, "{}", report.generator.queued);
    let is_warned = report
        .warnings
        .iter()
        .any(|warning| warning.contains("the tool cannot handle more with 2"));
    assert!(is_warned, "{:?}", report.warnings);
}

#[test]
fn what_is_not_made_is_counted() {
    let drop = LoadModel::Open {
        arrivals: Arrivals::Constant { rate: 250.0 },
        in_flight: 2,
        overflow: OverflowPolicy::Drop,
    };
    let report =
        alone(&plan(drop, Some(1_000), None), SimulatedTool::new(DelayLaw::Fixed(10 * MS), 6));
    let target = &report.targets[0];
    assert_eq!(target.requests + target.dropped, 1_000);
    assert!(target.dropped > 300, "{}", target.dropped);
    near(target.response.max(), 10 * MS);
}

#[test]
fn calls_that_wait_when_the_time_is_over_are_counted_too() {
    let plan = plan(constant(250.0, 2), None, Some(secs(4)));
    let report = alone(&plan, SimulatedTool::new(DelayLaw::Fixed(10 * MS), 6));
    let target = &report.targets[0];
    assert_eq!((target.requests, target.dropped), (800, 200));
}

#[test]
fn a_warm_up_counts_for_nothing_else() {
    for warm_up in [WarmUp::Calls(20), WarmUp::Time(100 * MS)] {
        for model in [closed(1), constant(100.0, 10)] {
            let plan = BenchPlan { warm_up, ..plan(model, Some(50), None) };
            let report = alone(&plan, SimulatedTool::new(DelayLaw::Fixed(5 * MS), 8));
            assert_eq!((report.targets[0].warm_up, report.targets[0].requests), (20, 50));
        }
    }
}

#[test]
fn a_hanging_tool_costs_the_patience_and_no_more() {
    for model in [closed(3), constant(10.0, 3)] {
        let plan = plan(model, None, Some(secs(2)));
        let report = alone(&plan, SimulatedTool::new(DelayLaw::Fixed(secs(3_600)), 9));
        let target = &report.targets[0];
        assert_eq!((target.requests, target.unanswered, sum(target)), (3, 3, 3));
        assert_eq!(report.exit_kind(), None);
    }
}

#[test]
fn a_pause_makes_no_call_late() {
    for model in [closed(2), constant(100.0, 10)] {
        let plan = plan(model, None, Some(secs(10)));
        let report = simulate_with(
            &plan,
            vec![SimulatedTool::new(DelayLaw::Fixed(4 * MS), 10)],
            |control, world| async move {
                let start = world.now();
                world.until(start + secs(3)).await;
                control.pause();
                world.until(start + secs(63)).await;
                control.resume();
            },
        );
        let target = &report.targets[0];
        near(target.response.max(), 4 * MS);
        near(Some(report.generator.paused), secs(60));
        near(Some(report.elapsed), secs(10));
        assert_eq!(report.status, RunStatus::Complete);
        assert_eq!(target.dropped, 0);
    }
}

#[test]
fn who_stops_a_run_gets_what_there_is() {
    let plan = plan(closed(2), Some(1_000_000), None);
    let tool = SimulatedTool::new(DelayLaw::Fixed(10 * MS), 11);
    let report = simulate_with(&plan, vec![tool], |control, world| async move {
        world.until(world.now() + secs(1)).await;
        control.stop();
    });
    assert_eq!(report.status, RunStatus::Stopped);
    assert!((198..=202).contains(&report.targets[0].ok), "{}", report.targets[0].ok);
}

#[test]
fn a_run_ends_when_so_many_calls_failed() {
    let plan = BenchPlan { stop_after_failures: Some(10), ..plan(closed(1), Some(1_000), None) };
    let report = alone(&plan, SimulatedTool::new(DelayLaw::Fixed(MS), 12).fails(1.0));
    assert_eq!((report.targets[0].requests, report.status), (10, RunStatus::Aborted));
    assert!(report.exit_kind().is_some());
}

#[test]
fn a_tool_that_dies_is_opened_again_and_the_plan_goes_on() {
    let report = alone(
        &plan(closed(1), Some(5), None),
        SimulatedTool::new(DelayLaw::Fixed(MS), 13).lives(1, 10),
    );
    let target = &report.targets[0];
    assert_eq!((target.requests, target.ok, target.restarts), (5, 5, 4));
}

#[test]
fn a_target_that_dies_for_good_leaves_the_others_their_figures() {
    for model in [closed(4), constant(100.0, 20)] {
        let dying = SimulatedTool::new(DelayLaw::Fixed(2 * MS), 14).lives(30, 1);
        let tools = vec![dying, SimulatedTool::new(DelayLaw::Fixed(3 * MS), 15)];
        let sharing = Sharing::Interleaved { rounds: 5 };
        let report = simulate(&BenchPlan { sharing, ..plan(model, None, Some(secs(5))) }, tools);
        let [dead, other] = &report.targets[..] else { panic!("two targets") };
        assert_eq!(report.status, RunStatus::Aborted);
        assert_eq!(dead.error.as_ref().map(Error::kind), Some(ErrorKind::Unreachable));
        assert_eq!(sum(dead), dead.requests);
        near(other.response.quantile(0.99), 3 * MS);
        assert!(other.ok > 200, "{}", other.ok);
        assert_eq!(other.ok, other.requests);
    }
}

#[test]
fn targets_take_turns_with_the_whole_load() {
    let plan = BenchPlan {
        sharing: Sharing::Interleaved { rounds: 10 },
        warm_up: WarmUp::Calls(7),
        ..plan(closed(2), Some(1_000), None)
    };
    let tools = [4, 5].map(|ms| SimulatedTool::new(DelayLaw::Fixed(ms * MS), 18)).to_vec();
    let report = simulate(&plan, tools);
    assert_eq!(report.rounds.len(), 10);
    for round in &report.rounds {
        assert_eq!(round.turns.iter().map(|turn| turn.ok).collect::<Vec<_>>(), [100, 100]);
        near(round.turns[0].response.quantile(0.5), 4 * MS);
        near(Some(round.turns[1].elapsed), 250 * MS);
    }
    for target in &report.targets {
        assert_eq!((target.warm_up, target.requests, target.ok), (7, 1_000, 1_000));
    }
    near(Some(report.elapsed), secs(2) + 2_500 * MS);
    assert!((report.targets[1].throughput - 400.0).abs() < 8.0);
}

fn models() -> impl Strategy<Value = LoadModel> {
    let over = prop_oneof![Just(OverflowPolicy::Queue), Just(OverflowPolicy::Drop)];
    prop_oneof![
        (1_usize..6).prop_map(closed),
        (1.0..2_000.0_f64, 1_usize..6, over, any::<bool>()).prop_map(
            |(rate, in_flight, over, chance)| {
                let arrivals =
                    if chance { Arrivals::Poisson { rate } } else { Arrivals::Constant { rate } };
                LoadModel::Open { arrivals, in_flight, overflow: over }
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever happens: every call that was made has one end.
    #[test]
    fn nothing_is_lost(
        model in models(),
        requests in 1_u64..300,
        millis in prop::option::of(1_u64..500),
        warm in 0_u64..20,
        failing in 0.0..1.0_f64,
        life in prop::option::of(1_u64..40),
        targets in 1_usize..4,
        stop in prop::option::of(0_u64..400),
        limit in prop::option::of(1_u64..30),
        seed in any::<u64>(),
    ) {
        let plan = BenchPlan {
            limits: RunLimits { requests: Some(requests), duration: millis.map(Duration::from_millis) },
            warm_up: WarmUp::Calls(warm),
            sharing: Sharing::Interleaved { rounds: 3 },
            stop_after_failures: limit,
            seed,
            ..plan(model, None, None)
        };
        let tool = |at: usize| {
            let law = DelayLaw::Bimodal(2 * MS, 90 * MS, 0.9);
            let tool = SimulatedTool::new(law, seed.wrapping_add(at as u64)).fails(failing);
            life.map_or(tool.clone(), |life| tool.lives(life, 3))
        };
        let report = simulate_with(&plan, (0..targets).map(tool).collect(), |control, world| async move {
            let Some(stop) = stop else { return };
            world.until(world.now() + Duration::from_millis(stop)).await;
            control.stop();
        });
        for target in &report.targets {
            prop_assert_eq!(sum(target), target.requests);
            prop_assert_eq!(target.response.count(), target.ok);
            prop_assert_eq!(target.failed.count(), target.tool_errors + target.errors + target.timeouts);
            let sliced: u64 = target.timeline.iter().map(|slice| slice.ok + slice.failed).sum();
            prop_assert_eq!(sliced, target.requests);
            prop_assert!(target.timeline.len() <= 128);
        }
        let made: u64 = report.targets.iter().map(|target| target.requests + target.dropped).sum();
        let most = requests * targets as u64;
        prop_assert!(made <= most, "{} of {}", made, most);
        let whole = report.status == RunStatus::Complete && millis.is_none() && life.is_none();
        prop_assert!(!whole || made == most, "{} of {}", made, most);
    }
}
