//! Reading one message of a client.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The longest id that is repeated in a refusal.
const MAX_ID: usize = 1_024;

/// The id of a message that is not parsed otherwise.
pub(super) fn id(text: &str) -> serde_json::Value {
    #[derive(Deserialize)]
    struct MessageId<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let id = serde_json::from_str::<MessageId<'_>>(text).map(|message| message.id.get());
    let id = id.ok().filter(|id| id.len() <= MAX_ID && !id.starts_with(['[', '{']));
    id.and_then(|id| serde_json::from_str(id).ok()).unwrap_or_default()
}
