//! Registration on a running host, in your own program: a component type, components of that
//! type and of a built-in one, a provider, and an MCP server. Two agents see the host through
//! their own profiles, and everything is removed again while calls run.
//!
//! ```console
//! $ cargo run --example register -- toolhost demo-server
//! ```

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolhost::{
    CallArguments, CallRequest, ComponentConfig, Environment, Error, FrontEnd, JsonObject,
    ListRequest, Origin, Preview, ProcessEnvironment, ProfileSpec, ToolCall, ToolContext,
    ToolDefinition, ToolHost, ToolName, ToolProvider, ToolResult, ToolSource, host_builder,
};

/// A component that greets: one tool, `{component}-hello`.
struct Greeter {
    component: String,
    greeting: String,
}

/// Creates a greeter from its settings.
fn greeter(config: &ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error> {
    let Some(Value::String(greeting)) = config.settings.get("greeting") else {
        return Err(Error::config(format!("'{}' needs a text as its 'greeting'", config.name)));
    };
    let (component, greeting) = (config.name.clone(), greeting.clone());
    Ok(Arc::new(Greeter { component, greeting }))
}

#[async_trait]
impl ToolProvider for Greeter {
    fn component(&self) -> Option<&str> {
        Some(&self.component)
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        vec![definition(ToolName::of(&*self.component, "hello"))]
    }

    async fn call(&self, _: &ToolContext, _: &ToolCall) -> Result<ToolResult, Error> {
        Ok(ToolResult::text(self.greeting.clone()))
    }

    async fn preview(&self, _: &ToolCall) -> Result<Preview, Error> {
        Ok(Preview { summary: "greets".to_owned(), request: json!({}) })
    }
}

/// A provider whose only tool runs until it is told that the work is done.
struct Worker {
    has_begun: Arc<Notify>,
    is_done: Arc<Notify>,
}

#[async_trait]
impl ToolProvider for Worker {
    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        vec![definition(ToolName::plain("work"))]
    }

    async fn call(&self, context: &ToolContext, _: &ToolCall) -> Result<ToolResult, Error> {
        self.has_begun.notify_one();
        tokio::select! {
            () = self.is_done.notified() => Ok(ToolResult::text("the work is done")),
            () = context.cancel.cancelled() => Err(Error::tool("the work was stopped")),
        }
    }

    async fn preview(&self, _: &ToolCall) -> Result<Preview, Error> {
        Ok(Preview { summary: "works".to_owned(), request: json!({}) })
    }
}

/// A tool without arguments.
fn definition(name: ToolName) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition::new(name, ToolSource::Internal, "example", Origin::Program))
}

#[expect(clippy::print_stdout, reason = "an example shows what it got")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let server =
        if words.is_empty() { vec!["toolhost".into(), "demo-server".into()] } else { words };

    let environment: Arc<dyn Environment> = Arc::new(ProcessEnvironment);
    let profiles = [("writer", vec!["notes-*", "desk-*"]), ("caller", vec!["demo-echo", "work"])];
    let profiles = profiles.map(|(name, include)| {
        let include = include.into_iter().map(str::to_owned).collect();
        (name.to_owned(), ProfileSpec { include, ..ProfileSpec::default() })
    });
    let host = host_builder(&environment, FrontEnd::headless()).profiles(profiles).build();

    // Our own component type, in addition to the built-in ones.
    host.register_kind("greeter", greeter)?;
    println!("types: {}", host.kinds().join(" "));
    host.register_component("greeter", &component("desk", json!({ "greeting": "good day" })))?;
    host.register_component("storage", &component("notes", json!({ "storage_type": "memory" })))?;
    let (has_begun, is_done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let worker = Worker { has_begun: Arc::clone(&has_begun), is_done: Arc::clone(&is_done) };
    host.register_provider("worker", Arc::new(worker))?;
    // Nothing is started before it is needed.
    let entry = json!({ "command": server[0], "args": server[1..] });
    host.register_client(&component("demo", entry))?;
    println!("registered: {}", host.sources().join(" "));

    // Names must be unique, and types must be known.
    for (key, name) in [("greeter", "notes"), ("greter", "other")] {
        let settings = json!({ "greeting": "hi" });
        if let Err(error) = host.register_component(key, &component(name, settings)) {
            println!("refused: {error}");
        }
    }

    // Each agent sees its own part of the one list, and only the servers in it are contacted.
    for profile in ["writer", "caller"] {
        let listed = host.list(&ListRequest::in_profile(profile)).await?;
        let names: Vec<String> = listed.tools.iter().map(|tool| tool.name.full()).collect();
        println!("{profile} sees: {}", names.join(" "));
    }
    call(&host, "writer", "notes-write", json!({ "key": "milk", "value": 2 })).await?;
    println!("{}", call(&host, "writer", "notes-read", json!({ "key": "milk" })).await?);
    println!("{}", call(&host, "writer", "desk-hello", json!({})).await?);
    println!("{}", call(&host, "caller", "demo-echo", json!({ "message": "over MCP" })).await?);
    if let Err(error) = call(&host, "caller", "notes-read", json!({ "key": "milk" })).await {
        println!("refused: {error}");
    }

    // A running call outlives the registration; new calls get an error.
    let running = tokio::spawn({
        let host = Arc::clone(&host);
        async move { call(&host, "caller", "work", json!({})).await }
    });
    has_begun.notified().await;
    let removing = tokio::spawn({
        let host = Arc::clone(&host);
        async move { host.unregister_provider("worker").await }
    });
    while host.sources().contains(&"worker".to_owned()) {
        tokio::task::yield_now().await;
    }
    if let Err(error) = call(&host, "caller", "work", json!({})).await {
        println!("refused: {error}");
    }
    is_done.notify_one();
    println!("{}", running.await.map_err(|error| Error::internal(error.to_string()))??);
    let removal = removing.await.map_err(|error| Error::internal(error.to_string()))??;
    println!("cancelled calls: {}", removal.cancelled);

    host.unregister_client("demo").await?;
    host.unregister_component("notes").await?;
    host.unregister_kind("greeter")?;
    println!("left: {}", host.sources().join(" "));
    host.close().await;
    Ok(())
}

fn component(name: &str, settings: Value) -> ComponentConfig {
    ComponentConfig::new(name, object(settings))
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Calls a tool for the agent with this profile.
async fn call(
    host: &ToolHost,
    profile: &str,
    name: &str,
    arguments: Value,
) -> Result<Value, Error> {
    let request = CallRequest {
        profile: Some(profile.to_owned()),
        ..CallRequest::new(name, CallArguments::Object(object(arguments)))
    };
    Ok(host.call(request).await?.result?.output)
}
