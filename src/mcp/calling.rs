//! Calling a tool: questions, tasks, and the answer as one result.

use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::{Connection, RequestOptions};
use super::results::{self, unusable_result};
use super::rounds::{self, RequestResult};
use super::tasks::{self, Dialect};
use crate::model::{Era, Error, ErrorPhase, JsonObject, ToolDefinition, ToolResult};

/// Calls `tool`; `as_task` asks for a task (see [`requires_task`]).
pub async fn call(
    connection: &Connection,
    tool: &str,
    arguments: &JsonObject,
    as_task: bool,
    options: &RequestOptions,
) -> Result<ToolResult, Error> {
    let named = |error: Error| connection.in_context(error, ErrorPhase::Call);
    let mut params = JsonObject::new();
    if as_task {
        params.insert("task".to_owned(), json!({ "ttl": tasks::TIME_TO_LIVE }));
    }
    // A task reports progress under the token of its call until it ends.
    let RequestResult { result, raw, progress: _until_the_end } =
        rounds::request(connection, "tools/call", (params, Some((tool, arguments))), options)
            .await?;
    let kind = result.get("resultType").map(|t| t.as_str().unwrap_or_default());
    let result = match kind {
        None if as_task && result.get("task").is_some_and(Value::is_object) => {
            let first = result.get("task").and_then(Value::as_object).cloned().unwrap_or_default();
            Box::pin(tasks::await_result(connection, &first, Dialect::Core, options)).await
        }
        None | Some("complete") => results::read(result, raw.get()),
        Some("task") => {
            Box::pin(tasks::await_result(connection, &result, Dialect::Extension, options)).await
        }
        Some(other) => {
            Err(unusable_result(&format!("has the unknown resultType {other:?}"), raw.get()))
        }
    };
    let mut result = result.map_err(named)?;
    result.error = result.error.map(named);
    Ok(result)
}

/// Whether a tool must be called as a task, as revision 2025-11-25 has them. Later ones leave it
/// to the server.
pub fn requires_task(connection: &Connection, definition: Option<&ToolDefinition>) -> bool {
    if connection.agreement.era != Era::Legacy {
        return false;
    }
    let offered = &connection.agreement.capabilities["tasks"]["requests"]["tools"]["call"];
    offered.is_object() && definition.is_some_and(declares_task)
}

/// Whether a definition says so. Each call asks, so nothing else of it is made a tree of.
fn declares_task(definition: &ToolDefinition) -> bool {
    #[derive(Deserialize)]
    struct Declared {
        execution: Execution,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Execution {
        task_support: Value,
    }
    let raw = definition.raw.as_ref().map_or("null", |raw| raw.get());
    serde_json::from_str::<Declared>(raw)
        .is_ok_and(|declared| declared.execution.task_support == "required")
}
