//! toolhost inside your own program: a host with one provider that runs in this process, and
//! tools that are registered at run time.
//!
//! ```console
//! $ cargo run --example embed
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use toolhost::{
    CallArguments, CallRequest, Error, JsonObject, ListScope, Origin, Preview, SessionInfo,
    ToolCall, ToolContext, ToolDefinition, ToolHandler, ToolHost, ToolName, ToolProvider,
    ToolResult, ToolSchema, ToolSource,
};

/// A greeter: one tool, `greeter-hello`.
struct Greeter;

#[async_trait]
impl ToolProvider for Greeter {
    fn component(&self) -> Option<&str> {
        Some("greeter")
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        let name = ToolName::of("greeter", "hello");
        let mut hello = ToolDefinition::new(name, ToolSource::Internal, "greeter", Origin::Program);
        hello.description = Some("Says hello".to_owned());
        hello.input_schema = ToolSchema::from(json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
            "additionalProperties": false,
        }));
        vec![Arc::new(hello)]
    }

    async fn call(&self, _context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        // The host has checked the arguments against the schema, so the name is there.
        let name = call.arguments.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        Ok(ToolResult::text(format!("hello {name}")))
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        Ok(Preview { summary: "says hello".to_owned(), request: json!(call.arguments) })
    }
}

fn arguments(value: serde_json::Value) -> CallArguments {
    match value {
        serde_json::Value::Object(object) => CallArguments::Object(object),
        _ => CallArguments::Object(JsonObject::new()),
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it got")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let host = ToolHost::builder().provider(Arc::new(Greeter)).build();

    for tool in host.catalogue(&ListScope::Everything).await.tools {
        println!("{}: {}", tool.name, tool.description.as_deref().unwrap_or_default());
    }

    let request = CallRequest::new("greeter-hello", arguments(json!({ "name": "Ada" })));
    println!("{}", host.call(request).await?.result?.output);

    // Invalid arguments never reach the provider.
    let request = CallRequest::new("greeter-hello", arguments(json!({ "nome": "Ada" })));
    if let Err(error) = host.call(request).await {
        println!("{error}: {}", error.details().join(", "));
    }

    // Tools can be added and removed while the host runs: any async function of this shape is one.
    // Calls they make go through the host like any other.
    host.register(definition("welcome", "Greets somebody twice"), welcome)?;
    let request = CallRequest::new("welcome", arguments(json!({ "name": "Ada" })));
    println!("{}", host.call(request).await?.result?.output);
    if let Err(error) = host.register(definition("welcome", "Another one"), welcome) {
        println!("{error}");
    }

    // A session tool is created for each session, from that session's context.
    host.register_session(definition("count", "Counts the calls of a session"), counter)?;
    host.open_session(SessionInfo { session_id: "ada's".into(), ..SessionInfo::default() })?;
    for _ in 0..2 {
        let mut request = CallRequest::new("count", arguments(json!({ "name": "Ada" })));
        request.session = Some("ada's".to_owned());
        println!("{}", host.call(request).await?.result?.output);
    }
    host.end_session("ada's");

    host.unregister("welcome");
    println!("{} registered tool left", host.registered().len());

    host.close().await;
    Ok(())
}

/// A tool that takes a name.
fn definition(name: &str, description: &str) -> ToolDefinition {
    let name = ToolName::plain(name);
    let mut tool = ToolDefinition::new(name, ToolSource::Internal, "program", Origin::Program);
    tool.description = Some(description.to_owned());
    tool.input_schema = ToolSchema::from(json!({
        "type": "object",
        "properties": { "name": { "type": "string" } },
        "required": ["name"],
    }));
    tool
}

async fn welcome(arguments: JsonObject, context: ToolContext) -> Result<ToolResult, Error> {
    let Some(caller) = context.caller.clone() else {
        return Err(Error::internal("there is no host to call"));
    };
    let hello = caller.call(&context, "greeter-hello", arguments).await?.output;
    Ok(ToolResult::text(format!("{0}, {0}", hello.as_str().unwrap_or_default())))
}

fn counter(session: &SessionInfo) -> impl ToolHandler + use<> {
    let (id, calls) = (session.session_id.clone(), AtomicUsize::new(0));
    move |_: JsonObject, _: ToolContext| {
        let count = calls.fetch_add(1, Ordering::Relaxed) + 1;
        let said = format!("{id} call {count}");
        async move { Ok(ToolResult::text(said)) }
    }
}
