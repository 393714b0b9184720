//! The tools of a mailbox, and what is said about them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::config::spec::ToolSpec;
use crate::model::{ToolDefinition, ToolScope};
use crate::providers::engines::config::{EngineConfig, EngineLimits};
use crate::providers::toolkit::{SelectedTool, ToolkitTool};

/// How many messages one call may receive.
pub(super) const MAX_MESSAGES: u64 = 100;

/// How long one call may wait for a message, in seconds.
pub(super) const MAX_WAIT_SECONDS: u64 = 240;

/// What a call that receives may take when its entry says nothing: its wait, and an engine that is
/// slow to answer.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(MAX_WAIT_SECONDS + 20);

/// What a mailbox can do.
pub(super) const TOOLS: &[ToolkitTool] = &[
    ToolkitTool { name: "send", aliases: &["post"] },
    ToolkitTool { name: "receive", aliases: &["take"] },
    ToolkitTool { name: "list", aliases: &[] },
];

/// Which tools make up a mailbox, as an enum of [`TOOLS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MailboxOperation {
    Send,
    Receive,
    List,
}

impl MailboxOperation {
    /// What an offer does.
    pub(super) fn of(offer: &ToolkitTool) -> Self {
        match offer.name {
            "send" => Self::Send,
            "receive" => Self::Receive,
            _ => Self::List,
        }
    }
}

/// The whole definition of a tool.
pub(super) fn define(
    spec: &ToolSpec,
    tool: &SelectedTool,
    config: &EngineConfig,
) -> ToolDefinition {
    let operation = MailboxOperation::of(tool.original);
    let mut definition = tool.definition(spec);
    let place = config.location.kind();
    definition.description.get_or_insert_with(|| match operation {
        MailboxOperation::Send => format!(
            "Leaves a message in somebody's mailbox ({place}): a text, or any JSON value as \
             message."
        ),
        MailboxOperation::Receive => format!(
            "Takes the oldest messages out of a mailbox ({place}), each for one receiver only. \
             With wait it waits that many seconds for one, with keep the messages stay."
        ),
        MailboxOperation::List => format!("Lists the mailboxes that hold messages ({place})."),
    });
    definition.input_schema = Arc::new(input(operation, &config.limits));
    definition.output_schema = Some(Arc::new(output(operation)));
    let said = &mut definition.annotations;
    said.read_only = Some(operation == MailboxOperation::List);
    said.idempotent = Some(operation == MailboxOperation::List);
    said.open_world = Some(false);
    definition.is_repeatable = definition.is_repeatable && operation == MailboxOperation::List;
    if operation == MailboxOperation::Receive && definition.timeout.is_none() {
        definition.timeout = Some(RECEIVE_TIMEOUT);
    }
    definition.touches.push(config.location.touches(operation != MailboxOperation::List));
    if definition.scope == ToolScope::Session {
        definition.touches.push("each session has mailboxes of its own".to_owned());
    }
    definition
}

fn input(operation: MailboxOperation, limits: &EngineLimits) -> Value {
    let name = |about: &str| {
        json!({ "type": "string", "minLength": 1, "maxLength": limits.max_key_bytes.min(128),
                "pattern": "^[A-Za-z0-9_.-]+$", "description": about })
    };
    let short = |about: &str| json!({ "type": "string", "maxLength": 256, "description": about });
    let (properties, required) = match operation {
        MailboxOperation::Send => (
            json!({
                "to": name("the mailbox"),
                "text": { "type": "string", "maxLength": limits.max_value_bytes, "description": "what to say, as text" },
                "message": { "description": "what to say, as any JSON value" },
                "from": short("who says it"),
                "topic": short("what it is about"),
            }),
            vec!["to"],
        ),
        MailboxOperation::Receive => (
            json!({
                "name": name("the mailbox"),
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_MESSAGES, "default": 1, "description": "the most messages to take" },
                "wait": { "type": "number", "minimum": 0, "maximum": MAX_WAIT_SECONDS, "default": 0, "description": "how many seconds to wait for a message" },
                "keep": { "type": "boolean", "default": false, "description": "leave the messages where they are" },
            }),
            vec!["name"],
        ),
        MailboxOperation::List => (json!({}), vec![]),
    };
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn output(operation: MailboxOperation) -> Value {
    let text = json!({ "type": "string" });
    let (properties, required) = match operation {
        MailboxOperation::Send => (json!({ "id": text, "to": text }), vec!["id", "to"]),
        MailboxOperation::Receive => (
            json!({ "messages": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "id": text, "to": text, "from": text, "topic": text, "text": text, "message": {},
                    "sent": { "type": "string", "description": "the sender's time, RFC 3339" },
                },
                "required": ["id", "to", "sent"],
            } } }),
            vec!["messages"],
        ),
        MailboxOperation::List => (
            json!({
                "mailboxes": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "name": text, "messages": { "type": "integer" } },
                    "required": ["name", "messages"],
                } },
                "more": { "type": "boolean", "description": "whether there are more than are listed" },
            }),
            vec!["mailboxes", "more"],
        ),
    };
    json!({ "type": "object", "properties": properties, "required": required })
}
