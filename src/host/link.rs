//! A host in another process that handles requests instead of this one.
//!
//! Front ends use one interface, the [`ToolHost`]; with a [`HostLink`] it is an adapter to the
//! other process, and without one it does everything here. Front ends cannot tell the difference.

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::ToolHost;
use super::breakpoints::{BreakpointChange, HoldAnswer, HoldNews};
use super::request::{CallOutcome, CallRequest, ItemRequest, ListScope, LookupScope};
use crate::model::{
    CapturedTraffic, CompletionQuery, Error, HostEvent, JsonObject, SubscriptionEvent,
    SubscriptionFilter,
};

/// A connection to a host that runs elsewhere with the same configuration.
#[async_trait]
pub trait HostLink: Send + Sync {
    fn pid(&self) -> u32;

    /// Makes a call there. The inner result is the other host's own.
    ///
    /// # Errors
    /// That the call did not get there, or that its answer did not come back.
    async fn call(&self, request: &CallRequest) -> Result<Result<CallOutcome, Error>, LinkError>;

    /// Asks for anything but a call; the answer is JSON. Ends soon after `cancel` fires.
    ///
    /// # Errors
    /// As [`HostLink::call`].
    async fn query(
        &self,
        query: &HostQuery,
        cancel: &CancellationToken,
    ) -> Result<String, LinkError>;

    /// Hands on what is wanted of what happens there until `cancel` fires. `sink` must not wait.
    ///
    /// # Errors
    /// As [`HostLink::call`]; also when the other host has ended.
    async fn observe(
        &self,
        request: &ObserveRequest,
        sink: &ObservationSink,
        cancel: &CancellationToken,
    ) -> Result<(), LinkError>;
}

/// What a viewer wants to hear of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ObserveRequest {
    /// The events of all calls and servers, no matter who made the calls, and what crosses the wires. The
    /// calls that run already come first.
    Activity,
    /// The same for a console, which also shows stopped calls.
    Console,
    /// What servers tell about changes of these lists and resources.
    Changes(Vec<(String, SubscriptionFilter)>),
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Observation {
    /// From here on nothing is missed.
    Started,
    /// Something happened that viewers may show.
    Event(HostEvent),
    /// Something crossed the wire of a server.
    Traffic(Box<CapturedTraffic>),
    Change(String, SubscriptionEvent),
    /// What a console shows of breakpoints.
    Breakpoint(HoldNews),
    /// So many observations more were dropped, because this viewer is too slow.
    Lost(u64),
}

impl Observation {
    pub fn line(&self) -> Arc<str> {
        // A map without texts for keys is all that could fail here.
        serde_json::to_string(self).unwrap_or_default().into()
    }

    pub fn read(lines: &str) -> impl Iterator<Item = Self> {
        // In JSON a line break is always escaped.
        lines.split('\n').filter_map(|line| serde_json::from_str(line).ok())
    }
}

/// Where observations go. It is called in order and must not wait.
pub type ObservationSink = Arc<dyn Fn(Observation) + Send + Sync>;

/// Why the other host did not respond.
#[derive(Debug, Clone)]
pub enum LinkError {
    /// It acted on nothing, so that the request can be carried out here.
    Unsent,
    /// The whole request was sent and no answer came back.
    Lost(Error),
}

/// Queries to a host other than calls. An empty list of servers means all of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    DryRun(Box<CallRequest>),
    Servers,
    EndSession(String),
    StopServer(String),
    RestartServer(String),
    SetLogLevel { server: String, level: String },
    Breakpoints(BreakpointChange),
    Release { hold: u64, answer: HoldAnswer, by: String },
}

impl HostQuery {
    /// What it is about, as messages name it.
    pub fn subject(&self) -> &str {
        match self {
            Self::Prompt { name, .. } => name,
            Self::Read { uri, .. } => uri,
            Self::DryRun(request) => &request.name,
            Self::Complete { .. } => "the completion",
            Self::StopServer(server)
            | Self::RestartServer(server)
            | Self::SetLogLevel { server, .. } => server,
            _ => "the list",
        }
    }

    /// The session on whose behalf it is asked; `None` for what belongs to no session.
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Read { request, .. }
            | Self::Prompt { request, .. }
            | Self::Complete { request, .. } => request.session.as_deref(),
            _ => None,
        }
    }

    /// Whether it only looks at what the host knows: it neither contacts a server nor keeps an idle
    /// host from ending.
    pub fn is_passive(&self) -> bool {
        matches!(self, Self::Servers | Self::EndSession(_) | Self::Breakpoints(_))
    }
}

impl ToolHost {
    /// Passes everything that [`HostLink`] knows on to another host from now on.
    #[doc(hidden)] // for the program's own front ends
    pub fn attach(&self, link: Arc<dyn HostLink>) {
        self.link.replace(Some(link));
    }

    /// Does everything in this process from now on.
    #[doc(hidden)] // for the program's own front ends
    pub fn detach(&self) {
        self.link.replace(None);
    }

    pub(super) fn link(&self) -> Option<Arc<dyn HostLink>> {
        Option::clone(&self.link.get())
    }

    /// The process of the host that calls are passed on to; `None` when they are made here.
    #[doc(hidden)] // for the program's own front ends
    pub fn attached_pid(&self) -> Option<u32> {
        self.link().map(|link| link.pid())
    }

    /// Hands on what happens in the attached host until `cancel` fires or that host has ended.
    ///
    /// # Errors
    /// That it has ended, or that there is none.
    #[doc(hidden)] // for the program's own front ends
    pub async fn observe_link(
        &self,
        request: ObserveRequest,
        sink: &ObservationSink,
        cancel: &CancellationToken,
    ) -> Result<(), LinkError> {
        let link = self.link().ok_or(LinkError::Unsent)?;
        link.observe(&request, sink, cancel).await
    }

    /// Answers what another process asked, in JSON. Ends soon after `cancel` fires.
    ///
    /// # Errors
    /// When the answer cannot be written.
    #[doc(hidden)] // for the program's own front ends
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
            HostQuery::DryRun(request) => {
                json(&self.dry_run(&CallRequest { cancel, ..*request }).await)
            }
            HostQuery::Servers => json(&self.servers()),
            HostQuery::EndSession(id) => json(&self.end_session(&id)),
            HostQuery::StopServer(name) => json(&self.stop_server(&name).await),
            HostQuery::RestartServer(name) => json(&self.restart_server(&name).await),
            HostQuery::SetLogLevel { server, level } => {
                json(&self.set_log_level(&server, &level).await)
            }
            HostQuery::Breakpoints(change) => json(&self.change_breakpoints(change).await),
            HostQuery::Release { hold, answer, by } => json(&self.release(hold, answer, by).await),
        }
    }

    /// What the other host answers; `None` when there is none, or it was not asked, so that the
    /// request can be carried out here.
    ///
    /// # Errors
    /// That the answer did not come back: it is not known what the other host did.
    pub(super) async fn ask_link<T: DeserializeOwned>(
        &self,
        query: HostQuery,
    ) -> Result<Option<T>, Error> {
        self.ask_link_within(|| query, &CancellationToken::new()).await
    }

    /// The same, given up soon after `cancel` fires. `query` is made only when it is asked.
    pub(super) async fn ask_link_within<T: DeserializeOwned>(
        &self,
        query: impl FnOnce() -> HostQuery,
        cancel: &CancellationToken,
    ) -> Result<Option<T>, Error> {
        let Some(link) = self.link() else { return Ok(None) };
        let answer = match link.query(&query(), cancel).await {
            Ok(answer) => answer,
            Err(LinkError::Unsent) => return Ok(None),
            Err(LinkError::Lost(error)) => return Err(error),
        };
        serde_json::from_str(&answer).map(Some).map_err(|error| {
            Error::protocol(format!("the background host's response is invalid: {error}"))
        })
    }

    /// The call as the other host makes it; `None` when it has to be made here.
    ///
    /// # Errors
    /// As [`ToolHost::call`], and that the other host's answer did not come.
    #[doc(hidden)] // for the program's own front ends
    pub async fn call_over_link(
        &self,
        request: &CallRequest,
    ) -> Option<Result<CallOutcome, Error>> {
        let link = self.link()?;
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
    pub(super) fn complete_request(&self, request: &CallRequest) -> CallRequest {
        let mut request = request.clone();
        let info = self.sessions.caller_info(&request);
        request.trace = request.trace.or_else(|| self.sessions.trace.clone());
        request.session = Some(info.session_id.to_string());
        request.user_id = info.user_id;
        request.cwd = Some(info.cwd.to_path_buf());
        request.environment = info.environment;
        request.metadata = info.metadata;
        request
    }

    pub(super) fn complete_item(&self, request: &ItemRequest) -> ItemRequest {
        let context = self.sessions.offering_context(request, self.new_call_id(), &[]);
        ItemRequest {
            metadata: context.metadata,
            user_id: context.user_id,
            trace: context.trace,
            session: Some(context.session_id.to_string()),
            ..request.clone()
        }
    }
}

fn json(answer: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(answer)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::host::fake::{FakeProvider, call, host};
    use crate::model::{CompletionReference, ErrorKind};

    /// A host in another process that answers nothing.
    struct SilentLink(LinkError);

    #[async_trait]
    impl HostLink for SilentLink {
        fn pid(&self) -> u32 {
            7
        }

        async fn call(&self, _: &CallRequest) -> Result<Result<CallOutcome, Error>, LinkError> {
            Err(self.0.clone())
        }

        async fn query(&self, _: &HostQuery, _: &CancellationToken) -> Result<String, LinkError> {
            Err(self.0.clone())
        }

        async fn observe(
            &self,
            _: &ObserveRequest,
            _: &ObservationSink,
            _: &CancellationToken,
        ) -> Result<(), LinkError> {
            Err(self.0.clone())
        }
    }

    #[tokio::test]
    async fn what_was_sent_and_not_answered_is_not_done_again_here() {
        let server = Arc::new(FakeProvider::server("one", &["echo"]));
        let host = host(&[&server]).build();
        let lost = Error::unreachable("the outcome is not known");
        host.attach(Arc::new(SilentLink(LinkError::Lost(lost))));
        let item = ItemRequest::default();
        let reference = CompletionReference::Prompt("greet".to_owned());
        let (argument, value) = ("who".to_owned(), String::new());
        let query = CompletionQuery { reference, argument, value, context: BTreeMap::new() };
        let errors = [
            host.stop_server("one").await.err(),
            host.restart_server("one").await.err(),
            host.set_log_level("one", "debug").await.err(),
            host.read("file:///a", &item).await.err(),
            host.prompt("greet", &JsonObject::new(), &item).await.err(),
            host.complete(query, &item).await.err(),
            host.dry_run(&call("one-echo")).await.err(),
        ];
        for error in errors {
            let error = error.unwrap();
            assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
            assert_eq!(error.message(), "the outcome is not known");
        }
        assert_eq!((server.listed(), server.called(), server.ended()), (0, 0, 0));
        // What only looks is looked for here.
        let scope = LookupScope::default();
        assert_eq!(host.find("one-echo", &scope).await.unwrap().name.full(), "one-echo");
        assert!(host.prompts(&scope).await.is_ok());
        host.attach(Arc::new(SilentLink(LinkError::Unsent)));
        assert_eq!(host.stop_server("one").await.unwrap().name, "one");
        assert_eq!(server.ended(), 1);
    }
}
