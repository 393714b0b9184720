//! Looking at a run while it goes on, and ending it when a person wants to.
//!
//! Owns: how often is looked, and what a signal means for the run. Looking happens on the thread
//! that makes the load, five times a second at most.

use std::sync::Arc;
use std::time::Duration;

use crate::bench::driver::Control;
use crate::bench::plan::Plan;
use crate::bench::report::Report;
use crate::bench::seen::Seen;
use crate::bench::watch::Watch;
use crate::cli::context::Context;
use crate::cli::views::bench::live;
use crate::model::Fault;
use crate::util::clock::{Clock, SystemClock};
use tokio_util::sync::CancellationToken;

/// The time between two looks of a person.
const FRAME: Duration = Duration::from_millis(200);
/// The time between two lines of a log.
const LOG: Duration = Duration::from_secs(5);
/// How long answers are waited for after a signal.
const DRAIN: Duration = Duration::from_millis(800);
/// What a run is given after a signal: the wait for answers, and the report.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// How a run is ended.
pub(super) struct Stop<'a> {
    /// Lets no more calls be made.
    pub(super) control: &'a Control,
    /// Waits for no more answers.
    pub(super) abort: &'a CancellationToken,
}

/// Drives a run to its report and shows it meanwhile. The first signal lets no more calls be made
/// and waits a moment for answers; the second one waits for nothing.
pub(super) async fn watched(
    run: impl Future<Output = Result<Report, Fault>>,
    plan: &Plan,
    stop: &Stop<'_>,
    watch: &Watch,
    context: &Context,
) -> Result<Report, Fault> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let door = &context.door;
    let paints = door.can_repaint();
    let mut looks = tokio::time::interval(if paints { FRAME } else { LOG });
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // At once there is nothing to see.
    looks.reset();
    let stopped = async {
        context.cancel.cancelled().await;
        stop.control.stop();
        tokio::select! {
            () = context.hurry.cancelled() => {}
            () = tokio::time::sleep(DRAIN) => {}
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
                let seen = Seen::of(watch, plan, clock.now());
                if paints {
                    let width = door.talk_width().unwrap_or(80);
                    door.transient_page(&live::block(&seen, plan, width));
                } else if !door.speaks_json() {
                    door.note(&live::line(&seen));
                }
            }
        }
    }
}
