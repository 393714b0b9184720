//! Counts as text: numbers with singular and plural nouns.

use crate::util::units::show_count;

/// `1 tool`, `2 tools`, `2,000 tools`.
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", show_count(count as u64), if count == 1 { one } else { many })
}
