//! Axes: mapping values to coordinates, and choosing tick marks.

/// A range of the picture that represents a range of values.
#[derive(Debug, Clone, Copy)]
pub(super) struct AxisScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl AxisScale {
    pub(super) fn linear(high: f64, from: f64, to: f64) -> Self {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        Self { low: 0.0, high, from, to, logarithmic: false }
    }

    /// Figures from `low` to `high`, both above 0, with a little room; at least a factor 2.
    pub(super) fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = if low.is_finite() && low > 0.0 { low } else { 1e-3 };
        let high = if high.is_finite() && high > low { high } else { low };
        let (mut low, mut high) = (low / 1.1, high * 1.1);
        if high / low < 2.0 {
            let middle = (low * high).sqrt();
            (low, high) = (middle / 1.5, middle * 1.5);
        }
        Self { low, high, from, to, logarithmic: true }
    }

    /// The place of a figure; figures beyond the ends are at the ends.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round figures, about 4 to 9 of them.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            return self.even();
        }
        let decades: [&[f64]; 4] =
            [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]];
        for steps in decades {
            let marks = self.decades(steps);
            if marks.len() >= 4 {
                return marks;
            }
        }
        self.decades(decades[3])
    }

    fn decades(&self, steps: &[f64]) -> Vec<f64> {
        let mut marks = Vec::new();
        let mut decade = 10_f64.powf(self.low.log10().floor());
        while decade <= self.high && marks.len() < 100 {
            let within = |mark: &f64| *mark >= self.low && *mark <= self.high;
            marks.extend(steps.iter().map(|step| step * decade).filter(within));
            decade *= 10.0;
        }
        marks
    }

    fn even(&self) -> Vec<f64> {
        let rough = self.high / 6.0;
        let decade = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|step| step * decade)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let mut marks = Vec::new();
        let mut number = 0.0;
        while number * step <= self.high * 1.000_001 && marks.len() < 100 {
            marks.push(number * step);
            number += 1.0;
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_places_and_the_ends_hold_what_is_beyond() {
        let scale = AxisScale::logarithmic(1.0, 100.0, 0.0, 200.0);
        assert!((scale.place(10.0) - 100.0).abs() < 1e-9);
        assert_eq!((scale.place(0.0), scale.place(1e9)), (0.0, 200.0));
        let scale = AxisScale::linear(10.0, 100.0, 0.0);
        assert!((scale.place(2.5) - 75.0).abs() < 1e-9);
    }

    #[test]
    fn marks_are_round_and_neither_few_nor_many() {
        for (low, high) in [(0.001, 0.0012), (0.001, 0.004), (1e-6, 10.0), (0.5, 0.5), (2.0, 2.1)] {
            let marks = AxisScale::logarithmic(low, high, 0.0, 1.0).ticks();
            assert!((2..=12).contains(&marks.len()), "{low} to {high}: {marks:?}");
        }
        for high in [0.3, 1.0, 7.0, 10.0, 12_345.0] {
            let marks = AxisScale::linear(high, 0.0, 1.0).ticks();
            assert!((4..=8).contains(&marks.len()), "{high}: {marks:?}");
        }
    }

    #[test]
    fn nonsense_has_a_scale_too() {
        for (low, high) in [(f64::NAN, f64::NAN), (0.0, 0.0), (-1.0, f64::INFINITY)] {
            let scale = AxisScale::logarithmic(low, high, 0.0, 1.0);
            assert!(scale.place(0.5).is_finite() && !scale.ticks().is_empty(), "{low} {high}");
        }
        assert!(AxisScale::linear(f64::NAN, 0.0, 1.0).place(0.5).is_finite());
    }
}
