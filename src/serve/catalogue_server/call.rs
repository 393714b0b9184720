//! One `tools/call` of a client, as a call of the host.

use std::sync::Arc;

use rmcp::model::{CallToolResponse, CallToolResult, ErrorData, ServerResult};

use super::exchange::ClientRequest;
use super::running_request::RequestKey;
use super::{CatalogueServer, mixed_up, offerings, result};
use crate::host::request::{CallArguments, CallRequest, ItemRequest, LookupScope};
use crate::mcp::rpc_code::MISSING_CAPABILITY;
use crate::model::{Error, ErrorCause, ErrorKind};
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
                Ok(result) => return Ok(result::of_result(result)),
                Err(error) => error,
            },
            Err(error) if self.is_unknown(&key.name, &error).await => {
                return Err(ErrorData::invalid_params(result::error_text(&error), None));
            }
            Err(error) => error,
        };
        match error.cause() {
            // For the client's program, not for its model.
            ErrorCause::Rpc { code: MISSING_CAPABILITY } => Err(offerings::protocol_error(&error)),
            _ => Ok(result::of_error(&error)),
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
