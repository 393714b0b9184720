//! JSON-RPC messages: the one place where they are taken apart, and where they are written.
//!
//! Of what comes only the envelope is looked at; `params`, `result` and `error` stay the bytes they
//! were, so that they can be shown exactly, parsed item by item, and refused when they nest too deep.
//!
//! JSON-RPC error codes that this crate sends or acts on.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::json_text::{
    is_depth_error, not_json, parse, replace_lone_surrogates, too_deep, too_deep_error, too_many,
};
use super::page::BoundedList;
use super::wire::{FrameKind, OutgoingFrame};
use crate::model::{Error, JsonObject};
use crate::util::text::truncate;

/// How many messages may come as one line or one body. No supported revision sends more than one.
const MAX_BATCH: usize = 1_000;

#[derive(Debug, Clone)]
pub enum RpcMessage {
    /// The answer to a request, or its refusal.
    Response {
        id: Value,
        /// The `result`, or what is wrong with the answer, or the server's error.
        outcome: RequestOutcome,
    },
    Request {
        id: Value,
        /// The method, empty when it is no text.
        method: String,
        params: Option<RawJson>,
    },
    Notification {
        /// The method, empty when it is no text.
        method: String,
        params: Option<RawJson>,
    },
}

#[derive(Debug, Clone)]
pub struct RawJson(pub Box<RawValue>);

impl RawJson {
    fn copied(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }

    pub fn get(&self) -> &str {
        self.0.get()
    }

    pub fn holds_too_many_values(&self) -> bool {
        too_many(self.get())
    }

    pub fn parse(&self) -> Result<Value, Error> {
        parse(self.get())
    }
}

/// A line, body or event as it came, and what it holds: read once, where it arrives.
#[derive(Debug, Clone)]
pub struct Incoming {
    pub bytes: Bytes,
    pub input: ParsedInput,
}

impl Incoming {
    pub fn read(bytes: Bytes) -> Self {
        Self { input: read(&bytes), bytes }
    }

    pub fn messages(&self) -> &[RpcMessage] {
        match &self.input {
            ParsedInput::Messages(messages, _) => messages,
            _ => &[],
        }
    }

    /// The answers among its messages, with the ids of their requests.
    pub fn answers(&self) -> impl Iterator<Item = (&Value, &RequestOutcome)> {
        self.messages().iter().filter_map(|message| match message {
            RpcMessage::Response { id, outcome } => Some((id, outcome)),
            _ => None,
        })
    }
}

/// What an answer carries: its result, or why there is none.
pub type RequestOutcome = Result<RawJson, Error>;

#[derive(Debug, Clone)]
pub enum ParsedInput {
    Messages(Vec<RpcMessage>, Vec<String>),
    /// Not a message, and harmless: the beginning of its text.
    NonMessage(String),
    /// Begins like a message, but its JSON cannot be read. Where a line end is all that separates
    /// messages, nothing after it can be trusted; where the transport says what a message is, the
    /// next one can.
    Unreadable(Error),
    /// A message that breaks a limit; nothing more is read.
    Broken(Error),
}

pub fn read(bytes: &Bytes) -> ParsedInput {
    let mut warnings = Vec::new();
    let lossy = String::from_utf8_lossy(bytes);
    if matches!(lossy, Cow::Owned(_)) {
        warnings
            .push("a message is not valid UTF-8; the bad bytes are shown as \u{fffd}".to_owned());
    }
    let repaired = replace_lone_surrogates(&lossy);
    if matches!(repaired, Cow::Owned(_)) {
        warnings.push("a string contains half of a surrogate pair; shown as \u{fffd}".to_owned());
    }
    let (text, nul) = without_nul(repaired.trim_start_matches('\u{feff}'));
    if nul {
        warnings.push("raw NUL bytes between messages were ignored".to_owned());
    }
    if text.is_empty() {
        return ParsedInput::Messages(Vec::new(), warnings);
    }
    if !text.starts_with(['{', '[']) {
        return not_a_message(text);
    }
    if text.starts_with('[') {
        return read_batch(text, warnings);
    }
    match read_objects(text, &mut warnings) {
        Ok(messages) if messages.len() > MAX_BATCH => batch_too_large(),
        Ok(messages) => ParsedInput::Messages(messages, warnings),
        Err(cause) if cause.is_eof() && nul => {
            let error = Error::protocol("a message contains a raw NUL byte");
            ParsedInput::Unreadable(error.with_detail(truncate(text, 200)))
        }
        Err(cause) => broken_object(&cause, text),
    }
}

/// A text without the NUL bytes and the white space around it, and whether there were any of the
/// former. JSON never holds a raw NUL.
fn without_nul(text: &str) -> (&str, bool) {
    let bare = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    (bare, bare.len() < text.trim().len())
}

/// The same of bytes, for a look at a message that is not read yet.
pub fn trim_bytes(bytes: &[u8]) -> &[u8] {
    let outside = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
    let from = bytes.iter().position(|byte| !outside(byte)).unwrap_or(bytes.len());
    let to = bytes.iter().rposition(|byte| !outside(byte)).map_or(from, |last| last + 1);
    bytes.get(from..to).unwrap_or_default()
}

/// Whether something unreadable was meant to be a message: it names the protocol.
pub fn mentions_jsonrpc(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\"jsonrpc\"").is_some()
}

fn batch_too_large() -> ParsedInput {
    ParsedInput::Broken(Error::protocol(format!(
        "limit: more than {MAX_BATCH} messages arrived at once"
    )))
}

fn not_a_message(text: &str) -> ParsedInput {
    if text.get(..15).is_some_and(|head| head.eq_ignore_ascii_case("content-length:")) {
        return ParsedInput::Unreadable(
            Error::protocol(
                "the server frames its messages with Content-Length headers, as LSP does",
            )
            .with_hint("MCP over stdio sends one JSON message per line"),
        );
    }
    ParsedInput::NonMessage(truncate(text, 200))
}

fn read_batch(text: &str, mut warnings: Vec<String>) -> ParsedInput {
    match serde_json::from_str::<BoundedList<&RawValue, MAX_BATCH>>(text) {
        Ok(items) if items.skipped > 0 => batch_too_large(),
        Ok(items) => {
            let text = "messages arrived as a batch array, which no supported revision allows";
            warnings.push(text.to_owned());
            let mut messages = Vec::new();
            for item in items.items {
                match read_objects(item.get(), &mut warnings) {
                    Ok(more) => messages.extend(more),
                    Err(error) => return broken_object(&error, item.get()),
                }
            }
            ParsedInput::Messages(messages, warnings)
        }
        // `[info] listening …` is a log line, not a broken batch.
        Err(_) => ParsedInput::NonMessage(truncate(text, 200)),
    }
}

fn read_objects(text: &str, warnings: &mut Vec<String>) -> serde_json::Result<Vec<RpcMessage>> {
    let message = |text: &str, envelope: Envelope<'_>, warnings: &mut Vec<_>| {
        let message = envelope.classify(warnings);
        if too_deep(text) { message.too_deep_response() } else { message }
    };
    // Nearly always it is one, which is read once.
    if let Ok(envelope) = Envelope::read(text) {
        return Ok(vec![message(text, envelope, warnings)]);
    }
    let mut messages = Vec::new();
    let items = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    for item in items.take(MAX_BATCH + 1) {
        let item = item?.get();
        messages.push(message(item, Envelope::read(item)?, warnings));
    }
    if messages.len() > 1 {
        warnings.push(format!("{} messages arrived on one line", messages.len()));
    }
    Ok(messages)
}

impl RpcMessage {
    pub fn params(&self) -> Option<&RawJson> {
        match self {
            Self::Request { params, .. } | Self::Notification { params, .. } => params.as_ref(),
            Self::Response { .. } => None,
        }
    }

    /// Roughly how many bytes it holds.
    pub fn size(&self) -> usize {
        let raw = |raw: Option<&RawJson>| raw.map_or(0, |raw| raw.get().len());
        let name = |id: &Value| id.as_str().map_or(0, str::len);
        match self {
            Self::Response { id, outcome } => name(id) + raw(outcome.as_ref().ok()),
            Self::Request { id, method, .. } => name(id) + method.len() + raw(self.params()),
            Self::Notification { method, .. } => method.len() + raw(self.params()),
        }
    }

    /// An answer that is too deep is an answer still: its request ends at once.
    fn too_deep_response(self) -> Self {
        match self {
            Self::Response { id, .. } => Self::Response { id, outcome: Err(too_deep_error()) },
            other => other,
        }
    }
}

fn broken_object(error: &serde_json::Error, text: &str) -> ParsedInput {
    // `{info} listening …` is a log line; the beginning of a message is `{`, or `{"`.
    let inside = text.trim_start_matches('{').trim_start();
    if !inside.is_empty() && !inside.starts_with('"') {
        return ParsedInput::NonMessage(truncate(text, 200));
    }
    if error.is_eof() {
        return ParsedInput::Unreadable(
            Error::protocol("a message spans lines or was cut: the line ends inside its JSON")
                .with_detail(truncate(text, 200))
                .with_hint(
                    "MCP over stdio sends one JSON message per line, without line breaks inside",
                ),
        );
    }
    if is_depth_error(error, text) {
        return ParsedInput::Broken(too_deep_error());
    }
    ParsedInput::Unreadable(not_json(error, text))
}

/// The warning about something that is not a message: a line of stdout, or an event (`delimited`).
pub fn non_message(text: &str, delimited: bool) -> String {
    let what = if delimited { "an event is not JSON" } else { "non-protocol line on stdout" };
    format!("{what}: {text}")
}

/// The warning about an event that begins like a message and cannot be read. Hints of the error are
/// about lines, and are left out.
pub fn unreadable_message(error: &Error) -> String {
    let quote = error.details().first().map(|text| format!(": {text}"));
    format!("an event is not JSON{}", quote.unwrap_or_default())
}

/// The members of a JSON-RPC object, each still text.
#[derive(Default)]
pub struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    pub id: Option<Value>,
    pub method: Option<Value>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    duplicate_keys: Vec<&'static str>,
}

/// The name of a member, compared in place.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum EnvelopeKey {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl<'a> Envelope<'a> {
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Envelope<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
                let mut e = Envelope::default();
                while let Some(key) = map.next_key()? {
                    match key {
                        EnvelopeKey::Jsonrpc => e.jsonrpc = Some(map.next_value()?),
                        EnvelopeKey::Id => e.take_id(map.next_value::<&RawValue>()?.get()),
                        EnvelopeKey::Method => e.method = Some(map.next_value()?),
                        EnvelopeKey::Params => e.params = Some(map.next_value()?),
                        EnvelopeKey::Result => {
                            if e.result.replace(map.next_value()?).is_some() {
                                e.note_duplicate_key("result");
                            }
                        }
                        EnvelopeKey::Error => e.error = Some(map.next_value()?),
                        EnvelopeKey::Other => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(e)
            }
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let envelope = deserializer.deserialize_map(Members)?;
        deserializer.end()?;
        Ok(envelope)
    }

    /// The last of several ids counts, as in most readers of JSON; that there were several is a
    /// warning.
    fn take_id(&mut self, text: &str) {
        if self.id.replace(read_id(text)).is_some() {
            self.note_duplicate_key("id");
        }
    }

    fn note_duplicate_key(&mut self, key: &'static str) {
        if !self.duplicate_keys.contains(&key) {
            self.duplicate_keys.push(key);
        }
    }
}

/// The value of an id. One that nests too deep is invalid, as `null` is.
fn read_id(text: &str) -> Value {
    match text.parse::<i64>() {
        Ok(number) => number.into(),
        Err(_) => serde_json::from_str(text).unwrap_or(Value::Null),
    }
}

impl Envelope<'_> {
    fn classify(self, warnings: &mut Vec<String>) -> RpcMessage {
        let duplicates = self.duplicate_keys.iter();
        warnings.extend(
            duplicates
                .map(|key| format!("a message has the key \"{key}\" twice; the last one counts")),
        );
        let version = self.check_version();
        if let Some(method) = &self.method {
            let method = method.as_str().unwrap_or_default().to_owned();
            warnings.extend(version.err().map(|error| error.message().to_owned()));
            let params = self.params.map(RawJson::copied);
            return match self.id {
                Some(id) if !id.is_null() => RpcMessage::Request { id, method, params },
                _ => RpcMessage::Notification { method, params },
            };
        }
        let outcome = version.and_then(|()| match (self.result, self.error) {
            (Some(_), Some(cause)) => Err(Error::protocol("an answer has both result and error")
                .with_detail(format!("error: {}", truncate(cause.get(), 200)))),
            (Some(result), None) => Ok(RawJson::copied(result)),
            (None, Some(cause)) => Err(server_error(cause.get())),
            (None, None) => Err(Error::protocol("an answer has neither result nor error")),
        });
        RpcMessage::Response { id: self.id.unwrap_or(Value::Null), outcome }
    }

    fn check_version(&self) -> Result<(), Error> {
        match self.jsonrpc.map(RawValue::get) {
            Some("\"2.0\"") => Ok(()),
            Some(other) => {
                let other = truncate(other, 40);
                Err(Error::protocol(format!("\"jsonrpc\" is {other}, not \"2.0\"")))
            }
            None => Err(Error::protocol("the message has no \"jsonrpc\": \"2.0\"")),
        }
    }
}

/// A JSON-RPC error as an error: of kind tool when it is well formed, protocol when it is not.
fn server_error(text: &str) -> Error {
    let value = match parse(text) {
        Ok(value) => value,
        Err(error) => return error,
    };
    let code = value.get("code").and_then(Value::as_i64);
    let message = value.get("message").and_then(Value::as_str);
    let (Some(code), Some(message)) = (code, message) else {
        return Error::protocol(
            "the error in a response is malformed: it needs an integer code and a string message",
        )
        .with_detail(format!("error: {}", truncate(text, 200)));
    };
    Error::tool(format!("error {code}: {message}")).with_rpc_error(code, value.get("data"))
}

impl OutgoingFrame {
    pub fn request(id: i64, method: &str, params: &JsonObject) -> Self {
        let name = subject(method, params);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let (id, method) = (id.into(), method.to_owned());
        let kind = FrameKind::Request { id, method, name, headers: Vec::new() };
        Self { bytes: message.to_string().into(), kind, call: None }
    }

    pub fn notification(method: &str, params: Option<Value>) -> Self {
        let cancels = params.as_ref().and_then(|params| cancelled_request(method, params));
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if let Some(params) = params {
            message["params"] = params;
        }
        let kind = FrameKind::Notification { method: method.to_owned(), cancels };
        Self { bytes: message.to_string().into(), kind, call: None }
    }

    /// An answer to a request of the server: its result, or the code and message of a refusal.
    pub fn response(id: Value, outcome: Result<Value, (i64, String)>) -> Self {
        let is_error = outcome.is_err();
        let message = match outcome {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, message)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
        };
        let kind = FrameKind::Response { id, is_error };
        Self { bytes: message.to_string().into(), kind, call: None }
    }
}

/// The thing that a request is about (`Mcp-Name`).
pub fn subject(method: &str, params: &JsonObject) -> Option<String> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params.get(key)?.as_str().map(str::to_owned)
}

/// The id of the request that a notification cancels.
pub fn cancelled_request(method: &str, params: &Value) -> Option<Value> {
    let id = params.get("requestId").filter(|_| method == "notifications/cancelled");
    id.cloned()
}

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
/// The peer does not know the method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are not what the method takes.
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
/// The HTTP headers of a request are not those of its body (revision 2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that we did not declare; `data.requiredCapabilities` names it.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The version of the request is not spoken; `data.supported` lists those that are.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// Pages have to be visited before the request can be answered (revision 2025-11-25);
/// `data.elicitations` names them.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mcp::json_text::VALUES_LIMIT;
    use crate::model::ErrorKind;

    fn one(text: &str) -> RpcMessage {
        match read(&Bytes::copy_from_slice(text.as_bytes())) {
            ParsedInput::Messages(mut messages, _) if messages.len() == 1 => messages.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn answer_error(text: &str) -> Error {
        match one(text) {
            RpcMessage::Response { outcome: Err(error), .. } => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_keeps_its_exact_text() {
        let RpcMessage::Response { id, outcome: Ok(raw) } =
            one(r#"{"jsonrpc":"2.0","id":7,"result":{"n":1180591620717411303424,"x":1e400}}"#)
        else {
            panic!("no answer")
        };
        assert_eq!(id, 7);
        assert_eq!(raw.get(), r#"{"n":1180591620717411303424,"x":1e400}"#);
    }

    #[test]
    fn answers_that_break_the_rules_are_named() {
        for (text, expected) in [
            (r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, "\"jsonrpc\" is \"1.0\""),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#, "both"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "neither"),
            (r#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#, "malformed"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"m"}}"#, "malformed"),
        ] {
            let error = answer_error(text);
            assert_eq!(error.kind(), ErrorKind::Protocol, "{text}");
            assert!(error.message().contains(expected), "{}", error.message());
        }
    }

    #[test]
    fn a_wellformed_error_is_the_servers_no() {
        let error =
            answer_error(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"nope"}}"#);
        assert_eq!(error.kind(), ErrorKind::Tool);
        assert_eq!(error.rpc_code(), Some(-32601));
    }

    #[test]
    fn requests_and_notifications_are_told_apart() {
        assert!(matches!(
            one(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#),
            RpcMessage::Request { .. }
        ));
        assert!(matches!(
            one(r#"{"jsonrpc":"2.0","method":"x","params":{}}"#),
            RpcMessage::Notification { .. }
        ));
    }

    #[test]
    fn only_a_cancellation_cancels_the_request_that_it_names() {
        let cancels = |method| {
            let params = json!({ "requestId": 7 });
            match OutgoingFrame::notification(method, Some(params)).kind {
                FrameKind::Notification { cancels, .. } => cancels,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(cancels("notifications/cancelled"), Some(json!(7)));
        assert_eq!(cancels("notifications/custom"), None);
    }

    #[test]
    fn log_lines_are_noise_and_broken_json_is_broken() {
        let read = |text: &'static str| read(&Bytes::from_static(text.as_bytes()));
        assert!(matches!(read("listening on 3000"), ParsedInput::NonMessage(_)));
        assert!(matches!(read("[info] ready"), ParsedInput::NonMessage(_)));
        assert!(matches!(read("  \r"), ParsedInput::Messages(m, _) if m.is_empty()));
        for (text, expected) in [
            ("{", "spans lines"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}"#, "not valid JSON"),
            ("Content-Length: 120", "Content-Length"),
        ] {
            let ParsedInput::Unreadable(error) = read(text) else { panic!("{text}") };
            assert!(error.message().contains(expected), "{}", error.message());
        }
        // Text in braces is a log line too; what goes on like a message is one.
        assert!(matches!(read("{info: ready}"), ParsedInput::NonMessage(_)));
        assert!(matches!(read(r#"{"level""#), ParsedInput::Unreadable(_)));
    }

    #[test]
    fn nul_bytes_are_noise_around_a_message_and_break_it_inside() {
        let read = |text: &'static str| read(&Bytes::from_static(text.as_bytes()));
        let answer = "\0\0{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\0\r";
        let ParsedInput::Messages(messages, warnings) = read(answer) else { panic!("unreadable") };
        assert_eq!((messages.len(), warnings.len()), (1, 1));
        assert_eq!(warnings, ["raw NUL bytes between messages were ignored"]);
        let ParsedInput::Messages(messages, warnings) = read("\0\0\0") else {
            panic!("unreadable")
        };
        assert_eq!((messages.len(), warnings.len()), (0, 1));
        let cut = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"\0";
        let ParsedInput::Unreadable(error) = read(cut) else { panic!("readable") };
        assert_eq!(error.message(), "a message contains a raw NUL byte");
        assert!(error.hint().is_none());
    }

    #[test]
    fn oddities_are_read_with_a_doubt() {
        let text = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"result\":{\"t\":\"\xff\"}}";
        let ParsedInput::Messages(messages, warnings) = read(&Bytes::from_static(text)) else {
            panic!("unreadable")
        };
        assert_eq!(warnings.len(), 2);
        assert!(matches!(&messages[0], RpcMessage::Response { id, .. } if *id == 2));
        let two = r#"{"jsonrpc":"2.0","method":"a"} {"jsonrpc":"2.0","method":"b"}"#;
        let ParsedInput::Messages(messages, warnings) = read(&Bytes::from_static(two.as_bytes()))
        else {
            panic!("unreadable")
        };
        assert_eq!((messages.len(), warnings.len()), (2, 1));
    }

    #[test]
    fn deep_json_is_refused_wherever_it_stands() {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(answer_error(&text).message().contains("128 levels"));
        let flat = format!(r#"{{"jsonrpc":"2.0","id":1,"result":["{}"]}}"#, "[".repeat(1000));
        assert!(matches!(one(&flat), RpcMessage::Response { outcome: Ok(_), .. }));
    }

    fn nested(levels: usize) -> String {
        "[".repeat(levels) + &"]".repeat(levels)
    }

    #[test]
    fn json_may_nest_128_levels_and_no_more() {
        // Each stands inside of the message's own level.
        let answer = |levels| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, nested(levels));
        assert!(matches!(one(&answer(127)), RpcMessage::Response { outcome: Ok(_), .. }));
        assert!(answer_error(&answer(128)).message().contains("128 levels"));
        // `{"a":[…]}` mixes both kinds of brackets.
        let mixed = r#"{"a":["#.repeat(64) + &"]}".repeat(64);
        let mixed = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{mixed}}}"#);
        assert!(answer_error(&mixed).message().contains("128 levels"));
        assert!(parse(&nested(127)).is_ok());
        assert!(parse(&nested(129)).unwrap_err().message().contains("128 levels"));
        // What is asked or told is read as a tree where it is used, and refused there.
        let notification = |levels| {
            let params = nested(levels);
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{params}}}"#)
        };
        let RpcMessage::Notification { params: Some(params), .. } = one(&notification(200)) else {
            panic!("no notification")
        };
        assert!(params.parse().unwrap_err().message().contains("128 levels"));
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_stay() {
        assert_eq!(
            replace_lone_surrogates(r#""\ud800x \ud83d\ude00 \udc00 \\ud800""#),
            r#""\ufffdx \ud83d\ude00 \ufffd \\ud800""#
        );
    }

    #[test]
    fn many_small_things_in_one_message_cost_little() {
        let limit = |text: &str| match read(&Bytes::copy_from_slice(text.as_bytes())) {
            ParsedInput::Broken(error) => error.message().starts_with("limit:"),
            _ => false,
        };
        assert!(limit(&format!("[{}{{}}]", "{},".repeat(200_000))));
        assert!(limit(&"{}".repeat(200_000)));
        let doubled = format!(r#"{{{}"id":1}}"#, r#""id":1,"result":1,"#.repeat(200_000));
        match read(&Bytes::from(doubled)) {
            ParsedInput::Messages(messages, warnings) => {
                assert_eq!((messages.len(), warnings.len()), (1, 2), "{warnings:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_tree_of_too_many_values_is_not_built() {
        let list = |n: usize| format!("[{}0]", "0,".repeat(n));
        assert!(parse(&list(VALUES_LIMIT - 1)).is_ok());
        assert!(parse(&list(VALUES_LIMIT + 1)).unwrap_err().message().starts_with("limit:"));
        // Commas inside of a text are text.
        assert!(parse(&format!("\"\\\"{}\"", ",[{".repeat(VALUES_LIMIT))).is_ok());
    }

    proptest! {
        #[test]
        fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _reading = read(&Bytes::from(bytes));
        }

        #[test]
        fn almost_json_never_panics(text in r#"[\[\]{}",:\\u0-9a-fjsonrpcid. -]{0,120}"#) {
            let _reading = read(&Bytes::from(text));
        }
    }
}
