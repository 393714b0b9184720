//! Calling one listed tool of a server, and what a call carries besides its arguments, as members
//! of `_meta`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::{McpProvider, definition_drift, roots};
use crate::mcp::connection::{Connection, RequestOptions};
use crate::mcp::message::HEADER_MISMATCH;
use crate::mcp::{calling, headers};
use crate::model::{
    Era, Error, ErrorPhase, HostEvent, JsonObject, ToolCall, ToolContext, ToolDefinition,
    ToolListing, ToolResult,
};

pub(crate) const SESSION: &str = "dev.toolhost/sessionId";
const CALL: &str = "dev.toolhost/callId";
/// On whose behalf the call is made, as the caller puts it.
pub(crate) const USER: &str = "dev.toolhost/userId";
/// Metadata without a prefix, as one object.
pub(crate) const METADATA: &str = "dev.toolhost/metadata";
/// Variables that the server's entry names in `context_env`, as one object.
const ENVIRONMENT: &str = "dev.toolhost/environment";

/// Total bound of a call; the host has its own, smaller one.
const CALL_TOTAL: Duration = Duration::from_hours(24);

#[derive(Default)]
pub(super) struct CurrentDefinition {
    /// `None` if nothing was listed and no definition is needed.
    pub definition: Option<Arc<ToolDefinition>>,
    /// How it differs from what was listed before.
    pub warnings: Vec<String>,
}

impl McpProvider {
    /// Calls a tool, and once more when only the headers of the first try were wrong.
    pub(super) async fn call_tool(
        &self,
        connection: &Connection,
        context: &ToolContext,
        call: &ToolCall,
    ) -> Result<ToolResult, Error> {
        let tool = call.name.tool();
        if let Some(refusal) = self.tool_refusal(tool) {
            return Err(refusal.with_phase(ErrorPhase::Call));
        }
        let CurrentDefinition { mut definition, mut warnings } =
            self.current_definition(connection, tool).await?;
        self.check_roots(definition.as_deref(), call)?;
        let mut called = self.attempt(connection, context, call, definition.as_deref()).await;
        if let Err(error) = &called
            && error.rpc_code() == Some(HEADER_MISMATCH)
        {
            // The headers of its arguments may be others by now: look again, and try once more.
            self.cached().listed = None;
            let listed = self.listing(connection).await?;
            let fresh = listed.listing.tools.iter().find(|t| t.name.tool() == tool).cloned();
            if let (Some(before), Some(after)) = (&definition, &fresh) {
                let (before, after) = (
                    definition_drift::without_header_hints(before),
                    definition_drift::without_header_hints(after),
                );
                warnings.extend(self.check_drift(&before, &after)?);
            }
            definition = fresh;
            called = self.attempt(connection, context, call, definition.as_deref()).await;
        }
        let mut result = called.inspect_err(|error| self.cached().health.record_failure(error))?;
        self.has_worked.store(true, Ordering::Relaxed);
        let server = &self.spec.name;
        match self.check_changed_during_call(connection, definition.as_deref()).await {
            Ok(more) => warnings.extend(more),
            Err(error) => result.error = Some(error),
        }
        result.warnings.extend(warnings);
        result
            .warnings
            .extend(connection.protocol_warnings().into_iter().map(|d| format!("{server}: {d}")));
        Ok(result)
    }

    /// The definition a call is made by: listed on this connection, and still the same.
    pub(super) async fn current_definition(
        &self,
        connection: &Connection,
        tool: &str,
    ) -> Result<CurrentDefinition, Error> {
        let (listed, earlier) = {
            let cached = self.cached();
            (cached.listed.clone(), cached.previous_listing.clone())
        };
        let find =
            |listing: &ToolListing| listing.tools.iter().find(|t| t.name.tool() == tool).cloned();
        let listed = match (listed, earlier) {
            (Some(listed), _) => listed,
            // It was started again since the tool was listed: what it offers now counts.
            (None, Some(earlier)) => {
                let after = find(&self.listing(connection).await?.listing);
                return self.check_unchanged(find(&earlier.listing).as_deref(), after);
            }
            // Roots cannot be kept without knowing which arguments are addresses.
            (None, None) if !self.spec.roots.is_empty() => self.listing(connection).await?,
            (None, None) => return Ok(CurrentDefinition::default()),
        };
        if connection.agreement.capabilities["tools"]["listChanged"] == Value::Bool(true) {
            // A change that was announced together with the list may still be in the pipe.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
        let before = find(&listed.listing);
        if connection.tool_list_version() == listed.version {
            return Ok(CurrentDefinition { definition: before, warnings: Vec::new() });
        }
        let after = find(&self.listing(connection).await?.listing);
        self.check_unchanged(before.as_deref(), after)
    }

    /// The current definition, if it may have changed since it was listed.
    fn check_unchanged(
        &self,
        before: Option<&ToolDefinition>,
        after: Option<Arc<ToolDefinition>>,
    ) -> Result<CurrentDefinition, Error> {
        let warnings = match (before, &after) {
            (Some(before), Some(after)) => self.check_drift(before, after)?,
            _ => Vec::new(),
        };
        Ok(CurrentDefinition { definition: after, warnings })
    }

    /// The warning about a tool that was redefined while it ran.
    async fn check_changed_during_call(
        &self,
        connection: &Connection,
        before: Option<&ToolDefinition>,
    ) -> Result<Vec<String>, Error> {
        let listed = self.cached().listed.as_ref().map(|l| l.version);
        let (Some(before), Some(listed)) = (before, listed) else { return Ok(Vec::new()) };
        if connection.tool_list_version() == listed {
            return Ok(Vec::new());
        }
        // It cannot be looked at: the call was made by what was listed, and is not blamed for that.
        let Ok(fresh) = self.listing(connection).await else { return Ok(Vec::new()) };
        let after = fresh.listing.tools.iter().find(|tool| tool.name == before.name);
        let Some(after) = after else { return Ok(Vec::new()) };
        self.check_drift(before, after)
    }

    /// The warnings about a definition that changed, where the entry lets that pass.
    fn check_drift(
        &self,
        before: &ToolDefinition,
        after: &ToolDefinition,
    ) -> Result<Vec<String>, Error> {
        definition_drift::check_drift(before, after, self.spec.drift())
            .map_err(|error| self.in_call(error))
    }

    pub(super) fn in_call(&self, error: Error) -> Error {
        error.with_server(&self.spec.name).with_phase(ErrorPhase::Call)
    }

    /// Refuses arguments that point out of the server's roots.
    pub(super) fn check_roots(
        &self,
        definition: Option<&ToolDefinition>,
        call: &ToolCall,
    ) -> Result<(), Error> {
        let Some(definition) = definition else { return Ok(()) };
        roots::check_arguments(&definition.input_schema, &call.arguments, &self.spec.roots)
            .map_err(|error| self.in_call(error))
    }

    /// Calls a tool once, by this definition of it.
    async fn attempt(
        &self,
        connection: &Connection,
        context: &ToolContext,
        call: &ToolCall,
        definition: Option<&ToolDefinition>,
    ) -> Result<ToolResult, Error> {
        let headers = match definition {
            Some(definition) if connection.agreement.era == Era::Modern => {
                headers::for_call(&definition.input_schema, &call.arguments)
            }
            _ => Vec::new(),
        };
        self.widen_log_level(connection, context.client.log_level).await;
        let (events, call_id) = (context.events.clone(), context.call_id.clone());
        let options = RequestOptions {
            idle_timeout: context.idle_limit,
            total_timeout: CALL_TOTAL,
            cancel: context.cancel.clone(),
            progress: Some(Arc::new(move |progress| {
                events.emit(HostEvent::Progress {
                    call_id: call_id.clone(),
                    progress: progress.done,
                    total: progress.total,
                    message: progress.message,
                });
            })),
            headers,
            log_level: context.client.log_level.or(self.log_level()),
            questions: context.client.questions,
            meta: Some(call_meta(context)),
            phase: ErrorPhase::Call,
            call: Some(context.call_id.clone()),
        };
        let as_task = calling::requires_task(connection, definition);
        calling::call(connection, call.name.tool(), &call.arguments, as_task, &options).await
    }
}

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
