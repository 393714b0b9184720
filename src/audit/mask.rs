//! Secrets out of whatever is recorded or shown.
//!
//! Owns: which arguments are secret, and the replacement of known secret values in any of the
//! forms they travel in. Never does: find out secrets by itself.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use serde_json::Value;

use crate::model::traffic::{Glance, Passed};
use crate::model::{
    Event, EventSink, Fault, JsonObject, ServerState, ServerStatus, ToolResult, Traffic,
    TrafficSink,
};

/// What stands for an argument that its schema or its name calls secret.
pub const MASK: &str = "‹secret›";

/// Known values shorter than this are not searched for: they would be found everywhere.
pub const SHORTEST: usize = 4;

/// How many `$ref`s are followed to find a property's schema.
const MAX_REFS: usize = 16;

/// Replaces secrets.
///
/// Clones know the same values, also those that one of them learns later.
#[derive(Clone, Default)]
pub struct Masker {
    /// Each form of each value with what replaces it, the longest first.
    forms: Arc<RwLock<Vec<(String, String)>>>,
}

impl std::fmt::Debug for Masker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Masker({} forms)", self.forms().len())
    }
}

impl Masker {
    /// Knows these values by their names: `(name, value)`. Values below [`SHORTEST`] bytes are
    /// left out.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let masker = Self::default();
        masker.add(secrets);
        masker
    }

    /// Learns another value: a token that was got while the program runs.
    pub fn learn(&self, name: &str, value: &str) {
        self.add([(name, value)]);
    }

    fn add<'a>(&self, secrets: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let mut forms = self.forms.write().unwrap_or_else(PoisonError::into_inner);
        for (name, value) in secrets {
            if value.len() >= SHORTEST {
                let mark = format!("‹secret:{name}›");
                forms.extend(encodings(value).into_iter().map(|form| (form, mark.clone())));
            }
        }
        forms.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
        forms.dedup_by(|a, b| a.0 == b.0);
    }

    fn forms(&self) -> RwLockReadGuard<'_, Vec<(String, String)>> {
        self.forms.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Text without known values, in whatever form: plain, JSON-escaped, percent-encoded, base64.
    pub fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (form, mark) in self.forms().iter() {
            if out.contains(form.as_str()) {
                out = out.replace(form.as_str(), mark);
            }
        }
        out
    }

    /// Whether no value is known, so that there is nothing to replace.
    pub fn is_empty(&self) -> bool {
        self.forms().is_empty()
    }

    /// What a call gave, without known values: a server may send back what it was given.
    pub fn result(&self, result: Result<ToolResult, Fault>) -> Result<ToolResult, Fault> {
        if self.is_empty() {
            return result;
        }
        let rewrite = |text: &str| self.text(text);
        result.map(|r| r.map_text(&rewrite)).map_err(|f| f.map_text(&rewrite))
    }

    /// A fault without known values.
    pub fn fault(&self, fault: Fault) -> Fault {
        if self.is_empty() { fault } else { fault.map_text(&|text| self.text(text)) }
    }

    /// What is known about a server, without known values.
    pub fn status(&self, mut status: ServerStatus) -> ServerStatus {
        if self.is_empty() {
            return status;
        }
        if let ServerState::Failed(fault) = status.state {
            status.state = ServerState::Failed(self.fault(fault));
        }
        if let Some(past) = &mut status.last_error {
            past.fault = self.fault(past.fault.clone());
        }
        for line in status.warnings.iter_mut().chain(&mut status.stderr_tail) {
            *line = self.text(line);
        }
        status.endpoint = self.text(&status.endpoint);
        status.instructions = status.instructions.map(|text| self.text(&text));
        status
    }

    /// A sink that hands on every event without known values.
    pub fn events(&self, next: EventSink) -> EventSink {
        let masker = self.clone();
        EventSink::new(move |event| {
            // Whoever knows nothing now may learn something later.
            next.emit(if masker.is_empty() { event } else { masker.event(event) });
        })
    }

    /// A sink that hands on everything that crossed a wire without known values. Bytes in which
    /// none stands stay exactly as they were.
    pub fn traffic(&self, next: TrafficSink) -> TrafficSink {
        if !next.is_on() {
            return next;
        }
        let (masker, shutter) = (self.clone(), next.shutter());
        TrafficSink::new(move |traffic: Traffic| {
            // Whoever knows nothing now may learn something later.
            next.emit(if masker.is_empty() {
                traffic
            } else {
                Traffic { what: masker.passed(traffic.what), ..traffic }
            });
        })
        .behind(shutter)
    }

    fn passed(&self, what: Passed) -> Passed {
        match what {
            Passed::Message { direction, bytes, glance, latency } => {
                let (bytes, glance) = (self.bytes(bytes), self.glance(glance));
                Passed::Message { direction, bytes, glance, latency }
            }
            Passed::Head { direction, line, headers, latency } => {
                let line = self.text(&line);
                let headers = headers.iter().map(|(n, v)| (self.text(n), self.text(v))).collect();
                Passed::Head { direction, line, headers, latency }
            }
            Passed::Stderr(text) => Passed::Stderr(self.text(&text)),
            Passed::Noise(text) => Passed::Noise(self.text(&text)),
            Passed::Opened(text) => Passed::Opened(self.text(&text)),
            Passed::Closed(text) => Passed::Closed(self.text(&text)),
        }
    }

    /// The bytes without known values; they need not be UTF-8.
    fn bytes(&self, bytes: Bytes) -> Bytes {
        self.forms().iter().fold(bytes, |bytes, (form, mark)| {
            let mut found = memchr::memmem::find_iter(&bytes, form.as_bytes()).peekable();
            if found.peek().is_none() {
                return bytes;
            }
            let mut out = Vec::with_capacity(bytes.len());
            let mut rest = 0;
            for at in found {
                out.extend_from_slice(bytes.get(rest..at).unwrap_or_default());
                out.extend_from_slice(mark.as_bytes());
                rest = at + form.len();
            }
            out.extend_from_slice(bytes.get(rest..).unwrap_or_default());
            out.into()
        })
    }

    fn glance(&self, glance: Glance) -> Glance {
        let id = |id: Value| match id {
            Value::String(text) => Value::String(self.text(&text)),
            other => other,
        };
        match glance {
            Glance::Request { id: key, method } => {
                Glance::Request { id: id(key), method: self.text(&method) }
            }
            Glance::Answer { id: key, method, error } => {
                Glance::Answer { id: id(key), method: method.map(|m| self.text(&m)), error }
            }
            Glance::Notification { method } => Glance::Notification { method: self.text(&method) },
            Glance::Unknown => Glance::Unknown,
        }
    }

    fn event(&self, event: Event) -> Event {
        match event {
            Event::Log { origin, level, text } => {
                Event::Log { origin, level, text: self.text(&text) }
            }
            Event::Notice { origin, text } => Event::Notice { origin, text: self.text(&text) },
            Event::Warning { text } => Event::Warning { text: self.text(&text) },
            Event::Asked { server, call_id, round, kind, words, verdict } => {
                let words = self.text(&words);
                Event::Asked { server, call_id, round, kind, words, verdict }
            }
            Event::Progress { call_id, progress, total, message } => {
                let message = message.map(|text| self.text(&text));
                Event::Progress { call_id, progress, total, message }
            }
            Event::AttemptFailed { call_id, attempt, fault, delay } => {
                Event::AttemptFailed { call_id, attempt, fault: self.fault(fault), delay }
            }
            Event::Server { server, state: ServerState::Failed(fault) } => {
                Event::Server { server, state: ServerState::Failed(self.fault(fault)) }
            }
            other => other,
        }
    }

    /// Arguments without secrets: properties that the schema marks (`writeOnly`, `x-secret`,
    /// `format: password`) or whose name says so, and known values anywhere.
    pub fn arguments(&self, arguments: &JsonObject, schema: &Value) -> JsonObject {
        self.object(arguments, Some(schema), schema)
    }

    fn object(&self, object: &JsonObject, schema: Option<&Value>, root: &Value) -> JsonObject {
        object
            .iter()
            .map(|(key, value)| {
                let inner = schema
                    .and_then(|s| s.get("properties"))
                    .and_then(|p| p.get(key))
                    .and_then(|s| resolve(s, root));
                let value = if inner.is_some_and(is_marked) || (names_secret(key) && hides(value)) {
                    Value::String(MASK.into())
                } else {
                    self.value(value, inner, root)
                };
                (self.text(key), value)
            })
            .collect()
    }

    fn value(&self, value: &Value, schema: Option<&Value>, root: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => {
                let inner = schema.and_then(|s| s.get("items")).and_then(|s| resolve(s, root));
                if inner.is_some_and(is_marked) {
                    return Value::String(MASK.into());
                }
                items.iter().map(|item| self.value(item, inner, root)).collect()
            }
            Value::Object(map) => Value::Object(self.object(map, schema, root)),
            other => other.clone(),
        }
    }
}

/// Whether a property's schema calls it secret.
pub fn is_marked(schema: &Value) -> bool {
    let says = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
    says("writeOnly")
        || says("x-secret")
        || schema.get("format").and_then(Value::as_str) == Some("password")
}

/// Whether a property's name calls it secret: `password`, `api_key`, `authToken`, … Plurals of
/// `token` are counts more often than secrets.
pub fn names_secret(key: &str) -> bool {
    let words = words(key);
    let has = |word: &str| words.iter().any(|w| w == word);
    let pair = |a: &str, b: &str| words.windows(2).any(|w| w[0] == a && w[1] == b);
    ["password", "passwd", "passphrase", "pwd", "secret", "secrets", "token", "apikey"]
        .iter()
        .any(|word| has(word))
        || ["authorization", "credential", "credentials", "bearer", "cookie"].iter().any(|w| has(w))
        || pair("api", "key")
        || pair("access", "key")
        || pair("private", "key")
}

/// Numbers and booleans under a telling name (`token: 5`) are no secrets.
fn hides(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Array(_) | Value::Object(_))
}

/// `authToken`, `AUTH_TOKEN` and `auth-token` are the words `auth` and `token`.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in key.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(last) = words.last_mut()
        {
            last.extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn resolve<'a>(mut schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    for _ in 0..MAX_REFS {
        let Some(target) = schema.get("$ref").and_then(Value::as_str) else {
            return Some(schema);
        };
        if is_marked(schema) {
            return Some(schema);
        }
        schema = root.pointer(target.strip_prefix('#')?)?;
    }
    None
}

/// The forms in which a value may turn up.
fn encodings(value: &str) -> Vec<String> {
    let bytes = value.as_bytes();
    let mut forms = vec![value.to_owned()];
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json.trim_start_matches('"');
    let json = json.strip_suffix('"').unwrap_or(json).to_owned();
    for json in [json.replace('/', "\\/"), json] {
        forms.push(ascii_json(&json));
        forms.push(json);
    }
    for keep_slash in [false, true] {
        let upper = percent(bytes, keep_slash);
        forms.push(lower_hex(&upper));
        forms.push(upper.replace("%20", "+"));
        forms.push(upper);
    }
    for alphabet in [STANDARD, URL_SAFE] {
        for offset in 0..3 {
            forms.push(base64_core(bytes, offset, alphabet));
        }
    }
    // What is left of a short value at an odd offset in base64 may be a letter or two.
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// JSON text with everything beyond ASCII as `\u` escapes.
fn ascii_json(json: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for c in json.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ignored = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

fn percent(bytes: &[u8], keep_slash: bool) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for &byte in bytes {
        if byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'.' | b'_' | b'~')
            || (keep_slash && byte == b'/')
        {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ignored = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn lower_hex(percent: &str) -> String {
    let mut out = String::with_capacity(percent.len());
    let mut digits = 0;
    for c in percent.chars() {
        if digits > 0 {
            digits -= 1;
            out.push(c.to_ascii_lowercase());
        } else {
            if c == '%' {
                digits = 2;
            }
            out.push(c);
        }
    }
    out
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The letters that `bytes` always give in base64 when `offset` bytes (modulo 3) stand before
/// them: those that depend on a neighbour are left out.
fn base64_core(bytes: &[u8], offset: usize, alphabet: &[u8; 64]) -> String {
    let start = offset * 8;
    let end = start + bytes.len() * 8;
    let bit = |at: usize| -> u8 {
        let at = at - start;
        bytes.get(at / 8).map_or(0, |byte| (byte >> (7 - at % 8)) & 1)
    };
    let mut out = String::new();
    let mut letter = start.div_ceil(6);
    while (letter + 1) * 6 <= end {
        let index = (letter * 6..(letter + 1) * 6).fold(0, |sum, at| (sum << 1) | bit(at));
        out.push(char::from(alphabet[usize::from(index)]));
        letter += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn traffic_is_masked_and_otherwise_exact() {
        use std::sync::{Arc, Mutex};
        let kept = Arc::new(Mutex::new(Vec::new()));
        let sink = {
            let kept = Arc::clone(&kept);
            TrafficSink::new(move |traffic: Traffic| kept.lock().unwrap().push(traffic.what))
        };
        let masked = Masker::new([("TOKEN", "hunter2")]).traffic(sink);
        let message = |bytes: &'static [u8]| Passed::Message {
            direction: crate::model::traffic::Direction::Sent,
            bytes: Bytes::from_static(bytes),
            glance: Glance::Request { id: "hunter2".into(), method: "hunter2".to_owned() },
            latency: None,
        };
        let head = Passed::Head {
            direction: crate::model::traffic::Direction::Sent,
            line: "GET http://x/?k=hunter2".to_owned(),
            headers: vec![("x".to_owned(), "hunter2".to_owned())],
            latency: None,
        };
        let text = || "hunter2".to_owned();
        for what in [
            message(b"\xff hunter2 and hunter2!"),
            message(b"\xff exact \xfe"),
            head,
            Passed::Stderr(text()),
            Passed::Noise(text()),
            Passed::Opened(text()),
            Passed::Closed(text()),
        ] {
            let (at, call, server) = (std::time::Duration::ZERO, None, "a".to_owned());
            masked.emit(Traffic { server, sequence: 1, at, call, what });
        }
        let kept = kept.lock().unwrap();
        let all = format!("{kept:?}");
        assert!(!all.contains("hunter2"), "{all}");
        let exact = |index: usize| match &kept[index] {
            Passed::Message { bytes, .. } => bytes.clone(),
            other => panic!("{other:?}"),
        };
        let mark = "‹secret:TOKEN›";
        let expected = [&b"\xff "[..], mark.as_bytes(), b" and ", mark.as_bytes(), b"!"].concat();
        assert_eq!(exact(0), expected);
        assert_eq!(exact(1), &b"\xff exact \xfe"[..]);
        assert!(!Masker::new([("TOKEN", "hunter2")]).traffic(TrafficSink::off()).is_on());
    }

    #[test]
    fn properties_marked_by_the_schema_are_masked() {
        let schema = json!({
            "properties": {
                "a": {"type": "string", "writeOnly": true},
                "b": {"type": "string", "format": "password"},
                "c": {"x-secret": true},
                "d": {"$ref": "#/$defs/Key"},
                "e": {"properties": {"inner": {"x-secret": true}}},
                "f": {"items": {"writeOnly": true}},
                "g": {"$ref": "#/properties/g"}
            },
            "$defs": {"Key": {"type": "string", "writeOnly": true}}
        });
        let masked = Masker::default().arguments(
            &object(&json!({
                "a": "1", "b": "2", "c": {"x": 3}, "d": "4",
                "e": {"inner": "5", "outer": "6"}, "f": ["7"], "g": "8"
            })),
            &schema,
        );
        assert_eq!(
            Value::Object(masked),
            json!({"a": MASK, "b": MASK, "c": MASK, "d": MASK,
                   "e": {"inner": MASK, "outer": "6"}, "f": MASK, "g": "8"})
        );
    }

    #[test]
    fn telling_names_are_masked_and_counts_are_not() {
        for key in ["password", "apiKey", "API_KEY", "auth-token", "githubToken", "client_secret"] {
            assert!(names_secret(key), "{key}");
        }
        for key in ["max_tokens", "key", "tokenizer", "author", "secretary", "monkey"] {
            assert!(!names_secret(key), "{key}");
        }
        let masked = Masker::default().arguments(
            &object(&json!({"token": "x", "n": {"password": "y"}, "secret": 5})),
            &json!({}),
        );
        assert_eq!(
            Value::Object(masked),
            json!({"token": MASK, "n": {"password": MASK}, "secret": 5})
        );
    }

    #[test]
    fn known_values_go_in_every_form() {
        let masker = Masker::new([("KEY", "pä/ss w\"rd"), ("TINY", "ab")]);
        for text in [
            "x pä/ss w\"rd y",
            r#"{"a":"pä/ss w\"rd"}"#,
            r#"{"a":"p\u00e4\/ss w\"rd"}"#,
            "q=p%C3%A4%2Fss%20w%22rd&x",
            "q=p%c3%a4%2fss%20w%22rd&x",
            "q=p%C3%A4%2Fss+w%22rd&x",
        ] {
            assert!(masker.text(text).contains("‹secret:KEY›"), "{text}");
        }
        assert_eq!(masker.text("ab is too short to be hidden"), "ab is too short to be hidden");
    }

    #[test]
    fn a_value_inside_longer_base64_is_found() {
        // base64 of "ada:hunter22", as in an Authorization header.
        let masker = Masker::new([("PASS", "hunter22")]);
        let masked = masker.text("Basic YWRhOmh1bnRlcjIy");
        assert!(masked.contains("‹secret:PASS›"), "{masked}");
    }

    fn base64(bytes: &[u8]) -> String {
        let mut padded = bytes.to_vec();
        while !padded.len().is_multiple_of(3) {
            padded.push(0);
        }
        base64_core(&padded, 0, STANDARD)
    }

    proptest! {
        #[test]
        fn no_secret_is_left_in_any_form(
            secret in "[0-9]{2}[ -~äß€😀]{6,24}",
            before in "[a-z]{0,5}",
            after in "[a-z]{0,5}",
        ) {
            let masker = Masker::new([("NAME", secret.as_str())]);
            let all = format!("{before}{secret}{after}");
            let json = serde_json::to_string(&all).unwrap();
            prop_assert!(!masker.text(&all).contains(&secret));
            for text in [json.clone(), ascii_json(&json), percent(all.as_bytes(), false), base64(all.as_bytes())] {
                let masked = masker.text(&text);
                prop_assert!(masked.contains("‹secret:NAME›"), "{} -> {}", text, masked);
            }
            let arguments = object(&json!({ "deep": [{ "x": all }], all.clone(): 1 }));
            let masked = Value::Object(masker.arguments(&arguments, &json!({}))).to_string();
            let escaped = serde_json::to_string(&secret).unwrap();
            prop_assert!(!masked.contains(escaped.trim_matches('"')));
        }
    }
}
