//! The metrics that a threshold expression may name.

use std::fmt;
use std::time::Duration;

use crate::bench::report::{GeneratorReport, TargetReport};
use crate::util::histogram::Durations;
use crate::util::number::float;
use crate::util::spelling::nearest;
use crate::util::units::show_duration;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// Of how long calls took.
    Time(LatencySeries, Aggregate),
    /// How many there were of something.
    Count(CallCounter),
    /// Calls that were not answered, of all that were made: 0 to 1.
    ErrorRate,
    /// Answered calls per second.
    Throughput,
    /// Reaching the tool before the first call.
    Connect,
    FirstCall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencySeries {
    /// Answered calls, from the intended start (open loads) or the sending.
    Response,
    /// Answered calls, from the sending.
    Service,
    Failed,
    /// From the intended start to the sending; open loads only.
    Lag,
}

/// What of many times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aggregate {
    Min,
    Mean,
    Deviation,
    Max,
    /// The value that this percentage of the calls does not exceed.
    Percentile(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallCounter {
    Requests,
    /// Answered ones.
    Ok,
    ToolErrors,
    /// No usable answer, timeouts not included.
    Errors,
    /// A limit fired.
    Timeouts,
    /// The run ended first.
    Unanswered,
    /// Not made, too many were in flight.
    Dropped,
    /// The way to the tool was opened again.
    Restarts,
    /// Sent more than a millisecond after their moment.
    Late,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricUnit {
    Time,
    /// 0 to 1.
    Share,
    Rate,
    Count,
}

const POPULATIONS: [(&str, LatencySeries); 4] = [
    ("latency", LatencySeries::Response),
    ("service", LatencySeries::Service),
    ("failed", LatencySeries::Failed),
    ("lag", LatencySeries::Lag),
];

const TIMES: [(&str, Aggregate); 4] = [
    ("min", Aggregate::Min),
    ("mean", Aggregate::Mean),
    ("stddev", Aggregate::Deviation),
    ("max", Aggregate::Max),
];

const COUNTS: [(&str, CallCounter); 9] = [
    ("requests", CallCounter::Requests),
    ("ok", CallCounter::Ok),
    ("tool_errors", CallCounter::ToolErrors),
    ("errors", CallCounter::Errors),
    ("timeouts", CallCounter::Timeouts),
    ("unanswered", CallCounter::Unanswered),
    ("dropped", CallCounter::Dropped),
    ("restarts", CallCounter::Restarts),
    ("late", CallCounter::Late),
];

const OTHER_METRICS: [(&str, Metric); 4] = [
    ("error_rate", Metric::ErrorRate),
    ("throughput", Metric::Throughput),
    ("connect", Metric::Connect),
    ("first_call", Metric::FirstCall),
];

/// Percentiles that are proposed when a name is not known.
const SUGGESTED_PERCENTILES: [&str; 5] = ["p50", "p90", "p95", "p99", "p99.9"];

/// Why a name is no metric, and what to write instead; each holds the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ParseMetricError {
    /// A series of times without an aggregate.
    #[error("'{0}' is a series of times: write {0}.p99 or {0}.max")]
    Series(String),
    /// A percentile of 100 or more.
    #[error("'{0}' is above 100 %: use max")]
    AboveAll(String),
    #[error("'{0}' is not a percentile: write p50, p95, p99 or p99.9")]
    Percentile(String),
    #[error("{}", unknown(.0))]
    Unknown(String),
}

impl Metric {
    /// The metric with this name, without the letter of a target.
    pub(super) fn parse(name: &str) -> Result<Self, ParseMetricError> {
        for (prefix, population) in POPULATIONS {
            let Some(rest) = name.strip_prefix(prefix) else { continue };
            if rest.is_empty() {
                return Err(ParseMetricError::Series(name.to_owned()));
            }
            if let Some(of) = rest.strip_prefix('.') {
                return match time(of)? {
                    Some(of) => Ok(Self::Time(population, of)),
                    None => Err(ParseMetricError::Unknown(of.to_owned())),
                };
            }
        }
        if let Some(of) = time(name)? {
            return Ok(Self::Time(LatencySeries::Response, of));
        }
        let count = COUNTS.iter().find(|(key, _)| *key == name);
        let other = OTHER_METRICS.iter().find(|(key, _)| *key == name);
        match (count, other) {
            (Some((_, counted)), _) => Ok(Self::Count(*counted)),
            (_, Some((_, metric))) => Ok(*metric),
            _ => Err(ParseMetricError::Unknown(name.to_owned())),
        }
    }

    pub fn measure(self) -> MetricUnit {
        match self {
            Self::Time(..) | Self::Connect | Self::FirstCall => MetricUnit::Time,
            Self::Count(_) => MetricUnit::Count,
            Self::ErrorRate => MetricUnit::Share,
            Self::Throughput => MetricUnit::Rate,
        }
    }

    /// Its value in the unit of its measure; `None` when it was not measured.
    pub(super) fn value(self, of: &TargetReport, generator: &GeneratorReport) -> Option<f64> {
        let seconds = |duration: Option<Duration>| duration.map(|value| value.as_secs_f64());
        match self {
            Self::Connect => return seconds(of.cold.connect),
            Self::FirstCall => return seconds(of.cold.first_call),
            // Drops are all that there is when every call was dropped.
            Self::Count(CallCounter::Dropped) if of.dropped > 0 => return Some(float(of.dropped)),
            _ if of.requests == 0 => return None,
            _ => {}
        }
        match self {
            Self::Time(population, what) => {
                let times = times(population, of, generator);
                seconds(match what {
                    Aggregate::Min => times.min(),
                    Aggregate::Mean => times.mean(),
                    Aggregate::Deviation => times.stddev(),
                    Aggregate::Max => times.max(),
                    Aggregate::Percentile(percent) => times.quantile(percent / 100.0),
                })
            }
            Self::Count(counted) => Some(float(match counted {
                CallCounter::Requests => of.requests,
                CallCounter::Ok => of.ok,
                CallCounter::ToolErrors => of.tool_errors,
                CallCounter::Errors => of.errors,
                CallCounter::Timeouts => of.timeouts,
                CallCounter::Unanswered => of.unanswered,
                CallCounter::Dropped => of.dropped,
                CallCounter::Restarts => of.restarts,
                CallCounter::Late => generator.late,
            })),
            Self::ErrorRate => Some(1.0 - float(of.ok) / float(of.requests)),
            Self::Throughput => Some(of.throughput),
            Self::Connect | Self::FirstCall => None,
        }
    }

    /// Why it was not measured, and whether that is good.
    pub(super) fn missing_reason(self, of: &TargetReport) -> (String, bool) {
        let reason = match self {
            Self::Connect => return ("connecting was not measured separately".to_owned(), false),
            _ if of.requests == 0 => "no call was made",
            Self::Time(LatencySeries::Failed, _) => return ("no call failed".to_owned(), true),
            Self::Time(LatencySeries::Lag, _) => "lag is only measured with --rate",
            Self::Time(..) => "no successful calls",
            _ => "it was not measured",
        };
        (reason.to_owned(), false)
    }

    /// Why the value is doubtful, if it is.
    pub(super) fn caveat(self, of: &TargetReport, generator: &GeneratorReport) -> Option<String> {
        let Self::Time(population, Aggregate::Percentile(percent)) = self else { return None };
        let times = times(population, of, generator);
        (!times.is_reliable_at(percent / 100.0)).then(|| {
            let needed = (10.0 / (1.0 - percent / 100.0)).round();
            format!("{self} of {} calls; it takes {needed:.0} to be sure", times.count())
        })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(population, of) => {
                if *population != LatencySeries::Response {
                    write!(f, "{}.", named(&POPULATIONS, population))?;
                }
                match of {
                    Aggregate::Percentile(percent) => write!(f, "p{percent}"),
                    of => f.write_str(named(&TIMES, of)),
                }
            }
            Self::Count(counted) => f.write_str(named(&COUNTS, counted)),
            other => f.write_str(named(&OTHER_METRICS, other)),
        }
    }
}

impl MetricUnit {
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Time => show_duration(Duration::try_from_secs_f64(value).unwrap_or_default()),
            Self::Share => format!("{:.3}%", value * 100.0).replace(".000%", "%"),
            Self::Rate if value < 100.0 => format!("{value:.1}/s"),
            Self::Rate => format!("{value:.0}/s"),
            Self::Count => format!("{value}"),
        }
    }
}

fn times<'a>(
    population: LatencySeries,
    of: &'a TargetReport,
    generator: &'a GeneratorReport,
) -> &'a Durations {
    match population {
        LatencySeries::Response => &of.response,
        LatencySeries::Service => &of.service,
        LatencySeries::Failed => &of.failed,
        LatencySeries::Lag => &generator.lag,
    }
}

fn time(name: &str) -> Result<Option<Aggregate>, ParseMetricError> {
    if let Some((_, of)) = TIMES.iter().find(|(key, _)| *key == name) {
        return Ok(Some(*of));
    }
    let Some(digits) = name.strip_prefix('p') else { return Ok(None) };
    if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit() || c == b'.') {
        return Ok(None);
    }
    // p999 is written in the JSON for p99.9.
    let dotted = match digits.split_at_checked(2) {
        Some((whole, rest)) if !rest.is_empty() && !digits.contains('.') && digits != "100" => {
            format!("{whole}.{rest}")
        }
        _ => digits.to_owned(),
    };
    match dotted.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(Some(Aggregate::Percentile(percent))),
        Ok(percent) if percent >= 100.0 => Err(ParseMetricError::AboveAll(name.to_owned())),
        _ => Err(ParseMetricError::Percentile(name.to_owned())),
    }
}

fn unknown(name: &str) -> String {
    let names = COUNTS
        .iter()
        .map(|(name, _)| *name)
        .chain(OTHER_METRICS.iter().map(|(name, _)| *name))
        .chain(TIMES.iter().map(|(name, _)| *name))
        .chain(SUGGESTED_PERCENTILES);
    match nearest(name, names) {
        Some(near) => format!("'{name}' is not known; did you mean '{near}'?"),
        None => format!(
            "'{name}' is not names; there are p50 to p99.9, min, mean, max, stddev, error_rate, \
             throughput, connect, first_call and {}",
            COUNTS.map(|(name, _)| name).join(", ")
        ),
    }
}

fn named<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, entry)| entry == value).map_or("", |(name, _)| *name)
}
