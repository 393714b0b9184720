//! What a caller says about its call: the user, the trace, the metadata.

use crate::audit::Masker;
use crate::model::{Error, JsonObject, ToolContext, ToolDefinition, ToolSource};
use crate::util::json::{self, map_json};
use crate::util::units::show_size;

/// Maximum size of the metadata in bytes of JSON. It is sent with every attempt, and as one
/// environment variable to programs.
pub const MAX_METADATA_BYTES: usize = 64 << 10;

const MAX_USER_BYTES: usize = 256;

pub(super) fn check(user_id: Option<&str>, metadata: &JsonObject) -> Result<(), Error> {
    user_id.map_or(Ok(()), check_user)?;
    let (size, limit) = (json::size(metadata), MAX_METADATA_BYTES as u64);
    if size > limit {
        let (size, limit) = (show_size(size), show_size(limit));
        return Err(Error::usage(format!("the metadata of the call is {size}, more than {limit}"))
            .with_hint("pass large data as an argument, or pass a file name"));
    }
    match metadata.keys().find(|key| is_reserved(key)) {
        Some(key) => Err(Error::usage(format!("the metadata key '{key}' is reserved"))
            .with_hint("use a key without a prefix, or prefixed with your own domain")),
        None => Ok(()),
    }
}

pub fn check_user(user: &str) -> Result<(), Error> {
    if user.is_empty() || user.len() > MAX_USER_BYTES || user.chars().any(char::is_control) {
        return Err(Error::usage(format!(
            "'user_id' must be text of 1 to {MAX_USER_BYTES} bytes without control characters"
        )));
    }
    Ok(())
}

/// Whether the prefix of a key belongs to the protocol or to toolhost: `io.modelcontextprotocol/…`,
/// `com.mcp.tools/…`, `dev.toolhost/…`.
pub(crate) fn is_reserved(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else { return false };
    let second = prefix.split('.').nth(1).unwrap_or_default();
    ["modelcontextprotocol", "mcp", "toolhost"].contains(&second)
}

/// The context as the tool may see it: known secrets are none of a server's business, even if a caller passes
/// them.
pub(super) fn without_secrets(
    context: ToolContext,
    tool: &ToolDefinition,
    masker: &Masker,
) -> ToolContext {
    if tool.source == ToolSource::Mcp { masked_for_server(context, masker) } else { context }
}

/// The context of a request to a server, without known secrets.
pub(super) fn masked_for_server(mut context: ToolContext, masker: &Masker) -> ToolContext {
    if masker.is_empty() {
        return context;
    }
    let mask = |text: &str| masker.text(text);
    for value in context.environment.values_mut() {
        *value = mask(value);
    }
    for value in context.metadata.values_mut() {
        *value = map_json(value, &mask);
    }
    context.session_id = mask(&context.session_id).into();
    context.user_id = context.user_id.map(|user| mask(&user));
    context
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{CallId, ErrorKind, Origin, ToolName};

    fn object(value: &serde_json::Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn metadata_is_bounded_and_keys_of_the_protocol_are_reserved() {
        let refused = |value: &serde_json::Value| check(None, &object(value)).unwrap_err();
        let large = refused(&json!({ "a": "x".repeat(1 << 20) }));
        assert_eq!(large.kind(), ErrorKind::Usage);
        assert!(large.message().contains("more than 64"), "{large}");
        for key in ["io.modelcontextprotocol/x", "dev.mcp/y", "com.mcp.tools/z", "dev.toolhost/a"] {
            assert!(refused(&json!({ key: 1 })).message().contains(key), "{key}");
        }
        let fine = json!({ "a": 1, "com.example/b": 2, "com.example.mcp/c": 3, "a/b": 4 });
        check(Some("ada"), &object(&fine)).unwrap();
    }

    #[test]
    fn a_user_is_a_short_text() {
        for user in ["", "a\nb", &"x".repeat(257)] {
            assert!(check(Some(user), &JsonObject::new()).is_err(), "{user:?}");
        }
    }

    #[test]
    fn a_server_sees_no_known_secret() {
        let masker = Masker::new([("TOKEN", "hunter2")]);
        let context = || {
            let mut context = ToolContext::empty(CallId("c".into()));
            context.metadata = object(&json!({ "a": ["Bearer hunter2"] }));
            context.environment.insert("TICKET".into(), "hunter2".into());
            context.user_id = Some("hunter2".into());
            context
        };
        let tool = |source| {
            ToolDefinition::new(ToolName::of("s", "t"), source, "x", Origin::Server("s".into()))
        };
        let cleaned = without_secrets(context(), &tool(ToolSource::Mcp), &masker);
        let text = format!("{:?}{:?}{:?}", cleaned.metadata, cleaned.environment, cleaned.user_id);
        assert!(!text.contains("hunter2") && text.contains("‹secret:TOKEN›"), "{text}");
        let own = without_secrets(context(), &tool(ToolSource::Internal), &masker);
        assert_eq!(own.metadata, context().metadata);
    }
}
