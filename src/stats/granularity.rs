//! The time buckets in which calls are counted.
//!
//! Every call is counted three times: in its minute, its hour and its day (UTC). The fine grains
//! are kept for a while and the days as long as the statistics, so that a window is exact to the
//! minute where that matters and ninety days stay small. Nothing has to be merged with age.

/// How long minutes are kept: two days.
const MINUTES_KEPT: i64 = 2 * 86_400;

/// How long hours are kept: five weeks.
const HOURS_KEPT: i64 = 35 * 86_400;

/// The length of the grains in which calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Granularity {
    /// Sixty seconds, the finest grain.
    Minute,
    Hour,
    /// Twenty-four hours, from midnight UTC.
    Day,
}

impl Granularity {
    /// All of them, the finest first.
    pub const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// The length of a grain in seconds.
    pub fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        }
    }

    pub fn floor(self, second: i64) -> i64 {
        second.div_euclid(self.seconds()) * self.seconds()
    }

    /// The first beginning that is not before a second.
    pub fn ceil(self, second: i64) -> i64 {
        let floor = self.floor(second);
        if floor == second { floor } else { floor.saturating_add(self.seconds()) }
    }

    pub(super) fn number(self) -> i64 {
        match self {
            Self::Minute => 0,
            Self::Hour => 1,
            Self::Day => 2,
        }
    }
}

/// From which second on each level is complete; what is older was let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionBounds {
    /// Minutes; the beginning of an hour.
    pub minutes: i64,
    /// Hours; the beginning of a day.
    pub hours: i64,
    /// Days; the beginning of one.
    pub days: i64,
}

impl Default for RetentionBounds {
    /// Nothing was let go yet: every level is complete.
    fn default() -> Self {
        Self { minutes: i64::MIN, hours: i64::MIN, days: i64::MIN }
    }
}

impl RetentionBounds {
    /// What is to be kept when it is `now` and days are kept for `retention` seconds; never more
    /// than before.
    #[must_use]
    pub fn advanced(self, now: i64, retention: i64) -> Self {
        let from = |length: i64| now.saturating_sub(length.min(retention));
        Self {
            minutes: self.minutes.max(Granularity::Hour.ceil(from(MINUTES_KEPT))),
            hours: self.hours.max(Granularity::Day.ceil(from(HOURS_KEPT))),
            days: self.days.max(Granularity::Day.floor(from(i64::MAX))),
        }
    }

    pub fn complete_from(&self, level: Granularity) -> i64 {
        match level {
            Granularity::Minute => self.minutes,
            Granularity::Hour => self.hours,
            Granularity::Day => self.days,
        }
    }

    pub fn finest_complete_at(&self, second: i64) -> Granularity {
        let complete = |level: &Granularity| self.complete_from(*level) <= second;
        Granularity::ALL.into_iter().find(complete).unwrap_or(Granularity::Day)
    }
}

/// A range of grains of one level: those that begin in `complete_from..to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrainRange {
    pub granularity: Granularity,
    /// The beginning of the first grain, in seconds since the Unix epoch.
    pub from: i64,
    pub to: i64,
}

/// The grains that a window from `since` to `now` is made of, each call in exactly one. The grain in
/// which the window begins counts as a whole: it is the finest that is still kept of that time. A
/// window without a beginning has no end either, so that nothing that was ever counted is left out;
/// any other has no grain that begins after `now`. A window that ends at `until` has finer grains at
/// its end, as far as they are kept of that time.
pub fn grain_ranges(
    since: Option<i64>,
    until: Option<i64>,
    now: i64,
    bounds: RetentionBounds,
) -> Vec<GrainRange> {
    let Some(since) = since.or(until.map(|_| bounds.days)) else {
        return vec![GrainRange { granularity: Granularity::Day, from: bounds.days, to: i64::MAX }];
    };
    let mut ranges = Vec::new();
    let finest = bounds.finest_complete_at(since);
    let mut from = finest.floor(since).max(bounds.days);
    let end = until.unwrap_or(now.saturating_add(1));
    // A grain in which the window ends is not wholly part of it.
    let last = |level: Granularity| until.map_or(end, |until| level.floor(until));
    for level in Granularity::ALL.into_iter().filter(|level| *level >= finest) {
        let to = match level {
            Granularity::Minute => Granularity::Hour.ceil(from),
            Granularity::Hour => Granularity::Day.ceil(from),
            Granularity::Day => i64::MAX,
        };
        let to = to.min(last(level));
        if from < to {
            ranges.push(GrainRange { granularity: level, from, to });
            from = to;
        }
    }
    if until.is_some() {
        for level in [Granularity::Hour, Granularity::Minute] {
            let to = last(level);
            if bounds.complete_from(level) <= from && from < to {
                ranges.push(GrainRange { granularity: level, from, to });
                from = to;
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn a_window_is_made_of_the_coarsest_grains_that_fit() {
        let now = 20_000 * DAY + 10 * 3_600;
        let since = 19_998 * DAY + 22 * 3_600 + 58 * 60 + 30;
        let range = |level, from, to| GrainRange { granularity: level, from, to };
        let bounds = RetentionBounds::default().advanced(now, 90 * DAY);
        assert_eq!(
            grain_ranges(Some(since), None, now, bounds),
            [
                range(Granularity::Minute, since - 30, 19_998 * DAY + 23 * 3_600),
                range(Granularity::Hour, 19_998 * DAY + 23 * 3_600, 19_999 * DAY),
                range(Granularity::Day, 19_999 * DAY, now + 1),
            ]
        );
        // Of a week ago only hours are left, of two months ago only days.
        let week = grain_ranges(Some(now - 7 * DAY - 1), None, now, bounds);
        assert_eq!(week[0].granularity, Granularity::Hour);
        let months = grain_ranges(Some(now - 60 * DAY - 1), None, now, bounds);
        assert_eq!(months, [range(Granularity::Day, 19_940 * DAY, now + 1)]);
        assert_eq!(
            grain_ranges(None, None, now, bounds),
            [range(Granularity::Day, 19_910 * DAY, i64::MAX)]
        );
        assert_eq!(grain_ranges(Some(now + 6_000), None, now, bounds), []);
    }

    #[test]
    fn what_was_let_go_does_not_come_back_with_the_clock() {
        let now = 20_000 * DAY;
        let bounds = RetentionBounds::default().advanced(now, 90 * DAY);
        assert_eq!(bounds.advanced(now - 50 * DAY, 90 * DAY), bounds);
    }

    #[test]
    fn a_window_that_has_ended_ends_with_the_finest_grains() {
        let now = 20_000 * DAY + 12 * 3_600;
        let bounds = RetentionBounds::default().advanced(now, 90 * DAY);
        let range = |level, from, to| GrainRange { granularity: level, from, to };
        let (since, until) = (19_998 * DAY + 23 * 3_600, 20_000 * DAY + 7_320);
        assert_eq!(
            grain_ranges(Some(since), Some(until), now, bounds),
            [
                range(Granularity::Hour, since, 19_999 * DAY),
                range(Granularity::Day, 19_999 * DAY, 20_000 * DAY),
                range(Granularity::Hour, 20_000 * DAY, 20_000 * DAY + 7_200),
                range(Granularity::Minute, 20_000 * DAY + 7_200, until),
            ]
        );
    }

    proptest! {
        #[test]
        fn two_windows_that_meet_have_no_grain_in_common(
            now in 1_000_000_000_i64..2_000_000_000,
            length in 60_i64..40 * DAY,
            at in 0_i64..80 * DAY,
        ) {
            let bounds = RetentionBounds::default().advanced(now, 90 * DAY);
            let later = grain_ranges(Some(now - length), None, now, bounds);
            let from = later[0].from;
            let earlier = grain_ranges(Some(2 * from - now), Some(from), now, bounds);
            let second = now - at;
            let holds = |s: &&GrainRange| (s.from..s.to).contains(&s.granularity.floor(second));
            let holding = later.iter().chain(&earlier).filter(holds).count();
            prop_assert_eq!(holding, usize::from(second >= earlier[0].from), "{:?} {:?}", earlier, later);
        }

        #[test]
        fn every_second_of_a_window_lies_in_exactly_one_grain(
            now in 1_000_000_000_i64..2_000_000_000,
            ago in 0_i64..100 * DAY,
            at in 0_i64..100 * DAY,
        ) {
            let bounds = RetentionBounds::default().advanced(now, 90 * DAY);
            let ranges = grain_ranges(Some(now - ago), None, now, bounds);
            let second = now - at;
            let holds = |s: &&GrainRange| (s.from..s.to).contains(&s.granularity.floor(second));
            let holding = ranges.iter().filter(holds).count();
            let from = ranges.first().map_or(i64::MAX, |first| first.from);
            prop_assert!(from <= (now - ago).max(bounds.days));
            prop_assert_eq!(holding, usize::from(second >= from), "{:?}", ranges);
            for range in &ranges {
                prop_assert!(range.from >= bounds.complete_from(range.granularity), "{:?}", ranges);
            }
        }
    }
}
