//! Requests to the host and its replies, with what a caller says about its call: the user, the trace, the
//! metadata.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::policy::Decision;
use crate::audit::Masker;
use crate::model::{
    CallId, CallMetadata, ClientAbilities, Error, JsonObject, ToolContext, ToolDefinition,
    ToolResult, ToolSource, TraceContext,
};
use crate::provider::Preview;
use crate::util::json::{self, map_json};
use crate::util::units::show_size;

/// How far a listing reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListScope {
    /// Contact nothing: local tools and declared ones.
    Declared,
    /// Contact every server, and list local tools too.
    #[default]
    Everything,
    /// Contact only these servers (and list local tools too).
    Servers(Vec<String>),
}

/// A list request from a front end or a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// How far the listing reaches; everywhere by default.
    pub scope: ListScope,
    /// The profile of the requesting agent; `None` uses the host's.
    pub profile: Option<String>,
}

impl ListRequest {
    /// Everything that a profile shows.
    pub fn in_profile(profile: impl Into<String>) -> Self {
        Self { scope: ListScope::Everything, profile: Some(profile.into()) }
    }
}

impl ListScope {
    /// Whether a server's tools are listed, including those that are only declared in its file.
    pub fn includes_server(&self, name: &str) -> bool {
        match self {
            Self::Declared | Self::Everything => true,
            Self::Servers(names) => names.iter().any(|server| server == name),
        }
    }
}

/// Where a request looks for a tool, prompt or resource, and through which profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookupScope {
    /// Only these servers are considered (empty: all that the profile shows anything of).
    pub servers: Vec<String>,
    /// The profile of the requesting agent; `None` uses the host's.
    pub profile: Option<String>,
}

impl LookupScope {
    /// Only these servers (empty: all), through the host's profile.
    pub fn of_servers(servers: &[String]) -> Self {
        Self { servers: servers.to_vec(), profile: None }
    }

    /// Everything that a profile shows.
    pub fn in_profile(profile: impl Into<String>) -> Self {
        Self { servers: Vec::new(), profile: Some(profile.into()) }
    }
}

/// A request from a front end or a program for a prompt, a resource or a completion.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ItemRequest {
    /// Its id in events and the trace, for a caller that wants to recognise it while it runs (from
    /// [`ToolHost::new_call_id`](super::ToolHost::new_call_id)); `None`: the host chooses one.
    pub id: Option<CallId>,
    /// Which servers may answer it, and the profile of the agent that asks.
    pub scope: LookupScope,
    /// Free-form metadata, limited like that of a call. Servers read it from `_meta`.
    pub metadata: JsonObject,
    /// The user on whose behalf it is made, instead of the user of the session or the host.
    pub user_id: Option<String>,
    /// Its trace context, instead of the host's.
    pub trace: Option<TraceContext>,
    /// The session, if the caller has one.
    pub session: Option<String>,
    /// The client on whose behalf it is made: what it can be asked, and which log lines it wants.
    #[serde(skip)]
    #[doc(hidden)] // for `serve`
    pub client: ClientAbilities,
    /// Fires when the request should stop.
    #[serde(skip)]
    pub cancel: CancellationToken,
}

impl ItemRequest {
    /// A request to these servers (empty: to any) that ends when `cancel` fires.
    pub fn to_servers(servers: &[String], cancel: &CancellationToken) -> Self {
        let scope = LookupScope::of_servers(servers);
        Self { scope, cancel: cancel.clone(), ..Self::default() }
    }
}

/// The arguments of a call as a person or program gave them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum CallArguments {
    /// A whole object, used unchanged.
    Object(JsonObject),
    /// `key=value` and `key:=json` words: text is coerced only as the tool's schema says.
    Words(Vec<ArgumentWord>),
}

/// One word of a command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ArgumentWord {
    /// `key=value`: text until the schema says otherwise.
    Text {
        /// The name of the property, as typed.
        key: String,
        /// The text.
        value: String,
    },
    /// `key=@file`: text or base64, as the file and the schema are.
    File {
        /// The name of the property, as typed.
        key: String,
        /// The content, in base64.
        base64: String,
        /// What it is, by the name of the file.
        media_type: String,
    },
    /// `key:=json`: a JSON value, used unchanged.
    Json {
        /// The name of the property, as typed.
        key: String,
        /// The value, of the type the JSON has.
        value: serde_json::Value,
    },
}

impl ArgumentWord {
    /// The name of the property.
    pub fn key(&self) -> &str {
        match self {
            Self::Text { key, .. } | Self::File { key, .. } | Self::Json { key, .. } => key,
        }
    }
}

/// A call requested by a front end or a program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallRequest {
    /// The id of the call in records and events, for a caller that wants to recognise it while it
    /// runs (from [`ToolHost::new_call_id`](super::ToolHost::new_call_id), for one call only);
    /// `None`: the host chooses one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<CallId>,
    /// The name as typed: full, with another separator, or bare.
    pub name: String,
    /// Only these servers are considered (empty: everything).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The profile of the calling agent: what it hides is refused, including to calls made by this
    /// call. `None` uses the host's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The arguments, as JSON or as command-line words.
    pub arguments: CallArguments,
    /// Limit for the whole call, instead of every configured timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Idle timeout of the server, instead of the timeout of its entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    /// Overrides every configured number of retries; still only for tools marked safe to repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Whether arguments and structured results are checked against their schemas.
    pub validate: bool,
    /// Approve without asking (`--yes`). Applies to this call, but not to calls it makes.
    pub assume_yes: bool,
    /// Also approve the calls that this one makes without asking (`--yes-nested`).
    pub assume_yes_nested: bool,
    /// Variables for the tool: those its entry declares (`context_env`), and `TOOLHOST_*`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Free-form metadata, at most [`MAX_METADATA_BYTES`] as
    /// JSON. Tools read it from their context, MCP servers from `_meta`.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub metadata: JsonObject,
    /// The user on whose behalf the call is made, instead of the user of the session or the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The call's trace context, instead of the host's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The session, if the caller has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether the arguments are those of a form, which a person corrects: when they are refused, that
    /// was no call, and no record says so.
    #[serde(default)]
    #[doc(hidden)] // for the console
    pub from_form: bool,
    /// Whether the session continues after the process that makes the call has exited. Only used by
    /// a background host, which keeps such a session for its own idle time.
    pub keeps_session: bool,
    /// The caller's working directory, instead of the host's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The name of the client that makes the call, for records; `None` for a front end in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// The client on whose behalf the call is made: what it can be asked, and which log lines it
    /// wants.
    #[serde(skip)]
    #[doc(hidden)] // for `serve`
    pub client: ClientAbilities,
    /// Fires when the call should stop.
    #[serde(skip)]
    pub cancel: CancellationToken,
}

impl CallRequest {
    /// A call with checked arguments and every default.
    pub fn new(name: impl Into<String>, arguments: CallArguments) -> Self {
        Self {
            id: None,
            name: name.into(),
            servers: Vec::new(),
            profile: None,
            arguments,
            timeout: None,
            idle_timeout: None,
            retries: None,
            validate: true,
            assume_yes: false,
            assume_yes_nested: false,
            environment: BTreeMap::new(),
            metadata: JsonObject::new(),
            user_id: None,
            trace: None,
            session: None,
            from_form: false,
            keeps_session: false,
            cwd: None,
            client_name: None,
            client: ClientAbilities::default(),
            cancel: CancellationToken::new(),
        }
    }

    /// A call with the arguments of a JSON object, such as `json!({ "city": "Oslo" })`.
    ///
    /// # Errors
    /// A usage error for JSON that is not an object.
    pub fn json(name: impl Into<String>, arguments: serde_json::Value) -> Result<Self, Error> {
        match arguments {
            serde_json::Value::Object(object) => Ok(Self::new(name, CallArguments::Object(object))),
            _ => Err(Error::usage("the arguments of a call must be a JSON object")),
        }
    }
}

/// What a call would do, without making it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DryRun {
    /// The tool that the name was resolved to.
    pub definition: Arc<ToolDefinition>,
    /// What would be sent or started, with secrets masked.
    pub preview: Preview,
    /// Whether it may run, needs approval, or is refused.
    pub decision: Decision,
    /// What could not be determined.
    pub warnings: Vec<String>,
}

/// A call that was dispatched.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallOutcome {
    /// The tool that the name was resolved to.
    pub definition: Arc<ToolDefinition>,
    /// The result, or why there is no usable one. A result may contain its own error.
    pub result: Result<ToolResult, Error>,
    /// Identity, durations, attempts and routing of the call.
    pub metadata: CallMetadata,
}

impl CallOutcome {
    /// The error that decides the exit code: the call's or the result's.
    pub fn error(&self) -> Option<&Error> {
        match &self.result {
            Ok(result) => result.error.as_ref(),
            Err(error) => Some(error),
        }
    }
}

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
    use crate::model::{ErrorKind, Origin, ToolName};

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
