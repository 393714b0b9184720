//! What a background host says to a front end.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::connection::MessageParts;
use super::protocol::{self, Payload, SentObservation};
use crate::host::link::{LinkError, Observation};
use crate::model::{CallId, Error, HostEvent, LogLevel};

pub(super) enum HostMessage {
    Answer(u64, Result<String, LinkError>),
    Ended,
    Request(Value, Value),
    /// How far the request is, or what was logged for it.
    Event(HostEvent),
    Observed(Vec<Observation>),
}

impl HostMessage {
    /// Reads a line during the request for `call`; `None` for one that says nothing to a front end.
    pub(super) fn read(line: &str, call: Option<&CallId>) -> Option<Self> {
        let parts = MessageParts::read(line)?;
        let number = parts.number();
        let MessageParts { id, method, params, result, error } = parts;
        if let (Some(_), None) = (id, &method) {
            let answer = match error {
                Some(error) if code(&error) == Some(protocol::ENDED) => return Some(Self::Ended),
                Some(error) => Err(refusal(&error)),
                None => Ok(result.map_or("null", RawValue::get).to_owned()),
            };
            return Some(Self::Answer(number?, answer));
        }
        let (method, params) = (method?, params.map_or("null", RawValue::get));
        if method == protocol::OBSERVED {
            let Payload { payload: lines } =
                serde_json::from_str::<Payload<String>>(params).ok()?;
            return Some(Self::Observed(SentObservation::read(&lines)));
        }
        let params: Value = serde_json::from_str(params).ok()?;
        let number = |key: &str| params.get(key).and_then(Value::as_f64);
        let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
        match (id, &*method) {
            (Some(id), _) => Some(Self::Request(serde_json::from_str(id.get()).ok()?, params)),
            (None, "notifications/progress") => Some(Self::Event(HostEvent::Progress {
                call_id: call.cloned().unwrap_or_else(|| CallId(String::new())),
                progress: number("progress")?,
                total: number("total"),
                message: text("message"),
            })),
            (None, "notifications/message") => Some(Self::Event(HostEvent::Log {
                origin: text("logger")?,
                call_id: call.cloned(),
                level: LogLevel(text("level")?),
                text: text("data")?,
            })),
            _ => None,
        }
    }
}

fn code(error: &Value) -> Option<i32> {
    error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok())
}

/// What an error of the protocol means: the host either ends, or refused.
fn refusal(error: &Value) -> LinkError {
    if code(error) == Some(protocol::NOT_BEGUN) {
        return LinkError::Unsent;
    }
    let reason = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
    LinkError::Lost(
        Error::unreachable(format!("the background host refused: {reason}"))
            .with_hint("--fresh runs without it"),
    )
}

pub(super) fn read<T: DeserializeOwned>(json: &str) -> Result<T, LinkError> {
    serde_json::from_str(json).map_err(|error| {
        LinkError::Lost(Error::protocol(format!(
            "the background host's response is invalid: {error}"
        )))
    })
}
