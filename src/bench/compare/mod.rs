//! Comparing targets of one run, from rounds in which they took turns.
//!
//! With six figures, a difference between equal tools is found by chance sooner or later. So one of
//! them, [`HEADLINE`], decides, with an interval of 95%. The others inform: their intervals are so
//! much wider that, taken together, they too are wrong once in twenty runs. Several others against
//! one reference share the same allowance.

use super::interval::{self, BlockSet, MIN_BLOCKS, Pairing};
use super::report::{BenchReport, TargetReport};
use super::statistic::Statistic;
use super::summary::LineTone;
use crate::util::histogram::Durations;
use crate::util::units::float;

/// The figure that decides which one is faster: what a typical call takes. Neither outliers nor
/// the few samples of a tail disturb it.
pub const HEADLINE: Statistic = Statistic::P50;

/// How often equal tools may be reported as different.
pub const SIGNIFICANCE_LEVEL: f64 = 0.05;

/// Shares of failed calls that differ by more than this many standard errors did not differ by
/// chance.
const STANDARD_ERRORS: f64 = 3.0;

/// One target against the reference.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetComparison {
    /// The full name of what the other one is compared with (A).
    pub reference: String,
    /// The full name of the other one (B, C, …).
    pub other: String,
    /// Its letter.
    pub letter: char,
    /// Rounds in which both answered.
    pub rounds: usize,
    /// One for each statistic that both have, in the order of [`Statistic::ALL`].
    pub ratios: Vec<Ratio>,
    /// Why the two may not be comparable.
    pub warnings: Vec<String>,
}

/// How often the figure of the reference the other one has.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    pub statistic: Statistic,
    /// Of the reference: nanoseconds, or calls per second.
    pub reference: f64,
    pub other: f64,
    /// The other one divided by the reference.
    pub value: f64,
    /// Where the true ratio lies; `None` when there is too little to tell.
    pub interval: Option<(f64, f64)>,
    /// How sure that is: 0 to 1.
    pub level: f64,
    /// For the mean: the error propagated from the spread of single calls, as hyperfine reports it.
    pub propagated: Option<f64>,
    /// The conclusion from the interval.
    pub verdict: RatioVerdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatioVerdict {
    Slower,
    Faster,
    NotEstablished(Inconclusive),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inconclusive {
    /// Equal ones would give such a ratio often enough.
    WithinNoise,
    TooFewBlocks,
    TooFewCalls,
}

impl RatioVerdict {
    /// A word or two: `slower`, `faster`, `not established`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::NotEstablished(_) => "not established",
        }
    }

    pub(crate) fn tone(self) -> LineTone {
        match self {
            Self::Slower => LineTone::Bad,
            Self::Faster => LineTone::Good,
            Self::NotEstablished(_) => LineTone::Dim,
        }
    }

    /// Why nothing is established; `None` when something is.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Slower | Self::Faster => None,
            Self::NotEstablished(Inconclusive::WithinNoise) => Some("the interval includes 1"),
            Self::NotEstablished(Inconclusive::TooFewBlocks) => Some("too few rounds"),
            Self::NotEstablished(Inconclusive::TooFewCalls) => {
                Some("too few calls for this percentile")
            }
        }
    }
}

impl TargetComparison {
    /// The ratio that decides; `None` when one of the two answered nothing.
    pub fn headline(&self) -> Option<&Ratio> {
        self.ratios.iter().find(|ratio| ratio.statistic == HEADLINE)
    }

    /// What the headline says, in one sentence.
    pub fn headline_sentence(&self) -> String {
        let (letter, Some(ratio)) = (self.letter, self.headline()) else {
            return format!(
                "{}: nothing to compare, one of the two had no successful calls",
                self.letter
            );
        };
        let name = ratio.statistic.name();
        match (ratio.verdict, ratio.interval) {
            (RatioVerdict::NotEstablished(doubt), interval) => {
                let within = interval.map_or_else(String::new, |(low, high)| {
                    format!(" ({name} ratio {:.3}, {low:.3} to {high:.3})", ratio.value)
                });
                let why = RatioVerdict::NotEstablished(doubt).reason().unwrap_or_default();
                format!("a difference between A and {letter} is not established: {why}{within}")
            }
            (verdict, Some((low, high))) => format!(
                "{letter} is {} than A: {name} {:.3} times as long ({low:.3} to {high:.3})",
                verdict.label(),
                ratio.value
            ),
            (verdict, None) => format!("{letter} is {} than A", verdict.label()),
        }
    }
}

/// Compares every other target of a run with the first one; nothing when they did not take turns.
pub fn compare(report: &BenchReport) -> Vec<TargetComparison> {
    let Some((reference, others)) = report.targets.split_first() else { return Vec::new() };
    if report.rounds.is_empty() {
        return Vec::new();
    }
    let compared = |(at, other): (usize, &TargetReport)| {
        // An interrupted round says nothing about targets that had no turn in it.
        let both = || report.rounds.iter().filter(move |round| round.turns.len() > at + 1);
        let stretches =
            |target: usize| BlockSet::of(both().filter_map(move |round| round.turns.get(target)));
        let side = |target, place| {
            let blocks = stretches(place);
            ComparedSide { target, throughput: blocks.throughput(), blocks }
        };
        let (a, b) = (side(reference, 0), side(other, at + 1));
        let settings = ComparisonSettings {
            decisive: &[HEADLINE],
            alpha: SIGNIFICANCE_LEVEL / count(others.len()),
            pairing: Pairing::Paired,
            seed: report.plan.seed,
        };
        TargetComparison {
            reference: reference.tool.clone(),
            other: other.tool.clone(),
            letter: letter(at + 1),
            rounds: a.blocks.len().min(b.blocks.len()),
            ratios: ratios(&a, &b, &settings),
            warnings: work_warnings(reference, other, "A", &letter(at + 1).to_string()),
        }
    };
    others.iter().enumerate().map(compared).collect()
}

pub fn letter(target: usize) -> char {
    u8::try_from(target).ok().filter(|at| *at < 26).map_or('?', |at| char::from(b'A' + at))
}

pub(super) struct ComparedSide<'a> {
    pub(super) target: &'a TargetReport,
    pub(super) throughput: f64,
    pub(super) blocks: BlockSet,
}

pub(super) struct ComparisonSettings<'a> {
    /// The figures that decide; they share the risk, and the others share as much.
    pub(super) decisive: &'a [Statistic],
    /// How often equal ones may be reported as different.
    pub(super) alpha: f64,
    pub(super) pairing: Pairing,
    pub(super) seed: u64,
}

pub(super) fn ratios(
    a: &ComparedSide<'_>,
    b: &ComparedSide<'_>,
    settings: &ComparisonSettings<'_>,
) -> Vec<Ratio> {
    let errors = interval::standard_errors(&a.blocks, &b.blocks, settings.pairing, settings.seed);
    let stretches = a.blocks.len().min(b.blocks.len());
    let ratio = |statistic: Statistic| {
        let (was, now) = (&a.target.response, &b.target.response);
        let reference = statistic.of(was, a.throughput)?;
        let other = statistic.of(now, b.throughput)?;
        let value = other / reference;
        let sharing = if settings.decisive.contains(&statistic) {
            settings.decisive.len()
        } else {
            Statistic::ALL.len() - settings.decisive.len()
        };
        let level = 1.0 - settings.alpha / count(sharing);
        let interval = errors[statistic.index()].filter(|_| stretches >= MIN_BLOCKS).map(|error| {
            let coarse = a.blocks.resolution(statistic).max(b.blocks.resolution(statistic));
            let reach = (error * interval::student_quantile(level, stretches) + coarse).exp();
            (value / reach, value * reach)
        });
        let is_sure = statistic.is_reliable(was) && statistic.is_reliable(now);
        let verdict = match interval {
            None => RatioVerdict::NotEstablished(Inconclusive::TooFewBlocks),
            Some(_) if !is_sure => RatioVerdict::NotEstablished(Inconclusive::TooFewCalls),
            Some((low, high)) if low <= 1.0 && high >= 1.0 => {
                RatioVerdict::NotEstablished(Inconclusive::WithinNoise)
            }
            Some((low, _)) if (low > 1.0) == statistic.is_higher_worse() => RatioVerdict::Slower,
            Some(_) => RatioVerdict::Faster,
        };
        let propagated = (statistic == Statistic::Mean).then(|| {
            let part = |times: &Durations, mean: f64| {
                times.stddev().map_or(0.0, |spread| spread.as_secs_f64() * 1e9 / mean)
            };
            value * part(was, reference).hypot(part(now, other))
        });
        Some(Ratio { statistic, reference, other, value, interval, level, propagated, verdict })
    };
    Statistic::ALL.into_iter().filter_map(ratio).collect()
}

/// Why two may not have done the same work.
pub(super) fn work_warnings(
    a: &TargetReport,
    b: &TargetReport,
    first: &str,
    second: &str,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if let (Some(of_a), Some(of_b)) = (failed_share(a), failed_share(b)) {
        let both = 1.0 - float(a.ok + b.ok) / float(a.requests + b.requests);
        let error =
            (both * (1.0 - both) * (1.0 / float(a.requests) + 1.0 / float(b.requests))).sqrt();
        if (of_a - of_b).abs() > STANDARD_ERRORS * error.max(f64::EPSILON) {
            warnings.push(format!(
                "{first} and {second} did not do the same work: {:.2}% of the calls of {first} \
                 were not answered, {:.2}% of {second}; only answered calls are compared",
                of_a * 100.0,
                of_b * 100.0
            ));
        }
    }
    if a.ok > 0 && b.ok > 0 && a.bytes_in > 0 && b.bytes_in > 0 {
        let (of_a, of_b) = (float(a.bytes_in) / float(a.ok), float(b.bytes_in) / float(b.ok));
        if !(0.8..=1.25).contains(&(of_a / of_b)) {
            warnings.push(format!(
                "{first} and {second} may not have done the same work: {first} received \
                 {of_a:.0} bytes per answered call, {second} {of_b:.0}"
            ));
        }
    }
    warnings
}

fn failed_share(work: &TargetReport) -> Option<f64> {
    (work.requests > 0).then(|| 1.0 - float(work.ok) / float(work.requests))
}

#[expect(clippy::cast_precision_loss, reason = "a few")]
fn count(several: usize) -> f64 {
    several.max(1) as f64
}

#[cfg(test)]
mod tests;
