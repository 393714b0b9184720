//! The tools of a mailbox, and what is said about them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::config::spec::ToolSpec;
use crate::model::{ToolDefinition, ToolScope};
use crate::providers::engines::choice::{Choice, Limits};
use crate::providers::toolkit::{Chosen, Offer};

/// How many messages one call may receive.
pub(super) const MOST_MESSAGES: u64 = 100;

/// How long one call may wait for a message, in seconds.
pub(super) const MOST_WAIT: u64 = 240;

/// What a call that receives may take when its entry says nothing: its wait, and an engine that is
/// slow to answer.
const RECEIVING: Duration = Duration::from_secs(MOST_WAIT + 20);

/// What a mailbox can do.
pub(super) const OFFERS: &[Offer] = &[
    Offer { name: "send", aliases: &["post"] },
    Offer { name: "receive", aliases: &["take"] },
    Offer { name: "list", aliases: &[] },
];

/// Which tools make up a mailbox, as an enum of [`OFFERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Receive,
    List,
}

impl Operation {
    /// What an offer does.
    pub(super) fn of(offer: &Offer) -> Self {
        match offer.name {
            "send" => Self::Send,
            "receive" => Self::Receive,
            _ => Self::List,
        }
    }
}

/// The whole definition of a tool.
pub(super) fn define(spec: &ToolSpec, tool: &Chosen, choice: &Choice) -> ToolDefinition {
    let operation = Operation::of(tool.offer);
    let mut definition = tool.definition(spec);
    let place = choice.place.kind();
    definition.description.get_or_insert_with(|| match operation {
        Operation::Send => format!(
            "Leaves a message in somebody's mailbox ({place}): a text, or any JSON value as \
             message."
        ),
        Operation::Receive => format!(
            "Takes the oldest messages out of a mailbox ({place}), each for one receiver only. \
             With wait it waits that many seconds for one, with keep the messages stay."
        ),
        Operation::List => format!("Lists the mailboxes that hold messages ({place})."),
    });
    definition.input_schema = Arc::new(input(operation, &choice.limits));
    definition.output_schema = Some(Arc::new(output(operation)));
    let said = &mut definition.annotations;
    said.read_only = Some(operation == Operation::List);
    said.idempotent = Some(operation == Operation::List);
    said.open_world = Some(false);
    definition.repeatable = definition.repeatable && operation == Operation::List;
    if operation == Operation::Receive && definition.timeout.is_none() {
        definition.timeout = Some(RECEIVING);
    }
    definition.touches.push(choice.place.touches(operation != Operation::List));
    if definition.scope == ToolScope::Session {
        definition.touches.push("each session has mailboxes of its own".to_owned());
    }
    definition
}

fn input(operation: Operation, limits: &Limits) -> Value {
    let name = |about: &str| {
        json!({ "type": "string", "minLength": 1, "maxLength": limits.key.min(128),
                "pattern": "^[A-Za-z0-9_.-]+$", "description": about })
    };
    let short = |about: &str| json!({ "type": "string", "maxLength": 256, "description": about });
    let (properties, required) = match operation {
        Operation::Send => (
            json!({
                "to": name("the mailbox"),
                "text": { "type": "string", "maxLength": limits.value, "description": "what to say, as text" },
                "message": { "description": "what to say, as any JSON value" },
                "from": short("who says it"),
                "topic": short("what it is about"),
            }),
            vec!["to"],
        ),
        Operation::Receive => (
            json!({
                "name": name("the mailbox"),
                "limit": { "type": "integer", "minimum": 1, "maximum": MOST_MESSAGES, "default": 1, "description": "the most messages to take" },
                "wait": { "type": "number", "minimum": 0, "maximum": MOST_WAIT, "default": 0, "description": "how many seconds to wait for a message" },
                "keep": { "type": "boolean", "default": false, "description": "leave the messages where they are" },
            }),
            vec!["name"],
        ),
        Operation::List => (json!({}), vec![]),
    };
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn output(operation: Operation) -> Value {
    let text = json!({ "type": "string" });
    let (properties, required) = match operation {
        Operation::Send => (json!({ "id": text, "to": text }), vec!["id", "to"]),
        Operation::Receive => (
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
        Operation::List => (
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
