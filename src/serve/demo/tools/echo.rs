//! `echo`: returns its input.

use async_trait::async_trait;
use rmcp::model::{CallToolResponse, ErrorData, Tool};
use serde::Deserialize;
use serde_json::json;

use super::{DemoCall, DemoServer, DemoTool};

pub(super) struct Echo;

#[derive(Deserialize)]
struct Arguments {
    message: String,
}

#[async_trait]
impl DemoTool for Echo {
    fn definition(&self) -> Tool {
        let schema = json!({
            "type": "object",
            "properties": { "message": { "type": "string", "description": "What to send back" } },
            "required": ["message"],
            "additionalProperties": false,
        });
        super::tool("echo", "Echo", "Sends a message back unchanged", schema)
            .with_annotations(super::read_only())
    }

    async fn call(
        &self,
        _server: &DemoServer,
        call: DemoCall,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(match call.arguments::<Arguments>() {
            Ok(arguments) => super::text(arguments.message),
            Err(reason) => super::error_result(reason.to_string()),
        })
    }
}
