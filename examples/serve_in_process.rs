//! A program that serves its own host over MCP: the client is at the other end of an in-memory
//! pipe, and could just as well be behind a socket or any other pair of streams.
//!
//! ```console
//! $ cargo run --example serve_in_process
//! ```

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio_util::sync::CancellationToken;
use toolhost::{
    CatalogueServer, ClientRegistry, Error, FunctionTool, ServeSettings, ServedIdentity,
    ToolContext, ToolHost, serve_stream,
};

#[derive(Deserialize, JsonSchema)]
struct Person {
    /// Who is greeted.
    name: String,
}

async fn greet(person: Person, context: ToolContext) -> Result<String, Error> {
    Ok(format!("hello {}, in session {}", person.name, context.session_id))
}

#[expect(clippy::print_stdout, reason = "an example shows what it got")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Questions and progress of running tools go to the clients.
    let clients = ClientRegistry::new();
    let host = clients.attach(ToolHost::builder()).build();
    host.register_function(FunctionTool::new("greet", "Greets a person", greet))?;

    let stop = CancellationToken::new();
    let settings = ServeSettings::default();
    let server = CatalogueServer::new(host.clone(), clients, settings, stop.clone());
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(far);
    let identity = ServedIdentity { session: "client 1".to_owned(), is_alone: true };
    let serving =
        tokio::spawn(async move { serve_stream(&server, identity, input, output, &stop).await });

    let mut client = Client { stream: BufReader::new(near), last_id: 0 };
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "example", "version": "1" },
    });
    println!("server: {}", client.request("initialize", hello).await?["serverInfo"]["name"]);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
    println!("tool: {}", client.request("tools/list", json!({})).await?["tools"][0]["name"]);
    let call = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    println!("{}", client.request("tools/call", call).await?["content"][0]["text"]);

    // The client disconnects, which ends the task that served it.
    drop(client);
    serving.await??;
    host.close().await;
    Ok(())
}

/// Just enough of a client for this example; a real program would use an MCP SDK.
struct Client {
    stream: BufReader<DuplexStream>,
    last_id: u64,
}

impl Client {
    async fn request(&mut self, method: &str, params: Value) -> Result<Value, std::io::Error> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request).await?;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == id {
                return Ok(message["result"].clone());
            }
        }
    }

    async fn send(&mut self, message: &Value) -> Result<(), std::io::Error> {
        self.stream.write_all(format!("{message}\n").as_bytes()).await
    }
}
