//! Percentiles in HdrHistogram's text format (`.hgrm`), for its plotter and other programs that
//! read it.
//!
//! Owns: the layout. Values are in milliseconds, down to the nanosecond.

use std::fmt::Write as _;

use super::millis;
use crate::util::histogram::Durations;

/// Steps each time the rest halves, as HdrHistogram's own tools do by default.
const STEPS: f64 = 5.0;

/// What three digits from a nanosecond to an hour take.
const BUCKETS: u32 = 32;
const SUB_BUCKETS: u32 = 2_048;

/// The distribution of the answered calls of a target.
pub fn hgrm(durations: &Durations) -> String {
    let mut out = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let count = durations.count();
    let mut share = 0.0_f64;
    while let Some(value) = durations.quantile(share) {
        let up_to = durations.count_up_to(value);
        if up_to >= count || share >= 1.0 {
            break;
        }
        let rest = 1.0 / (1.0 - share);
        let value = millis(value);
        let _infallible = writeln!(out, "{value:12.6} {share:2.12} {up_to:10} {rest:14.2}");
        // The rest halves in so many equal steps.
        let halvings = rest.log2().floor() + 1.0;
        share += 1.0 / (STEPS * halvings.exp2());
    }
    let max = durations.max().map_or(0.0, millis);
    if count > 0 {
        let _infallible = writeln!(out, "{max:12.6} {:2.12} {count:10}", 1.0);
    }
    let (mean, spread) =
        (durations.mean().map_or(0.0, millis), durations.stddev().map_or(0.0, millis));
    let _infallible = writeln!(out, "#[Mean    = {mean:12.6}, StdDeviation   = {spread:12.6}]");
    let _infallible = writeln!(out, "#[Max     = {max:12.6}, Total count    = {count:12}]");
    let _infallible = writeln!(out, "#[Buckets = {BUCKETS:12}, SubBuckets     = {SUB_BUCKETS:12}]");
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn percentiles_rise_to_the_last_call() {
        let mut all = Durations::default();
        (1..=10_000).for_each(|n| all.record(Duration::from_micros(n)));
        let text = hgrm(&all);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("       Value     Percentile TotalCount 1/(1-Percentile)"));
        assert_eq!(lines.next(), Some(""));
        let rows: Vec<Vec<f64>> = lines
            .clone()
            .take_while(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        assert!(rows.windows(2).all(|two| two[0][0] <= two[1][0] && two[0][1] < two[1][1]));
        assert_eq!(rows.first().unwrap().len(), 4);
        assert_eq!(rows.last().unwrap(), &[10.0, 1.0, 10_000.0]);
        let half = rows.iter().find(|row| (row[3] - 2.0).abs() < 1e-9).unwrap();
        assert!((half[0] - 5.0).abs() < 0.01 && (half[1] - 0.5).abs() < 1e-9, "{half:?}");
        assert!(
            text.contains("#[Max     =    10.000000, Total count    =        10000]"),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_an_empty_distribution() {
        let text = hgrm(&Durations::default());
        assert_eq!(text.lines().count(), 5);
    }
}
