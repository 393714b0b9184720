//! Whether and when a failed attempt is followed by another one.
//!
//! Owns: the rules and the back-off, as pure functions. Never does: wait.

use std::time::Duration;

use crate::model::{FaultKind, ToolDefinition};

/// The first pause.
const FIRST: Duration = Duration::from_millis(500);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// How many further attempts a call may have. `asked` is what the caller says, in place of what is
/// configured.
///
/// A tool of a server is repeated only when its author marked it safe to repeat. An internal tool
/// also when its entry configures retries: whoever wrote the entry knows the tool.
pub fn allowance(tool: &ToolDefinition, asked: Option<u32>) -> u32 {
    let repeatable = tool.repeatable || (tool.kind != "mcp" && tool.retries > 0);
    if repeatable { asked.unwrap_or(tool.retries) } else { 0 }
}

/// Whether a failure of this kind may be gone the next time. A tool that said no, refused
/// credentials and a broken protocol will not be different.
pub fn is_passing(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::Unreachable | FaultKind::Timeout)
}

/// The pause after the `failed`-th attempt (counted from 1): 0.5 s, doubled each time, up to 30 s,
/// shortened at random by up to a half so that many callers do not come back at once. `jitter` is
/// between 0 and 1.
pub fn pause(failed: u32, jitter: f64) -> Duration {
    let doublings = failed.saturating_sub(1).min(16);
    let full = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    let share = 0.5 + 0.5 * jitter.clamp(0.0, 1.0);
    Duration::try_from_secs_f64(full.as_secs_f64() * share).unwrap_or(full)
}

/// A fraction between 0 and 1 out of a fresh identity, so that randomness has one source.
pub fn jitter(identity: &str) -> f64 {
    let hash = identity.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let upper = u32::try_from(hash >> 32).unwrap_or(u32::MAX);
    f64::from(upper) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Origin, Source, ToolName};

    fn tool(kind: &'static str, retries: u32, repeatable: bool) -> ToolDefinition {
        let source = if kind == "mcp" { Source::Mcp } else { Source::Internal };
        let mut tool =
            ToolDefinition::new(ToolName::plain("t"), source, kind, Origin::Server(String::new()));
        tool.retries = retries;
        tool.repeatable = repeatable;
        tool
    }

    #[test]
    fn only_what_is_safe_to_repeat_is_repeated() {
        assert_eq!(allowance(&tool("mcp", 3, false), Some(5)), 0);
        assert_eq!(allowance(&tool("mcp", 3, true), None), 3);
        assert_eq!(allowance(&tool("mcp", 0, true), Some(2)), 2);
        assert_eq!(allowance(&tool("http", 2, false), None), 2);
        assert_eq!(allowance(&tool("http", 2, false), Some(0)), 0);
        assert_eq!(allowance(&tool("http", 0, false), Some(2)), 0);
    }

    #[test]
    fn a_no_is_final() {
        for kind in [FaultKind::Tool, FaultKind::Auth, FaultKind::Denied, FaultKind::Protocol] {
            assert!(!is_passing(kind));
        }
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let pauses: Vec<u128> = (1..9).map(|n| pause(n, 1.0).as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(pause(1, 0.0), Duration::from_millis(250));
    }

    proptest! {
        #[test]
        fn a_pause_is_always_bounded(failed in any::<u32>(), random in any::<f64>()) {
            let pause = pause(failed, if random.is_nan() { 0.0 } else { random });
            prop_assert!(pause >= FIRST / 2 && pause <= LONGEST);
        }

        #[test]
        fn jitter_is_a_fraction(identity in any::<String>()) {
            prop_assert!((0.0..=1.0).contains(&jitter(&identity)));
        }
    }
}
