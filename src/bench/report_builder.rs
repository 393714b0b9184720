//! Building the report of a finished run.

use std::time::Duration;

use super::caveats;
use super::driver::lock;
use super::meter::Meter;
use super::plan::BenchPlan;
use super::report::{BenchReport, ColdStart, GeneratorReport, Round, RunStatus, TargetReport};
use super::target_worker::TargetWorker;
use crate::model::Error;

#[derive(Debug, Default)]
pub(super) struct RunFacts {
    pub(super) aborted: bool,
    pub(super) stopped: bool,
    pub(super) paused: Duration,
    pub(super) rounds: Vec<Round>,
    pub(super) warnings: Vec<String>,
    pub(super) lost_record: Option<Error>,
}

pub(super) fn build(
    plan: &BenchPlan,
    began: Duration,
    workers: Vec<TargetWorker>,
    ran: RunFacts,
) -> BenchReport {
    let RunFacts { aborted, stopped, paused, rounds, warnings, lost_record } = ran;
    let all: Vec<(TargetWorker, Meter)> = workers
        .into_iter()
        .map(|worker| {
            let meter = lock(&worker.driver.meter()).clone();
            (worker, meter)
        })
        .collect();
    let in_turns =
        all.iter().any(|(_, meter)| meter.began.is_none() && !meter.active_time().is_zero());
    let elapsed = if in_turns {
        all.iter().map(|(_, meter)| meter.active_time()).sum()
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
    let died = all.iter().any(|(worker, _)| worker.error.is_some());
    let ending = match () {
        () if stopped => RunStatus::Stopped,
        () if aborted || died => RunStatus::Aborted,
        () => RunStatus::Complete,
    };
    let target = |(worker, meter): (TargetWorker, Meter)| {
        let active = if in_turns { meter.active_time() } else { elapsed };
        target_report(worker, meter, active)
    };
    let targets = all.into_iter().map(target).collect();
    let plan = plan.clone();
    let mut report = BenchReport {
        plan,
        began,
        elapsed,
        status: ending,
        targets,
        rounds,
        generator,
        lost_record,
        warnings: Vec::new(),
    };
    report.warnings = caveats::collect(&report);
    report.warnings.extend(warnings);
    report
}

fn target_report(worker: TargetWorker, meter: Meter, elapsed: Duration) -> TargetReport {
    let connector = worker.connector;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 calls")]
    let throughput = if elapsed.is_zero() { 0.0 } else { meter.ok as f64 / elapsed.as_secs_f64() };
    // What was connected before belongs to the first step.
    let before = connector.connect().filter(|_| !worker.is_repeated);
    let protocol = connector.protocol();
    // Tools that nothing is connected for have nothing to say about connecting.
    let connects = protocol.is_some() || before.is_some();
    let connect = connects.then(|| before.unwrap_or_default() + worker.connect_time);
    let mut errors_by_kind = meter.errors_by_kind.clone();
    for cause in errors_by_kind.values_mut() {
        cause.sample = connector.masked(&cause.sample);
    }
    TargetReport {
        tool: connector.tool(),
        step: worker.step,
        elapsed,
        program: connector.program(),
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
        restarts: worker.restarts,
        timeline: meter.timeline().to_vec(),
        service: meter.service().clone(),
        response: meter.response,
        failed: meter.failed,
        errors_by_kind,
        protocol_warnings: worker
            .protocol_warnings
            .iter()
            .map(|doubt| connector.masked(doubt))
            .collect(),
        error: worker.error.map(|error| error.map_text(&|text| connector.masked(text))),
    }
}
