//! A message, as stored and as handed out.

use serde_json::{Map, Value};

use crate::model::{Error, check_name};
use crate::providers::arguments::Arguments;
use crate::providers::engines::config::EngineLimits;
use crate::util::units::show_size;

pub(super) fn mailbox<'a>(
    arguments: Arguments<'a>,
    argument: &str,
    limits: &EngineLimits,
) -> Result<&'a str, Error> {
    let name = arguments.text(argument)?;
    check_name(name).map_err(|why| Error::usage(format!("'{argument}': {why}")))?;
    if name.len() as u64 > limits.max_key_bytes {
        let most = limits.max_key_bytes;
        return Err(Error::usage(format!("'{argument}' has more than {most} characters")));
    }
    Ok(name)
}

/// The JSON that is kept of a message: its parts, and when it was sent.
pub(super) fn encode_message(
    arguments: Arguments<'_>,
    sent: String,
    limits: &EngineLimits,
) -> Result<String, Error> {
    match (arguments.0.contains_key("text"), arguments.0.contains_key("message")) {
        (true, true) => return Err(Error::usage("'text' and 'message' exclude each other")),
        (false, false) => {
            return Err(Error::usage("there is nothing to send")
                .with_hint("give a 'text', or any JSON value as 'message'"));
        }
        _ => {}
    }
    let mut stored: Map<String, Value> = ["from", "topic", "text", "message"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), arguments.0.get(name)?.clone())))
        .collect();
    stored.insert("sent".to_owned(), sent.into());
    let stored = Value::Object(stored).to_string();
    if stored.len() as u64 > limits.max_value_bytes {
        return Err(Error::usage(format!(
            "the message has {} as JSON; a message can have at most {}",
            show_size(stored.len() as u64),
            show_size(limits.max_value_bytes)
        ))
        .with_hint("'max_value_bytes' of the entry says how long a message may be"));
    }
    Ok(stored)
}

pub(super) fn decode_message(id: &str, mailbox: &str, stored: &str) -> Result<Value, Error> {
    let fields: Map<String, Value> = serde_json::from_str(stored).map_err(|error| {
        Error::protocol(format!("message {id} of the mailbox '{mailbox}' is damaged: {error}"))
    })?;
    let mut message = Map::new();
    message.insert("id".to_owned(), id.into());
    message.insert("to".to_owned(), mailbox.into());
    message.extend(fields);
    Ok(Value::Object(message))
}
