//! Time limits of calls, and how many run at once.

use std::time::Duration;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Origin, Speed, ToolName, ToolSource};

    fn tool(source: ToolSource) -> ToolDefinition {
        ToolDefinition::new(ToolName::of("c", "t"), source, "kind", Origin::Server("c".into()))
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
