//! The figures that an expression may name.
//!
//! Owns: their names, what each one measures, and where a report has it.

use std::fmt;
use std::time::Duration;

use crate::bench::report::{GeneratorReport, TargetReport};
use crate::util::histogram::Durations;
use crate::util::units::show_duration;

/// A figure of one target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// Of how long calls took.
    Time(Population, Of),
    /// How many there were of something.
    Count(Counted),
    /// Calls that were not answered, of all that were made: 0 to 1.
    ErrorRate,
    /// Answered calls a second.
    Throughput,
    /// Reaching the tool before the first call.
    Connect,
    /// The very first call.
    FirstCall,
}

/// Whose times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Population {
    /// Answered calls, from the intended moment (open loads) or the sending.
    Response,
    /// Answered calls, from the sending.
    Service,
    /// Calls that failed or were refused by the tool.
    Failed,
    /// From the intended moment to the sending; open loads only.
    Lag,
}

/// What of many times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Of {
    /// The shortest.
    Min,
    /// The mean.
    Mean,
    /// The standard deviation.
    Deviation,
    /// The longest.
    Max,
    /// What so many of 100 do not exceed.
    Percentile(f64),
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Calls that were made.
    Requests,
    /// Answered ones.
    Ok,
    /// The tool said no.
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

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Seconds.
    Time,
    /// 0 to 1.
    Share,
    /// A second.
    Rate,
    /// Just a number.
    Count,
}

const POPULATIONS: [(&str, Population); 4] = [
    ("latency", Population::Response),
    ("service", Population::Service),
    ("failed", Population::Failed),
    ("lag", Population::Lag),
];

const TIMES: [(&str, Of); 4] =
    [("min", Of::Min), ("mean", Of::Mean), ("stddev", Of::Deviation), ("max", Of::Max)];

const COUNTS: [(&str, Counted); 9] = [
    ("requests", Counted::Requests),
    ("ok", Counted::Ok),
    ("tool_errors", Counted::ToolErrors),
    ("errors", Counted::Errors),
    ("timeouts", Counted::Timeouts),
    ("unanswered", Counted::Unanswered),
    ("dropped", Counted::Dropped),
    ("restarts", Counted::Restarts),
    ("late", Counted::Late),
];

const OTHERS: [(&str, Figure); 4] = [
    ("error_rate", Figure::ErrorRate),
    ("throughput", Figure::Throughput),
    ("connect", Figure::Connect),
    ("first_call", Figure::FirstCall),
];

/// Percentiles that are proposed when a name is not known.
const PROPOSED: [&str; 5] = ["p50", "p90", "p95", "p99", "p99.9"];

impl Figure {
    /// The figure with this name, without the letter of a target.
    ///
    /// # Errors
    /// What is wrong with the name and what to write instead.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        for (prefix, population) in POPULATIONS {
            let Some(rest) = name.strip_prefix(prefix) else { continue };
            if rest.is_empty() {
                return Err(format!("'{name}' is many times: write {name}.p99 or {name}.max"));
            }
            if let Some(of) = rest.strip_prefix('.') {
                return match time(of)? {
                    Some(of) => Ok(Self::Time(population, of)),
                    None => Err(unknown(of)),
                };
            }
        }
        if let Some(of) = time(name)? {
            return Ok(Self::Time(Population::Response, of));
        }
        let count = COUNTS.iter().find(|(known, _)| *known == name);
        let other = OTHERS.iter().find(|(known, _)| *known == name);
        match (count, other) {
            (Some((_, counted)), _) => Ok(Self::Count(*counted)),
            (_, Some((_, figure))) => Ok(*figure),
            _ => Err(unknown(name)),
        }
    }

    /// What it is measured in.
    pub fn measure(self) -> Measure {
        match self {
            Self::Time(..) | Self::Connect | Self::FirstCall => Measure::Time,
            Self::Count(_) => Measure::Count,
            Self::ErrorRate => Measure::Share,
            Self::Throughput => Measure::Rate,
        }
    }

    /// Its value in the unit of its measure; `None` when it was not measured.
    pub(super) fn value(self, of: &TargetReport, generator: &GeneratorReport) -> Option<f64> {
        let seconds = |duration: Option<Duration>| duration.map(|value| value.as_secs_f64());
        match self {
            Self::Connect => return seconds(of.cold.connect),
            Self::FirstCall => return seconds(of.cold.first_call),
            // Drops are all that there is when every call was dropped.
            Self::Count(Counted::Dropped) if of.dropped > 0 => return Some(float(of.dropped)),
            _ if of.requests == 0 => return None,
            _ => {}
        }
        match self {
            Self::Time(population, what) => {
                let times = times(population, of, generator);
                seconds(match what {
                    Of::Min => times.min(),
                    Of::Mean => times.mean(),
                    Of::Deviation => times.stddev(),
                    Of::Max => times.max(),
                    Of::Percentile(percent) => times.quantile(percent / 100.0),
                })
            }
            Self::Count(counted) => Some(float(match counted {
                Counted::Requests => of.requests,
                Counted::Ok => of.ok,
                Counted::ToolErrors => of.tool_errors,
                Counted::Errors => of.errors,
                Counted::Timeouts => of.timeouts,
                Counted::Unanswered => of.unanswered,
                Counted::Dropped => of.dropped,
                Counted::Restarts => of.restarts,
                Counted::Late => generator.late,
            })),
            Self::ErrorRate => Some(1.0 - float(of.ok) / float(of.requests)),
            Self::Throughput => Some(of.throughput),
            Self::Connect | Self::FirstCall => None,
        }
    }

    /// Why it was not measured, and whether that is good.
    pub(super) fn absence(self, of: &TargetReport) -> (String, bool) {
        let words = match self {
            Self::Connect => return ("connecting was not measured apart".to_owned(), false),
            _ if of.requests == 0 => "no call was made",
            Self::Time(Population::Failed, _) => return ("no call failed".to_owned(), true),
            Self::Time(Population::Lag, _) => "lag is measured in open loads (--rate) only",
            Self::Time(..) => "no call was answered",
            _ => "it was not measured",
        };
        (words.to_owned(), false)
    }

    /// What makes its value doubtful.
    pub(super) fn doubt(self, of: &TargetReport, generator: &GeneratorReport) -> Option<String> {
        let Self::Time(population, Of::Percentile(percent)) = self else { return None };
        let times = times(population, of, generator);
        (!times.is_sure_of(percent / 100.0)).then(|| {
            let needed = (10.0 / (1.0 - percent / 100.0)).round();
            format!("{self} of {} calls; it takes {needed:.0} to be sure", times.count())
        })
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(population, of) => {
                if *population != Population::Response {
                    write!(f, "{}.", named(&POPULATIONS, population))?;
                }
                match of {
                    Of::Percentile(percent) => write!(f, "p{percent}"),
                    of => f.write_str(named(&TIMES, of)),
                }
            }
            Self::Count(counted) => f.write_str(named(&COUNTS, counted)),
            other => f.write_str(named(&OTHERS, other)),
        }
    }
}

impl Measure {
    /// For people.
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
    population: Population,
    of: &'a TargetReport,
    generator: &'a GeneratorReport,
) -> &'a Durations {
    match population {
        Population::Response => &of.response,
        Population::Service => &of.service,
        Population::Failed => &of.failed,
        Population::Lag => &generator.lag,
    }
}

fn time(name: &str) -> Result<Option<Of>, String> {
    if let Some((_, of)) = TIMES.iter().find(|(known, _)| *known == name) {
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
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(Some(Of::Percentile(percent))),
        Ok(percent) if percent >= 100.0 => Err(format!("'{name}' is above all calls: write max")),
        _ => Err(format!("'{name}' is no percentile: write p50, p95, p99 or p99.9")),
    }
}

fn unknown(name: &str) -> String {
    let known = COUNTS
        .iter()
        .map(|(name, _)| *name)
        .chain(OTHERS.iter().map(|(name, _)| *name))
        .chain(TIMES.iter().map(|(name, _)| *name))
        .chain(PROPOSED);
    let near = known
        .map(|known| (strsim::damerau_levenshtein(known, name), known))
        .filter(|(distance, _)| *distance <= 3)
        .min();
    match near {
        Some((_, near)) => format!("'{name}' is not known; did you mean '{near}'?"),
        None => format!(
            "'{name}' is not known; there are p50 to p99.9, min, mean, max, stddev, error_rate, \
             throughput, connect, first_call and {}",
            COUNTS.map(|(name, _)| name).join(", ")
        ),
    }
}

fn named<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, known)| known == value).map_or("", |(name, _)| *name)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}
