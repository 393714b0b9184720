//! Prompts, resources and templates of all servers: listing, reading, filling in, completing.

mod lookup;
mod requests;
#[cfg(test)]
mod tests;
mod watch;

use futures_util::future::{BoxFuture, join_all};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::link::HostQuery;
use super::profiles::ProfileView;
use super::registry::ProviderLease;
use super::request::LookupScope;
use super::{ToolHost, attempt};
use crate::catalogue::{ServerListing, naming};
use crate::model::{
    Diagnostic, Error, Freshness, OfferingListing, Prompt, Resource, ResourceTemplate,
    ServerStatus, ToolName, WithheldItem,
};
use crate::provider::OfferingSupport;
use crate::util::units::show_duration;

use lookup::OfferingSearch;
pub(in crate::host) use watch::OpenSubscriptions;
pub use watch::ServerChange;

/// One list of all items of one sort, at one moment.
#[derive(Debug, Serialize, Deserialize)]
pub struct Offerings<T> {
    /// The items, server by server in the order of the files.
    pub items: Vec<T>,
    /// The servers that were asked, and the outcome.
    pub servers: Vec<ServerListing>,
    /// How long each list is valid, according to the servers that responded.
    pub freshness: Vec<(String, Freshness)>,
    /// Problems with single items, which may have been skipped.
    pub diagnostics: Vec<Diagnostic>,
    /// Items that servers offer and entries withhold, with their servers.
    pub withheld: Vec<(String, WithheldItem)>,
}

impl<T> Offerings<T> {
    /// The error of a request for something that its entry withholds.
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
    /// The prompts of all servers, or of the named ones, listed concurrently. A failing server does
    /// not affect the others.
    ///
    /// # Errors
    /// A usage error for an unknown profile.
    pub async fn prompts(&self, scope: &LookupScope) -> Result<Offerings<Prompt>, Error> {
        if let Ok(Some(all)) = self.ask_link(HostQuery::Prompts(scope.clone())).await {
            return all;
        }
        let view = self.view(scope.profile.as_deref())?;
        let all = self.prompts_in(OfferingSearch::of(scope, &view)).await;
        Ok(self.with_out_of_service(all, scope, &view))
    }

    /// The resources of all servers, or of the named ones, listed concurrently.
    ///
    /// # Errors
    /// A usage error for an unknown profile.
    pub async fn resources(&self, scope: &LookupScope) -> Result<Offerings<Resource>, Error> {
        if let Ok(Some(all)) = self.ask_link(HostQuery::Resources(scope.clone())).await {
            return all;
        }
        let view = self.view(scope.profile.as_deref())?;
        let all = self.resources_in(OfferingSearch::of(scope, &view)).await;
        Ok(self.with_out_of_service(all, scope, &view))
    }

    /// The resource templates of all servers, or of the named ones, listed concurrently.
    ///
    /// # Errors
    /// A usage error for an unknown profile.
    pub async fn templates(
        &self,
        scope: &LookupScope,
    ) -> Result<Offerings<ResourceTemplate>, Error> {
        if let Ok(Some(all)) = self.ask_link(HostQuery::Templates(scope.clone())).await {
            return all;
        }
        let view = self.view(scope.profile.as_deref())?;
        let all = self.templates_in(OfferingSearch::of(scope, &view)).await;
        Ok(self.with_out_of_service(all, scope, &view))
    }

    async fn prompts_in(&self, search: OfferingSearch<'_>) -> Offerings<Prompt> {
        let mut all = self.list_from_servers(search, "prompts", |offers| offers.prompts()).await;
        all.items.retain(|prompt| search.view.shows_offering(&prompt.name));
        for prompt in &mut all.items {
            self.mask_texts(&mut prompt.title, &mut prompt.description, &mut prompt.warnings);
            for argument in &mut prompt.arguments {
                self.mask_texts(&mut argument.title, &mut argument.description, &mut []);
            }
        }
        all
    }

    async fn resources_in(&self, search: OfferingSearch<'_>) -> Offerings<Resource> {
        let mut all = self.all_resources(search).await;
        all.items.retain(|r| search.view.shows_offering(&ToolName::of(&r.server, &r.name)));
        for resource in &mut all.items {
            self.mask_texts(&mut resource.title, &mut resource.description, &mut resource.warnings);
        }
        all
    }

    /// The same, including those that the profile hides.
    async fn all_resources(&self, search: OfferingSearch<'_>) -> Offerings<Resource> {
        self.list_from_servers(search, "resources", |offers| offers.resources()).await
    }

    /// Whether a resource exists for the client of this host.
    pub async fn has_resource(&self, uri: &str) -> bool {
        let view = self.profiles.default_view();
        let scope = LookupScope::default();
        view.shows_everything()
            || self.resource_owner(uri, OfferingSearch::of(&scope, &view)).await.is_ok()
    }

    async fn templates_in(&self, search: OfferingSearch<'_>) -> Offerings<ResourceTemplate> {
        let mut all =
            self.list_from_servers(search, "templates", |offers| offers.templates()).await;
        all.items.retain(|t| search.view.shows_offering(&ToolName::of(&t.server, &t.name)));
        for template in &mut all.items {
            self.mask_texts(&mut template.title, &mut template.description, &mut template.warnings);
        }
        all
    }

    /// Masks secret values in what a server says about an offering. Its name and address stay,
    /// because requests use them.
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

    /// A list of everything with the entries that are out of service: their part is missing.
    fn with_out_of_service<T>(
        &self,
        mut all: Offerings<T>,
        scope: &LookupScope,
        view: &ProfileView,
    ) -> Offerings<T> {
        if scope.servers.is_empty() {
            let broken = self.servers_out_of_service_in(view).into_iter();
            all.servers.extend(broken.filter_map(|status| self.failed(status)));
        }
        all
    }

    fn failed(&self, status: ServerStatus) -> Option<ServerListing> {
        let error = Some(self.pipeline.masker.error(status.state.error()?.clone()));
        Some(ServerListing { name: status.name, error, is_partial: false })
    }

    /// Requests one list from all servers, or from the named ones.
    async fn list_from_servers<T>(
        &self,
        search: OfferingSearch<'_>,
        what: &str,
        ask: impl for<'a> Fn(
            &'a dyn OfferingSupport,
        ) -> BoxFuture<'a, Result<OfferingListing<T>, Error>>,
    ) -> Offerings<T> {
        let OfferingSearch { servers, view, tried } = search;
        let providers = self.directory.providers();
        let is_asked = |name: &String| {
            (servers.is_empty() || servers.contains(name))
                && tried.iter().all(|skipped| skipped.server != *name)
        };
        let candidates = providers.iter().filter(|provider| {
            provider.server.as_ref().is_some_and(is_asked) && view.may_show(provider)
        });
        let (offering, others): (Vec<_>, Vec<_>) =
            candidates.partition(|provider| provider.inner.as_offerings().is_some());
        let leases: Vec<ProviderLease> =
            offering.into_iter().filter_map(ProviderLease::of).collect();
        self.directory.mark_start(leases.iter().map(|lease| &**lease));
        let ask = &ask;
        let all = join_all(leases.iter().map(|provider| async move {
            let name = provider.server.clone().unwrap_or_default();
            let asking = async { ask(provider.offerings()?).await };
            let asking = provider.while_registered(asking);
            let answer = tokio::time::timeout(attempt::LISTING_TIMEOUT, asking).await;
            let answer = answer.unwrap_or_else(|_elapsed| Err(listing_timeout(what)));
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
        // Entries that are not trusted, or that something is wrong with: their part is missing too.
        let others = others.iter().filter_map(|other| other.inner.as_server());
        offerings.servers.extend(others.filter_map(|server| self.failed(server.status())));
        for name in servers {
            let error = match providers.server(name) {
                None => self.unknown_server(name),
                Some(hidden) if !view.may_show(hidden) => view.refusal(name),
                Some(_) => continue,
            };
            let (name, error) = (name.clone(), Some(error));
            offerings.servers.push(ServerListing { name, error, is_partial: false });
        }
        offerings
            .diagnostics
            .iter_mut()
            .for_each(|problem| self.pipeline.masker.diagnostic(problem));
        offerings
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
        tokio::time::sleep(attempt::INTERRUPT_GRACE_PERIOD).await;
    };
    tokio::select! {
        biased;
        outcome = work => outcome,
        () = late => {
            Err(Error::interrupted("the request was abandoned"))
        }
    }
}

fn listing_timeout(what: &str) -> Error {
    let limit = show_duration(attempt::LISTING_TIMEOUT);
    Error::timeout(format!("did not start and list its {what} within {limit}"))
}
