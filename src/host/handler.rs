//! The trait for tools implemented by a program's own functions.

use futures_util::future::BoxFuture;

use crate::model::{Error, JsonObject, ToolContext, ToolResult};

/// The code behind a registered tool. Every async function with this signature is one: `async
/// fn(JsonObject, ToolContext) -> Result<ToolResult, Error>`.
///
/// The arguments have been checked against the tool's schema. The context has the session, the sink
/// for progress, the token that fires when the call should stop, and a way to call other tools.
pub trait ToolHandler: Send + Sync {
    /// Runs one attempt of a call.
    fn call(
        &self,
        arguments: JsonObject,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolResult, Error>>;
}

impl<F, R> ToolHandler for F
where
    F: Fn(JsonObject, ToolContext) -> R + Send + Sync,
    R: Future<Output = Result<ToolResult, Error>> + Send + 'static,
{
    fn call(
        &self,
        arguments: JsonObject,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolResult, Error>> {
        Box::pin(self(arguments, context))
    }
}
