//! Parsing rates, warm-ups and shares as written on the command line.

use std::str::FromStr;

use super::plan::WarmUp;
use crate::util::units;

const MAX_IN_FLIGHT: usize = 10_000;
/// Steps of a run at most; thresholds call them A to Z.
const MAX_STEPS: usize = 20;
/// Maximum calls per second: more than any machine makes.
const MAX_RATE: f64 = 10_000_000.0;

/// What an option expected instead of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseLoadError {
    #[error("expected calls per second such as 50 or 50/s")]
    Rate,
    #[error("too many calls")]
    WarmUpTooLong,
    /// Neither a count nor a time.
    #[error("expected a number of calls such as 100, or a time such as 3s")]
    WarmUp,
    #[error(
        "expected 1 to 10000 calls in flight, or steps such as 1,4,16,64 (at most {MAX_STEPS})"
    )]
    Concurrency,
    #[error("expected a percentage such as 10%")]
    Percent,
    #[error("expected a percentage from 0% to 100%, such as 5%")]
    Part,
}

/// Calls in flight, or several numbers of them for a step each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcurrencySpec {
    pub first: usize,
    pub further: Vec<usize>,
}

impl ConcurrencySpec {
    pub fn has_steps(&self) -> bool {
        !self.further.is_empty()
    }

    pub fn steps(&self) -> Vec<usize> {
        std::iter::once(self.first).chain(self.further.iter().copied()).collect()
    }
}

impl FromStr for ConcurrencySpec {
    type Err = ParseLoadError;

    fn from_str(text: &str) -> Result<Self, ParseLoadError> {
        let number = |text: &str| {
            text.trim().parse().ok().filter(|calls| (1..=MAX_IN_FLIGHT).contains(calls))
        };
        let steps: Option<Vec<usize>> = text.split(',').map(number).collect();
        let steps = steps.filter(|steps| steps.len() <= MAX_STEPS);
        let (first, further) =
            steps.as_deref().and_then(<[_]>::split_first).ok_or(ParseLoadError::Concurrency)?;
        Ok(Self { first: *first, further: further.to_vec() })
    }
}

/// Reads calls per second: `50` or `50/s`.
pub fn rate(text: &str) -> Result<f64, ParseLoadError> {
    let number = text.trim().strip_suffix("/s").unwrap_or(text).trim();
    let rate = number.parse().ok().filter(|rate| *rate > 0.0 && *rate <= MAX_RATE);
    rate.ok_or(ParseLoadError::Rate)
}

/// Reads a warm-up: a number is a count, a number with a unit is a time.
pub fn warm_up(text: &str) -> Result<WarmUp, ParseLoadError> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let calls = text.parse().map_err(|_| ParseLoadError::WarmUpTooLong)?;
        return Ok(WarmUp::Calls(calls));
    }
    units::duration(text).map(WarmUp::Time).ok_or(ParseLoadError::WarmUp)
}

/// Reads a share written as `10%`.
pub fn percent(text: &str) -> Result<f64, ParseLoadError> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=10_000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(ParseLoadError::Percent),
    }
}

/// Reads a part of a whole: a percentage of at most 100.
pub fn part(text: &str) -> Result<f64, ParseLoadError> {
    percent(text).ok().filter(|share| *share <= 1.0).ok_or(ParseLoadError::Part)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_in_flight_are_one_number_or_steps() {
        let spec = |text: &str| text.parse::<ConcurrencySpec>();
        assert!(!spec("8").unwrap().has_steps());
        assert_eq!(spec("1,4, 16").unwrap().steps(), [1, 4, 16]);
        for text in ["", "0", "1,", "1,0", "10001", "many", "-1", &["1"; 21].join(",")] {
            assert_eq!(spec(text), Err(ParseLoadError::Concurrency), "{text}");
        }
    }

    #[test]
    fn a_rate_is_calls_per_second() {
        assert_eq!((rate("50"), rate("0.5/s")), (Ok(50.0), Ok(0.5)));
        for text in ["", "0", "-1", "nan", "inf", "1e99", "50@10s", "1..2:60s", ","] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_warm_up_is_a_count_or_a_time() {
        assert_eq!(warm_up("0"), Ok(WarmUp::Calls(0)));
        assert_eq!(warm_up("100"), Ok(WarmUp::Calls(100)));
        assert_eq!(warm_up("3s"), Ok(WarmUp::Time(Duration::from_secs(3))));
        for text in ["", "-1", "soon", "99999999999999999999999"] {
            assert!(warm_up(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_written_with_its_sign() {
        assert_eq!(percent("10%"), Ok(0.1));
        assert_eq!(percent("0%"), Ok(0.0));
        assert_eq!((percent("200%"), part("100%")), (Ok(2.0), Ok(1.0)));
        assert_eq!(part("200%"), Err(ParseLoadError::Part));
        for text in ["10", "-1%", "%", "nan%", "a lot"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
