//! `builtin.wait`: waits, reports progress, and stops when cancelled; for trying time limits.

use std::time::Duration;

use serde_json::json;

use super::{BuiltinFunction, FunctionBody, FunctionResult, input};
use crate::model::{Error, HostEvent, ToolContext, ToolResult};
use crate::providers::arguments::Arguments;

const MAX_WAIT_SECONDS: f64 = 3600.0;
const MAX_PROGRESS_EVENTS: u32 = 10;
/// Progress is not reported more often than this.
const MIN_PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

pub(super) const WAIT: BuiltinFunction = BuiltinFunction {
    module: "builtin.wait",
    name: "wait",
    aliases: &[],
    title: "Wait",
    description: "Waits for a number of seconds and reports its progress.",
    input: || {
        let seconds = json!({ "type": "number", "minimum": 0, "maximum": 3600,
            "description": "How long to wait", "examples": [0.5] });
        input(&[("seconds", seconds)], &["seconds"])
    },
    output: None,
    idempotent: true,
    run: FunctionBody::Async(|context, arguments| Box::pin(wait(context, arguments))),
};

async fn wait(context: &ToolContext, arguments: Arguments<'_>) -> FunctionResult {
    let seconds =
        arguments.number("seconds")?.ok_or_else(|| Error::usage("'seconds' is missing"))?;
    if !(0.0..=MAX_WAIT_SECONDS).contains(&seconds) {
        return Err(Error::usage(format!("'seconds' must be between 0 and {MAX_WAIT_SECONDS}")));
    }
    let total = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let step = (total / MAX_PROGRESS_EVENTS).max(MIN_PROGRESS_INTERVAL).min(total);
    let mut waited = Duration::ZERO;
    while waited < total {
        let rest = step.min(total.saturating_sub(waited));
        tokio::select! {
            () = context.cancel.cancelled() => {
                let waited = waited.as_secs_f64();
                return Err(Error::interrupted(format!("stopped after {waited:.1} of {seconds} s")));
            }
            () = tokio::time::sleep(rest) => waited += rest,
        }
        context.events.emit(HostEvent::Progress {
            call_id: context.call_id.clone(),
            progress: waited.as_secs_f64(),
            total: Some(seconds),
            message: None,
        });
    }
    Ok(ToolResult::text(format!("waited {seconds} s")))
}
