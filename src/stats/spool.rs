//! The statistics spool: one compact JSON line for each call, appended by whoever makes it.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{CallPlace, CallRecord, RecordedOutcome};
use crate::util::append::RecordLocation;
use crate::util::segments::SegmentRetention;

pub const FILE: &str = "stats.spool";

/// At most two million calls, because whoever asks for statistics reads them all; in files of some
/// 7,000, because a listing reads the newest two.
pub fn segment_retention(age: Duration) -> SegmentRetention {
    SegmentRetention { max_segment_bytes: 1 << 20, max_total_bytes: 256 << 20, max_age: age }
}

/// Where the spool is when a person named `path`: beside it, under the ending `.spool`.
pub fn named(path: &Path) -> RecordLocation {
    RecordLocation::named(path.with_extension("spool"))
}

/// One line of the spool: a call that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolRow {
    /// When it ended: milliseconds since the Unix epoch.
    #[serde(rename = "t")]
    pub ended_at_ms: u64,
    /// The call's identity, by which readers tell repeated lines.
    pub id: String,
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(flatten)]
    pub place: CallPlace,
    /// `ok`, or the word of the failure's kind (`tool`, `timeout`, …).
    #[serde(rename = "k")]
    pub outcome: String,
    #[serde(rename = "us")]
    pub duration_us: u64,
    /// Attempts made, at least 1: trying to start a server is one.
    #[serde(rename = "n")]
    pub attempts: u32,
    #[serde(rename = "b")]
    pub bytes: u64,
}

impl SpoolRow {
    /// The row of a call that ended at `now`, the time since the Unix epoch.
    pub fn new(
        now: Duration,
        call: &CallRecord,
        place: CallPlace,
        outcome: &RecordedOutcome,
    ) -> Self {
        Self {
            place,
            ended_at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            id: call.id.0.to_string(),
            tool: call.tool.clone(),
            server: call.server.clone(),
            outcome: outcome.word().to_owned(),
            duration_us: outcome.micros(),
            attempts: outcome.attempts.max(1),
            bytes: outcome.result_bytes,
        }
    }

    pub fn line(&self) -> String {
        // A struct of texts and numbers is always JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads one line; `None` for a torn or foreign one.
    pub fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.duration_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_as_it_was() {
        let row = SpoolRow {
            ended_at_ms: 1_700_000_000_123,
            id: "id-1".into(),
            tool: "notes-read".into(),
            server: None,
            place: CallPlace { project: Some("/p".into()), program: Some("a1".into()) },
            outcome: "ok".into(),
            duration_us: 1_250,
            attempts: 1,
            bytes: 42,
        };
        let line = row.line();
        insta::assert_snapshot!(line, @r#"{"t":1700000000123,"id":"id-1","tool":"notes-read","project":"/p","program":"a1","k":"ok","us":1250,"n":1,"b":42}"#);
        assert_eq!(SpoolRow::parse(line.as_bytes()), Some(row));
        assert_eq!(SpoolRow::parse(b"{\"t\":17"), None);
    }
}
