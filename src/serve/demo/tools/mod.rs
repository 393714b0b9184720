//! The demo tools, one file each, and the table of them.

mod add;
mod ask_name;
mod delete_note;
mod echo;
mod fail;
mod log_lines;
mod slow;
mod weather_report;

use async_trait::async_trait;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, JsonObject,
    Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::server::DemoServer;

static TOOLS: [&dyn DemoTool; 8] = [
    &echo::Echo,
    &add::Add,
    &weather_report::WeatherReport,
    &slow::Slow,
    &fail::Fail,
    &delete_note::DeleteNote,
    &ask_name::AskName,
    &log_lines::LogLines,
];

/// One tool: what it says about itself, and what it does.
#[async_trait]
pub(super) trait DemoTool: Send + Sync {
    fn definition(&self) -> Tool;

    async fn call(
        &self,
        server: &DemoServer,
        call: DemoCall,
    ) -> Result<CallToolResponse, ErrorData>;
}

pub(super) struct DemoCall {
    pub(super) request: CallToolRequestParams,
    pub(super) context: RequestContext<RoleServer>,
}

impl DemoCall {
    async fn wait_cancelled(&self, server: &DemoServer) {
        tokio::select! {
            () = self.context.ct.cancelled() => (),
            () = server.client_gone.cancelled() => (),
        }
    }

    fn arguments<T: DeserializeOwned>(&self) -> Result<T, WrongArguments> {
        let arguments = self.request.arguments.clone().unwrap_or_default();
        Ok(serde_json::from_value(Value::Object(arguments))?)
    }
}

/// Arguments that do not fit a tool, and what the parser says of them.
#[derive(Debug, thiserror::Error)]
#[error("wrong arguments: {0}")]
struct WrongArguments(#[from] serde_json::Error);

pub(super) fn definitions() -> Vec<Tool> {
    TOOLS.iter().map(|tool| tool.definition()).collect()
}

pub(super) fn find(name: &str) -> Option<&'static dyn DemoTool> {
    TOOLS.iter().copied().find(|tool| tool.definition().name == name)
}

/// A definition from its parts; `schema` must be a JSON object.
fn tool(name: &'static str, title: &str, description: &'static str, schema: Value) -> Tool {
    Tool::new(name, description, object(schema)).with_title(title)
}

fn object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    }
}

fn read_only() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).open_world(false)
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text.into())]).into()
}

/// A result with `isError` and this text.
fn error_result(reason: impl Into<String>) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(reason.into())]).into()
}
