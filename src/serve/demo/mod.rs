//! The demo server: a small MCP server inside the binary.
#![expect(deprecated, reason = "logging is deprecated in the newest revision, and a demo shows it")]

mod handler;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rmcp::model::{LoggingLevel, ProtocolVersion};
use rmcp::service::{QuitReason, RequestContext, ServerInitializeError};
use rmcp::{RoleServer, ServiceExt as _};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::model::Error;

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

impl Default for DemoServer {
    fn default() -> Self {
        let notes = BTreeMap::from([
            ("draft", "A note that may go."),
            ("ideas", "A tool that lists tools."),
            ("shopping", "Tea, bread, a longer cable."),
        ]);
        Self {
            notes: Mutex::new(notes),
            client_gone: CancellationToken::new(),
            min_log_level: Mutex::new(LoggingLevel::Info),
            started: Instant::now(),
            legacy_ticker: Mutex::default(),
        }
    }
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

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves the demo set on stdin and stdout until stdin ends.
pub async fn run() -> Result<(), Error> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(input, output).await
}

/// Serves the demo set on any pair of streams until the input ends.
async fn serve<R, W>(input: R, output: W) -> Result<(), Error>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let server = DemoServer::default();
    let input = EofReader { input, ended: server.client_gone.clone() };
    let running = match server.serve((input, output)).await {
        Ok(running) => running,
        // A client that disconnects before its first message, or after a probe, is not a failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(Error::protocol(format!("the demo server stopped: {error}"))),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => {
            Err(Error::internal(format!("the demo server stopped: {error}")))
        }
        Ok(_) => Ok(()),
    }
}

/// A reader that fires a token at the end of its input, while calls are still running.
struct EofReader<R> {
    input: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EofReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.input).poll_read(context, buffer);
        let nothing = buffer.remaining() > 0 && buffer.filled().len() == before;
        if matches!(&polled, Poll::Ready(result) if result.is_err() || nothing) {
            self.ended.cancel();
        }
        polled
    }
}
