//! One `tools/call` of a client, as a call of the host.
//!
//! The outcome of a call, in the shape of `tools/call`.
//!
//! A failure of the tool, of its server or of toolhost's own checks is a result with `isError`, so
//! that the model reads why; only a name that is not offered is an error of the protocol.

use std::sync::Arc;

use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, ErrorData, MetaObject, ServerResult,
};
use serde::Deserialize as _;
use serde_json::Value;

use super::exchange::ClientRequest;
use super::running_request::RequestKey;
use super::{CatalogueServer, mixed_up, offerings};
use crate::host::request::{CallArguments, CallRequest, ItemRequest, LookupScope};
use crate::mcp::message::MISSING_CAPABILITY;
use crate::model::{Error, ErrorCause, ErrorKind, ToolResult};
use crate::serve::background::service;

impl CatalogueServer {
    /// Answers `tools/call`; with `front_end_call` that of a front end of this program.
    ///
    /// # Errors
    /// A request that cannot be read, a tool that is not offered, and what else is for the client's
    /// program.
    pub(super) async fn answer_call(
        self: &Arc<Self>,
        request: ClientRequest,
        front_end_call: Option<CallRequest>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client_name = request.context.client_info().map(|client| client.name);
        let answer = self.exchange(request, |server, key, item| async move {
            let result = match front_end_call {
                Some(call) => {
                    let ItemRequest { id, client, cancel, .. } = item;
                    let call = CallRequest { id, client, cancel, ..call };
                    service::outcome(&server.host.call(call).await)
                }
                None => server.call_tool(key, client_name, item).await,
            };
            result.map(ServerResult::CallToolResult)
        });
        match answer.await? {
            ServerResult::CallToolResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(required) => Ok(required.into()),
            ServerResult::CreateTaskResult(task) => Ok(task.into()),
            _ => Err(mixed_up()),
        }
    }

    async fn call_tool(
        self: Arc<Self>,
        key: RequestKey,
        client_name: Option<String>,
        item: ItemRequest,
    ) -> Result<CallToolResult, ErrorData> {
        let ItemRequest { id, session, metadata, user_id, trace, client, cancel, .. } = item;
        let offered = self.latest_tools();
        let name = offered.get(&key.name).map_or(key.name.as_str(), |tool| &tool.full_name);
        let request = CallRequest {
            id,
            assume_yes: self.settings.assume_yes,
            session,
            metadata,
            user_id,
            trace,
            client_name,
            client,
            cancel,
            ..CallRequest::new(name, CallArguments::Object(key.arguments))
        };
        let error = match self.host.call(request).await {
            Ok(outcome) => match outcome.result {
                Ok(result) => return Ok(of_result(result)),
                Err(error) => error,
            },
            Err(error) if self.is_unknown(&key.name, &error).await => {
                return Err(ErrorData::invalid_params(error_text(&error), None));
            }
            Err(error) => error,
        };
        match error.cause() {
            // For the client's program, not for its model.
            ErrorCause::Rpc { code: MISSING_CAPABILITY } => Err(offerings::protocol_error(&error)),
            _ => Ok(of_error(&error)),
        }
    }

    /// Whether a call was refused because no tool has its name.
    async fn is_unknown(&self, name: &str, error: &Error) -> bool {
        if error.kind() != ErrorKind::Usage {
            return false;
        }
        let lookup = self.host.find(name, &LookupScope::default()).await;
        lookup.is_err_and(|error| error.kind() == ErrorKind::Usage)
    }
}

pub(super) fn of_result(result: ToolResult) -> CallToolResult {
    let mut content: Vec<ContentBlock> = result.content.iter().map(block).collect();
    // When a failed tool returned no content, its error is the content.
    if let Some(error) = result.error.as_ref().filter(|_| content.is_empty()) {
        content.push(ContentBlock::text(error_text(error)));
    }
    let mut sent = CallToolResult::success(content);
    sent.structured_content = result.structured;
    sent.is_error = (!result.success || result.error.is_some()).then_some(true);
    sent.meta = result.meta.and_then(meta);
    sent
}

pub(super) fn meta(meta: Value) -> Option<MetaObject> {
    match meta {
        Value::Object(entries) => Some(MetaObject(entries)),
        _ => None,
    }
}

pub(super) fn of_error(error: &Error) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error_text(error))])
}

/// The message, the details and what to do, unless that is something to type into a shell, which a
/// client does not have.
pub(super) fn error_text(error: &Error) -> String {
    let mut text = error.to_string();
    for detail in error.details() {
        text.push('\n');
        text.push_str(detail);
    }
    let is_for_a_shell = |hint: &&str| hint.contains("--") || hint.contains("toolhost ");
    if let Some(hint) = error.hint().filter(|hint| !is_for_a_shell(hint)) {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    text
}

/// A block of a kind that the SDK does not know is sent as its JSON.
fn block(block: &Value) -> ContentBlock {
    ContentBlock::deserialize(block).unwrap_or_else(|_| ContentBlock::text(block.to_string()))
}
