//! toolhost inside a program of your own: a host with one provider that runs in this process.
//!
//! ```console
//! $ cargo run --example embed
//! ```

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use toolhost::host::ToolHost;
use toolhost::host::request::{Arguments, CallRequest, Reach};
use toolhost::model::{
    Fault, JsonObject, Listing, Origin, Source, ToolCall, ToolContext, ToolDefinition, ToolName,
    ToolResult,
};
use toolhost::provider::{Preview, ToolProvider};

/// A greeter: one tool, `greeter-hello`.
struct Greeter;

#[async_trait]
impl ToolProvider for Greeter {
    fn component(&self) -> Option<&str> {
        Some("greeter")
    }

    fn declared(&self) -> Vec<ToolDefinition> {
        let name = ToolName::of("greeter", "hello");
        let origin = Origin::Server("greeter".to_owned());
        let mut hello = ToolDefinition::new(name, Source::Internal, "greeter", origin);
        hello.description = Some("Says hello".to_owned());
        hello.input_schema = Arc::new(json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
            "additionalProperties": false,
        }));
        vec![hello]
    }

    async fn list(&self) -> Result<Listing, Fault> {
        Ok(Listing { tools: self.declared(), ..Listing::default() })
    }

    async fn call(&self, _context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Fault> {
        // The host has checked the arguments against the schema, so the name is there.
        let name = call.arguments.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        Ok(ToolResult::text(format!("hello {name}")))
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Fault> {
        Ok(Preview { summary: "says hello".to_owned(), request: json!(call.arguments) })
    }
}

fn arguments(value: serde_json::Value) -> Arguments {
    match value {
        serde_json::Value::Object(object) => Arguments::Object(object),
        _ => Arguments::Object(JsonObject::new()),
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it got")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Fault> {
    let host = ToolHost::builder().provider(Arc::new(Greeter)).build();

    for tool in host.catalogue(&Reach::Everything).await.tools {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }

    let request = CallRequest::new("greeter-hello", arguments(json!({ "name": "Ada" })));
    println!("{}", host.call(request).await?.result?.output);

    // Arguments that do not fit never reach the provider.
    let request = CallRequest::new("greeter-hello", arguments(json!({ "nome": "Ada" })));
    if let Err(fault) = host.call(request).await {
        println!("{fault}: {}", fault.detail_lines().join(", "));
    }

    host.close().await;
    Ok(())
}
