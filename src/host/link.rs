//! A host in another process that answers in place of this one.
//!
//! Owns: the port to it, and what is passed on: calls, lists, and the questions of [`HostQuery`]. What could
//! not be passed on is done here. Never does: know how the other process is reached.

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::ToolHost;
use super::request::{CallOutcome, CallRequest, ItemRequest, ListScope, LookupScope};
use crate::model::{CompletionQuery, Error, JsonObject};

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

    /// Asks for something that changes nothing; the answer is JSON. Ends soon after `cancel` fires.
    ///
    /// # Errors
    /// As [`HostLink::call`].
    async fn query(
        &self,
        query: &HostQuery,
        cancel: &CancellationToken,
    ) -> Result<String, LinkError>;
}

/// Why the other host gave no answer.
#[derive(Debug, Clone)]
pub enum LinkError {
    /// It acted on nothing, so that the request can be carried out here.
    Unsent,
    /// The whole request was sent and no answer came back.
    Lost(Error),
}

/// What a host is asked beside calls. Lists of servers mean all of them when they are empty.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the method of the host of that name, with its arguments")]
pub enum HostQuery {
    Catalogue(ListScope),
    Find { name: String, scope: LookupScope },
    CheckServers(Vec<String>),
    Prompts(LookupScope),
    Resources(LookupScope),
    Templates(LookupScope),
    Read { uri: String, request: ItemRequest },
    Prompt { name: String, arguments: JsonObject, request: ItemRequest },
    Complete { query: CompletionQuery, request: ItemRequest },
}

impl ToolHost {
    /// Passes calls and lists on to another host from now on. Only the first link is used.
    pub fn attach(&self, link: Arc<dyn HostLink>) {
        let _attached_before = self.link.set(link);
    }

    /// Answers what another process asked, in JSON. Ends soon after `cancel` fires.
    ///
    /// # Errors
    /// When the answer cannot be written.
    pub async fn answer_query(
        &self,
        query: HostQuery,
        cancel: &CancellationToken,
    ) -> serde_json::Result<String> {
        let cancel = cancel.clone();
        match query {
            HostQuery::Catalogue(scope) => json(&self.catalogue(&scope).await),
            HostQuery::Find { name, scope } => json(&self.find(&name, &scope).await),
            HostQuery::CheckServers(names) => json(&self.check_servers(&names).await),
            HostQuery::Prompts(scope) => json(&self.prompts(&scope).await),
            HostQuery::Resources(scope) => json(&self.resources(&scope).await),
            HostQuery::Templates(scope) => json(&self.templates(&scope).await),
            HostQuery::Read { uri, request } => {
                json(&self.read(&uri, &ItemRequest { cancel, ..request }).await)
            }
            HostQuery::Prompt { name, arguments, request } => {
                let request = ItemRequest { cancel, ..request };
                json(&self.prompt(&name, &arguments, &request).await)
            }
            HostQuery::Complete { query, request } => {
                json(&self.complete(query, &ItemRequest { cancel, ..request }).await)
            }
        }
    }

    /// What the other host answers; `None` when there is none, or it does not answer.
    pub(super) async fn ask_link<T: DeserializeOwned>(
        &self,
        query: impl FnOnce() -> HostQuery,
        cancel: &CancellationToken,
    ) -> Option<T> {
        let answer = self.link.get()?.query(&query(), cancel).await.ok()?;
        serde_json::from_str(&answer).ok()
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

    /// The same of a request for an offering.
    pub(super) fn complete_item(&self, request: &ItemRequest) -> ItemRequest {
        let context = self.sessions.offering_context(request, self.new_call_id(), &[]);
        ItemRequest {
            id: request.id.clone(),
            scope: request.scope.clone(),
            metadata: context.metadata,
            user_id: context.user_id,
            trace: context.trace,
            session: Some(context.session_id),
            client: request.client,
            cancel: request.cancel.clone(),
        }
    }
}

fn json(answer: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(answer)
}
