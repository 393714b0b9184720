//! A `tools/call` request serialised in advance, with a gap for arguments and id.

use serde_json::Value;

use crate::model::JsonObject;

/// The first id of such requests. The SDK counts its own from 0, and a whole number of 32 bits holds
/// a thousand million of ours.
pub const FIRST_ID: i64 = 1_000_000_000;

/// The longest id, in digits.
const DIGITS: usize = 20;

/// A `tools/call` for any id and any arguments.
#[derive(Debug, Clone)]
pub struct ToolCallTemplate {
    before_arguments: Box<[u8]>,
    after_arguments: Box<[u8]>,
}

impl ToolCallTemplate {
    /// A call of `tool`; `meta` goes along as `_meta`, unless it is empty.
    pub fn new(tool: &str, meta: &JsonObject) -> Self {
        let name = Value::from(tool);
        let before =
            format!(r#","method":"tools/call","params":{{"name":{name},"arguments":"#).into_bytes();
        let after = if meta.is_empty() {
            "}}".to_owned()
        } else {
            format!(r#","_meta":{}}}}}"#, Value::Object(meta.clone()))
        };
        Self {
            before_arguments: before.into_boxed_slice(),
            after_arguments: after.into_bytes().into_boxed_slice(),
        }
    }

    /// Appends the request as one line of JSON, without a line end; `arguments` is an object.
    pub fn write(&self, id: i64, arguments: &str, out: &mut Vec<u8>) {
        out.reserve(
            HEAD.len()
                + DIGITS
                + self.before_arguments.len()
                + arguments.len()
                + self.after_arguments.len(),
        );
        out.extend_from_slice(HEAD);
        write_id(id, out);
        out.extend_from_slice(&self.before_arguments);
        out.extend_from_slice(arguments.as_bytes());
        out.extend_from_slice(&self.after_arguments);
    }
}

const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// Appends the notification that the call with this id was cancelled, without a line end.
pub fn write_cancellation(id: i64, reason: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#,
    );
    write_id(id, out);
    out.extend_from_slice(br#","reason":"#);
    out.extend_from_slice(Value::from(reason).to_string().as_bytes());
    out.extend_from_slice(b"}}");
}

fn write_id(id: i64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; DIGITS];
    let mut rest = id.unsigned_abs();
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        let low = (rest % 10) as u8;
        *digit = b'0' + low;
        used += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if id < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(digits.get(DIGITS - used..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn written(request: &ToolCallTemplate, id: i64, arguments: &str) -> Value {
        let mut out = Vec::new();
        request.write(id, arguments, &mut out);
        assert!(!out.contains(&b'\n'));
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn it_is_the_request_that_is_sent_otherwise() {
        let request = ToolCallTemplate::new("t", &JsonObject::new());
        let expected = json!({
            "jsonrpc": "2.0",
            "id": FIRST_ID,
            "method": "tools/call",
            "params": crate::mcp::calling::params("t", &JsonObject::new()),
        });
        assert_eq!(written(&request, FIRST_ID, "{}"), expected);
    }

    #[test]
    fn metadata_goes_along() {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
        let request = ToolCallTemplate::new("t", meta.as_object().unwrap());
        assert_eq!(written(&request, 7, r#"{"a":1}"#)["params"]["_meta"], meta);
    }

    #[test]
    fn a_cancellation_names_its_request() {
        let mut out = Vec::new();
        write_cancellation(FIRST_ID + 5, "too \"late\"", &mut out);
        let value: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["method"], "notifications/cancelled");
        assert_eq!(value["params"], json!({ "requestId": FIRST_ID + 5, "reason": "too \"late\"" }));
    }

    proptest! {
        #[test]
        fn any_name_and_id_can_be_written(name in ".*", id in any::<i64>(), text in ".*") {
            let request = ToolCallTemplate::new(&name, &JsonObject::new());
            let arguments = json!({ "text": text });
            let value = written(&request, id, &arguments.to_string());
            prop_assert_eq!(value["id"].as_i64(), Some(id));
            prop_assert_eq!(value["params"]["name"].as_str(), Some(name.as_str()));
            prop_assert_eq!(&value["params"]["arguments"], &arguments);
        }
    }
}
