//! Many calls of one tool of a server, each way with its own mechanics.
//!
//! Owns: by which way, and what has to be right before the first call of it is sent: the tool is
//! still the one that was listed, and it is not one that runs as a task. Never does: carry calls
//! (the `mcp` room does), or connect again (whoever wants another run asks for another repeater).

mod http;
mod judge;
mod pipe;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::call::Current;
use super::{McpProvider, roots};
use crate::config::spec::Endpoint;
use crate::mcp::calling;
use crate::mcp::repeat::run::Lane;
use crate::model::{Fault, FaultKind, Phase, Signal};
use crate::provider::repeat::{Order, Payload, Repeat, Repeater};
use pipe::Pipe;

#[async_trait]
impl Repeat for McpProvider {
    /// Pipes are lent to one run at a time.
    fn carries_several(&self) -> bool {
        !matches!(self.spec.endpoint, Endpoint::Stdio { .. })
    }

    async fn repeater(&self, order: &Order) -> Result<Option<Box<dyn Repeater>>, Fault> {
        match &self.spec.endpoint {
            Endpoint::Stdio { .. } => self.pipe(order).await,
            Endpoint::Http { .. } => {
                let over = self.over_http(order).await?;
                Ok(over.map(|over| Box::new(over) as Box<dyn Repeater>))
            }
        }
    }
}

impl McpProvider {
    /// A repeater for a server that is a child process. None for a tool that runs as a task, and
    /// while another run goes on over the same pipes.
    async fn pipe(&self, order: &Order) -> Result<Option<Box<dyn Repeater>>, Fault> {
        let interrupted = FaultKind::Interrupted(Signal::Interrupt);
        let connection = tokio::select! {
            connection = self.connection() => connection?,
            () = order.context.cancel.cancelled() => {
                return Err(Fault::new(interrupted, "the run was given up").server(&self.spec.name));
            }
        };
        let tool = order.tool.tool();
        let Current { definition, warnings } = self.current(&connection, tool).await?;
        if calling::wants_task(&connection, definition.as_deref()) {
            return Ok(None);
        }
        for warning in warnings {
            connection.doubt(warning);
        }
        let schema = definition.map(|definition| Arc::clone(&definition.input_schema));
        let fence = Fence::new(schema, &self.spec.roots, &self.spec.name);
        let meta = connection.request_meta(self.log_level());
        let lane = Lane::open(connection, tool, &meta, order.context.call_id.clone());
        Ok(lane.map(|lane| {
            let (worked, known) = (Arc::clone(&self.worked), Arc::clone(&self.known));
            Box::new(Pipe::new(lane, order, fence, worked, known)) as Box<dyn Repeater>
        }))
    }
}

/// Keeps the arguments of many calls within the roots of a server.
struct Fence {
    schema: Arc<Value>,
    roots: Vec<String>,
    server: String,
    /// The arguments that were found to be within last.
    within: Option<Arc<Payload>>,
}

impl Fence {
    /// None where there is nothing to keep to.
    fn new(schema: Option<Arc<Value>>, roots: &[String], server: &str) -> Option<Self> {
        let schema = schema.filter(|_| !roots.is_empty())?;
        Some(Self { schema, roots: roots.to_vec(), server: server.to_owned(), within: None })
    }

    /// Refuses arguments that point outside.
    fn check(&mut self, arguments: &Arc<Payload>) -> Result<(), Fault> {
        if self.within.as_ref().is_some_and(|within| Arc::ptr_eq(within, arguments)) {
            return Ok(());
        }
        roots::check_arguments(&self.schema, &arguments.object, &self.roots)
            .map_err(|fault| fault.server(&self.server).phase(Phase::Call))?;
        self.within = Some(Arc::clone(arguments));
        Ok(())
    }
}
