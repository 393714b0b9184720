//! The statistics by which runs are compared.

use super::formatting;
use crate::util::histogram::Durations;
use crate::util::units::{nanos, show_duration};

/// A figure of a run that another run has too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Statistic {
    /// What half of the answered calls did not exceed.
    P50,
    Mean,
    /// What 90 of 100 answered calls did not exceed.
    P90,
    /// What 95 of 100 answered calls did not exceed.
    P95,
    /// What 99 of 100 answered calls did not exceed.
    P99,
    Throughput,
}

impl Statistic {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 6] =
        [Self::P50, Self::Mean, Self::P90, Self::P95, Self::P99, Self::Throughput];

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The share of calls that lie below it, for percentiles.
    pub fn share(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.5),
            Self::P90 => Some(0.9),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::Mean | Self::Throughput => None,
        }
    }

    pub fn is_higher_worse(self) -> bool {
        self != Self::Throughput
    }

    /// A value of it (nanoseconds, or calls per second) in its unit.
    pub fn show(self, value: f64) -> String {
        if self == Self::Throughput {
            return format!("{}/s", formatting::per_second(value));
        }
        let duration = std::time::Duration::try_from_secs_f64(value / 1e9);
        duration.map_or_else(|_| "-".to_owned(), show_duration)
    }

    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether this many calls are enough for it to be meaningful.
    pub fn is_reliable(self, response: &Durations) -> bool {
        self.share().is_none_or(|share| response.is_reliable_at(share))
    }

    /// Its value in nanoseconds, or calls per second.
    pub(super) fn of(self, response: &Durations, throughput: f64) -> Option<f64> {
        let value = match self {
            Self::Throughput => throughput,
            Self::Mean => nanos(response.mean()?),
            _ => nanos(response.quantile(self.share()?)?),
        };
        (value.is_finite() && value > 0.0).then_some(value)
    }
}
