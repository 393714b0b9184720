//! A message, as it is kept and as it is handed out.

use serde_json::{Map, Value};

use crate::model::{Fault, JsonObject, check_name};
use crate::providers::engines::choice::Limits;
use crate::util::units::show_size;

/// The name of a mailbox in an argument.
///
/// # Errors
/// A usage fault when it cannot be one.
pub(super) fn mailbox<'a>(
    arguments: &'a JsonObject,
    argument: &str,
    limits: &Limits,
) -> Result<&'a str, Fault> {
    let name = arguments
        .get(argument)
        .and_then(Value::as_str)
        .ok_or_else(|| Fault::usage(format!("'{argument}' has to be the name of a mailbox")))?;
    check_name(name).map_err(|why| Fault::usage(format!("'{argument}': {why}")))?;
    if name.len() as u64 > limits.key {
        let most = limits.key;
        return Err(Fault::usage(format!("'{argument}' has more than {most} characters")));
    }
    Ok(name)
}

/// What is kept of a message: what the sender said, and when.
///
/// # Errors
/// A usage fault when it says nothing, says it twice, or is too long.
pub(super) fn letter(
    arguments: &JsonObject,
    sent: String,
    limits: &Limits,
) -> Result<String, Fault> {
    match (arguments.contains_key("text"), arguments.contains_key("message")) {
        (true, true) => return Err(Fault::usage("'text' and 'message' exclude each other")),
        (false, false) => {
            return Err(Fault::usage("there is nothing to send")
                .hint("give a 'text', or any JSON value as 'message'"));
        }
        _ => {}
    }
    let mut letter: Map<String, Value> = ["from", "topic", "text", "message"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), arguments.get(name)?.clone())))
        .collect();
    letter.insert("sent".to_owned(), sent.into());
    let letter = Value::Object(letter).to_string();
    if letter.len() as u64 > limits.value {
        return Err(Fault::usage(format!(
            "the message has {} as JSON; a message here has at most {}",
            show_size(letter.len() as u64),
            show_size(limits.value)
        ))
        .hint("'max_value_bytes' of the entry says how long a message may be"));
    }
    Ok(letter)
}

/// A kept message for its receiver.
///
/// # Errors
/// A protocol fault when it is no message.
pub(super) fn handed_out(id: &str, mailbox: &str, letter: &str) -> Result<Value, Fault> {
    let kept: Map<String, Value> = serde_json::from_str(letter).map_err(|error| {
        Fault::protocol(format!("message {id} of the mailbox '{mailbox}' is damaged: {error}"))
    })?;
    let mut message = Map::new();
    message.insert("id".to_owned(), id.into());
    message.insert("to".to_owned(), mailbox.into());
    message.extend(kept);
    Ok(Value::Object(message))
}
