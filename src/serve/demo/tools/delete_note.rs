//! `delete_note`: a destructive tool, for trying approval.

use async_trait::async_trait;
use rmcp::model::{CallToolResponse, ErrorData, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::json;

use super::{DemoCall, DemoServer, DemoTool};

pub(super) struct DeleteNote;

#[derive(Deserialize)]
struct Arguments {
    name: String,
}

#[async_trait]
impl DemoTool for DeleteNote {
    fn definition(&self) -> Tool {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {
                    "type": "string",
                    "description": "The note to delete",
                    "examples": ["draft"],
                },
            },
            "required": ["name"],
            "additionalProperties": false,
        });
        super::tool(
            "delete_note",
            "Delete a note",
            "Deletes one of the notes draft, ideas and shopping, which return at the next start",
            schema,
        )
        .with_annotations(
            ToolAnnotations::new()
                .read_only(false)
                .destructive(true)
                .idempotent(true)
                .open_world(false),
        )
    }

    async fn call(
        &self,
        server: &DemoServer,
        call: DemoCall,
    ) -> Result<CallToolResponse, ErrorData> {
        let Arguments { name } = match call.arguments() {
            Ok(arguments) => arguments,
            Err(reason) => return Ok(super::error_result(reason.to_string())),
        };
        Ok(if server.notes.delete(&name) {
            super::text(format!("deleted {name}"))
        } else {
            let names = server.notes.names().join(", ");
            super::error_result(format!("there is no note '{name}'; there are: {names}"))
        })
    }
}
