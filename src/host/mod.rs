//! The single gateway: everything that lists, describes or calls a tool goes through [`ToolHost`].
//!
//! Owns: routing a name to its provider, the life of one call (`dispatch`), policy, approval,
//! validation, retries, deadlines and limits. Never does: know a kind of tool, touch a terminal,
//! read configuration files.

pub mod approval;
pub mod recorder;
pub mod request;
pub mod validate;

use std::sync::Arc;

use crate::catalogue::Catalogue;
use crate::model::{Fault, ServerStatus, ToolDefinition};
use crate::provider::{Preview, ToolProvider};
use request::{CallOutcome, CallRequest, Reach};

/// The single gateway to all tools.
pub struct ToolHost {
    #[expect(dead_code, reason = "filled in with the dispatch path")]
    providers: Vec<Arc<dyn ToolProvider>>,
}

impl ToolHost {
    /// One list of everything; contacts what `reach` says, all at once.
    pub async fn catalogue(&self, _reach: &Reach) -> Catalogue {
        todo!()
    }

    /// Finds the one tool a person means, contacting no more servers than needed.
    ///
    /// # Errors
    /// Unknown and ambiguous names (with suggestions), and what finding out ran into.
    pub async fn find(&self, _name: &str, _servers: &[String]) -> Result<ToolDefinition, Fault> {
        todo!()
    }

    /// What a call would send or start.
    ///
    /// # Errors
    /// As [`ToolHost::call`], as far as nothing is sent.
    pub async fn preview(&self, _request: &CallRequest) -> Result<Preview, Fault> {
        todo!()
    }

    /// Runs one call through its whole life.
    ///
    /// # Errors
    /// When nothing was dispatched: unknown name, bad arguments, refusal, unreachable server.
    /// After dispatch the fault is inside the outcome.
    pub async fn call(&self, _request: CallRequest) -> Result<CallOutcome, Fault> {
        todo!()
    }

    /// The servers, as far as known without asking.
    pub fn servers(&self) -> Vec<ServerStatus> {
        todo!()
    }

    /// Asks the named servers (all when empty) for a sign of life, all at once.
    pub async fn check_servers(&self, _names: &[String]) -> Vec<ServerStatus> {
        todo!()
    }

    /// Ends everything that was started, all providers at once. Idempotent.
    pub async fn close(&self) {
        todo!()
    }
}
