//! Taking stock of a run that is over.
//!
//! Owns: making the report of what was metered. Never does: judge it (`advice`).

use std::time::Duration;

use super::advice;
use super::carry::Carrier;
use super::driver::locked;
use super::meter::Meter;
use super::plan::Plan;
use super::report::{ColdStart, Ending, GeneratorReport, Report, Round, TargetReport};
use crate::model::Fault;

/// What is known of a run beside its calls.
#[derive(Debug, Default)]
pub(super) struct Ran {
    pub(super) aborted: bool,
    pub(super) stopped: bool,
    pub(super) paused: Duration,
    pub(super) rounds: Vec<Round>,
    pub(super) warnings: Vec<String>,
    pub(super) lost_record: Option<Fault>,
}

/// The report of a run.
pub(super) fn take(plan: &Plan, began: Duration, carriers: Vec<Carrier>, ran: Ran) -> Report {
    let Ran { aborted, stopped, paused, rounds, warnings, lost_record } = ran;
    let all: Vec<(Carrier, Meter)> = carriers
        .into_iter()
        .map(|carrier| {
            let meter = locked(&carrier.driver.meter()).clone();
            (carrier, meter)
        })
        .collect();
    let in_turns = all.iter().any(|(_, meter)| meter.began.is_none() && !meter.active().is_zero());
    let elapsed = if in_turns {
        all.iter().map(|(_, meter)| meter.active()).sum()
    } else {
        let from = all.iter().filter_map(|(_, meter)| meter.began).min();
        let to = all.iter().filter_map(|(_, meter)| meter.last).max();
        from.zip(to).map_or(Duration::ZERO, |(from, to)| to.saturating_duration_since(from))
    };
    let mut generator = GeneratorReport { paused, ..GeneratorReport::default() };
    for (_, meter) in &all {
        generator.lag.merge(&meter.lag);
        generator.queued += meter.queued;
    }
    generator.late = generator.lag.count() - generator.lag.count_up_to(Duration::from_millis(1));
    let died = all.iter().any(|(carrier, _)| carrier.fault.is_some());
    let ending = match () {
        () if stopped => Ending::Stopped,
        () if aborted || died => Ending::Aborted,
        () => Ending::Complete,
    };
    let target = |(carrier, meter): (Carrier, Meter)| {
        let active = if in_turns { meter.active() } else { elapsed };
        of(carrier, meter, active)
    };
    let targets = all.into_iter().map(target).collect();
    let plan = plan.clone();
    let mut report = Report {
        plan,
        began,
        elapsed,
        ending,
        targets,
        rounds,
        generator,
        lost_record,
        warnings: Vec::new(),
    };
    report.warnings = advice::of(&report);
    report.warnings.extend(warnings);
    report
}

fn of(carrier: Carrier, meter: Meter, elapsed: Duration) -> TargetReport {
    let way = carrier.way;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 calls")]
    let throughput = if elapsed.is_zero() { 0.0 } else { meter.ok as f64 / elapsed.as_secs_f64() };
    let (protocol, before) = (way.protocol(), way.connect());
    // Tools that nothing is connected for have nothing to say about connecting.
    let connects = protocol.is_some() || before.is_some();
    let connect = connects.then(|| before.unwrap_or_default() + carrier.opened_in);
    let mut errors_by_kind = meter.errors_by_kind.clone();
    for error in errors_by_kind.values_mut() {
        error.sample = way.masked(&error.sample);
    }
    TargetReport {
        tool: way.tool(),
        protocol,
        cold: ColdStart { connect, first_call: meter.first_call },
        warm_up: meter.warm_up,
        requests: meter.requests,
        ok: meter.ok,
        tool_errors: meter.tool_errors,
        errors: meter.errors,
        timeouts: meter.timeouts,
        unanswered: meter.unanswered,
        dropped: meter.dropped,
        throughput,
        peak_in_flight: meter.peak_in_flight,
        bytes_out: meter.bytes_out,
        bytes_in: meter.bytes_in,
        restarts: carrier.restarts,
        timeline: meter.timeline().to_vec(),
        service: meter.service().clone(),
        response: meter.response,
        failed: meter.failed,
        errors_by_kind,
        doubts: carrier.doubts.iter().map(|doubt| way.masked(doubt)).collect(),
        fault: carrier.fault.map(|fault| fault.map_text(&|text| way.masked(text))),
    }
}
