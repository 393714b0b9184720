//! The live display of a run, and ending it on a key or a signal.

use tokio_util::sync::CancellationToken;

use crate::bench::snapshot::BenchSnapshot;
use crate::bench::{BenchResult, Benchmark};
use crate::cli::commands::prelude::*;
use crate::present::bench::live;
use crate::util::clock::{Clock, SystemClock};

const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
const LOG_INTERVAL: Duration = Duration::from_secs(5);
/// How long to wait for responses after a signal.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(800);
/// Grace period of a run after a signal: waiting for responses, and the report.
pub(super) const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Drives a run to its report and shows it live. The first signal stops new calls and waits briefly
/// for responses; the second one ends the run at once, with `abort`.
pub(super) async fn drive(
    run: impl Future<Output = Result<BenchResult, Error>>,
    benchmark: &Benchmark,
    abort: &CancellationToken,
    context: &CommandContext,
) -> Result<BenchResult, Error> {
    let plan = &benchmark.plan;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let output = &context.output;
    let paints = output.can_repaint();
    let mut looks = tokio::time::interval(if paints { REDRAW_INTERVAL } else { LOG_INTERVAL });
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // There is nothing to show at the start.
    looks.reset();
    let stopped = async {
        context.cancel.cancelled().await;
        benchmark.control.stop();
        tokio::select! {
            () = context.abort.cancelled() => {}
            () = tokio::time::sleep(DRAIN_TIMEOUT) => {}
        }
        abort.cancel();
        std::future::pending::<()>().await;
    };
    let (mut run, mut stopped) = (std::pin::pin!(run), std::pin::pin!(stopped));
    loop {
        tokio::select! {
            report = &mut run => return report,
            () = &mut stopped => {}
            _ = looks.tick() => {
                let seen = BenchSnapshot::capture(&benchmark.monitor, plan, clock.now());
                if paints {
                    let width = output.stderr_width().unwrap_or(80);
                    output.status_page(&live::block(&seen, plan, width));
                } else if !output.has_json_errors() {
                    output.note(live::line(&seen));
                }
            }
        }
    }
}
