//! One `tools/call` of a client, as a call of the host.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ErrorData};
use rmcp::service::RequestContext;
use serde_json::Value;

use super::parked_requests::RequestKey;
use super::{CatalogueServer, offerings, result};
use crate::host::request::{CallArguments, CallRequest};
use crate::mcp::rpc_code::MISSING_CAPABILITY;
use crate::model::{Error, ErrorCause, ErrorKind, JsonObject, RequestScope, TraceContext};

/// What a call carries of the request that asked for it.
pub(super) struct CallerDetails {
    /// What tools may know of the client: its name.
    metadata: JsonObject,
    /// The trace that the call belongs to (W3C), as its `_meta` says.
    trace: Option<TraceContext>,
}

impl CallerDetails {
    /// What the request says about its sender.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let mut metadata = JsonObject::new();
        if let Some(client) = context.client_info() {
            metadata.insert("client".into(), Value::String(client.name));
        }
        let text = |key: &str| context.meta.get(key).and_then(Value::as_str);
        let trace =
            text("traceparent").map(|parent| TraceContext::parse(parent, text("tracestate")));
        Self { metadata, trace: trace.and_then(Result::ok) }
    }
}

impl CatalogueServer {
    /// Makes the call that a client asked for.
    pub(super) async fn call_tool(
        self: Arc<Self>,
        key: RequestKey,
        caller: CallerDetails,
        scope: RequestScope,
    ) -> Result<CallToolResult, ErrorData> {
        let offered = self.tools.known();
        let name = offered.find(&key.name).map_or(key.name.as_str(), |tool| &tool.full_name);
        let request = CallRequest {
            id: scope.call,
            assume_yes: self.settings.assume_yes,
            session: Some(key.session),
            metadata: caller.metadata,
            trace: caller.trace,
            client: scope.client,
            cancel: scope.cancel,
            ..CallRequest::new(name, CallArguments::Object(key.arguments))
        };
        let error = match self.host.call(request).await {
            Ok(outcome) => match outcome.result {
                Ok(result) => return Ok(result::of_result(result)),
                Err(error) => error,
            },
            Err(error) if self.is_unknown(&key.name, &error).await => {
                return Err(ErrorData::invalid_params(result::words(&error), None));
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
        error.kind() == ErrorKind::Usage
            && self.host.find(name, &[]).await.is_err_and(|e| e.kind() == ErrorKind::Usage)
    }
}
