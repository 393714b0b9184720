//! Counts as columns of a table.

use std::collections::BTreeMap;

use crate::stats::count::CallCounts;

/// Adds the columns `ok, failed, attempts, recovered, bytes, durations` of a row, which begin at
/// `at`; `false` when the durations cannot be read.
pub(super) fn add(
    row: &rusqlite::Row<'_>,
    at: usize,
    counts: &mut CallCounts,
) -> rusqlite::Result<bool> {
    counts.ok = counts.ok.saturating_add(unsigned(row.get(at)?));
    let text = row.get_ref(at + 1)?.as_str()?;
    if text != "{}" {
        for (kind, count) in failures(text) {
            counts.add_failures(&kind, count);
        }
    }
    counts.attempts = counts.attempts.saturating_add(unsigned(row.get(at + 2)?));
    counts.recovered = counts.recovered.saturating_add(unsigned(row.get(at + 3)?));
    counts.bytes = counts.bytes.saturating_add(unsigned(row.get(at + 4)?));
    Ok(counts.durations.merge_encoded(row.get_ref(at + 5)?.as_blob()?))
}

pub(super) fn failed(counts: &CallCounts) -> String {
    serde_json::to_string(&counts.unsuccessful()).unwrap_or_else(|_| "{}".to_owned())
}

pub(super) fn failures(text: &str) -> BTreeMap<String, u64> {
    serde_json::from_str(text).unwrap_or_default()
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
