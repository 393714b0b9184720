//! `fail`: always fails, with a message chosen by the caller.

use async_trait::async_trait;
use rmcp::model::{CallToolResponse, ErrorData, Tool};
use serde::Deserialize;
use serde_json::json;

use super::{DemoCall, DemoServer, DemoTool};

pub(super) struct Fail;

#[derive(Deserialize)]
struct Arguments {
    message: Option<String>,
}

#[async_trait]
impl DemoTool for Fail {
    fn definition(&self) -> Tool {
        let schema = json!({
            "type": "object",
            "properties": {
                "message": { "type": "string", "description": "The reason to give" },
            },
            "additionalProperties": false,
        });
        super::tool("fail", "Fail", "Always answers with a tool error", schema)
            .with_annotations(super::read_only())
    }

    async fn call(
        &self,
        _server: &DemoServer,
        call: DemoCall,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(match call.arguments::<Arguments>() {
            Ok(Arguments { message }) => {
                super::error_result(message.unwrap_or_else(|| "this tool always fails".to_owned()))
            }
            Err(reason) => super::error_result(reason.to_string()),
        })
    }
}
