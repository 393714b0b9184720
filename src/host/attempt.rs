//! One attempt of a call: runs the provider under the call's time limits and its cancellation, one of so
//! many at once, and checks the result against its output schema.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use super::listings::ListedTool;
use super::registry;
use crate::model::{
    Error, ErrorKind, ErrorPhase, ToolCall, ToolContext, ToolDefinition, ToolResult, ToolSource,
};
use crate::provider::ToolProvider;
use crate::util::text::truncate;
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
                (INTERRUPT_GRACE_PERIOD, Error::interrupted(message))
            }
            () = self.removed.cancelled() => {
                let error = registry::cancelled_by_removal(&self.definition.name);
                (STOP_GRACE_PERIOD, error)
            }
            () = &mut total => (STOP_GRACE_PERIOD, self.total_timeout()),
            () = tokio::time::sleep(self.limits.attempt), if timed => {
                (STOP_GRACE_PERIOD, self.attempt_timeout())
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

/// Bounds every call, all attempts and pauses together.
pub const MAX_TOTAL: Duration = Duration::from_mins(5);

/// How long a server may be silent when nothing else is said.
pub const IDLE: Duration = Duration::from_mins(1);

/// Bounds starting a server and listing its tools, should its provider fail to.
pub const LISTING_TIMEOUT: Duration = Duration::from_secs(65);

/// How long a provider gets to stop after a limit fired.
pub const STOP_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// How long a provider gets to stop after a person interrupted.
pub const INTERRUPT_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// How long calls may continue after their provider was removed.
pub const REMOVAL_GRACE_PERIOD: Duration = Duration::from_secs(5);

pub const MAX_PARALLEL_CALLS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLimits {
    /// For an attempt (internal) or for silence (MCP).
    pub attempt: Duration,
    pub set_by: &'static str,
    /// The option that allows more time, for messages.
    pub remedy: &'static str,
    /// For all attempts and the waits between them.
    pub total: Duration,
    pub is_total_requested: bool,
}

impl CallLimits {
    /// What the caller asks for wins, then the entry (with the defaults of its file), the speed
    /// it declares, and the built-in default. What is `requested` bounds the whole call, and `idle`
    /// a server's silence. An entry may shorten [`MAX_TOTAL`]; only a caller who asks for more raises
    /// it.
    pub fn of(tool: &ToolDefinition, requested: Option<Duration>, idle: Option<Duration>) -> Self {
        let mut limits = Self::set(tool, requested, ("--timeout", "--timeout allows more time"));
        if let Some(idle) = idle {
            limits.attempt = idle;
            (limits.set_by, limits.remedy) =
                ("--idle-timeout", "--idle-timeout allows a longer silence");
            limits.total = limits.total.max(idle);
        }
        if let Some(requested) = requested {
            limits.total = requested;
            limits.is_total_requested = true;
        }
        limits
    }

    /// The same for a call inside another one, whose limits are not those of the command line.
    pub fn nested(tool: &ToolDefinition, requested: Option<Duration>) -> Self {
        let advice =
            ("the timeout of its step", "a 'timeout' in its step or entry allows more time");
        Self::set(tool, requested, advice)
    }

    fn set(
        tool: &ToolDefinition,
        requested: Option<Duration>,
        (caller, remedy): (&'static str, &'static str),
    ) -> Self {
        let (attempt, set_by) = if let Some(requested) = requested {
            (requested, caller)
        } else if let Some(own) = tool.timeout {
            (own, "the timeout of its entry")
        } else if let Some(speed) = tool.declared_speed() {
            (speed.default_timeout(), "its declared speed")
        } else {
            (IDLE, "the default")
        };
        let total = MAX_TOTAL.min(tool.max_total.unwrap_or(MAX_TOTAL));
        let total = total.max(requested.unwrap_or_default());
        Self { attempt, set_by, remedy, total, is_total_requested: false }
    }
}

const SHOWN: usize = 20;

/// Maximum length of a message made from a tool's own text, in characters.
const WORDS: usize = 500;

/// Checks a result against the tool's output schema and completes its error. The result itself is
/// never changed: a person who debugs a server wants to see what came.
pub(super) async fn check_output(tool: &ListedTool, result: &mut ToolResult, validate: bool) {
    if !result.success {
        if result.error.is_none() {
            result.error = Some(with_context(tool, Error::tool(failure_message(result))));
        }
        return;
    }
    if !validate || result.error.is_some() {
        return;
    }
    let Some(checker) = tool.output_checker().await else { return };
    let definition = &tool.definition;
    let Some(structured) = &result.structured else {
        if definition.source == ToolSource::Mcp {
            result.error = Some(with_context(
                tool,
                Error::protocol(format!(
                    "'{}' declares an output schema but returned no structured content",
                    definition.name
                )),
            ));
        }
        return;
    };
    match checker.check(structured).await {
        Ok(problems) if problems.is_empty() => {}
        Ok(problems) => {
            let error = Error::protocol(format!(
                "the result of '{}' does not match its own output schema",
                definition.name
            ))
            .with_details(problems.iter().take(SHOWN).map(ToString::to_string));
            result.error = Some(with_context(tool, error));
        }
        Err(reason) => result.warnings.push(format!("the result was not checked: {reason}")),
    }
}

fn with_context(tool: &ListedTool, error: Error) -> Error {
    let error = error.with_phase(ErrorPhase::Call);
    match tool.definition.server() {
        Some(server) => error.with_server(server),
        None => error,
    }
}

fn failure_message(result: &ToolResult) -> String {
    let text = result.output.as_str().map_or_else(|| result.output.to_string(), str::to_owned);
    if text.is_empty() {
        return "the tool failed without an error message".to_owned();
    }
    truncate(&text, WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Origin, Speed, ToolName};

    fn tool(source: ToolSource) -> ToolDefinition {
        ToolDefinition::new(ToolName::of("c", "t"), source, "kind", Origin::Server("c".into()))
    }

    #[tokio::test]
    async fn an_answer_is_checked_if_that_is_wanted_and_nothing_has_failed() {
        let mut declared = tool(ToolSource::Mcp);
        declared.output_schema = Some(serde_json::json!({ "required": ["sum"] }).into());
        let listed = ListedTool::new(std::sync::Arc::new(declared));
        for (error, validate, said) in [
            (None, true, Some("does not match its own output schema")),
            (None, false, None),
            (Some(Error::tool("it broke")), true, Some("it broke")),
        ] {
            let mut result = ToolResult::json(serde_json::json!({ "product": 6 }));
            result.error = error;
            check_output(&listed, &mut result, validate).await;
            let message = result.error.as_ref().map(|error| error.message().to_owned());
            assert_eq!(message.is_some(), said.is_some());
            assert!(message.unwrap_or_default().contains(said.unwrap_or_default()));
        }
    }

    #[test]
    fn a_declared_speed_of_a_server_s_tool_is_its_timeout_also_when_it_is_the_usual_one() {
        let origin = Origin::Server("s".to_owned());
        let mut tool = ToolDefinition::new(ToolName::of("s", "t"), ToolSource::Mcp, "mcp", origin);
        assert_eq!(CallLimits::of(&tool, None, None).attempt, IDLE);
        (tool.speed, tool.has_declared_speed) = (Speed::Medium, true);
        let limits = CallLimits::of(&tool, None, None);
        assert_eq!((limits.attempt.as_secs(), limits.set_by), (30, "its declared speed"));
    }

    #[test]
    fn the_nearest_word_about_time_counts() {
        let seconds = |tool: &ToolDefinition, requested| {
            CallLimits::of(tool, requested, None).attempt.as_secs()
        };
        let mut internal = tool(ToolSource::Internal);
        assert_eq!(seconds(&internal, None), 30);
        internal.speed = Speed::Fast;
        assert_eq!(seconds(&internal, None), 5);
        internal.timeout = Some(Duration::from_secs(7));
        assert_eq!(seconds(&internal, None), 7);
        assert_eq!(seconds(&internal, Some(Duration::from_secs(2))), 2);
        assert_eq!(seconds(&tool(ToolSource::Mcp), None), 60);
    }

    #[test]
    fn only_a_caller_raises_the_total_and_an_entry_may_shorten_it() {
        let mut hasty = tool(ToolSource::Mcp);
        hasty.max_total = Some(Duration::from_secs(4));
        assert_eq!(CallLimits::of(&hasty, None, None).total.as_secs(), 4);
        hasty.max_total = Some(Duration::from_hours(4));
        assert_eq!(CallLimits::of(&hasty, None, None).total, MAX_TOTAL);
        let mut patient = tool(ToolSource::Internal);
        patient.timeout = Some(Duration::from_secs(1_000));
        assert_eq!(CallLimits::of(&patient, None, None).total, MAX_TOTAL);
        let requested = Duration::from_mins(15);
        assert_eq!(CallLimits::of(&patient, Some(requested), None).total, requested);
        let short = Duration::from_secs(1);
        assert_eq!(CallLimits::of(&patient, Some(short), None).total, short);
        // The idle timeout is a separate limit.
        let both = CallLimits::of(&patient, Some(requested), Some(short));
        assert_eq!((both.attempt, both.total), (short, requested));
        assert_eq!(CallLimits::of(&patient, None, Some(requested)).total, requested);
    }
}
