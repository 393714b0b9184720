//! Requests for one offering: reading a resource, filling in a prompt, completing an argument.

use super::lookup::{OfferingOwner, OfferingSearch};
use super::with_cancellation;
use crate::host::failover::Failover;
use crate::host::link::HostQuery;
use crate::host::profiles::ProfileView;
use crate::host::provider_table::ProviderLease;
use crate::host::request::{ItemRequest, LookupScope};
use crate::host::{ToolHost, caller};
use crate::model::{
    CallId, Completion, CompletionQuery, Error, JsonObject, Prompt, PromptMessages,
    ResourceContents, ToolContext,
};
use crate::provider::OfferingSupport;
use crate::util::json::map_json;
use crate::util::uri_template;

/// A request whose profile is known and whose caller was checked.
struct CheckedRequest<'a> {
    request: &'a ItemRequest,
    view: ProfileView,
    id: CallId,
}

impl CheckedRequest<'_> {
    fn search(&self) -> OfferingSearch<'_> {
        OfferingSearch { servers: &self.request.scope.servers, view: &self.view }
    }
}

/// Refuses a template: no URI has braces, and servers answer it as if it were one of their own.
fn require_filled(uri: &str) -> Result<(), Error> {
    let variables = uri_template::variables(uri);
    if variables.is_empty() {
        return Ok(());
    }
    let needed = variables.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    Err(Error::usage(format!("{uri} is a template, which needs a value for {needed}"))
        .with_hint("put the values in place of the braces"))
}

impl ToolHost {
    /// Reads a resource. One named server is asked directly, whether it lists the address or not.
    ///
    /// # Errors
    /// An address that no server or several have, an unknown profile, metadata that is too large, and
    /// what reading ran into.
    pub async fn read(&self, uri: &str, request: &ItemRequest) -> Result<ResourceContents, Error> {
        require_filled(uri)?;
        let host_query =
            || HostQuery::Read { uri: uri.to_owned(), request: self.complete_item(request) };
        if let Some(answer) = self.ask_link(host_query, &request.cancel).await {
            return answer;
        }
        let work = async {
            let checked = self.check_request(request)?;
            let mut failover = Failover::default();
            loop {
                let owner = self.resource_owner(uri, checked.search(), &failover).await;
                let owner = match owner {
                    Ok(owner) => owner,
                    Err(error) => return Err(failover.exhausted(error)),
                };
                let provider = self.offerings_of(&owner.server)?;
                let offerings = provider.offerings()?;
                let context = self.request_context(&checked, offerings);
                let read = provider.while_registered(offerings.read(&context, uri)).await;
                if let Some(read) = Self::answer(&owner, read, &mut failover) {
                    return read.map(|read| ResourceContents { routing: owner.routing, ..read });
                }
            }
        };
        let read = with_cancellation(work, &request.cancel).await;
        let mut read = read.map_err(|error| self.pipeline.masker.error(error))?;
        read.routing = read.routing.map(|routing| self.pipeline.masked_routing(routing));
        if !self.pipeline.masker.is_empty() {
            let rewrite = |text: &str| self.pipeline.masker.text(text);
            read.contents.iter_mut().for_each(|part| *part = map_json(part, &rewrite));
            read.meta = read.meta.map(|meta| map_json(&meta, &rewrite));
        }
        Ok(read)
    }

    /// Finds the one prompt a person means, contacting no more servers than needed.
    ///
    /// # Errors
    /// Unknown and ambiguous names (with suggestions), an unknown profile, and what finding out ran
    /// into.
    pub async fn find_prompt(&self, name: &str, scope: &LookupScope) -> Result<Prompt, Error> {
        let view = self.view(scope.profile.as_deref())?;
        let search = OfferingSearch { servers: &scope.servers, view: &view };
        let result = self.lookup_prompt(name, None, search, &Failover::default()).await;
        result.map(|(prompt, _)| prompt).map_err(|error| self.pipeline.masker.error(error))
    }

    /// Fills in a prompt. Its arguments are checked before anything is sent.
    ///
    /// # Errors
    /// A name that no server or several have, arguments that do not fit, an unknown profile, metadata
    /// that is too large, and what asking ran into.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: &JsonObject,
        request: &ItemRequest,
    ) -> Result<PromptMessages, Error> {
        let host_query = || HostQuery::Prompt {
            name: name.to_owned(),
            arguments: arguments.clone(),
            request: self.complete_item(request),
        };
        if let Some(answer) = self.ask_link(host_query, &request.cancel).await {
            return answer;
        }
        let work = async {
            let checked = self.check_request(request)?;
            let mut failover = Failover::default();
            loop {
                let resolution =
                    self.lookup_prompt(name, Some(arguments), checked.search(), &failover).await;
                let (prompt, owner) = match resolution {
                    Ok(resolution) => resolution,
                    Err(error) => return Err(failover.exhausted(error)),
                };
                let provider = self.offerings_of(&owner.server)?;
                let offerings = provider.offerings()?;
                let context = self.request_context(&checked, offerings);
                let filling = offerings.prompt(&context, prompt.name.tool(), arguments);
                let filled = provider.while_registered(filling).await;
                if let Some(filled) = Self::answer(&owner, filled, &mut failover) {
                    return filled
                        .map(|filled| PromptMessages { routing: owner.routing, ..filled });
                }
            }
        };
        let filled = with_cancellation(work, &request.cancel).await;
        let mut filled = filled.map_err(|error| self.pipeline.masker.error(error))?;
        filled.routing = filled.routing.map(|routing| self.pipeline.masked_routing(routing));
        if !self.pipeline.masker.is_empty() {
            let rewrite = |text: &str| self.pipeline.masker.text(text);
            filled.messages.iter_mut().for_each(|m| *m = map_json(m, &rewrite));
            filled.description = filled.description.as_deref().map(rewrite);
            filled.meta = filled.meta.map(|meta| map_json(&meta, &rewrite));
        }
        Ok(filled)
    }

    /// Asks what an argument may be. The reference of `query` is what a person typed: the name of a
    /// prompt as in a list, or a template of addresses.
    ///
    /// # Errors
    /// A reference that no server or several have, an argument that it does not have, an unknown
    /// profile, metadata that is too large, and what asking ran into.
    pub async fn complete(
        &self,
        query: CompletionQuery,
        request: &ItemRequest,
    ) -> Result<Completion, Error> {
        let host_query =
            || HostQuery::Complete { query: query.clone(), request: self.complete_item(request) };
        if let Some(answer) = self.ask_link(host_query, &request.cancel).await {
            return answer;
        }
        let work = async {
            let checked = self.check_request(request)?;
            let mut failover = Failover::default();
            loop {
                let query = query.clone();
                let resolution = self.resolve_completion(query, checked.search(), &failover).await;
                let (owner, query) = match resolution {
                    Ok(resolution) => resolution,
                    Err(error) => return Err(failover.exhausted(error)),
                };
                let provider = self.offerings_of(&owner.server)?;
                let offerings = provider.offerings()?;
                let context = self.request_context(&checked, offerings);
                let outcome = provider.while_registered(offerings.complete(&context, &query)).await;
                if let Some(outcome) = Self::answer(&owner, outcome, &mut failover) {
                    return outcome;
                }
            }
        };
        let outcome = with_cancellation(work, &request.cancel).await;
        let outcome = outcome.map_err(|error| self.pipeline.masker.error(error))?;
        let values = outcome.values.iter().map(|value| self.pipeline.masker.text(value)).collect();
        Ok(Completion { values, ..outcome })
    }

    fn check_request<'a>(&self, request: &'a ItemRequest) -> Result<CheckedRequest<'a>, Error> {
        caller::check(request.user_id.as_deref(), &request.metadata)?;
        let view = self.view(request.scope.profile.as_deref())?;
        let id = request.id.clone().unwrap_or_else(|| self.new_call_id());
        Ok(CheckedRequest { request, view, id })
    }

    fn request_context(
        &self,
        checked: &CheckedRequest<'_>,
        offerings: &dyn OfferingSupport,
    ) -> ToolContext {
        let (id, variables) = (checked.id.clone(), offerings.context_env());
        let context = self.sessions.offering_context(checked.request, id, variables);
        caller::masked_for_server(context, &self.pipeline.masker)
    }

    /// The answer of a request, unless another server gets it: then nothing of it was sent.
    fn answer<T>(
        owner: &OfferingOwner,
        answer: Result<T, Error>,
        failover: &mut Failover,
    ) -> Option<Result<T, Error>> {
        match answer {
            Err(error) if failover.passes_on(owner.routing.as_ref(), &error) => None,
            answer => Some(answer),
        }
    }

    pub(super) fn offerings_of(&self, server: &str) -> Result<ProviderLease, Error> {
        let provider = self.directory.server(server);
        let provider = provider.filter(|provider| provider.inner.as_offerings().is_some());
        let provider = provider.ok_or_else(|| self.unknown_server(server))?;
        self.directory.mark_start([&*provider]);
        Ok(provider)
    }
}

impl ProviderLease {
    pub(super) fn offerings(&self) -> Result<&dyn OfferingSupport, Error> {
        let offerings = self.inner.as_offerings();
        offerings.ok_or_else(|| Error::usage("it offers nothing but tools"))
    }
}
