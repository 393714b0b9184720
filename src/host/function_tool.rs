//! Tools made from a program's own functions.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ToolHost;
use super::registration::RegistrationError;
use crate::model::{
    Error, JsonObject, Origin, ToolContext, ToolDefinition, ToolName, ToolResult, ToolSchema,
    ToolSource,
};

/// A tool that is an async function of the program.
///
/// The schema of its arguments is derived from their type, so a model sees the doc comments on
/// fields as descriptions.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolhost::{CallRequest, Error, FunctionTool, ToolContext, ToolHost};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Sum {
///     /// The numbers to add.
///     numbers: Vec<i64>,
/// }
///
/// async fn sum(arguments: Sum, _: ToolContext) -> Result<String, Error> {
///     Ok(arguments.numbers.iter().sum::<i64>().to_string())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let host = ToolHost::builder().build();
/// host.register_function(FunctionTool::new("sum", "Adds numbers", sum))?;
/// let request = CallRequest::json("sum", serde_json::json!({ "numbers": [1, 2] }))?;
/// assert_eq!(host.call(request).await?.result?.output, "3");
/// # Ok(())
/// # }
/// ```
pub struct FunctionTool {
    definition: ToolDefinition,
    handler: Arc<dyn ToolHandler>,
}

impl FunctionTool {
    /// Creates a tool with this name. The function gets its arguments as its own argument type,
    /// after they were checked against the schema of that type, which must be an object.
    pub fn new<A, T, F, R>(name: &str, description: &str, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        T: ToolOutput,
        F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let tool_name = ToolName::plain(name);
        let origin = Origin::Program;
        let mut definition =
            ToolDefinition::new(tool_name, ToolSource::Internal, "program", origin);
        definition.description = Some(description.to_owned());
        definition.input_schema = ToolSchema::from(schema_of::<A>());
        definition.output_schema = T::schema().map(ToolSchema::from);
        let name = name.to_owned();
        let handler = move |arguments: JsonObject, context: ToolContext| {
            let arguments = serde_json::from_value::<A>(Value::Object(arguments));
            let running =
                arguments.map(|arguments| function(arguments, context)).map_err(|error| {
                    Error::usage(format!("the arguments of '{name}' do not fit: {error}"))
                });
            async move { running?.await?.into_result() }
        };
        Self { definition, handler: Arc::new(handler) }
    }

    /// Changes the definition of the tool: its category, whether it needs approval, its limits.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut ToolDefinition)) -> Self {
        change(&mut self.definition);
        self
    }

    /// The tool as it will be listed.
    pub fn definition(&self) -> &ToolDefinition {
        &self.definition
    }
}

impl ToolHost {
    /// Adds a tool that is an async function; from now on it is listed and called like any other.
    ///
    /// # Errors
    /// Like [`ToolHost::register`].
    pub fn register_function(&self, tool: FunctionTool) -> Result<(), RegistrationError> {
        let FunctionTool { definition, handler } = tool;
        self.register(definition, move |arguments, context| handler.call(arguments, context))
    }
}

/// What a [`FunctionTool`] may return: a text, a JSON value, a [`Structured`] value with a schema, or
/// a whole [`ToolResult`].
pub trait ToolOutput {
    /// The schema that every result matches; `None` for no promise.
    fn schema() -> Option<Value> {
        None
    }

    /// The result of the call.
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    fn into_result(self) -> Result<ToolResult, Error>;
}

impl ToolOutput for ToolResult {
    fn into_result(self) -> Result<ToolResult, Error> {
        Ok(self)
    }
}

impl ToolOutput for String {
    fn into_result(self) -> Result<ToolResult, Error> {
        Ok(ToolResult::text(self))
    }
}

impl ToolOutput for Value {
    fn into_result(self) -> Result<ToolResult, Error> {
        Ok(ToolResult::json(self))
    }
}

/// A value that a tool returns as a structured result, with the schema of its type as the tool's
/// output schema. The type must serialize to a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structured<T>(pub T);

impl<T: Serialize + JsonSchema> ToolOutput for Structured<T> {
    fn schema() -> Option<Value> {
        Some(schema_of::<T>())
    }

    fn into_result(self) -> Result<ToolResult, Error> {
        let value = serde_json::to_value(self.0).map_err(|error| {
            Error::tool(format!("the result cannot be written as JSON: {error}"))
        })?;
        Ok(ToolResult::json(value))
    }
}

fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>();
    // Which draft it is goes without saying, and an empty object says nothing of its properties.
    schema.remove("$schema");
    schema.insert("type".to_owned(), json!("object"));
    schema.to_value()
}

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
