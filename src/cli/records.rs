//! Shared code of the commands over records: parsing times, short ids, notes about damaged lines.

use super::output::Output;
use crate::present::plural;
pub use crate::util::timestamp::{Since, local_time, parse_since, rfc3339};

pub fn warn_unreadable_lines(output: &Output, lines: usize, path: &std::path::Path) {
    if lines > 0 {
        let count = plural(lines, "unreadable line", "unreadable lines");
        output.warn(&format!("skipped {count} of {}", path.display()));
    }
}
