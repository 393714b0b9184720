//! Requests for one offering: reading a resource, filling in a prompt, whose arguments are checked,
//! completing an argument.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::lookup::{OfferingOwner, OfferingSearch};
use super::with_cancellation;
use crate::host::ToolHost;
use crate::host::failover::Failover;
use crate::host::link::HostQuery;
use crate::host::registry::ProviderLease;
use crate::host::request::{self, ItemRequest, LookupScope};
use crate::model::{
    Completion, CompletionQuery, Error, JsonObject, Prompt, PromptMessages, ResourceContents,
    Routing, ToolContext,
};
use crate::provider::OfferingSupport;
use crate::util::json::map_json;
use crate::util::spelling::nearest;
use crate::util::uri_template;

/// Finds the server of an item and what is to be asked of it.
type FindItem<Q, P> = for<'a> fn(
    &'a ToolHost,
    &'a Q,
    OfferingSearch<'a>,
) -> BoxFuture<'a, Result<(P, OfferingOwner), Error>>;

/// Asks the server that was found.
type AskServer<Q, P, T> = for<'a> fn(
    &'a dyn OfferingSupport,
    &'a ToolContext,
    &'a Q,
    &'a P,
) -> BoxFuture<'a, Result<T, Error>>;

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
        if let Some(answer) = self.ask_link_within(host_query, &request.cancel).await? {
            return answer;
        }
        let (mut read, routing) = self
            .request_item(
                request,
                &uri,
                |host, uri, search| {
                    let owner = host.resource_owner(uri, search);
                    async move { Ok(((), owner.await?)) }.boxed()
                },
                |offers, context, uri, ()| offers.read(context, uri),
            )
            .await?;
        read.routing = routing;
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
        let result = self.lookup_prompt(name, None, OfferingSearch::of(scope, &view)).await;
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
        if let Some(answer) = self.ask_link_within(host_query, &request.cancel).await? {
            return answer;
        }
        let (mut filled, routing) = self
            .request_item(
                request,
                &(name, arguments),
                |host, &(name, arguments), search| {
                    host.lookup_prompt(name, Some(arguments), search).boxed()
                },
                |offers, context, &(_, arguments), prompt| {
                    offers.prompt(context, prompt.name.tool(), arguments)
                },
            )
            .await?;
        filled.routing = routing;
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
        if let Some(answer) = self.ask_link_within(host_query, &request.cancel).await? {
            return answer;
        }
        let (outcome, _routing) = self
            .request_item(
                request,
                &query,
                |host, query, search| host.resolve_completion(query.clone(), search).boxed(),
                |offers, context, _, query| offers.complete(context, query),
            )
            .await?;
        let values = outcome.values.iter().map(|value| self.pipeline.masker.text(value)).collect();
        Ok(Completion { values, ..outcome })
    }

    /// Makes a request of the server of an item; when it could not be reached before anything was sent
    /// to it, of the next one.
    async fn request_item<Q, P, T>(
        &self,
        request: &ItemRequest,
        query: &Q,
        find: FindItem<Q, P>,
        ask: AskServer<Q, P, T>,
    ) -> Result<(T, Option<Routing>), Error> {
        let work = async {
            request::check(request.user_id.as_deref(), &request.metadata)?;
            let view = self.view(request.scope.profile.as_deref())?;
            let id = request.id.clone().unwrap_or_else(|| self.new_call_id());
            let mut failover = Failover::default();
            loop {
                let tried = &failover.skipped;
                let search = OfferingSearch { tried, ..OfferingSearch::of(&request.scope, &view) };
                let (item, owner) = match find(self, query, search).await {
                    Ok(found) => found,
                    Err(error) => return Err(failover.exhausted(error)),
                };
                let provider = self.offerings_of(&owner.server)?;
                let offers = provider.offerings()?;
                let context =
                    self.sessions.offering_context(request, id.clone(), offers.context_env());
                let context = request::masked_for_server(context, &self.pipeline.masker);
                let request = async {
                    let own = provider.inner.offerings_of_session(&context.session_id)?;
                    ask(own.as_deref().unwrap_or(offers), &context, query, &item).await
                };
                match provider.while_registered(request).await {
                    // Nothing of it was sent.
                    Err(error) if failover.passes_on(owner.routing.as_ref(), &error) => {}
                    answer => return Ok((answer?, owner.routing)),
                }
            }
        };
        let (answer, routing) = with_cancellation(work, &request.cancel)
            .await
            .map_err(|error| self.pipeline.masker.error(error))?;
        Ok((answer, routing.map(|routing| self.pipeline.masked_routing(routing))))
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

/// Of prompts of one name those that take the arguments. `command_end` ends the command line of an
/// example.
pub(super) fn accepting<'p>(
    candidates: Vec<&'p Prompt>,
    arguments: &JsonObject,
    command_end: &str,
) -> Result<Vec<&'p Prompt>, Error> {
    let mut refusal = None;
    let mut accepted = Vec::with_capacity(candidates.len());
    for prompt in candidates {
        match check_arguments(prompt, arguments, command_end) {
            Ok(()) => accepted.push(prompt),
            Err(error) => drop(refusal.get_or_insert(error)),
        }
    }
    refusal.filter(|_| accepted.is_empty()).map_or(Ok(accepted), Err)
}

/// Checks the arguments of a prompt: all problems at once.
fn check_arguments(
    prompt: &Prompt,
    arguments: &JsonObject,
    command_end: &str,
) -> Result<(), Error> {
    let names = || prompt.arguments.iter().map(|argument| argument.name.as_str());
    let missing =
        prompt.arguments.iter().filter(|a| a.required && !arguments.contains_key(&a.name));
    let missing = missing.map(|argument| format!("{}: required, but missing", argument.name));
    let unknown = arguments.keys().filter(|key| !names().any(|name| name == *key)).map(|key| {
        match nearest(key, names()) {
            Some(near) => format!("{key}: unknown; did you mean '{near}'?"),
            None => format!("{key}: unknown"),
        }
    });
    let problems: Vec<String> = missing.chain(unknown).collect();
    if problems.is_empty() {
        return Ok(());
    }
    let error = Error::usage(format!("the arguments do not match the prompt '{}'", prompt.name));
    let example: Vec<String> = prompt
        .arguments
        .iter()
        .map(|a| if a.required { format!("{}=…", a.name) } else { format!("[{}=…]", a.name) })
        .collect();
    let hint = match example.as_slice() {
        [] => "it takes no arguments".to_owned(),
        pairs => format!("toolhost prompts get {} {}{command_end}", prompt.name, pairs.join(" ")),
    };
    Err(error.with_details(problems).with_hint(hint))
}
