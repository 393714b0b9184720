//! Benchmark load on one tool of a server, for each transport.
//!
//! Owns: by which way, and what has to be right before the first call of it is sent: the tool is
//! still the one that was listed, and it is not one that runs as a task. Never does: carry calls
//! (the `mcp` room does), or connect again (another run asks for another executor).

mod http;
mod response_classifier;
mod stdio;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::call::CurrentDefinition;
use super::call_meta::shared_meta;
use super::{McpProvider, roots};
use crate::config::spec::Endpoint;
use crate::mcp::calling;
use crate::mcp::repeat::stdio_run::StdioLane;
use crate::model::{Error, ErrorKind, ErrorPhase, Root, Signal};
use crate::provider::load::{EncodedArguments, LoadExecutor, LoadJob, LoadSupport};
use stdio::StdioExecutor;

#[async_trait]
impl LoadSupport for McpProvider {
    fn supports_parallel_runs(&self) -> bool {
        !matches!(self.spec.endpoint, Endpoint::Stdio { .. })
    }

    async fn executor(&self, job: &LoadJob) -> Result<Option<Box<dyn LoadExecutor>>, Error> {
        match &self.spec.endpoint {
            Endpoint::Stdio { .. } => self.stdio_executor(job).await,
            Endpoint::Http { .. } => {
                let over = self.http_executor(job).await?;
                Ok(over.map(|over| Box::new(over) as Box<dyn LoadExecutor>))
            }
        }
    }
}

impl McpProvider {
    /// An executor for a server that is a child process. None for a tool that runs as a task, and
    /// while another run is in progress over the same pipes.
    async fn stdio_executor(&self, job: &LoadJob) -> Result<Option<Box<dyn LoadExecutor>>, Error> {
        let interrupted = ErrorKind::Interrupted(Signal::Interrupt);
        let connection = tokio::select! {
            connection = self.connection() => connection?,
            () = job.context.cancel.cancelled() => {
                return Err(Error::new(interrupted, "the run was abandoned").with_server(&self.spec.name));
            }
        };
        let tool = job.tool.tool();
        let CurrentDefinition { definition, warnings } =
            self.current_definition(&connection, tool).await?;
        if calling::requires_task(&connection, definition.as_deref()) {
            return Ok(None);
        }
        for warning in warnings {
            connection.add_warning(warning);
        }
        let schema = definition.map(|definition| Arc::clone(&definition.input_schema));
        let roots_guard = RootsGuard::new(schema, &self.spec.roots, &self.spec.name);
        let mut meta = connection.request_meta(self.log_level());
        meta.extend(shared_meta(&job.context));
        let lane = StdioLane::open(connection, tool, &meta, job.context.call_id.clone());
        Ok(lane.map(|lane| {
            let (worked, cached) = (Arc::clone(&self.has_worked), Arc::clone(&self.cached));
            Box::new(StdioExecutor::new(lane, job, roots_guard, worked, cached))
                as Box<dyn LoadExecutor>
        }))
    }
}

/// Keeps the arguments of many calls within the roots of a server.
struct RootsGuard {
    schema: Arc<Value>,
    roots: Vec<Root>,
    server: String,
    last_accepted: Option<Arc<EncodedArguments>>,
}

impl RootsGuard {
    /// None where there is nothing to keep to.
    fn new(schema: Option<Arc<Value>>, roots: &[Root], server: &str) -> Option<Self> {
        let schema = schema.filter(|_| !roots.is_empty())?;
        Some(Self { schema, roots: roots.to_vec(), server: server.to_owned(), last_accepted: None })
    }

    fn check(&mut self, arguments: &Arc<EncodedArguments>) -> Result<(), Error> {
        if self.last_accepted.as_ref().is_some_and(|within| Arc::ptr_eq(within, arguments)) {
            return Ok(());
        }
        roots::check_arguments(&self.schema, &arguments.object, &self.roots)
            .map_err(|error| error.with_server(&self.server).with_phase(ErrorPhase::Call))?;
        self.last_accepted = Some(Arc::clone(arguments));
        Ok(())
    }
}
