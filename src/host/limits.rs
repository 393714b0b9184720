//! Time limits of calls, and limits on concurrency.
//!
//! Owns: the order in which time limits are looked up, their names for messages, and the permits.
//! Never does: cancel anything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::ToolDefinition;

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

/// Parallel calls of one component or server.
pub const MAX_PARALLEL_CALLS: usize = 8;

/// The limits of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLimits {
    /// For an attempt (internal) or for silence (MCP).
    pub attempt: Duration,
    /// Who set that, for messages.
    pub set_by: &'static str,
    /// The option that allows more time, for messages.
    pub remedy: &'static str,
    /// For all attempts and the waits between them.
    pub total: Duration,
    /// Whether the caller set that.
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
        let words =
            ("the timeout of its step", "a 'timeout' in its step or entry allows more time");
        Self::set(tool, requested, words)
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

/// Permits for calls, [`MAX_PARALLEL_CALLS`] for each component, server or single tool at each depth of
/// nesting.
///
/// A call keeps its permit while it waits for its nested calls. Those take theirs one level deeper,
/// so that every wait leads inwards and the innermost calls wait for no permit: no set of calls can
/// deadlock, no matter which tool calls which.
#[derive(Debug, Default)]
pub struct CallPermits(Mutex<HashMap<(usize, String), Arc<Semaphore>>>);

impl CallPermits {
    /// Waits for a permit for a call of `tool` inside `depth` others; it is given back when
    /// dropped. `None` only while closing.
    pub async fn acquire(
        &self,
        tool: &ToolDefinition,
        depth: usize,
    ) -> Option<OwnedSemaphorePermit> {
        let name = tool.name.component().unwrap_or(tool.name.tool());
        let key = (depth, name.to_owned());
        let semaphore = {
            // Names come from the catalogue and depths have a bound, which bounds the map.
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(
                all.entry(key).or_insert_with(|| Arc::new(Semaphore::new(MAX_PARALLEL_CALLS))),
            )
        };
        semaphore.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Origin, ToolName};
    use crate::model::{Speed, ToolSource};

    fn tool(source: ToolSource) -> ToolDefinition {
        ToolDefinition::new(ToolName::of("c", "t"), source, "kind", Origin::Server("c".into()))
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
        let brief = Duration::from_secs(1);
        assert_eq!(CallLimits::of(&patient, Some(brief), None).total, brief);
        // The idle timeout is a separate limit.
        let both = CallLimits::of(&patient, Some(requested), Some(brief));
        assert_eq!((both.attempt, both.total), (brief, requested));
        assert_eq!(CallLimits::of(&patient, None, Some(requested)).total, requested);
    }

    #[tokio::test]
    async fn a_component_has_so_many_permits_and_another_or_a_deeper_level_its_own() {
        let permits = CallPermits::default();
        let one = tool(ToolSource::Internal);
        let mut held = Vec::new();
        for _ in 0..MAX_PARALLEL_CALLS {
            held.push(permits.acquire(&one, 0).await);
        }
        {
            let mut more = std::pin::pin!(permits.acquire(&one, 0));
            assert!(futures_util::poll!(&mut more).is_pending());
            let mut other = one.clone();
            other.name = ToolName::of("d", "t");
            assert!(permits.acquire(&other, 0).await.is_some());
            assert!(permits.acquire(&one, 1).await.is_some());
            held.pop();
            assert!(more.await.is_some());
        }
    }
}
