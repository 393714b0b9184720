//! One run, from prepared tools to the report.
//!
//! Owns: the order of its parts: open the ways, write down what is about to be done, drive the
//! load on all targets at once or in turns, take stock.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::host::repeat::{self, Target};
use crate::model::Fault;
use crate::util::clock::Clock;
use crate::util::units::show_duration;

use super::advice;
use super::carry::{Carrier, Way};
use super::driver::{Arguments, Control, Driver, locked, shared};
use super::plan::{Bounds, Model, Plan, Sharing, WarmUp};
use super::report::{Report, Round, Turn};
use super::stock::{self, Ran};
use super::watch::{Phase, Watch};

/// A tool that is ready to be called many times.
pub struct Prepared {
    /// The tool.
    pub target: Target,
    /// Where its arguments come from.
    pub arguments: Box<dyn Arguments>,
    /// How often it is chosen among several.
    pub weight: f64,
}

/// A target before its way is open.
pub(super) struct Leg {
    pub(super) way: Arc<dyn Way>,
    pub(super) arguments: Box<dyn Arguments>,
    pub(super) weight: f64,
}

/// Runs a plan on tools, which `watch` looks at while `control` may pause or stop it.
///
/// # Errors
/// When no call could be made at all.
pub async fn run(
    plan: &Plan,
    mut prepared: Vec<Prepared>,
    clock: Arc<dyn Clock>,
    control: &Control,
    watch: &Watch,
) -> Result<Report, Fault> {
    let mut targets: Vec<&mut Target> = prepared.iter_mut().map(|p| &mut p.target).collect();
    repeat::introduce(&mut targets);
    let leg = |prepared: Prepared| {
        let Prepared { target, arguments, weight } = prepared;
        Leg { way: Arc::new(target), arguments, weight }
    };
    drive(plan, prepared.into_iter().map(leg).collect(), clock, control, watch).await
}

pub(super) async fn drive(
    plan: &Plan,
    legs: Vec<Leg>,
    clock: Arc<dyn Clock>,
    control: &Control,
    watch: &Watch,
) -> Result<Report, Fault> {
    if legs.is_empty() {
        return Err(Fault::usage("there is nothing to call"));
    }
    let lanes = match plan.model {
        Model::Closed { concurrency } => concurrency,
        Model::Open { in_flight, .. } => in_flight,
    };
    let (began, from) = (clock.unix(), clock.now());
    let mut carriers = Vec::with_capacity(legs.len());
    for Leg { way, arguments, weight } in legs {
        let driver = Driver::idle(Arc::clone(&clock), control, arguments);
        watch.stage().targets.push((way.tool(), driver.meter()));
        let around = (Arc::clone(&clock), control.clone());
        carriers.push(Carrier::open(way, driver, weight, lanes, around).await?);
    }
    for carrier in &mut carriers {
        carrier.begin(&planned(plan))?;
    }
    let mut ran = match plan.sharing {
        Sharing::Turns { rounds } if carriers.len() > 1 => {
            turns(plan, &mut carriers, rounds.max(1), control, watch).await
        }
        Sharing::Turns { .. } | Sharing::Mixed => mixed(plan, &mut carriers, control, watch).await,
    };
    watch.stage().phase = Phase::Over;
    for carrier in &mut carriers {
        let (warnings, lost) = carrier.end();
        ran.warnings.extend(warnings);
        ran.lost_record = ran.lost_record.take().or(lost);
    }
    let (wall, past) = (clock.unix().saturating_sub(began), clock.now() - from);
    ran.warnings.extend(advice::step(wall, past));
    ran.stopped = control.is_stopped() || carriers.iter().any(|carrier| carrier.way.is_cancelled());
    Ok(stock::take(plan, began, carriers, ran))
}

/// All targets at once.
async fn mixed(plan: &Plan, carriers: &mut [Carrier], control: &Control, watch: &Watch) -> Ran {
    let runners = carriers.iter().map(|carrier| carrier.driver.runner(carrier.weight)).collect();
    let course = shared(plan.clone(), control, watch, runners);
    for (who, carrier) in carriers.iter_mut().enumerate() {
        carrier.driver.enter(&course, who);
    }
    join_all(carriers.iter_mut().map(Carrier::carry)).await;
    let course = locked(&course);
    Ran { aborted: course.is_aborted(), paused: course.paused(), ..Ran::default() }
}

/// One target after the other, again and again.
async fn turns(
    plan: &Plan,
    carriers: &mut [Carrier],
    rounds: u32,
    control: &Control,
    watch: &Watch,
) -> Ran {
    let mut ran = Ran::default();
    if !matches!(plan.warm_up, WarmUp::Calls(0) | WarmUp::Time(Duration::ZERO)) {
        let until = Bounds { requests: Some(0), duration: None };
        for carrier in carriers.iter_mut() {
            turn(Plan { until, ..plan.clone() }, carrier, &mut ran, control, watch).await;
        }
    }
    let mut random = fastrand::Rng::with_seed(plan.seed);
    for round in 0..rounds {
        watch.stage().round = Some((round + 1, rounds));
        let mut order: Vec<usize> = (0..carriers.len()).collect();
        random.shuffle(&mut order);
        let mut turns: Vec<Option<Turn>> = vec![None; carriers.len()];
        for who in order {
            let carrier = &mut carriers[who];
            if ran.aborted || control.is_stopped() || carrier.way.is_cancelled() {
                return ran;
            }
            let part = Plan {
                until: share(plan.until, round, rounds),
                warm_up: WarmUp::Calls(0),
                // The same chance for all targets of a round, another one for each round.
                seed: plan.seed.wrapping_add(u64::from(round)),
                ..plan.clone()
            };
            let meter = carrier.driver.meter();
            locked(&meter).begin_turn();
            turn(part, carrier, &mut ran, control, watch).await;
            turns[who] = locked(&meter).end_turn();
        }
        // What was broken off says nothing about how the targets compare.
        let is_whole = !ran.aborted
            && !control.is_stopped()
            && carriers.iter().all(|carrier| carrier.is_open() && !carrier.way.is_cancelled());
        if is_whole {
            ran.rounds.push(Round { turns: turns.into_iter().flatten().collect() });
        }
    }
    ran
}

async fn turn(plan: Plan, carrier: &mut Carrier, ran: &mut Ran, control: &Control, watch: &Watch) {
    if !carrier.is_open() {
        return;
    }
    let course = shared(plan, control, watch, vec![carrier.driver.runner(1.0)]);
    carrier.driver.enter(&course, 0);
    carrier.carry().await;
    let course = locked(&course);
    ran.aborted |= course.is_aborted();
    ran.paused += course.paused();
}

/// What of the bounds is for this round.
fn share(until: Bounds, round: u32, rounds: u32) -> Bounds {
    let (round, rounds) = (u64::from(round), u64::from(rounds));
    Bounds {
        requests: until.requests.map(|all| all / rounds + u64::from(round < all % rounds)),
        duration: until.duration.map(|all| all / u32::try_from(rounds).unwrap_or(u32::MAX)),
    }
}

/// What a run is about to do, for the record of it.
fn planned(plan: &Plan) -> String {
    let calls = plan.until.requests.map(|calls| format!("{calls} calls"));
    let time = plan.until.duration.map(|time| format!("for {}", show_duration(time)));
    match (calls, time) {
        (Some(calls), Some(time)) => format!("a benchmark, {calls} or {time}"),
        (Some(one), None) | (None, Some(one)) => format!("a benchmark, {one}"),
        (None, None) => "a benchmark".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_all_rounds_are_the_whole() {
        let until = Bounds { requests: Some(11), duration: Some(Duration::from_secs(8)) };
        let shares: Vec<Bounds> = (0..4).map(|round| share(until, round, 4)).collect();
        let requests: Vec<u64> = shares.iter().filter_map(|share| share.requests).collect();
        assert_eq!(requests, [3, 3, 3, 2]);
        assert_eq!(shares[3].duration, Some(Duration::from_secs(2)));
    }
}
