//! What a call carries besides its arguments, as members of `_meta`.

use serde_json::{Value, json};

use crate::model::{JsonObject, ToolContext};

pub(crate) const SESSION: &str = "dev.toolhost/sessionId";
const CALL: &str = "dev.toolhost/callId";
/// On whose behalf the call is made, as the caller puts it.
pub(crate) const USER: &str = "dev.toolhost/userId";
/// Metadata without a prefix, as one object.
pub(crate) const METADATA: &str = "dev.toolhost/metadata";
/// Variables that the server's entry names in `context_env`, as one object.
const ENVIRONMENT: &str = "dev.toolhost/environment";

/// The members of `_meta` for a call in this context.
pub(crate) fn call_meta(context: &ToolContext) -> JsonObject {
    let mut meta = JsonObject::new();
    let mut plain = JsonObject::new();
    for (key, value) in &context.metadata {
        let members = if has_prefix(key) { &mut meta } else { &mut plain };
        members.insert(key.clone(), value.clone());
    }
    if !context.session_id.is_empty() {
        meta.insert(SESSION.to_owned(), json!(context.session_id));
    }
    if let Some(user) = &context.user_id {
        meta.insert(USER.to_owned(), json!(user));
    }
    if !plain.is_empty() {
        meta.insert(METADATA.to_owned(), Value::Object(plain));
    }
    if !context.environment.is_empty() {
        meta.insert(ENVIRONMENT.to_owned(), json!(context.environment));
    }
    if let Some(trace) = &context.trace {
        meta.insert("traceparent".to_owned(), json!(trace.traceparent()));
        if let Some(state) = trace.tracestate() {
            meta.insert("tracestate".to_owned(), json!(state));
        }
    }
    meta.insert(CALL.to_owned(), json!(context.call_id.0));
    meta
}

/// Whether a key is one that the specification allows with a prefix: labels with dots between them,
/// each from a letter to a letter or digit, a slash, and a name.
fn has_prefix(key: &str) -> bool {
    let Some((prefix, name)) = key.split_once('/') else { return false };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric();
    let is_label = |label: &str| {
        label.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
            && label.bytes().last().is_some_and(is_word)
            && label.bytes().all(|byte| is_word(byte) || byte == b'-')
    };
    let is_name = name.bytes().next().is_some_and(is_word)
        && name.bytes().last().is_some_and(is_word)
        && name.bytes().all(|byte| is_word(byte) || b"-_.".contains(&byte));
    is_name && prefix.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallId, TraceContext};

    #[test]
    fn everything_has_a_key_of_its_own() {
        let mut context = ToolContext::empty(CallId("c-1".into()));
        assert_eq!(Value::Object(call_meta(&context)), json!({ "dev.toolhost/callId": "c-1" }));
        context.session_id = "s-1".into();
        context.user_id = Some("ada".into());
        let arguments =
            json!({ "tenant": [1], "com.example/a.b": 2, "x/": 3, "1a/b": 4, "a/b/c": 5 });
        context.metadata = arguments.as_object().cloned().unwrap();
        context.environment.insert("TICKET".into(), "7".into());
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        context.trace = Some(TraceContext::parse(parent, Some("a=1")).unwrap());
        assert_eq!(
            Value::Object(call_meta(&context)),
            json!({
                "com.example/a.b": 2,
                "dev.toolhost/sessionId": "s-1",
                "dev.toolhost/callId": "c-1",
                "dev.toolhost/userId": "ada",
                "dev.toolhost/metadata": { "tenant": [1], "x/": 3, "1a/b": 4, "a/b/c": 5 },
                "dev.toolhost/environment": { "TICKET": "7" },
                "traceparent": parent,
                "tracestate": "a=1",
            })
        );
    }
}
