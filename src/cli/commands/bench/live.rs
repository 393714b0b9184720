//! The live display of a run, and ending it on a key or a signal.
//!
//! Owns: how often is looked, and what a signal means for the run. Looking happens on the thread
//! that makes the load, five times a second at most.

use std::sync::Arc;
use std::time::Duration;

use crate::bench::driver::RunControl;
use crate::bench::monitor::RunMonitor;
use crate::bench::plan::BenchPlan;
use crate::bench::report::BenchReport;
use crate::bench::snapshot::BenchSnapshot;
use crate::cli::context::CommandContext;
use crate::cli::views::bench::live;
use crate::model::Error;
use crate::util::clock::{Clock, SystemClock};
use tokio_util::sync::CancellationToken;

/// The time between two looks of a person.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// The time between two lines of a log.
const LOG_INTERVAL: Duration = Duration::from_secs(5);
/// How long answers are waited for after a signal.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(800);
/// What a run is given after a signal: the wait for answers, and the report.
pub(super) const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// How a run is ended.
pub(super) struct StopHandles<'a> {
    /// Lets no more calls be made.
    pub(super) control: &'a RunControl,
    /// Waits for no more answers.
    pub(super) abort: &'a CancellationToken,
}

/// Drives a run to its report and shows it meanwhile. The first signal lets no more calls be made
/// and waits a moment for answers; the second one waits for nothing.
pub(super) async fn drive(
    run: impl Future<Output = Result<BenchReport, Error>>,
    plan: &BenchPlan,
    stop: &StopHandles<'_>,
    watch: &RunMonitor,
    context: &CommandContext,
) -> Result<BenchReport, Error> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let output = &context.output;
    let paints = output.can_repaint();
    let mut looks = tokio::time::interval(if paints { REDRAW_INTERVAL } else { LOG_INTERVAL });
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // At once there is nothing to see.
    looks.reset();
    let stopped = async {
        context.cancel.cancelled().await;
        stop.control.stop();
        tokio::select! {
            () = context.abort.cancelled() => {}
            () = tokio::time::sleep(DRAIN_TIMEOUT) => {}
        }
        stop.abort.cancel();
        std::future::pending::<()>().await;
    };
    let (mut run, mut stopped) = (std::pin::pin!(run), std::pin::pin!(stopped));
    loop {
        tokio::select! {
            report = &mut run => return report,
            () = &mut stopped => {}
            _ = looks.tick() => {
                let seen = BenchSnapshot::capture(watch, plan, clock.now());
                if paints {
                    let width = output.stderr_width().unwrap_or(80);
                    output.status_page(&live::block(&seen, plan, width));
                } else if !output.has_json_errors() {
                    output.note(&live::line(&seen));
                }
            }
        }
    }
}
