//! The selection and scroll position of a list.

use strum::VariantArray;

use crate::tui::keys::Action;
use crate::util::units::show_count;

/// How many lines an action goes on where a page has so many; `None` when it is about something
/// else. One line of a page is seen on the next one again.
pub fn action_step(action: Action, page: usize) -> Option<isize> {
    let page = isize::try_from(page.saturating_sub(1).max(1)).unwrap_or(isize::MAX);
    Some(match action {
        Action::Down => 1,
        Action::Up => -1,
        Action::PageDown => page,
        Action::PageUp => -page,
        Action::Top => isize::MIN,
        Action::Bottom => isize::MAX,
        _ => return None,
    })
}

/// So many on from this one of so many; round at the ends.
pub fn step_around(at: usize, by: isize, length: usize) -> usize {
    let length = isize::try_from(length.max(1)).unwrap_or(1);
    let at = isize::try_from(at).unwrap_or(0) + by;
    usize::try_from(at.rem_euclid(length)).unwrap_or(0)
}

/// The names of all of these, and which is the current one.
pub fn tabs<T: VariantArray + Copy + PartialEq + Into<&'static str>>(
    current: T,
) -> Vec<(&'static str, bool)> {
    T::VARIANTS.iter().map(|one| ((*one).into(), *one == current)).collect()
}

/// How many of a list are shown, and of how many where that is less.
pub fn shown_of(shown: usize, all: usize) -> String {
    let all = if all == shown { String::new() } else { format!("/{}", show_count(all)) };
    format!("{}{all}", show_count(shown))
}

/// The one after this; the last leads to the first.
pub fn after<T: Copy + PartialEq>(all: &[T], current: T) -> T {
    let at = all.iter().position(|one| *one == current);
    all[at.map_or(0, |at| (at + 1) % all.len())]
}

/// Which line is chosen, and which is the first that is seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListCursor {
    chosen: usize,
}

impl ListCursor {
    /// The number of the chosen line, from 0.
    pub fn chosen(self) -> usize {
        self.chosen
    }

    pub fn choose(&mut self, line: usize, length: usize) {
        self.chosen = line.min(length.saturating_sub(1));
    }

    /// Moves by this many lines; negative moves up.
    pub fn step(&mut self, by: isize, length: usize) {
        self.choose(self.chosen.saturating_add_signed(by), length);
    }

    /// The first line that is seen in a window of this height: the chosen line stands in its middle
    /// where there is enough on both sides.
    pub fn first(self, height: usize, length: usize) -> usize {
        let last = length.saturating_sub(height);
        self.chosen.saturating_sub(height / 2).min(last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_chosen_line_is_always_seen(chosen in 0..300_usize, height in 1..50_usize, length in 1..200_usize) {
            let mut list = ListCursor::default();
            list.choose(chosen, length);
            let first = list.first(height, length);
            prop_assert!(first <= list.chosen() && list.chosen() < first + height);
            prop_assert!(list.chosen() < length);
        }
    }
}
