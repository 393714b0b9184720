//! Mailboxes: an entry becomes the tools `{component}-send`, `-receive` and `-list`, by which
//! agents leave messages for each other.
//!
//! Owns: what a message is (`message`), the table of the tools, and what they do (`operations`). Never does: keep a message (see `engines`), or look into one.
//!
//! A message is handed to exactly one receiver, however many receive at the same time, and in the
//! order in which messages were accepted. It is then deleted: a receiver that dies with it loses
//! it (at most once). A mailbox exists while it contains a message and need not be created.

use std::time::Duration;

use serde_json::{Value, json};

use super::engines::Quota;
use super::engines::config::{self, EngineKeys, EngineLimits};
use super::engines::kind::{self, EngineKind, EngineTool, StoreEffect};
use super::toolkit::{ToolkitKeys, ToolkitTool};
use crate::config::spec::{KindClaim, KindDescriptor};
use crate::config::typed::Keys;
use crate::provider::{Preview, ProviderKind};
use operations::{MAX_MESSAGES, MAX_WAIT_SECONDS};

mod message;
mod operations;
#[cfg(test)]
mod tests;

static MAILBOX: EngineKind = EngineKind {
    noun: "mailbox",
    space: "box",
    defaults: EngineLimits {
        quota: Quota { keys: 1000, bytes: 64 << 20 },
        max_key_bytes: 128,
        max_value_bytes: 256 << 10,
    },
    tools: &TOOLS,
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
        build: |specs, context| kind::build(&MAILBOX, specs, context),
    }
}

/// What a call that receives may take when its entry says nothing: its wait, and an engine that is
/// slow to answer.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(MAX_WAIT_SECONDS + 20);

static TOOLS: [EngineTool; 3] = [
    EngineTool {
        tool: ToolkitTool { name: "send", aliases: &["post"] },
        is_default: true,
        effect: StoreEffect::Keeps,
        is_idempotent: false,
        timeout: None,
        description: |_, sort| {
            format!(
                "Puts a message into a mailbox ({sort}): a text, or any JSON value as \
                 message."
            )
        },
        input: |limits| {
            let properties = json!({
                "to": mailbox_name(limits),
                "text": { "type": "string", "maxLength": limits.max_value_bytes, "description": "the message as text" },
                "message": { "description": "the message as any JSON value" },
                "from": short_text("the sender"),
                "topic": short_text("the subject"),
            });
            (properties, &["to"])
        },
        output: || json!({ "id": text_schema(), "to": text_schema() }),
        summary: |_| "puts a message into a mailbox",
        run: |call| Box::pin(operations::send(call)),
    },
    EngineTool {
        tool: ToolkitTool { name: "receive", aliases: &["take"] },
        is_default: true,
        effect: StoreEffect::Takes,
        is_idempotent: false,
        timeout: Some(RECEIVE_TIMEOUT),
        description: |_, sort| {
            format!(
                "Takes the oldest messages out of a mailbox ({sort}); each goes to one receiver only. \
                 wait sets how many seconds to wait for a message; keep leaves them in the mailbox."
            )
        },
        input: |limits| {
            let properties = json!({
                "name": mailbox_name(limits),
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_MESSAGES, "default": 1, "description": "maximum number of messages to take" },
                "wait": { "type": "number", "minimum": 0, "maximum": MAX_WAIT_SECONDS, "default": 0, "description": "how many seconds to wait for a message" },
                "keep": { "type": "boolean", "default": false, "description": "leave the messages in the mailbox" },
            });
            (properties, &["name"])
        },
        output: || {
            let text = text_schema();
            json!({ "messages": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "id": text, "to": text, "from": text, "topic": text, "text": text, "message": {},
                    "sent": { "type": "string", "description": "the sender's time, RFC 3339" },
                },
                "required": ["id", "to", "sent"],
            } } })
        },
        summary: |arguments| {
            if arguments.get("keep").and_then(Value::as_bool).unwrap_or_default() {
                "reads messages of a mailbox"
            } else {
                "takes messages out of a mailbox"
            }
        },
        run: |call| Box::pin(operations::receive(call)),
    },
    EngineTool {
        tool: ToolkitTool { name: "list", aliases: &[] },
        is_default: true,
        effect: StoreEffect::Lists,
        is_idempotent: true,
        timeout: None,
        description: |_, sort| format!("Lists the mailboxes that contain messages ({sort})."),
        input: |_| (json!({}), &[]),
        output: || {
            json!({
                "mailboxes": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "name": text_schema(), "messages": { "type": "integer" } },
                    "required": ["name", "messages"],
                } },
                "more": { "type": "boolean", "description": "whether there are more than those listed" },
            })
        },
        summary: |_| "lists the mailboxes",
        run: |call| Box::pin(operations::list(call)),
    },
];

fn mailbox_name(limits: &EngineLimits) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": limits.max_key_bytes.min(128),
            "pattern": "^[A-Za-z0-9_.-]+$", "description": "the mailbox" })
}

fn short_text(about: &str) -> Value {
    json!({ "type": "string", "maxLength": 256, "description": about })
}

fn text_schema() -> Value {
    json!({ "type": "string" })
}
