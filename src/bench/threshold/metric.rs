//! The metrics that a threshold expression may name.

use std::fmt;
use std::time::Duration;

use crate::bench::report::{GeneratorReport, TargetReport};
use crate::util::histogram::Durations;
use crate::util::spelling::nearest;
use crate::util::units::{float, show_duration};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Metric {
    Figure(usize),
    /// Of one of [`SERIES`], one of [`AGGREGATES`].
    Aggregate(usize, usize),
    /// Of one of [`SERIES`], the value that this percentage of the calls does not exceed.
    Percentile(usize, f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricUnit {
    Time,
    Share,
    Rate,
    Count,
}

type Figure = fn(&TargetReport, &GeneratorReport) -> Option<f64>;
type Series = for<'a> fn(&'a TargetReport, &'a GeneratorReport) -> &'a Durations;
type Aggregate = fn(&Durations) -> Option<Duration>;

const FIGURES: [(&str, MetricUnit, Figure); 13] = [
    ("requests", MetricUnit::Count, |of, _| Some(float(of.requests))),
    ("ok", MetricUnit::Count, |of, _| Some(float(of.ok))),
    ("tool_errors", MetricUnit::Count, |of, _| Some(float(of.tool_errors))),
    ("errors", MetricUnit::Count, |of, _| Some(float(of.errors))),
    ("timeouts", MetricUnit::Count, |of, _| Some(float(of.timeouts))),
    ("unanswered", MetricUnit::Count, |of, _| Some(float(of.unanswered))),
    (DROPPED, MetricUnit::Count, |of, _| Some(float(of.dropped))),
    ("restarts", MetricUnit::Count, |of, _| Some(float(of.restarts))),
    ("late", MetricUnit::Count, |_, generator| Some(float(generator.late))),
    ("error_rate", MetricUnit::Share, |of, _| Some(1.0 - float(of.ok) / float(of.requests))),
    ("throughput", MetricUnit::Rate, |of, _| Some(of.throughput)),
    (CONNECT, MetricUnit::Time, |of, _| of.cold.connect.map(|time| time.as_secs_f64())),
    (FIRST_CALL, MetricUnit::Time, |of, _| of.cold.first_call.map(|time| time.as_secs_f64())),
];
const DROPPED: &str = "dropped";
const CONNECT: &str = "connect";
const FIRST_CALL: &str = "first_call";

/// Times of calls: of answered ones from the intended start and from the sending, of failed ones,
/// and how late they were sent. A name alone is of the first.
const SERIES: [(&str, Series); 4] = [
    ("latency", |of, _| &of.response),
    ("service", |of, _| &of.service),
    ("failed", |of, _| &of.failed),
    ("lag", |_, generator| &generator.lag),
];

const AGGREGATES: [(&str, Aggregate); 4] = [
    ("min", Durations::min),
    ("mean", Durations::mean),
    ("stddev", Durations::stddev),
    ("max", Durations::max),
];

/// Percentiles that are proposed when a name is not known.
const SUGGESTED_PERCENTILES: [&str; 5] = ["p50", "p90", "p95", "p99", "p99.9"];

impl Metric {
    /// The metric with this name, without the letter of a target; the error says what to write
    /// instead.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        for (series, (prefix, _)) in SERIES.iter().enumerate() {
            match name.strip_prefix(prefix) {
                Some("") => {
                    return Err(format!(
                        "'{name}' is a series of times: write {name}.p99 or {name}.max"
                    ));
                }
                Some(rest) => {
                    if let Some(aggregate) = rest.strip_prefix('.') {
                        return time(series, aggregate)?.ok_or_else(|| unknown(aggregate));
                    }
                }
                None => {}
            }
        }
        if let Some(metric) = time(0, name)? {
            return Ok(metric);
        }
        let figure = FIGURES.iter().position(|(figure, ..)| *figure == name);
        figure.map(Self::Figure).ok_or_else(|| unknown(name))
    }

    pub(super) fn unit(self) -> MetricUnit {
        match self {
            Self::Figure(figure) => FIGURES[figure].1,
            Self::Aggregate(..) | Self::Percentile(..) => MetricUnit::Time,
        }
    }

    /// Its value in its unit; `None` when it was not measured.
    pub(super) fn value(self, of: &TargetReport, generator: &GeneratorReport) -> Option<f64> {
        let is_measured = match self {
            // Drops are all that there is when every call was dropped.
            Self::Figure(figure) if FIGURES[figure].0 == DROPPED => of.requests + of.dropped > 0,
            Self::Figure(figure) if [CONNECT, FIRST_CALL].contains(&FIGURES[figure].0) => true,
            _ => of.requests > 0,
        };
        let time = match self {
            _ if !is_measured => None,
            Self::Figure(figure) => return FIGURES[figure].2(of, generator),
            Self::Aggregate(series, aggregate) => {
                AGGREGATES[aggregate].1(SERIES[series].1(of, generator))
            }
            Self::Percentile(series, percent) => {
                SERIES[series].1(of, generator).quantile(percent / 100.0)
            }
        };
        time.map(|time| time.as_secs_f64())
    }

    /// Why it was not measured, and whether that is good.
    pub(super) fn missing_reason(self, of: &TargetReport) -> (&'static str, bool) {
        match self {
            Self::Figure(figure) if FIGURES[figure].0 == CONNECT => {
                ("connecting was not measured separately", false)
            }
            _ if of.requests == 0 => ("no call was made", false),
            Self::Figure(_) => ("it was not measured", false),
            Self::Aggregate(series, _) | Self::Percentile(series, _) => match SERIES[series].0 {
                "failed" => ("no call failed", true),
                "lag" => ("lag is only measured with --rate", false),
                _ => ("no successful calls", false),
            },
        }
    }

    /// Why the value is doubtful, if it is.
    pub(super) fn caveat(self, of: &TargetReport, generator: &GeneratorReport) -> Option<String> {
        let Self::Percentile(series, percent) = self else { return None };
        let times = SERIES[series].1(of, generator);
        (!times.is_reliable_at(percent / 100.0)).then(|| {
            let needed = (10.0 / (1.0 - percent / 100.0)).round();
            format!("{self} of {} calls; it takes {needed:.0} to be sure", times.count())
        })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Aggregate(series, _) | Self::Percentile(series, _) if series > 0 => {
                write!(f, "{}.", SERIES[series].0)?;
            }
            _ => {}
        }
        match *self {
            Self::Figure(figure) => f.write_str(FIGURES[figure].0),
            Self::Aggregate(_, aggregate) => f.write_str(AGGREGATES[aggregate].0),
            Self::Percentile(_, percent) => write!(f, "p{percent}"),
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

fn time(series: usize, name: &str) -> Result<Option<Metric>, String> {
    if let Some(aggregate) = AGGREGATES.iter().position(|(aggregate, _)| *aggregate == name) {
        return Ok(Some(Metric::Aggregate(series, aggregate)));
    }
    let Some(digits) = name.strip_prefix('p') else { return Ok(None) };
    if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit() || c == b'.') {
        return Ok(None);
    }
    // p999 is written in the JSON for p99.9.
    let dotted = match digits.split_at_checked(2) {
        Some((whole, rest))
            if !rest.is_empty() && !digits.contains('.') && !digits.starts_with("100") =>
        {
            format!("{whole}.{rest}")
        }
        _ => digits.to_owned(),
    };
    match dotted.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => {
            Ok(Some(Metric::Percentile(series, percent)))
        }
        Ok(percent) if percent >= 100.0 => Err(format!("'{name}' is above 100 %: use max")),
        _ => Err(format!("'{name}' is not a percentile: write p50, p95, p99 or p99.9")),
    }
}

fn unknown(name: &str) -> String {
    let figures = FIGURES.iter().map(|(figure, ..)| *figure);
    let aggregates = AGGREGATES.iter().map(|(aggregate, _)| *aggregate);
    match nearest(name, figures.clone().chain(aggregates).chain(SUGGESTED_PERCENTILES)) {
        Some(near) => format!("'{name}' is not known; did you mean '{near}'?"),
        None => format!(
            "'{name}' is not known; there are p50 to p99.9, min, mean, max, stddev and {}",
            figures.collect::<Vec<_>>().join(", ")
        ),
    }
}
