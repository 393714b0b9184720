//! One attempt of a call: let the provider work until it is done or must stop.
//!
//! Owns: the deadlines of an attempt, telling the provider to stop, and the fault that names
//! which limit fired. Never does: decide whether another attempt follows.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use super::limits::{self, Limits};
use crate::model::{
    Fault, FaultKind, Phase, Signal, Source, ToolCall, ToolContext, ToolDefinition, ToolResult,
};
use crate::provider::ToolProvider;
use crate::util::units::show_duration;

/// Why an attempt had to stop.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Interrupt,
    Attempt,
    Total,
}

/// What one attempt works with.
pub(super) struct Attempt<'a> {
    pub(super) provider: &'a dyn ToolProvider,
    pub(super) definition: &'a ToolDefinition,
    pub(super) call: &'a ToolCall,
    pub(super) limits: &'a Limits,
    /// Fires when the caller wants the call to stop.
    pub(super) interrupt: &'a CancellationToken,
}

impl Attempt<'_> {
    /// Runs the attempt. `context.cancel` is replaced by a token of its own: a limit of this attempt
    /// must not stop the next one, and an interrupt must be noticed here before the provider
    /// answers it, or its answer would be taken for the tool's.
    pub(super) async fn run(
        &self,
        mut context: ToolContext,
        mut total: Pin<&mut Sleep>,
    ) -> Result<ToolResult, Fault> {
        let cancel = CancellationToken::new();
        context.cancel = cancel.clone();
        // When the caller drops the call, whatever the provider left running is told too.
        let dropped = cancel.clone().drop_guard();
        let call = self.provider.call(&context, self.call);
        let mut work = std::pin::pin!(AssertUnwindSafe(call).catch_unwind());
        // The silence of a server is watched by its provider, which hears signs of life.
        let timed = self.definition.source == Source::Internal;
        let stop = tokio::select! {
            biased;
            done = &mut work => {
                dropped.disarm();
                return self.answer(done);
            }
            () = self.interrupt.cancelled() => Stop::Interrupt,
            () = &mut total => Stop::Total,
            () = tokio::time::sleep(self.limits.attempt), if timed => Stop::Attempt,
        };
        cancel.cancel();
        let grace = match stop {
            Stop::Interrupt => limits::INTERRUPT_GRACE,
            Stop::Attempt | Stop::Total => limits::GRACE,
        };
        let last = tokio::time::timeout(grace, &mut work).await;
        Err(self.stopped(stop, grace, last.ok().map(|done| self.answer(done))))
    }

    fn answer(
        &self,
        done: Result<Result<ToolResult, Fault>, Box<dyn std::any::Any + Send>>,
    ) -> Result<ToolResult, Fault> {
        match done {
            Ok(answer) => answer.map_err(|fault| self.about(fault)),
            Err(panic) => {
                let words = panic
                    .downcast_ref::<&str>()
                    .map(ToString::to_string)
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_default();
                Err(self.about(Fault::internal(format!(
                    "the code behind '{}' panicked: {words}",
                    self.definition.name
                ))))
            }
        }
    }

    /// The fault of an attempt that had to stop, with the provider's last words.
    fn stopped(
        &self,
        stop: Stop,
        grace: Duration,
        last: Option<Result<ToolResult, Fault>>,
    ) -> Fault {
        let name = &self.definition.name;
        let Limits { attempt, set_by, remedy, total } = self.limits;
        let fault = match stop {
            Stop::Interrupt => Fault::new(
                FaultKind::Interrupted(Signal::Interrupt),
                format!("'{name}' was interrupted"),
            ),
            Stop::Attempt => Fault::timeout(format!(
                "'{name}' did not finish within {} ({set_by})",
                show_duration(*attempt)
            ))
            .hint(*remedy),
            Stop::Total => Fault::timeout(format!(
                "'{name}' did not finish within {}, the bound on a whole call",
                show_duration(*total)
            ))
            .hint("a longer --timeout raises the bound"),
        };
        let fault = self.about(fault);
        // Whether it may be repeated is for the provider to say, whoever ended the attempt.
        let fault = match &last {
            Some(Err(last)) => fault.again(last.tried_again()),
            _ => fault,
        };
        match last {
            // A fault that only says "cancelled" adds nothing to what is known.
            Some(Err(last)) if matches!(last.kind(), FaultKind::Interrupted(_)) => {
                fault.details(last.detail_lines().to_vec())
            }
            Some(Err(last)) => {
                fault.detail(last.message().to_owned()).details(last.detail_lines().to_vec())
            }
            Some(Ok(_)) => fault.detail("an answer came after that and was dropped"),
            None => fault.detail(format!(
                "it did not stop within {} after being told",
                show_duration(grace)
            )),
        }
    }

    /// Says which server and which step, where the provider did not.
    fn about(&self, fault: Fault) -> Fault {
        let fault = match fault.at_phase() {
            Some(_) => fault,
            None => fault.phase(Phase::Call),
        };
        match self.definition.name.component() {
            Some(server)
                if self.definition.source == Source::Mcp && fault.server_name().is_none() =>
            {
                fault.server(server)
            }
            _ => fault,
        }
    }
}
