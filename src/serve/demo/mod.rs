//! The demo server: a small MCP server inside the binary.
#![expect(deprecated, reason = "logging is deprecated in the newest revision, and a demo shows it")]

mod handler;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::BTreeMap;
use std::sync::Mutex;

use rmcp::RoleServer;
use rmcp::model::LoggingLevel;
use rmcp::service::RequestContext;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::is_modern;
use super::listen::{accept, stream};
use super::shared_room::MessageRoom;
use crate::model::Error;
use crate::util::lock::lock;

/// The demo server: answers MCP requests of one client.
#[derive(Debug)]
struct DemoServer {
    notes: Mutex<BTreeMap<&'static str, &'static str>>,
    client_gone: CancellationToken,
    min_log_level: Mutex<LoggingLevel>,
    started: Instant,
    /// Ends the telling that a client of the older era subscribed to.
    legacy_ticker: Mutex<Option<DropGuard>>,
}

impl DemoServer {
    /// Whether the client of this request wants log messages of `level`.
    ///
    /// On 2026-07-28 a request asks for its own messages; before, one level holds for the session.
    fn wants_log(&self, level: LoggingLevel, context: &RequestContext<RoleServer>) -> bool {
        let minimum = if is_modern(context) {
            context.meta.log_level()
        } else {
            Some(*lock(&self.min_log_level))
        };
        // In the order of syslog: the more severe, the larger.
        minimum.is_some_and(|minimum| level as u8 >= minimum as u8)
    }
}

/// Serves the demo set on stdin and stdout until stdin ends.
pub async fn run() -> Result<(), Error> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(input, output).await
}

/// Serves the demo set on any pair of streams until the input ends.
async fn serve<R, W>(input: R, output: W) -> Result<(), Error>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let notes = BTreeMap::from([
        ("draft", "A note that may go."),
        ("ideas", "A tool that lists tools."),
        ("shopping", "Tea, bread, a longer cable."),
    ]);
    let server = DemoServer {
        notes: Mutex::new(notes),
        client_gone: CancellationToken::new(),
        min_log_level: Mutex::new(LoggingLevel::Info),
        started: Instant::now(),
        legacy_ticker: Mutex::default(),
    };
    let room = MessageRoom::new();
    let transport = stream::lines(input, output, room, server.client_gone.clone());
    // What its client asked before it left is still answered.
    accept::answer(server, transport, CancellationToken::new()).await
}
