//! `slow`: waits, reports progress, and stops when cancelled.

use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::{CallToolResponse, ErrorData, ProgressNotificationParam, Tool};
use serde::Deserialize;
use serde_json::json;

use super::{DemoCall, DemoServer, DemoTool};

/// The time between two progress notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The longest a call may take.
const MAX_SECONDS: f64 = 30.0;

pub(super) struct Slow;

#[derive(Deserialize)]
struct Arguments {
    #[serde(default = "one")]
    seconds: f64,
}

fn one() -> f64 {
    1.0
}

#[async_trait]
impl DemoTool for Slow {
    fn definition(&self) -> Tool {
        let schema = json!({
            "type": "object",
            "properties": {
                "seconds": {
                    "type": "number",
                    "minimum": 0,
                    "maximum": 30,
                    "default": 1,
                    "description": "How long to take",
                },
            },
            "additionalProperties": false,
        });
        super::tool(
            "slow",
            "Slow",
            "Waits, reporting progress ten times a second; stops when cancelled",
            schema,
        )
        .with_annotations(super::read_only())
    }

    async fn call(
        &self,
        server: &DemoServer,
        call: DemoCall,
    ) -> Result<CallToolResponse, ErrorData> {
        let Arguments { seconds } = match call.arguments() {
            Ok(arguments) => arguments,
            Err(reason) => return Ok(super::error_result(reason.to_string())),
        };
        if !(0.0..=MAX_SECONDS).contains(&seconds) {
            return Ok(super::error_result("'seconds' must be between 0 and 30"));
        }
        let total = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let waited = wait(total, call.wait_cancelled(server), |time| report(&call, time, total));
        Ok(match waited.await {
            Ok(()) => super::text(format!("waited {seconds} s")),
            Err(time) => {
                super::error_result(format!("cancelled after {:.1} s", time.as_secs_f64()))
            }
        })
    }
}

/// Waits in steps and reports each; the error is how far it came before it was cancelled.
async fn wait<Report: Future<Output = ()> + Send>(
    total: Duration,
    unwanted: impl Future<Output = ()> + Send,
    report: impl Fn(Duration) -> Report + Send,
) -> Result<(), Duration> {
    let mut unwanted = pin!(unwanted);
    let mut waited = Duration::ZERO;
    while waited < total {
        let step = PROGRESS_INTERVAL.min(total.saturating_sub(waited));
        tokio::select! {
            biased;
            () = &mut unwanted => return Err(waited),
            () = tokio::time::sleep(step) => waited += step,
        }
        report(waited).await;
    }
    Ok(())
}

/// Sends one progress notification to a client that asked for them.
async fn report(call: &DemoCall, time: Duration, total: Duration) {
    let Some(token) = call.context.meta.get_progress_token() else { return };
    let (time, total) = (time.as_secs_f64(), total.as_secs_f64());
    let progress = ProgressNotificationParam::new(token, time)
        .with_total(total)
        .with_message(format!("{time:.1} of {total:.1} s"));
    // A client that is gone ends the call by cancelling it; losing a notification changes nothing.
    call.context.peer.notify_progress(progress).await.ok();
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test]
    async fn cancelling_ends_the_wait_at_the_step_it_is_in() {
        let cancelled = CancellationToken::new();
        let report = |_| {
            cancelled.cancel();
            std::future::ready(())
        };
        assert_eq!(
            wait(Duration::from_secs(30), cancelled.cancelled(), report).await,
            Err(PROGRESS_INTERVAL)
        );
    }

    #[tokio::test]
    async fn the_last_step_is_cut_to_the_total() {
        let steps = Mutex::new(Vec::new());
        let total = Duration::from_millis(150);
        let report = |time| {
            steps.lock().unwrap().push(time);
            std::future::ready(())
        };
        assert_eq!(wait(total, std::future::pending(), report).await, Ok(()));
        assert_eq!(*steps.lock().unwrap(), [PROGRESS_INTERVAL, total]);
    }
}
