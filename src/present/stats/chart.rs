//! One-line charts: bars and shares.
//!
//! Every character has an ASCII replacement: see `Palette`.

use crate::util::number::{float, float_len};

/// Rising blocks; a missing value is a blank.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The slices of a value, one character each; the highest is the full block. No value is a blank.
pub fn sparkline(values: impl IntoIterator<Item = Option<f64>>) -> String {
    let values: Vec<Option<f64>> = values.into_iter().collect();
    let highest = values.iter().flatten().copied().fold(0.0_f64, f64::max);
    let step = |value: f64| {
        let share = if highest > 0.0 { value / highest } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 8")]
        let step = (share * 8.0).ceil() as usize;
        STEPS.get(step.clamp(1, 8) - 1).copied().unwrap_or(' ')
    };
    values.into_iter().map(|value| value.map_or(' ', step)).collect()
}

/// A bar of at most `cells`; a value above zero gets at least one.
pub fn bar(value: u64, highest: u64, cells: usize) -> String {
    if value == 0 || highest == 0 {
        return String::new();
    }
    let share = float(value) / float(highest);
    let length = share * float_len(cells);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few cells")]
    let length = length.round() as usize;
    "█".repeat(length.clamp(1, cells.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_rises_to_its_highest_value() {
        assert_eq!(sparkline([Some(0.0), Some(1.0), None, Some(4.0), Some(8.0)]), "▁▁ ▄█");
        assert_eq!(sparkline([Some(0.0), None]), "▁ ");
        assert_eq!(sparkline([]), "");
    }

    #[test]
    fn a_bar_is_never_longer_than_its_room_nor_lost() {
        assert_eq!(bar(0, 10, 5), "");
        assert_eq!(bar(1, 1_000, 5), "█");
        assert_eq!(bar(10, 10, 5), "█████");
    }
}
