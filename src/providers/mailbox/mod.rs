//! Mailboxes: an entry becomes the tools `{component}-send`, `-receive` and `-list`, by which
//! agents leave messages for each other.
//!
//! Owns: what a message is (`message`), the table of the tools (`tools`), and what they do
//! (`operations`). Never does: keep a message (see `engines`), or look into one.
//!
//! A message is handed to exactly one receiver, however many receive at the same time, and in the
//! order in which messages were accepted. It is then deleted: a receiver that dies with it loses
//! it (at most once). A mailbox exists while it contains a message and need not be created.

mod message;
mod operations;
#[cfg(test)]
mod tests;
mod tools;

use serde_json::{Value, json};

use crate::config::spec::{KindClaim, KindDescriptor};
use crate::config::typed::Keys;
use crate::provider::{Preview, ProviderKind};
use crate::providers::engines::config::{self, EngineKeys, EngineLimits};
use crate::providers::engines::kind::EngineKind;
use crate::providers::engines::{Quota, provider};
use crate::providers::toolkit::ToolkitKeys;

static MAILBOX: EngineKind = EngineKind {
    noun: "mailbox",
    space: "box",
    defaults: EngineLimits {
        quota: Quota { keys: 1000, bytes: 64 << 20 },
        max_key_bytes: 128,
        max_value_bytes: 256 << 10,
    },
    tools: &tools::TOOLS,
    access: |_, _| None,
    memory_notice: "keeps messages in memory: they are lost when toolhost exits; \
                    'storage_type: disk' keeps them",
    session_note: "each session has its own mailboxes",
    has_aliases: false,
    is_instant_in_memory: false,
    cancelled: None,
    preview: |summary, place, arguments| Preview {
        summary: format!("{summary} {place}"),
        request: json!({
            "operation": summary,
            "mailboxes": place,
            "arguments": Value::Object(arguments.clone()),
        }),
    },
};

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "mailbox",
            aliases: &[],
            keys: const { &[Keys::of::<ToolkitKeys>(), Keys::of::<EngineKeys>()] },
            expand: &config::EXPAND,
            claims: |_, _| KindClaim::No,
            effects: config::effects,
            code: None,
        },
        build: |specs, context| provider::build(&MAILBOX, specs, context),
    }
}
