//! Routing a typed name to the provider that owns the tool, contacting no more servers than needed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::directory::ToolDirectory;
use super::listings::{ListedTool, RegisteredProvider, ToolListSnapshot, failed_servers};
use super::not_found::SilentServers;
use super::profiles::ProfileView;
use super::registry::{self, ProviderLease, ProviderTable};
use crate::catalogue::build::describe_origin;
use crate::catalogue::naming;
use crate::model::{Error, ErrorKind, Origin, Routing, SkippedServer};
use crate::util::spelling::did_you_mean;

pub(super) const SHOWN: usize = 20;

pub(super) fn unknown_server<'k>(name: &str, names: impl IntoIterator<Item = &'k str>) -> Error {
    let hint = did_you_mean(name, names);
    Error::usage(format!("unknown server '{name}'"))
        .with_hint(hint.unwrap_or_else(|| "`toolhost servers` shows all servers".to_owned()))
}

/// The provider and the tool that a name was resolved to.
pub(super) struct Route {
    pub(super) provider: ProviderLease,
    pub(super) tool: Arc<ListedTool>,
    pub(super) connect: Option<Duration>,
    pub(super) protocol: Option<String>,
    /// What could not be found out.
    pub(super) warnings: Vec<String>,
    /// How the server was chosen, when several could have been.
    pub(super) routing: Option<Routing>,
}

impl Route {
    pub(super) fn has_alternatives(&self) -> bool {
        self.routing.as_ref().is_some_and(|routing| !routing.others.is_empty())
    }
}

#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) name: &'a str,
    /// Only these servers; all when empty.
    pub(super) servers: &'a [String],
    pub(super) view: &'a ProfileView,
    /// Bounds starting and listing each server.
    pub(super) limit: Duration,
    /// Servers that were tried for this call already.
    pub(super) skipped: &'a [SkippedServer],
}

impl<'a> Search<'a> {
    pub(super) fn of(name: &'a str, view: &'a ProfileView, limit: Duration) -> Self {
        Self { name, servers: &[], view, limit, skipped: &[] }
    }
}

pub(super) type RoutedCandidate<'a> = (ToolCandidate<'a>, Option<Routing>);

pub(super) struct ProviderListing {
    pub(super) provider: Arc<RegisteredProvider>,
    pub(super) snapshot: Arc<ToolListSnapshot>,
    is_fresh: bool,
}

/// Answers, and the servers that gave none.
#[derive(Default)]
pub(super) struct ProviderListings {
    pub(super) listings: Vec<ProviderListing>,
    pub(super) failures: Vec<(Arc<RegisteredProvider>, Error)>,
}

pub(super) type ToolCandidate<'a> = (&'a ProviderListing, &'a Arc<ListedTool>);

impl ToolDirectory {
    pub(super) async fn route(&self, search: &Search<'_>) -> Result<Route, Error> {
        let route = self.find_route(search).await;
        route.map_err(|error| match error.kind() {
            // Why a name does not fit may say what there is outside of the client's scope.
            ErrorKind::Usage | ErrorKind::Denied | ErrorKind::Config if search.view.is_scoped() => {
                Error::usage(format!("unknown tool '{}'", search.name))
            }
            _ => error,
        })
    }

    async fn find_route(&self, search: &Search<'_>) -> Result<Route, Error> {
        let Search { name, servers, view, limit, .. } = *search;
        let table = self.providers();
        let local = local_listings(&table);
        let names = components(&table, &local);
        self.check_scope(servers, &names)?;
        let in_scope = |component: Option<&str>| is_in_scope(servers, component);
        if let Some(candidate) =
            find_exact(&local, name).filter(|(_, tool)| in_scope(tool.definition.name.component()))
        {
            return build_route(search, (candidate, None), Vec::new());
        }
        let remote = || table.remote().filter(|provider| in_scope(provider.inner.component()));

        // A name that a file declares for a provider which is no server, but has to be asked for the
        // rest of the definition: no other provider is.
        let declares = |provider: &&Arc<RegisteredProvider>| {
            let declared = provider.declared();
            let tool = declared.find(name);
            tool.is_some_and(|tool| !view.is_scoped() || view.shows(&tool.definition))
        };
        let owner = remote().filter(|provider| provider.server.is_none()).find(declares);
        if let Some(owner) = owner {
            if !view.may_show(owner) {
                return Err(view.refusal(name));
            }
            let answers = self.list_providers(&[owner], limit).await;
            return match find_exact(&answers.listings, name) {
                Some(candidate) => build_route(search, (candidate, None), Vec::new()),
                None => Err(self.not_found_error(search, &[], &[], &answers)),
            };
        }

        // A qualified name: only the servers whose names it begins with.
        let begins = naming::components(name, names.iter().copied());
        let is_named = |component: Option<&str>| component.is_some_and(|c| begins.contains(&c));
        let (contacted, hidden): (Vec<_>, Vec<_>) = remote()
            .filter(|provider| is_named(provider.inner.component()))
            .partition(|provider| view.may_show(provider));
        let answers = self.list_providers(&contacted, limit).await;
        let pool = candidates(local.iter().chain(&answers.listings), |component| {
            is_named(component) && in_scope(component)
        });
        match self.choose(search, &pool, &answers.failures)? {
            Some(candidate) => return build_route(search, candidate, Vec::new()),
            None if !contacted.is_empty() => {
                return Err(self.not_found_error(search, &begins, &pool, &answers));
            }
            // Whether such a server has the tool is nothing that the profile shows.
            None if !hidden.is_empty() => return Err(view.refusal(name)),
            None => {}
        }
        if let Some(error) = self.disabled_entry_error(name) {
            return Err(error);
        }

        // A bare name: all servers must be contacted, because it must be unique.
        let was_tried = |provider: &RegisteredProvider| {
            search.skipped.iter().any(|tried| provider.server.as_ref() == Some(&tried.server))
        };
        let contacted: Vec<_> =
            remote().filter(|provider| view.may_show(provider) && !was_tried(provider)).collect();
        let answers = self.list_providers(&contacted, limit).await;
        let pool = candidates(local.iter().chain(&answers.listings), in_scope);
        let Some(candidate) = self.choose(search, &pool, &answers.failures)? else {
            return Err(self.not_found_error(search, &begins, &pool, &answers));
        };
        // That is expected of servers that offer the same tool.
        let routed = candidate.1.is_some();
        let expected = |provider: &RegisteredProvider| routed && provider.weight.is_some();
        let unasked = answers.failures.iter().filter(|(provider, _)| !expected(provider));
        let note = SilentServers::of_providers(unasked).note(&format!("'{name}' too"));
        build_route(search, candidate, note.into_iter().collect())
    }

    async fn list_providers(
        &self,
        providers: &[&Arc<RegisteredProvider>],
        limit: Duration,
    ) -> ProviderListings {
        self.mark_start(providers.iter().map(|provider| &***provider));
        let all = join_all(providers.iter().map(|provider| provider.get_or_list(limit))).await;
        let mut answers = ProviderListings::default();
        for (provider, answer) in providers.iter().zip(all) {
            let provider = Arc::clone(provider);
            match answer {
                Ok((snapshot, fresh)) => {
                    answers.listings.push(ProviderListing { provider, snapshot, is_fresh: fresh });
                }
                Err(error) => answers.failures.push((provider, error)),
            }
        }
        answers
    }

    /// `--server` must name something that exists.
    fn check_scope(&self, servers: &[String], names: &[&str]) -> Result<(), Error> {
        let Some(server) = servers.iter().find(|server| !names.contains(&server.as_str())) else {
            return Ok(());
        };
        if let Some(error) = self.disabled_entry_error(server) {
            return Err(error);
        }
        Err(unknown_server(server, names.iter().copied()))
    }

    /// Resolves a name among candidates. Tools that the profile hides do not count, unless
    /// nothing else is meant.
    fn choose<'a>(
        &self,
        search: &Search<'_>,
        pool: &[ToolCandidate<'a>],
        bad: &[(Arc<RegisteredProvider>, Error)],
    ) -> Result<Option<RoutedCandidate<'a>>, Error> {
        let visible: Vec<ToolCandidate<'a>> =
            pool.iter().copied().filter(|(_, tool)| search.view.shows(&tool.definition)).collect();
        for pool in [visible.as_slice(), pool] {
            // What is listed comes first: another spelling never makes a name ambiguous.
            let listed = pool.iter().map(|candidate| (*candidate, &candidate.1.definition.name));
            let spelled = pool.iter().flat_map(|candidate| {
                candidate.1.definition.aliases.iter().map(|alias| (*candidate, alias))
            });
            for round in [listed.collect::<Vec<_>>(), spelled.collect()] {
                let meant = naming::resolve(search.name, &round, |(_, name)| name);
                let all: Vec<ToolCandidate<'a>> =
                    meant.into_iter().map(|(candidate, _)| *candidate).collect();
                if all.is_empty() {
                    continue;
                }
                let servers = all.iter().map(|(answer, _)| answer.provider.server.as_deref());
                let servers: Vec<&str> = servers.map(Option::unwrap_or_default).collect();
                let choice = self.choose_server(&servers, search.skipped, failed_servers(bad));
                let chosen = choice.and_then(|(at, routing)| Some((*all.get(at)?, routing)));
                return chosen.map(Some).ok_or_else(|| ambiguous(search.name, &all));
            }
        }
        Ok(None)
    }
}

fn ambiguous(name: &str, all: &[ToolCandidate<'_>]) -> Error {
    let names = all.iter().take(SHOWN).map(|(_, tool)| {
        let definition = &tool.definition;
        format!("{} ({})", definition.name, describe_origin(&definition.origin))
    });
    Error::usage(format!("'{name}' is offered by {} components", all.len()))
        .with_details(names)
        .with_hint("use one of these full names")
}

/// Local lists in file order, so that of two equal names the first is found.
fn local_listings(table: &ProviderTable) -> Vec<ProviderListing> {
    let local = table.iter().filter(|provider| !provider.is_remote());
    local
        .map(|provider| ProviderListing {
            provider: Arc::clone(provider),
            snapshot: provider.declared(),
            is_fresh: false,
        })
        .collect()
}

fn components<'a>(table: &'a ProviderTable, local: &'a [ProviderListing]) -> Vec<&'a str> {
    let remote = table.remote().filter_map(|provider| provider.inner.component());
    let tools = local.iter().flat_map(|listing| &listing.snapshot.tools);
    let local = tools.filter_map(|tool| tool.definition.name.component());
    let mut all: Vec<&str> = remote.chain(local).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn build_route(
    search: &Search<'_>,
    ((answer, tool), routing): RoutedCandidate<'_>,
    warnings: Vec<String>,
) -> Result<Route, Error> {
    let name = tool.definition.name.full();
    if !search.view.shows(&tool.definition) {
        return Err(search.view.refusal(&name));
    }
    let Some(provider) = ProviderLease::of(&answer.provider) else {
        return Err(registry::removed_tool_error(&name));
    };
    Ok(Route {
        provider,
        tool: Arc::clone(tool),
        connect: answer.snapshot.connect.filter(|_| answer.is_fresh),
        protocol: answer.snapshot.protocol.clone(),
        warnings,
        routing,
    })
}

/// The tools on the lists whose component fits.
fn candidates<'a>(
    listings: impl Iterator<Item = &'a ProviderListing>,
    fits: impl Fn(Option<&str>) -> bool,
) -> Vec<ToolCandidate<'a>> {
    listings
        .flat_map(|listing| listing.snapshot.tools.iter().map(move |tool| (listing, tool)))
        .filter(|(_, tool)| fits(tool.definition.name.component()))
        .collect()
}

/// The local tool with exactly this full name; of several the one that stands first in its file,
/// as in the catalogue.
fn find_exact<'a>(local: &'a [ProviderListing], name: &str) -> Option<ToolCandidate<'a>> {
    local
        .iter()
        .filter_map(|answer| answer.snapshot.find(name).map(|tool| (answer, tool)))
        .min_by_key(|(_, tool)| match &tool.definition.origin {
            Origin::File(place) => (place.line, place.column),
            Origin::Server(_) | Origin::Program => (u32::MAX, 0),
        })
}

pub(super) fn is_in_scope(servers: &[String], component: Option<&str>) -> bool {
    servers.is_empty() || component.is_some_and(|c| servers.iter().any(|server| server == c))
}
