//! `retry`: which failures of a request may be repeated, and how long a server asks to wait.
//!
//! Owns: the verdict on one failure, as [`Again`]. Never does: count or wait; the host does both,
//! so that limits, `--retries` and records hold for every kind alike.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::config::keys::suggestion;
use crate::config::node::Node;
use crate::model::{Again, Problem};

/// How often is repeated when `retry` does not say.
const TIMES: u32 = 2;

/// A way to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// No connection could be made: nothing was sent.
    Connect,
    /// The connection was lost on the way.
    Lost,
    /// A limit of time fired.
    Timeout,
    /// The server answered with this status.
    Status(u16),
}

/// One word of `retry.on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Failure(Failure),
    /// Every status of a hundred: 4 is `4xx`.
    Class(u16),
}

impl On {
    fn parse(word: &str) -> Option<Self> {
        Some(Self::Failure(match word {
            "connect" => Failure::Connect,
            "lost" => Failure::Lost,
            "timeout" => Failure::Timeout,
            "4xx" => return Some(Self::Class(4)),
            "5xx" => return Some(Self::Class(5)),
            status => Failure::Status(status.parse().ok().filter(|s| (400..600).contains(s))?),
        }))
    }

    fn covers(self, failure: Failure) -> bool {
        match (self, failure) {
            (Self::Class(class), Failure::Status(status)) => status / 100 == class,
            (Self::Failure(own), failure) => own == failure,
            (Self::Class(_), _) => false,
        }
    }
}

const WORDS: [&str; 5] = ["connect", "lost", "timeout", "429", "5xx"];
const KEYS: [&str; 3] = ["max", "on", "backoff"];

/// What an entry says about repeating.
#[derive(Debug, Clone, Default)]
pub(super) struct Retry {
    /// How often; `None` leaves it to `retries`.
    pub(super) max: Option<u32>,
    /// The first pause.
    pub(super) backoff: Option<Duration>,
    on: Option<Vec<On>>,
}

impl Retry {
    /// Reads `retry`; what is wrong is added to `problems`.
    pub(super) fn read(node: Option<&Node>, problems: &mut Vec<Problem>) -> Self {
        let mut retry = Self::default();
        let Some(node) = node.filter(|node| !node.is_null()) else { return retry };
        let entries = match node.as_map() {
            Ok(entries) => entries,
            Err(problem) => {
                problems.push(problem.hint("write retry: { max: 2, on: [timeout, 429, 5xx] }"));
                return retry;
            }
        };
        retry.max = Some(TIMES);
        for (key, value) in entries {
            let read = match key.text.as_str() {
                "max" => times(value).map(|max| retry.max = Some(max)),
                "backoff" => value.as_duration().map(|first| retry.backoff = Some(first)),
                "on" => words(value).map(|on| retry.on = Some(on)),
                other => {
                    let mut problem = Problem::warning(format!("unknown key '{other}'"));
                    if let Some(meant) = suggestion(other, KEYS.into_iter()) {
                        problem = problem.hint(format!("did you mean '{meant}'?"));
                    }
                    Err(problem.at(node.place_of(key)))
                }
            };
            problems.extend(read.err());
        }
        retry
    }

    /// Whether the entry says itself what may be repeated.
    pub(super) fn is_explicit(&self) -> bool {
        self.on.is_some()
    }

    /// Whether a failure may be repeated. Without a word of the entry a request that is `harmless`
    /// to repeat is, after everything that may pass; any other only when nothing was sent.
    pub(super) fn verdict(
        &self,
        failure: Failure,
        harmless: bool,
        asks: Option<Duration>,
    ) -> Again {
        let standard = WORDS.iter().filter_map(|word| On::parse(word));
        let covered = failure == Failure::Connect
            || match &self.on {
                Some(on) => on.iter().any(|on| on.covers(failure)),
                None => harmless && standard.into_iter().any(|on| on.covers(failure)),
            };
        match asks {
            _ if !covered => Again::Never,
            Some(wait) => Again::After(wait),
            None => Again::Soon,
        }
    }
}

fn times(node: &Node) -> Result<u32, Problem> {
    const MOST: u64 = 100;
    let count = node.as_count()?;
    u32::try_from(count)
        .ok()
        .filter(|_| count <= MOST)
        .ok_or_else(|| Problem::error(format!("at most {MOST} retries")).at(node.place()))
}

fn words(node: &Node) -> Result<Vec<On>, Problem> {
    let mut on = Vec::new();
    for word in node.as_texts()? {
        on.push(On::parse(&word).ok_or_else(|| {
            let problem =
                Problem::error(format!("'{word}' is nothing to retry on")).at(node.place());
            match suggestion(&word, WORDS.into_iter()) {
                Some(meant) => problem.hint(format!("did you mean '{meant}'?")),
                None => {
                    problem.hint(format!("there are {}, 4xx and single statuses", WORDS.join(", ")))
                }
            }
        })?);
    }
    Ok(on)
}

/// How long a response asks to wait: `Retry-After` in seconds, or as a date, which is measured
/// against the server's own clock (its `Date`), else against `now`, time since the Unix epoch.
pub(super) fn asked_wait(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| -> Option<Timestamp> {
        DateTimeParser::new().parse_timestamp(text.trim()).ok()
    };
    let until = date(text)?;
    let from = headers.get(DATE).and_then(|value| date(value.to_str().ok()?));
    let from = from.map_or(i64::try_from(now.as_secs()).ok()?, Timestamp::as_second);
    Some(Duration::from_secs(u64::try_from(until.as_second() - from).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    fn retry(text: &str) -> (Retry, Vec<String>) {
        let root = parse(&SourceText::new("t.yaml", text), text).unwrap().root;
        let mut problems = Vec::new();
        let retry = Retry::read(Some(&root), &mut problems);
        (retry, problems.into_iter().map(|p| p.message).collect())
    }

    #[test]
    fn without_a_word_only_harmless_requests_are_repeated() {
        let retry = Retry::default();
        for failure in [Failure::Lost, Failure::Timeout, Failure::Status(429), Failure::Status(503)]
        {
            assert_eq!(retry.verdict(failure, true, None), Again::Soon, "{failure:?}");
            assert_eq!(retry.verdict(failure, false, None), Again::Never, "{failure:?}");
        }
        assert_eq!(retry.verdict(Failure::Connect, false, None), Again::Soon);
        assert_eq!(retry.verdict(Failure::Status(404), true, None), Again::Never);
        let wait = Some(Duration::from_secs(3));
        assert_eq!(
            retry.verdict(Failure::Status(429), true, wait),
            Again::After(Duration::from_secs(3))
        );
    }

    #[test]
    fn the_words_of_an_entry_hold_for_every_method() {
        let (retry, problems) = retry("{ max: 3, on: [429, 4xx, 503], backoff: 100ms }");
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!((retry.max, retry.backoff), (Some(3), Some(Duration::from_millis(100))));
        for status in [429, 404, 503] {
            assert_eq!(retry.verdict(Failure::Status(status), false, None), Again::Soon);
        }
        assert_eq!(retry.verdict(Failure::Status(500), true, None), Again::Never);
        assert_eq!(retry.verdict(Failure::Timeout, true, None), Again::Never);
    }

    #[test]
    fn what_cannot_be_understood_is_told() {
        let (retry, problems) = retry("{ max: 1000, on: [timeuot], bakoff: 1 }");
        assert_eq!(
            problems,
            ["at most 100 retries", "'timeuot' is nothing to retry on", "unknown key 'bakoff'"]
        );
        assert_eq!(retry.max, Some(TIMES));
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let wait = |pairs: &[(reqwest::header::HeaderName, &str)]| {
            let headers = pairs
                .iter()
                .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
                .collect();
            asked_wait(&headers, Duration::from_secs(1_445_412_470)).map(|wait| wait.as_secs())
        };
        assert_eq!(wait(&[(RETRY_AFTER, "120")]), Some(120));
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2015 07:28:00 GMT")]), Some(10));
        let date = (DATE, "Wed, 21 Oct 2015 07:27:00 GMT");
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2015 07:28:00 GMT"), date.clone()]), Some(60));
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2015 07:20:00 GMT"), date]), Some(0));
        assert_eq!(wait(&[(RETRY_AFTER, "soon")]), None);
        assert_eq!(wait(&[]), None);
    }
}
