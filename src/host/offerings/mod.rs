//! Prompts, resources and templates of all servers: listing, reading, filling in, completing.
//!
//! Owns: asking every server for one list, checking the arguments of prompts, giving a request to
//! another server when one cannot be reached, and masking what comes back. Never does: know a kind of server, or keep what was listed.

mod lookup;
#[cfg(test)]
mod tests;
mod watch;

use futures_util::future::{BoxFuture, join_all};
use tokio_util::sync::CancellationToken;

use super::failover::Failover;
use super::provider_table::ProviderLease;
use super::{ToolHost, limits};
use crate::catalogue::{ServerListing, naming};
use crate::model::{
    Completion, CompletionQuery, Diagnostic, Error, ErrorKind, Freshness, JsonObject,
    OfferingListing, Prompt, PromptMessages, RequestScope, Resource, ResourceContents,
    ResourceTemplate, Signal, ToolName, WithheldItem,
};
use crate::provider::OfferingSupport;
use crate::util::json::map_json;
use crate::util::spelling::nearest;
use crate::util::units::show_duration;

use lookup::OfferingOwner;
pub use watch::ServerChange;

/// One list of everything of one sort, as it was at one moment.
#[derive(Debug)]
pub struct Offerings<T> {
    /// The items, server by server in the order of the files.
    pub items: Vec<T>,
    /// The servers that were asked, and what came of it.
    pub servers: Vec<ServerListing>,
    /// How long each server that answered says its list holds.
    pub freshness: Vec<(String, Freshness)>,
    /// Findings about single items, which may have been left out.
    pub diagnostics: Vec<Diagnostic>,
    /// Items that are there and that an entry keeps back, with their servers.
    pub withheld: Vec<(String, WithheldItem)>,
}

impl<T> Offerings<T> {
    /// The error of a request for something that its entry keeps back.
    fn refusal(&self, name: &str) -> Option<Error> {
        let is_meant = |(server, item): &&(String, WithheldItem)| {
            item.name == name || naming::after_component(name, server) == Some(&item.name)
        };
        self.withheld.iter().find(is_meant).map(|(_, item)| item.reason.clone())
    }
}

impl<T> Default for Offerings<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            servers: Vec::new(),
            freshness: Vec::new(),
            diagnostics: Vec::new(),
            withheld: Vec::new(),
        }
    }
}

impl ToolHost {
    /// The prompts of all servers, or of the named ones, all at once. One bad server costs itself.
    pub async fn prompts(&self, servers: &[String]) -> Offerings<Prompt> {
        let mut all = self.list_from_servers(servers, "prompts", |offers| offers.prompts()).await;
        all.items.retain(|prompt| self.is_visible(&prompt.name));
        for prompt in &mut all.items {
            self.mask_texts(&mut prompt.title, &mut prompt.description, &mut prompt.warnings);
            for argument in &mut prompt.arguments {
                self.mask_texts(&mut argument.title, &mut argument.description, &mut []);
            }
        }
        all
    }

    /// The resources of all servers, or of the named ones, all at once.
    pub async fn resources(&self, servers: &[String]) -> Offerings<Resource> {
        let mut all =
            self.list_from_servers(servers, "resources", |offers| offers.resources()).await;
        all.items.retain(|r| self.is_visible(&ToolName::of(&r.server, &r.name)));
        for resource in &mut all.items {
            self.mask_texts(&mut resource.title, &mut resource.description, &mut resource.warnings);
        }
        all
    }

    /// The templates of resources of all servers, or of the named ones, all at once.
    pub async fn templates(&self, servers: &[String]) -> Offerings<ResourceTemplate> {
        let mut all =
            self.list_from_servers(servers, "templates", |offers| offers.templates()).await;
        all.items.retain(|t| self.is_visible(&ToolName::of(&t.server, &t.name)));
        for template in &mut all.items {
            self.mask_texts(&mut template.title, &mut template.description, &mut template.warnings);
        }
        all
    }

    /// Takes values out of what a server says about something it offers. Its name and its address
    /// stay: it is asked for by them.
    fn mask_texts(
        &self,
        title: &mut Option<String>,
        description: &mut Option<String>,
        warnings: &mut [String],
    ) {
        for text in title.iter_mut().chain(description).chain(warnings) {
            *text = self.pipeline.masker.text(text);
        }
    }

    /// Reads a resource. One named server is asked directly, whether it lists the address or not.
    ///
    /// # Errors
    /// An address that no server or several have, and what reading ran into.
    pub async fn read(
        &self,
        uri: &str,
        servers: &[String],
        scope: &RequestScope,
    ) -> Result<ResourceContents, Error> {
        let work = async {
            let mut failover = Failover::default();
            loop {
                let owner = match self.resource_owner(uri, servers, &failover).await {
                    Ok(owner) => owner,
                    Err(error) => return Err(failover.exhausted(error)),
                };
                let provider = self.offerings_of(&owner.server)?;
                let reading = provider.offerings()?.read(uri, scope);
                let read = provider.while_registered(reading).await;
                if let Some(read) = self.answer(&owner, &provider, read, &mut failover) {
                    return read.map(|read| ResourceContents { routing: owner.routing, ..read });
                }
            }
        };
        let mut read = with_cancellation(work, &scope.cancel)
            .await
            .map_err(|f| self.pipeline.masker.error(f))?;
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
    /// Unknown and ambiguous names (with suggestions), and what finding out ran into.
    pub async fn find_prompt(&self, name: &str, servers: &[String]) -> Result<Prompt, Error> {
        let found = self.lookup_prompt(name, servers, &Failover::lookup()).await;
        found.map(|(prompt, _)| prompt).map_err(|error| self.pipeline.masker.error(error))
    }

    /// Fills in a prompt. Its arguments are checked before anything is sent.
    ///
    /// # Errors
    /// A name that no server or several have, arguments that do not fit, and what asking ran into.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: &JsonObject,
        servers: &[String],
        scope: &RequestScope,
    ) -> Result<PromptMessages, Error> {
        let work = async {
            let mut failover = Failover::default();
            loop {
                let (prompt, owner) = match self.lookup_prompt(name, servers, &failover).await {
                    Ok(found) => found,
                    Err(error) => return Err(failover.exhausted(error)),
                };
                check_arguments(&prompt, arguments)?;
                let provider = self.offerings_of(&owner.server)?;
                let filling = provider.offerings()?.prompt(prompt.name.tool(), arguments, scope);
                let filled = provider.while_registered(filling).await;
                if let Some(filled) = self.answer(&owner, &provider, filled, &mut failover) {
                    return filled
                        .map(|filled| PromptMessages { routing: owner.routing, ..filled });
                }
            }
        };
        let mut filled = with_cancellation(work, &scope.cancel)
            .await
            .map_err(|f| self.pipeline.masker.error(f))?;
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
    /// A reference that no server or several have, an argument that it does not have, and what
    /// asking ran into.
    pub async fn complete(
        &self,
        query: CompletionQuery,
        servers: &[String],
        cancel: &CancellationToken,
    ) -> Result<Completion, Error> {
        let work = async {
            let mut failover = Failover::default();
            loop {
                let query = query.clone();
                let (owner, query) = match self.resolve_completion(query, servers, &failover).await
                {
                    Ok(found) => found,
                    Err(error) => return Err(failover.exhausted(error)),
                };
                let provider = self.offerings_of(&owner.server)?;
                let completing = provider.offerings()?.complete(&query, cancel);
                let done = provider.while_registered(completing).await;
                if let Some(done) = self.answer(&owner, &provider, done, &mut failover) {
                    return done;
                }
            }
        };
        let done =
            with_cancellation(work, cancel).await.map_err(|f| self.pipeline.masker.error(f))?;
        let values = done.values.iter().map(|value| self.pipeline.masker.text(value)).collect();
        Ok(Completion { values, ..done })
    }

    /// Asks all servers, or the named ones, for one list.
    async fn list_from_servers<T>(
        &self,
        servers: &[String],
        what: &str,
        ask: impl for<'a> Fn(
            &'a dyn OfferingSupport,
        ) -> BoxFuture<'a, Result<OfferingListing<T>, Error>>,
    ) -> Offerings<T> {
        let view = self.directory.profiles.default_view();
        let providers = self.directory.providers();
        let wanted = providers.iter().filter(|provider| match &provider.server {
            Some(_) if servers.is_empty() => view.may_show(provider),
            Some(name) => servers.contains(name),
            None => false,
        });
        let offering = wanted.filter(|provider| provider.inner.as_offerings().is_some());
        let leases: Vec<ProviderLease> = offering.filter_map(ProviderLease::of).collect();
        self.directory.mark_start(leases.iter().map(|lease| &**lease));
        let ask = &ask;
        let all = join_all(leases.iter().map(|provider| async move {
            let name = provider.server.clone().unwrap_or_default();
            let asking = async { ask(provider.offerings()?).await };
            let asking = provider.while_registered(asking);
            let answer = tokio::time::timeout(limits::LISTING_TIMEOUT, asking).await;
            let answer = answer.unwrap_or_else(|_elapsed| Err(listing_timeout(what)));
            if let Err(error) = &answer {
                self.note_outcome(provider, Err(error));
            }
            (name, answer)
        }))
        .await;
        let mut offerings = Offerings::default();
        for (name, answer) in all {
            let (error, partial) = match answer {
                Ok(offered) => {
                    offerings.items.extend(offered.items);
                    offerings.diagnostics.extend(offered.diagnostics);
                    let withheld = offered.withheld.into_iter();
                    offerings.withheld.extend(withheld.map(|item| (name.clone(), item)));
                    offerings.freshness.push((name.clone(), offered.freshness));
                    (None, offered.is_partial)
                }
                Err(error) => (Some(self.pipeline.masker.error(error.with_server(&name))), false),
            };
            offerings.servers.push(ServerListing { name, error, is_partial: partial });
        }
        for name in servers.iter().filter(|name| providers.server(name).is_none()) {
            let error = Some(self.unknown_server(name));
            offerings.servers.push(ServerListing { name: name.clone(), error, is_partial: false });
        }
        offerings
            .diagnostics
            .iter_mut()
            .for_each(|problem| self.pipeline.masker.diagnostic(problem));
        offerings
    }

    /// The answer of a request, unless another server gets it: then nothing of it was sent.
    fn answer<T>(
        &self,
        owner: &OfferingOwner,
        provider: &ProviderLease,
        answer: Result<T, Error>,
        failover: &mut Failover,
    ) -> Option<Result<T, Error>> {
        self.note_outcome(provider, answer.as_ref().map(drop));
        match answer {
            Err(error) if failover.passes_on(owner.routing.as_ref(), &error) => None,
            answer => Some(answer),
        }
    }

    /// Counts how a request ended for the server's circuit; one that was removed has none.
    fn note_outcome(&self, provider: &ProviderLease, outcome: Result<(), &Error>) {
        if let Some(server) = &provider.server
            && !provider.usage.is_removed()
        {
            self.directory.circuits.record_outcome(server, outcome);
        }
    }

    /// The provider of a server that offers something beside tools.
    fn offerings_of(&self, server: &str) -> Result<ProviderLease, Error> {
        let provider = self.directory.server(server);
        let provider = provider.filter(|provider| provider.inner.as_offerings().is_some());
        let provider = provider.ok_or_else(|| self.unknown_server(server))?;
        self.directory.mark_start([&*provider]);
        Ok(provider)
    }

    /// Whether the host's profile shows something of a server.
    fn is_visible(&self, name: &ToolName) -> bool {
        self.directory.profiles.default_view().shows_offering(name)
    }
}

impl ProviderLease {
    /// What the provider offers beside tools.
    fn offerings(&self) -> Result<&dyn OfferingSupport, Error> {
        let offerings = self.inner.as_offerings();
        offerings.ok_or_else(|| Error::usage("it offers nothing beside tools"))
    }
}

/// Ends work when its caller cancels it. Requests hear `cancel` themselves and tell their server;
/// what has none under way ends here.
async fn with_cancellation<T>(
    work: impl Future<Output = Result<T, Error>>,
    cancel: &CancellationToken,
) -> Result<T, Error> {
    let late = async {
        cancel.cancelled().await;
        tokio::time::sleep(limits::INTERRUPT_GRACE_PERIOD).await;
    };
    tokio::select! {
        biased;
        done = work => done,
        () = late => {
            let interrupted = ErrorKind::Interrupted(Signal::Interrupt);
            Err(Error::new(interrupted, "the request was given up"))
        }
    }
}

fn listing_timeout(what: &str) -> Error {
    let limit = show_duration(limits::LISTING_TIMEOUT);
    Error::timeout(format!("did not start and list its {what} within {limit}"))
}

/// Checks the arguments of a prompt: all problems at once.
fn check_arguments(prompt: &Prompt, arguments: &JsonObject) -> Result<(), Error> {
    let known = || prompt.arguments.iter().map(|argument| argument.name.as_str());
    let missing =
        prompt.arguments.iter().filter(|a| a.required && !arguments.contains_key(&a.name));
    let missing = missing.map(|argument| format!("{}: required, and missing", argument.name));
    let unknown = arguments.keys().filter(|key| !known().any(|name| name == *key)).map(|key| {
        match nearest(key, known()) {
            Some(near) => format!("{key}: unknown; did you mean '{near}'?"),
            None => format!("{key}: unknown"),
        }
    });
    let problems: Vec<String> = missing.chain(unknown).collect();
    if problems.is_empty() {
        return Ok(());
    }
    let error = Error::usage(format!("the arguments do not fit the prompt '{}'", prompt.name));
    let example: Vec<String> = prompt
        .arguments
        .iter()
        .map(|a| if a.required { format!("{}=…", a.name) } else { format!("[{}=…]", a.name) })
        .collect();
    let hint = match example.as_slice() {
        [] => "it takes no arguments".to_owned(),
        words => format!("toolhost prompts get {} {}", prompt.name, words.join(" ")),
    };
    Err(error.with_details(problems).with_hint(hint))
}
