//! An agent loop: exports the tools for a model, runs the calls in its responses, and sends the results
//! back. The model here is a script; a real one would be called over HTTP in the same place.
//!
//! ```console
//! $ cargo run --example agent_loop
//! ```

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolhost::{
    Error, FunctionTool, ListRequest, ModelFormat, ToolContext, ToolHost, UsageCounter,
};

#[derive(Deserialize, JsonSchema)]
struct City {
    /// The name of the city.
    city: String,
}

async fn weather(arguments: City, _: ToolContext) -> Result<String, Error> {
    match arguments.city.as_str() {
        "Oslo" => Ok("snow, -4 °C".to_owned()),
        city => Err(Error::tool(format!("no station in {city}"))),
    }
}

/// A scripted model that returns one response each time it is called.
struct ScriptedModel {
    responses: std::vec::IntoIter<Value>,
}

impl ScriptedModel {
    fn new() -> Self {
        let call = |id: &str, input: Value| json!({ "type": "tool_use", "id": id, "name": "weather", "input": input });
        let responses = vec![
            json!({ "role": "assistant", "content": [
                { "type": "text", "text": "I'll look." },
                call("a", json!({ "city": "Oslo" })),
                call("b", json!({ "city": "Atlantis" })),
                call("c", json!({ "town": "Oslo" })),
            ] }),
            json!({ "role": "assistant", "content": [
                { "type": "text", "text": "It snows in Oslo." },
            ] }),
        ];
        Self { responses: responses.into_iter() }
    }

    fn respond(&mut self, _tools: &Value, _messages: &[Value]) -> Option<Value> {
        self.responses.next()
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it got")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = std::sync::Arc::new(UsageCounter::default());
    let host = ToolHost::builder().recorder(usage.clone()).build();
    host.register_function(FunctionTool::new("weather", "The weather of a city", weather))?;

    let format = ModelFormat::Anthropic;
    let catalogue = host.list(&ListRequest::default()).await?;
    let exported = format.export(catalogue.tools.iter().map(AsRef::as_ref));
    println!("tools: {}", exported.definitions()[0]["name"]);

    let mut model = ScriptedModel::new();
    let mut messages = vec![json!({ "role": "user", "content": "How is the weather in Oslo?" })];
    while let Some(response) = model.respond(&exported.definitions(), &messages) {
        let calls = format.requested_calls(&response)?;
        messages.push(response);
        if calls.is_empty() {
            break;
        }
        let mut answers = Vec::new();
        for call in calls {
            let answer = host.answer_model(&exported, &call, |request| {
                request.session = Some("conversation 1".to_owned());
            });
            let answer = answer.await;
            answers.push((call, answer));
        }
        messages.extend(format.answer_messages(&answers));
    }

    for result in messages[2]["content"].as_array().into_iter().flatten() {
        println!("{}: {}", result["tool_use_id"], result["content"][0]["text"]);
    }
    println!("{}", messages[3]["content"][0]["text"]);
    let total = usage.total();
    println!("{} calls, failures: {}", total.calls(), total.failures_text());
    host.close().await;
    Ok(())
}
