//! A host in another process that answers in place of this one.
//!
//! Owns: the port to it, and what is passed on: calls, the catalogue, the search for a tool. What
//! could not be passed on is done here. Never does: know how the other process is reached.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::ToolHost;
use super::request::{CallOutcome, CallRequest, ListScope};
use crate::catalogue::Catalogue;
use crate::model::{Error, ToolDefinition};

/// A connection to a host that runs elsewhere with the same configuration.
#[async_trait]
pub trait HostLink: Send + Sync {
    /// The process of the other host.
    fn pid(&self) -> u32;

    /// Makes a call there. The inner result is the other host's own.
    ///
    /// # Errors
    /// That the call did not get there, or that its answer did not come back.
    async fn call(&self, request: &CallRequest) -> Result<Result<CallOutcome, Error>, LinkError>;

    /// Asks for something that changes nothing.
    ///
    /// # Errors
    /// As [`HostLink::call`].
    async fn query(&self, query: &HostQuery) -> Result<HostAnswer, LinkError>;
}

/// Why the other host gave no answer.
#[derive(Debug, Clone)]
pub enum LinkError {
    /// It acted on nothing, so that the request can be carried out here.
    Unsent,
    /// The whole request was sent and no answer came back.
    Lost(Error),
}

/// What a host is asked beside calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum HostQuery {
    /// The list of everything in this scope.
    Catalogue(ListScope),
    /// The tool that a name means.
    Find {
        /// The name as it was typed.
        name: String,
        /// Only tools of these servers; of all when empty.
        servers: Vec<String>,
    },
}

/// The answer to a [`HostQuery`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum HostAnswer {
    /// The list that was asked for.
    Catalogue(Catalogue),
    /// The tool, or why there is none.
    Tool(Box<Result<ToolDefinition, Error>>),
}

impl ToolHost {
    /// Passes calls and lists on to another host from now on. Only the first link is used.
    pub fn attach(&self, link: Arc<dyn HostLink>) {
        let _attached_before = self.link.set(link);
    }

    /// Answers what another process asked.
    pub async fn answer_query(&self, query: &HostQuery) -> HostAnswer {
        match query {
            HostQuery::Catalogue(scope) => HostAnswer::Catalogue(self.catalogue(scope).await),
            HostQuery::Find { name, servers } => {
                HostAnswer::Tool(Box::new(self.find(name, servers).await))
            }
        }
    }

    /// What the other host answers; `None` when there is none, or it does not answer.
    pub(super) async fn ask_link(&self, query: &HostQuery) -> Option<HostAnswer> {
        self.link.get()?.query(query).await.ok()
    }

    /// The call as the other host makes it; `None` when it has to be made here.
    pub(super) async fn call_over_link(
        &self,
        request: &CallRequest,
    ) -> Option<Result<CallOutcome, Error>> {
        let link = self.link.get()?;
        match link.call(&self.complete_request(request)).await {
            Ok(Ok(mut outcome)) => {
                outcome.metadata.host_pid = Some(link.pid());
                Some(Ok(outcome))
            }
            Ok(refused) => Some(refused),
            Err(LinkError::Unsent) => None,
            Err(LinkError::Lost(error)) => Some(Err(error)),
        }
    }

    /// The request with all that this host would add to it by itself.
    fn complete_request(&self, request: &CallRequest) -> CallRequest {
        let mut request = request.clone();
        let info = self.sessions.caller_info(&request);
        request.trace = request.trace.or_else(|| self.sessions.trace.clone());
        request.session = Some(info.session_id);
        request.user_id = info.user_id;
        request.cwd = Some(info.cwd);
        request.environment = info.environment;
        request.metadata = info.metadata;
        request
    }
}
