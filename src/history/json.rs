//! Calls of the past as JSON, in the documented shape.

use serde_json::{Value, json};

use super::HistoryEntry;
use crate::util::timestamp::rfc3339;

/// A call without its result.
pub fn summary(entry: &HistoryEntry) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "2^53 microseconds are 285 years")]
    let millis = entry.duration_us as f64 / 1000.0;
    json!({
        "id": entry.id,
        "time": rfc3339(entry.unix),
        "unix": entry.unix,
        "tool": entry.tool,
        "server": entry.server,
        "source": entry.source,
        "session": entry.session,
        "parent": entry.parent,
        "protocol": entry.protocol,
        "fingerprint": entry.fingerprint,
        "decision": entry.decision,
        "success": entry.error.is_none(),
        "error": entry.error,
        "duration_ms": millis,
        "attempts": entry.attempts,
        "arguments": entry.arguments,
        "bytes": entry.result.as_ref().map(|result| result.bytes),
        "kinds": entry.result.as_ref().map(|result| &result.kinds),
    })
}

/// A call with its result.
pub fn full(entry: &HistoryEntry) -> Value {
    let mut value = summary(entry);
    if let Some(fields) = value.as_object_mut() {
        let result = entry.result.as_ref();
        fields.insert("output".to_owned(), json!(result.map(|result| &result.output)));
        fields.insert("cut".to_owned(), json!(result.is_some_and(|result| result.cut)));
    }
    value
}
