//! One run, from prepared tools to the report.
//!
//! Owns: the order of its parts: open the way, drive the load, take stock.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::host::repeat::Target;
use crate::model::Fault;
use crate::util::clock::Clock;

use super::driver::{Arguments, Control, Driver};
use super::meter::Meter;
use super::plan::{Model, Plan};
use super::report::{ColdStart, Ending, GeneratorReport, Report, TargetReport};
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

/// Runs a plan on a tool, which `watch` looks at while `control` may stop it.
///
/// # Errors
/// When no call could be made at all.
pub async fn run(
    plan: &Plan,
    prepared: Prepared,
    clock: Arc<dyn Clock>,
    control: &Control,
    watch: &Watch,
) -> Result<Report, Fault> {
    let Prepared { target, arguments, weight: _ } = prepared;
    let lanes = match plan.model {
        Model::Closed { concurrency } => concurrency,
        Model::Open { in_flight, .. } => in_flight,
    };
    let began = clock.unix();
    let mut repeater = target.repeater(lanes).await?;
    let mut driver = Driver::new(plan.clone(), clock, control.clone(), arguments);
    watch.stage().targets = vec![(target.definition().name.full(), driver.meter())];
    watch.stage().phase = Phase::Measuring;
    let ran = repeater.run(&mut driver).await;
    watch.stage().phase = Phase::Over;
    let meter = driver.meter();
    let meter = meter.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let ending = match &ran {
        Err(_) => Ending::Aborted,
        Ok(()) if driver.is_aborted() => Ending::Aborted,
        Ok(()) if control.is_stopped() => Ending::Stopped,
        Ok(()) => Ending::Complete,
    };
    let warnings = ran.err().map(|fault| fault.to_string()).into_iter().collect();
    let elapsed = match (meter.began, meter.last) {
        (Some(began), Some(last)) => last.saturating_duration_since(began),
        _ => Duration::ZERO,
    };
    let generator = GeneratorReport {
        late: meter.lag.count() - meter.lag.count_up_to(Duration::from_millis(1)),
        lag: meter.lag.clone(),
        ..GeneratorReport::default()
    };
    let targets = vec![stock(&target, meter, elapsed, repeater.doubts())];
    let plan = plan.clone();
    let rounds = Vec::new();
    Ok(Report { plan, began, elapsed, ending, targets, rounds, generator, warnings })
}

fn stock(target: &Target, meter: Meter, elapsed: Duration, doubts: Vec<String>) -> TargetReport {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 calls")]
    let throughput = if elapsed.is_zero() { 0.0 } else { meter.ok as f64 / elapsed.as_secs_f64() };
    TargetReport {
        tool: target.definition().name.full(),
        protocol: target.protocol().map(str::to_owned),
        cold: ColdStart { connect: target.connect(), first_call: meter.first_call },
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
        restarts: 0,
        timeline: meter.timeline().to_vec(),
        response: meter.response,
        service: meter.service,
        failed: meter.failed,
        errors_by_kind: meter.errors_by_kind,
        doubts,
        fault: None,
    }
}
