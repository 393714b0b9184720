//! One attempt of a call: runs the provider under its time limits and cancellation.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use super::limits::{self, CallLimits};
use super::roster;
use crate::model::{
    Error, ErrorKind, ErrorPhase, ToolCall, ToolContext, ToolDefinition, ToolResult, ToolSource,
};
use crate::provider::ToolProvider;
use crate::util::units::show_duration;

pub(super) struct Attempt<'a> {
    pub(super) provider: &'a dyn ToolProvider,
    pub(super) definition: &'a ToolDefinition,
    pub(super) call: &'a ToolCall,
    pub(super) limits: &'a CallLimits,
    /// Fires when the caller wants the call to stop.
    pub(super) interrupt: &'a CancellationToken,
    pub(super) removed: &'a CancellationToken,
}

impl Attempt<'_> {
    /// Runs the attempt. `context.cancel` is replaced by a separate token: a limit of this attempt
    /// must not stop the next one, and an interrupt must be noticed here before the provider
    /// answers it, or its answer would be taken for the tool's.
    pub(super) async fn run(
        &self,
        mut context: ToolContext,
        mut total: Pin<&mut Sleep>,
    ) -> Result<ToolResult, Error> {
        let cancel = CancellationToken::new();
        context.cancel = cancel.clone();
        // When the caller drops the call, what the provider left running is cancelled too.
        let dropped = cancel.drop_guard_ref();
        let call = self.provider.call(&context, self.call);
        let mut work = std::pin::pin!(AssertUnwindSafe(call).catch_unwind());
        // The silence of a server is watched by its provider, which hears signs of life.
        let timed = self.definition.source == ToolSource::Internal;
        let (grace, error) = tokio::select! {
            biased;
            outcome = &mut work => {
                dropped.disarm();
                return self.finish(outcome);
            }
            () = self.interrupt.cancelled() => {
                let message = format!("'{}' was interrupted", self.definition.name);
                (limits::INTERRUPT_GRACE_PERIOD, Error::interrupted(message))
            }
            () = self.removed.cancelled() => {
                let error = roster::cancelled_by_removal(&self.definition.name);
                (limits::STOP_GRACE_PERIOD, error)
            }
            () = &mut total => (limits::STOP_GRACE_PERIOD, self.total_timeout()),
            () = tokio::time::sleep(self.limits.attempt), if timed => {
                (limits::STOP_GRACE_PERIOD, self.attempt_timeout())
            }
        };
        cancel.cancel();
        let last = tokio::time::timeout(grace, &mut work).await;
        let last = last.ok().map(|outcome| self.finish(outcome));
        Err(after_stop(self.with_context(error), grace, last))
    }

    fn finish(
        &self,
        outcome: Result<Result<ToolResult, Error>, Box<dyn std::any::Any + Send>>,
    ) -> Result<ToolResult, Error> {
        match outcome {
            Ok(answer) => answer.map_err(|error| self.with_context(error)),
            Err(panic) => {
                let message = panic
                    .downcast_ref::<&str>()
                    .map(ToString::to_string)
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_default();
                Err(self.with_context(Error::internal(format!(
                    "the code of '{}' panicked: {message}",
                    self.definition.name
                ))))
            }
        }
    }

    fn attempt_timeout(&self) -> Error {
        let (name, limit) = (&self.definition.name, show_duration(self.limits.attempt));
        let set_by = self.limits.set_by;
        Error::timeout(format!("'{name}' did not finish within {limit} ({set_by})"))
            .with_hint(self.limits.remedy)
    }

    fn total_timeout(&self) -> Error {
        let (name, limit) = (&self.definition.name, show_duration(self.limits.total));
        let late = format!("'{name}' did not finish within {limit}");
        if self.limits.is_total_requested {
            Error::timeout(format!("{late} (--timeout)")).with_hint("--timeout allows more time")
        } else {
            Error::timeout(format!("{late}, the limit for a whole call"))
                .with_hint("a longer --timeout raises the limit")
        }
    }

    /// Says which server and which step, where the provider did not.
    fn with_context(&self, error: Error) -> Error {
        let error = match error.phase() {
            Some(_) => error,
            None => error.with_phase(ErrorPhase::Call),
        };
        match self.definition.name.component() {
            Some(server)
                if self.definition.source == ToolSource::Mcp && error.server().is_none() =>
            {
                error.with_server(server)
            }
            _ => error,
        }
    }
}

/// The error of an attempt that was stopped, with what came of it within the time that it had left.
fn after_stop(error: Error, grace: Duration, last: Option<Result<ToolResult, Error>>) -> Error {
    // Whether it may be repeated is for the provider to say, also when the host ended the attempt.
    let error = match &last {
        Some(Err(last)) => error.with_retry_advice(last.retry_advice()),
        _ => error,
    };
    match last {
        // An error that only says "cancelled" adds nothing to what is known.
        Some(Err(last)) if matches!(last.kind(), ErrorKind::Interrupted(_)) => {
            error.with_details(last.details().to_vec())
        }
        Some(Err(last)) => {
            error.with_detail(last.message().to_owned()).with_details(last.details().to_vec())
        }
        Some(Ok(_)) => error.with_detail("a response arrived after that and was discarded"),
        None => error.with_detail(format!(
            "it did not stop within {} of being cancelled",
            show_duration(grace)
        )),
    }
}
