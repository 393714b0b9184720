//! `log_lines`: sends log notifications while it runs.
#![expect(deprecated, reason = "logging is deprecated in the newest revision, and a demo shows it")]

use async_trait::async_trait;
use rmcp::model::{
    CallToolResponse, ErrorData, LoggingLevel, LoggingMessageNotificationParam, Tool,
};
use serde::Deserialize;
use serde_json::json;

use super::{DemoCall, DemoServer, DemoTool};

/// Maximum number of lines one call sends.
const MAX_LINES: u32 = 100;

pub(super) struct LogLines;

#[derive(Deserialize)]
struct Arguments {
    #[serde(default = "three")]
    count: u32,
    #[serde(default = "info")]
    level: LoggingLevel,
}

fn three() -> u32 {
    3
}

fn info() -> LoggingLevel {
    LoggingLevel::Info
}

#[async_trait]
impl DemoTool for LogLines {
    fn definition(&self) -> Tool {
        let schema = json!({
            "type": "object",
            "properties": {
                "count": { "type": "integer", "minimum": 0, "maximum": MAX_LINES, "default": 3 },
                "level": {
                    "type": "string",
                    "enum": [
                        "debug", "info", "notice", "warning",
                        "error", "critical", "alert", "emergency",
                    ],
                    "default": "info",
                },
            },
            "additionalProperties": false,
        });
        super::tool("log_lines", "Log lines", "Sends log messages before it answers", schema)
            .with_annotations(super::read_only())
    }

    async fn call(
        &self,
        server: &DemoServer,
        call: DemoCall,
    ) -> Result<CallToolResponse, ErrorData> {
        let Arguments { count, level } = match call.arguments() {
            Ok(arguments) => arguments,
            Err(reason) => return Ok(super::error_result(reason.to_string())),
        };
        if count > MAX_LINES {
            return Ok(super::error_result(format!("'count' must be between 0 and {MAX_LINES}")));
        }
        let mut sent = 0;
        if server.wants_log(level, &call.context) {
            for line in 1..=count {
                let message =
                    LoggingMessageNotificationParam::new(level, json!(format!("line {line}")))
                        .with_logger("demo");
                if call.context.peer.notify_logging_message(message).await.is_err() {
                    break;
                }
                sent += 1;
            }
        }
        Ok(super::text(format!("sent {sent} of {count} lines")))
    }
}
