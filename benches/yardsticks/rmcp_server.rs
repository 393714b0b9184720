//! An echo server built on rmcp alone, the baseline of P17: what `toolhost serve` costs compared with
//! the SDK that it is built on.
//!
//! ```console
//! $ cargo run --example rmcp_server            # on standard input and output
//! $ cargo run --example rmcp_server -- --http  # at the port it prints
//! ```

#![expect(clippy::print_stdout, reason = "the port is for the program that started this one")]

use std::convert::Infallible;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde_json::json;
use tokio::net::TcpListener;

#[derive(Clone)]
struct Echo;

fn echo() -> Tool {
    let schema = json!({ "type": "object", "properties": { "message": { "type": "string" } } });
    Tool::new(
        "echo",
        "Returns its message",
        Arc::new(schema.as_object().cloned().unwrap_or_default()),
    )
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![echo()]))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == "echo").then(echo)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let message = request.arguments.as_ref().and_then(|given| given.get("message"));
        let message = message.and_then(|message| message.as_str()).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(message)]).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() != Some("--http") {
        Echo.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let sessions: Arc<LocalSessionManager> = Arc::default();
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(|| Ok(Echo), sessions, config);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("port {}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            let _gone = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}
