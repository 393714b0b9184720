//! Whether and when a failed attempt is retried.

use std::time::Duration;

use crate::model::{Error, ErrorKind, RetryAdvice, ToolDefinition, ToolResult};
use crate::util::units::show_duration;

/// The pause after the first failed attempt, unless an entry says otherwise.
pub const FIRST: Duration = Duration::from_millis(500);

/// Maximum pause before another attempt, even if a server asks for more.
pub const LONGEST: Duration = Duration::from_secs(30);

/// How many further attempts a call may have. `requested` is what the caller says, in place of what
/// is configured.
///
/// A policy that asks before each call (`asks`) counts like an entry that does.
pub fn max_retries(tool: &ToolDefinition, asks: bool, requested: Option<u32>) -> u32 {
    let may_repeat = tool.may_repeat() && (tool.is_repeatable || !asks);
    if may_repeat { requested.unwrap_or(tool.retries) } else { 0 }
}

/// Whether a failure of this kind may be gone the next time. A tool that said no, refused
/// credentials and a broken protocol will not be different.
pub fn is_transient(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unreachable | ErrorKind::Timeout)
}

/// Why an attempt should be repeated, if it should: what its provider says about that, else what
/// the kind of its failure means. A tool that reported a failure is only retried when its provider
/// asks for it.
pub fn retryable_error(outcome: &Result<ToolResult, Error>) -> Option<&Error> {
    let (error, unsaid) = match outcome {
        Err(error) => (error, is_transient(error.kind())),
        Ok(result) if result.success => return None,
        Ok(result) => (result.error.as_ref()?, false),
    };
    let passing = match error.retry_advice() {
        RetryAdvice::Unspecified => unsaid,
        RetryAdvice::Never => false,
        RetryAdvice::AfterBackoff | RetryAdvice::After(_) => true,
    };
    passing.then_some(error)
}

/// The wait before the attempt that follows the `failed`-th: [`pause`], or longer when the error
/// says so.
pub fn delay(error: &Error, tool: &ToolDefinition, failed: u32, jitter: f64) -> Duration {
    let own = pause(tool.backoff.unwrap_or(FIRST), failed, jitter);
    match error.retry_advice() {
        RetryAdvice::After(least) => own.max(least),
        _ => own,
    }
}

/// The pause after the `failed`-th attempt (counted from 1): `first`, doubled each time, up to
/// 30 s, shortened at random by up to a half so that many callers do not come back at once.
/// `jitter` is between 0 and 1.
pub fn pause(first: Duration, failed: u32, jitter: f64) -> Duration {
    let doublings = failed.saturating_sub(1).min(16);
    let full = first.saturating_mul(1 << doublings).min(LONGEST);
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

/// An outcome after which there is no time for the wait before another attempt.
pub(super) fn no_time_for_retry(
    outcome: Result<ToolResult, Error>,
    delay: Duration,
    left: Duration,
) -> Result<ToolResult, Error> {
    let why = format!(
        "not retried: the next attempt is due in {}, but the call ends in {}",
        show_duration(delay),
        show_duration(left)
    );
    match outcome {
        Ok(mut result) => {
            result.warnings.push(why);
            Ok(result)
        }
        Err(error) => Err(error.with_detail(why)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Origin, ToolName, ToolSource};

    fn tool(kind: &'static str, retries: u32, repeatable: bool) -> ToolDefinition {
        let source = if kind == "mcp" { ToolSource::Mcp } else { ToolSource::Internal };
        let mut tool =
            ToolDefinition::new(ToolName::plain("t"), source, kind, Origin::Server(String::new()));
        tool.retries = retries;
        tool.is_repeatable = repeatable;
        tool
    }

    #[test]
    fn only_what_is_safe_to_repeat_is_repeated() {
        assert_eq!(max_retries(&tool("mcp", 3, false), false, Some(5)), 0);
        assert_eq!(max_retries(&tool("mcp", 3, true), true, None), 3);
        assert_eq!(max_retries(&tool("mcp", 0, true), false, Some(2)), 2);
        assert_eq!(max_retries(&tool("http", 2, false), false, None), 0);
        let mut own = tool("http", 2, false);
        own.has_own_retries = true;
        assert_eq!(max_retries(&own, false, None), 2);
        assert_eq!(max_retries(&own, false, Some(0)), 0);
        assert_eq!(max_retries(&own, true, None), 0);
        own.annotations.destructive = Some(true);
        assert_eq!(max_retries(&own, false, None), 0);
        own.is_repeatable = true;
        assert_eq!(max_retries(&own, true, None), 2);
    }

    #[test]
    fn a_no_is_final() {
        for kind in [ErrorKind::Tool, ErrorKind::Auth, ErrorKind::Denied, ErrorKind::Protocol] {
            assert!(!is_transient(kind));
        }
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let pauses: Vec<u128> = (1..9).map(|n| pause(FIRST, n, 1.0).as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(pause(FIRST, 1, 0.0), Duration::from_millis(250));
    }

    #[test]
    fn what_the_provider_says_about_another_attempt_counts_more_than_the_kind() {
        let failed = |error: Error| Err(error);
        assert!(retryable_error(&failed(Error::timeout("t"))).is_some());
        assert!(
            retryable_error(&failed(Error::timeout("t").with_retry_advice(RetryAdvice::Never)))
                .is_none()
        );
        assert!(retryable_error(&failed(Error::protocol("p"))).is_none());
        assert!(
            retryable_error(&failed(
                Error::protocol("p").with_retry_advice(RetryAdvice::AfterBackoff)
            ))
            .is_some()
        );
        let said_no = |again| {
            let error = Some(Error::tool("429").with_retry_advice(again));
            Ok(ToolResult { error, ..ToolResult::failure("429") })
        };
        assert!(retryable_error(&said_no(RetryAdvice::Unspecified)).is_none());
        assert!(retryable_error(&said_no(RetryAdvice::After(Duration::ZERO))).is_some());
        assert!(retryable_error(&Ok(ToolResult::text("fine"))).is_none());
    }

    #[test]
    fn the_longer_of_both_waits_is_kept() {
        let mut tool = tool("http", 1, true);
        let wait = |tool: &ToolDefinition, again| {
            delay(&Error::tool("busy").with_retry_advice(again), tool, 1, 1.0).as_millis()
        };
        assert_eq!(wait(&tool, RetryAdvice::AfterBackoff), 500);
        assert_eq!(wait(&tool, RetryAdvice::After(Duration::from_secs(45))), 45_000);
        tool.backoff = Some(Duration::from_secs(2));
        assert_eq!(wait(&tool, RetryAdvice::After(Duration::from_secs(1))), 2_000);
    }

    proptest! {
        #[test]
        fn a_pause_is_always_bounded(failed in any::<u32>(), random in any::<f64>()) {
            let pause = pause(FIRST, failed, if random.is_nan() { 0.0 } else { random });
            prop_assert!(pause >= FIRST / 2 && pause <= LONGEST);
        }

        #[test]
        fn jitter_is_a_fraction(identity in any::<String>()) {
            prop_assert!((0.0..=1.0).contains(&jitter(&identity)));
        }
    }
}
