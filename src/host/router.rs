//! From a name as typed to the provider that owns the tool, contacting no more than needed.
//!
//! Owns: the order of the search — an exact local name contacts nobody, one that a file
//! declares its provider, a qualified name one server, a bare name all — and what is said when
//! nothing fits. The rules of names are in `catalogue::naming`, the choice between servers that
//! stand in for each other in `failover`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::directory::ToolDirectory;
use super::listings::{ListedTool, RegisteredProvider, ToolListSnapshot, failed_servers};
use crate::catalogue::naming::{self, NameResolution};
use crate::model::{Error, Origin, Routing, SkippedServer, ToolName};

/// How many candidates and failures are listed.
pub(super) const SHOWN: usize = 20;

/// The provider and the tool that a name was resolved to.
pub(super) struct Route {
    pub(super) provider: Arc<RegisteredProvider>,
    pub(super) tool: Arc<ListedTool>,
    /// Time spent connecting, when finding the tool needed that.
    pub(super) connect: Option<Duration>,
    pub(super) protocol: Option<String>,
    /// What could not be found out.
    pub(super) warnings: Vec<String>,
    /// How the server was chosen, when several could have been.
    pub(super) routing: Option<Routing>,
}

impl Route {
    /// Whether another server could take the call.
    pub(super) fn has_alternatives(&self) -> bool {
        self.routing.as_ref().is_some_and(|routing| !routing.others.is_empty())
    }
}

/// What is looked for, and where.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) name: &'a str,
    /// Only these servers; all when empty.
    pub(super) servers: &'a [String],
    /// Bounds starting and listing each server.
    pub(super) limit: Duration,
    /// A call follows, which takes a turn of its server.
    pub(super) is_call: bool,
    /// Servers that were tried for this call already.
    pub(super) skipped: &'a [SkippedServer],
}

impl<'a> Search<'a> {
    /// A search in all servers that no call follows.
    pub(super) fn of(name: &'a str, limit: Duration) -> Self {
        Self { name, servers: &[], limit, is_call: false, skipped: &[] }
    }
}

/// A candidate that was chosen, and how when there were several.
pub(super) type RoutedCandidate<'a> = (ToolCandidate<'a>, Option<Routing>);

/// One list that takes part in a search.
pub(super) struct ProviderListing {
    pub(super) provider: Arc<RegisteredProvider>,
    snapshot: Arc<ToolListSnapshot>,
    is_fresh: bool,
}

/// Answers, and the servers that gave none.
#[derive(Default)]
struct ProviderListings {
    listings: Vec<ProviderListing>,
    failures: Vec<(Arc<RegisteredProvider>, Error)>,
}

/// A tool and the list it is on.
pub(super) type ToolCandidate<'a> = (&'a ProviderListing, &'a Arc<ListedTool>);

impl ToolDirectory {
    /// Finds the one tool that is meant.
    pub(super) async fn route(&self, search: &Search<'_>) -> Result<Route, Error> {
        let Search { name, servers, limit, .. } = *search;
        let in_scope = |tool: &ToolName| is_in_scope(servers, tool.component());
        self.check_scope(servers)?;
        let local = self.local_listings();
        if let Some(candidate) =
            find_exact(&local, name).filter(|(_, tool)| in_scope(&tool.definition.name))
        {
            return self.build_route((candidate, None), Vec::new());
        }

        // A name that a file declares for a provider which is no server, but has to be asked for the
        // rest of the definition: nobody else is.
        let owner = self
            .remote_providers()
            .filter(|provider| is_in_scope(servers, provider.inner.component()))
            .find(|provider| provider.server.is_none() && provider.declared().find(name).is_some());
        if let Some(owner) = owner {
            let answers = self.list_providers(&[owner], limit).await;
            return match find_exact(&answers.listings, name) {
                Some(candidate) => self.build_route((candidate, None), Vec::new()),
                None => Err(self.not_found_error(name, servers, &[], &answers)),
            };
        }

        // A qualified name: only the servers whose names it begins with.
        let known: Vec<String> = self.components(&local);
        let begins = naming::components(name, known.iter().map(String::as_str));
        let contacted: Vec<&Arc<RegisteredProvider>> = self
            .remote_providers()
            .filter(|provider| provider.inner.component().is_some_and(|c| begins.contains(&c)))
            .filter(|provider| is_in_scope(servers, provider.inner.component()))
            .collect();
        let contacts_some = !contacted.is_empty();
        let answers = self.list_providers(&contacted, limit).await;
        let pool: Vec<ToolCandidate<'_>> = candidates(local.iter().chain(&answers.listings))
            .filter(|(_, tool)| {
                let component = tool.definition.name.component();
                component.is_some_and(|c| begins.contains(&c))
            })
            .filter(|(_, tool)| in_scope(&tool.definition.name))
            .collect();
        match self.choose(search, &pool, &answers.failures)? {
            Some(candidate) => return self.build_route(candidate, Vec::new()),
            None if contacts_some => {
                return Err(self.not_found_error(name, servers, &pool, &answers));
            }
            None => {}
        }
        if let Some(error) = self.disabled_entry_error(name) {
            return Err(error);
        }

        // A bare name: everybody has to be asked, for it must be the only one.
        // Those that keep failing are not even connected to, where others can stand in for them.
        let (contacted, resting): (Vec<_>, Vec<_>) = self
            .remote_providers()
            .filter(|provider| is_in_scope(servers, provider.inner.component()))
            .filter(|provider| {
                search.skipped.iter().all(|s| provider.server.as_ref() != Some(&s.server))
            })
            .partition(|provider| !self.is_circuit_open(provider));
        let mut answers = self.list_providers(&contacted, limit).await;
        answers.failures.extend(resting.into_iter().filter_map(|provider| {
            let error = self.circuits.unavailable_error(provider.server.as_deref()?);
            Some((Arc::clone(provider), error))
        }));
        let pool: Vec<ToolCandidate<'_>> = candidates(local.iter().chain(&answers.listings))
            .filter(|(_, tool)| in_scope(&tool.definition.name))
            .collect();
        match self.choose(search, &pool, &answers.failures)? {
            Some(candidate) => {
                // Of servers that stand in for each other nothing else was expected.
                let routed = candidate.1.is_some();
                let expected =
                    |provider: &RegisteredProvider| routed && self.weight(provider).is_some();
                let unasked = answers.failures.iter().filter(|(provider, _)| !expected(provider));
                let unasked = unasked.take(SHOWN).map(|(_, error)| {
                    format!("{error}; whether it offers '{name}' too is not known")
                });
                self.build_route(candidate, unasked.collect())
            }
            None => Err(self.not_found_error(name, servers, &pool, &answers)),
        }
    }

    /// Asks all of these at once. What a server fails with counts for its circuit.
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
                Err(error) => {
                    if let Some(server) = &provider.server {
                        self.circuits.record_outcome(server, Err(&error));
                    }
                    answers.failures.push((provider, error));
                }
            }
        }
        answers
    }

    /// Local lists in file order, so that of two equal names the first is found.
    fn local_listings(&self) -> Vec<ProviderListing> {
        self.providers
            .iter()
            .filter(|provider| !provider.is_remote())
            .map(|provider| ProviderListing {
                provider: Arc::clone(provider),
                snapshot: provider.declared(),
                is_fresh: false,
            })
            .collect()
    }

    fn components(&self, local: &[ProviderListing]) -> Vec<String> {
        let remote = self.remote_providers().filter_map(|m| m.inner.component()).map(str::to_owned);
        let local = candidates(local)
            .filter_map(|(_, tool)| tool.definition.name.component())
            .map(str::to_owned);
        let mut all: Vec<String> = remote.chain(local).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// `--server` must name something that exists.
    fn check_scope(&self, servers: &[String]) -> Result<(), Error> {
        if servers.is_empty() {
            return Ok(());
        }
        let known = self.components(&self.local_listings());
        let Some(server) = servers.iter().find(|server| !known.contains(server)) else {
            return Ok(());
        };
        if let Some(error) = self.disabled_entry_error(server) {
            return Err(error);
        }
        let error = Error::usage(format!("unknown server '{server}'"));
        Err(match naming::nearest(server, known.iter().map(String::as_str)) {
            Some(near) => error.with_hint(format!("did you mean '{near}'?")),
            None => error.with_hint("`toolhost servers` shows all servers"),
        })
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
            pool.iter().copied().filter(|(_, tool)| self.shows(&tool.definition)).collect();
        for pool in [visible.as_slice(), pool] {
            // What is listed comes first: another spelling never makes a name ambiguous.
            let listed = pool.iter().map(|candidate| (*candidate, &candidate.1.definition.name));
            let spelled = pool.iter().flat_map(|candidate| {
                candidate.1.definition.aliases.iter().map(|alias| (*candidate, alias))
            });
            let rounds: [Vec<(ToolCandidate<'a>, &ToolName)>; 2] =
                [listed.collect(), spelled.collect()];
            for round in rounds {
                let names: Vec<&ToolName> = round.iter().map(|(_, name)| *name).collect();
                let candidate = |at: usize| round.get(at).map(|(candidate, _)| *candidate);
                match naming::resolve(search.name, &names) {
                    NameResolution::Found(at) => {
                        return Ok(candidate(at).map(|candidate| {
                            let server = candidate.0.provider.server.as_deref();
                            let skipped = self.passed_over(search.skipped, failed_servers(bad));
                            (candidate, self.routing_for_only(server, skipped))
                        }));
                    }
                    NameResolution::Ambiguous(all) => {
                        let all: Vec<ToolCandidate<'a>> =
                            all.into_iter().filter_map(candidate).collect();
                        return self.choose_weighted(search, &all, bad).map(Some);
                    }
                    NameResolution::Unknown => {}
                }
            }
        }
        Ok(None)
    }

    fn build_route(
        &self,
        ((answer, tool), routing): RoutedCandidate<'_>,
        warnings: Vec<String>,
    ) -> Result<Route, Error> {
        if !self.shows(&tool.definition) {
            let name = &tool.definition.name;
            return Err(Error::denied(format!("'{name}' is not part of the profile in use")));
        }
        Ok(Route {
            provider: Arc::clone(&answer.provider),
            tool: Arc::clone(tool),
            connect: answer.snapshot.connect.filter(|_| answer.is_fresh),
            protocol: answer.snapshot.protocol.clone(),
            warnings,
            routing,
        })
    }

    /// Nothing fits. When some servers could not be asked the tool may be theirs, and then their
    /// failure is the answer.
    fn not_found_error(
        &self,
        name: &str,
        servers: &[String],
        pool: &[ToolCandidate<'_>],
        answers: &ProviderListings,
    ) -> Error {
        let declares = |(provider, _): &&(Arc<RegisteredProvider>, Error)| {
            provider.declared().tools.iter().any(|tool| {
                let known = &tool.definition.name;
                known.full() == name || known.tool() == name
            })
        };
        let withheld = answers
            .listings
            .iter()
            .find_map(|listing| listing.snapshot.refusal(listing.provider.inner.component(), name));
        if let Some(refusal) = withheld {
            return refusal;
        }
        let owner = answers.failures.iter().find(declares);
        let disabled = self
            .disabled
            .iter()
            .find(|entry| is_in_scope(servers, Some(&entry.name)) && entry.declares(name));
        if let (None, Some(entry)) = (owner, disabled) {
            return entry.error().with_detail(format!("it declares the tool '{name}'"));
        }
        let worst = || answers.failures.iter().min_by_key(|(_, error)| error.kind().precedence());
        if let Some((_, error)) = owner.or_else(worst) {
            let error = error.clone();
            if error.server().is_some_and(|s| naming::after_component(name, s).is_some()) {
                return error;
            }
            return error.with_detail(match answers.failures.len() - 1 {
                0 => format!("nobody else offers '{name}'"),
                others => format!("nobody else offers '{name}', but {others} more failed"),
            });
        }
        if let Some(error) = self.disabled_component_error(name) {
            return error;
        }
        let names: Vec<&ToolName> = pool
            .iter()
            .filter(|(_, tool)| self.shows(&tool.definition))
            .map(|(_, tool)| &tool.definition.name)
            .collect();
        let near = naming::suggest(name, &names);
        let error = Error::usage(match servers {
            [] => format!("unknown tool '{name}'"),
            [server] => format!("server '{server}' has no tool '{name}'"),
            servers => format!("none of {} servers has a tool '{name}'", servers.len()),
        });
        if near.is_empty() {
            error.with_hint("`toolhost list` shows all tools")
        } else {
            let near: Vec<String> = near.iter().map(|name| format!("'{name}'")).collect();
            error.with_hint(format!("did you mean {}?", near.join(" or ")))
        }
    }
}

fn candidates<'a>(
    answers: impl IntoIterator<Item = &'a ProviderListing>,
) -> impl Iterator<Item = ToolCandidate<'a>> {
    answers
        .into_iter()
        .flat_map(|answer| answer.snapshot.tools.iter().map(move |tool| (answer, tool)))
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

fn is_in_scope(servers: &[String], component: Option<&str>) -> bool {
    servers.is_empty() || component.is_some_and(|c| servers.iter().any(|server| server == c))
}
