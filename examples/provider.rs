//! Your own source of tools: a provider whose tools come from elsewhere and change while the
//! host runs. Each counter in a table is a tool; counting reports progress to any listener.
//!
//! ```console
//! $ cargo run --example provider
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::json;
use toolhost::{
    CallRequest, Error, EventSink, HostEvent, ListRequest, Origin, Preview, ToolCall, ToolContext,
    ToolDefinition, ToolHost, ToolListVersion, ToolName, ToolProvider, ToolResult, ToolSchema,
    ToolSource,
};

/// The counters, by name. A real provider would query a service, and declare that with `is_remote`.
#[derive(Default)]
struct Counters {
    values: Mutex<BTreeMap<String, u64>>,
}

impl Counters {
    fn add(&self, name: &str) {
        self.values().insert(name.to_owned(), 0);
    }

    fn values(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ToolProvider for Counters {
    /// The tools are named `counter-…`.
    fn component(&self) -> Option<&str> {
        Some("counter")
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        let tool = |name: &String| {
            let name = ToolName::of("counter", name.as_str());
            let origin = Origin::Program;
            let mut tool = ToolDefinition::new(name, ToolSource::Internal, "counter", origin);
            tool.input_schema = ToolSchema::from(json!({
                "type": "object",
                "properties": { "by": { "type": "integer", "minimum": 1, "default": 1 } },
            }));
            Arc::new(tool)
        };
        self.values().keys().map(tool).collect()
    }

    /// The host lists the tools again when this version changes.
    fn list_version(&self) -> ToolListVersion {
        ToolListVersion { change: self.values().len() as u64, ..ToolListVersion::default() }
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        // The host has already validated the arguments against the schema.
        let by = call.arguments.get("by").and_then(serde_json::Value::as_u64).unwrap_or(1);
        context.events.emit(HostEvent::Progress {
            call_id: context.call_id.clone(),
            progress: 1.0,
            total: Some(1.0),
            message: Some(format!("counting by {by}")),
        });
        let mut values = self.values();
        let value = values.get_mut(call.name.tool()).ok_or_else(|| Error::tool("it is gone"))?;
        *value += by;
        Ok(ToolResult::json(json!({ "value": *value })))
    }

    /// What `--dry-run` shows.
    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        Ok(Preview { summary: "counts".to_owned(), request: json!(call.arguments) })
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it got")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let counters = Arc::new(Counters::default());
    counters.add("visits");
    let events = EventSink::new(|event| {
        if let HostEvent::Progress { message: Some(message), .. } = event {
            println!("progress: {message}");
        }
    });
    let host = ToolHost::builder().provider(counters.clone()).events(events).build();

    println!(
        "{}",
        host.call(CallRequest::json("counter-visits", json!({}))?).await?.result?.output
    );
    let by_two = CallRequest::json("counter-visits", json!({ "by": 2 }))?;
    println!("{}", host.call(by_two).await?.result?.output);

    // A tool that is added later is found like the others.
    counters.add("errors");
    let names = host.list(&ListRequest::default()).await?.tools;
    println!("{}", names.iter().map(|tool| tool.name.full()).collect::<Vec<_>>().join(" "));
    println!(
        "{}",
        host.call(CallRequest::json("counter-errors", json!({}))?).await?.result?.output
    );
    host.close().await;
    Ok(())
}
