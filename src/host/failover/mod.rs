//! Failover between servers that offer the same tool, prompt or resource, by weight.
//!
//! Owns: choosing one of them, reporting which were skipped and why, and passing a request to the
//! next one when nothing of it was sent. A request that was sent is never sent again. Never does:
//! decide by which rule (see `balancer`), or when a server gets no calls (`circuit`).

use std::sync::Arc;

use super::ToolHost;
use super::balancer::{self, ServerCandidate, SharedItem};
use super::directory::ToolDirectory;
use super::listings::{RegisteredProvider, failed_servers};
use super::nested::Nesting;
use super::request::{CallOutcome, CallRequest};
use super::router::{RoutedCandidate, SHOWN, Search, ToolCandidate};
use crate::catalogue::build::describe_origin;
use crate::model::{Error, ErrorKind, ErrorPhase, ListKind, Routing, SkippedServer};

/// The servers that were tried for one request before anything of it was sent.
#[derive(Debug, Default)]
pub(super) struct Failover {
    skipped: Vec<SkippedServer>,
    /// What the last of them failed with.
    earlier: Option<Error>,
    /// The server is only looked up, which takes no turn of it.
    is_lookup: bool,
}

impl Failover {
    /// For finding out which server would get a request, without making one.
    pub(super) fn lookup() -> Self {
        Self { is_lookup: true, ..Self::default() }
    }

    /// Whether a request follows, which takes a turn of its server.
    pub(super) fn takes_turn(&self) -> bool {
        !self.is_lookup
    }

    /// The servers that are not tried again.
    pub(super) fn skipped(&self) -> &[SkippedServer] {
        &self.skipped
    }

    /// Whether a server was tried.
    pub(super) fn was_tried(&self, server: &str) -> bool {
        self.skipped.iter().any(|skipped| skipped.server == server)
    }

    /// Whether another server gets the request that this one failed with.
    pub(super) fn passes_on(&mut self, routing: Option<&Routing>, error: &Error) -> bool {
        let Some(routing) = routing.filter(|routing| !routing.others.is_empty()) else {
            return false;
        };
        if !is_unsent(error) {
            return false;
        }
        let (server, reason) = (routing.server.clone(), error.message().to_owned());
        tracing::warn!(server, kind = error.kind().as_str(), "request goes to another server");
        self.skipped.push(SkippedServer { server, reason });
        self.earlier = Some(error.clone());
        true
    }

    /// The error of the whole request, when no other server could be found for it.
    pub(super) fn exhausted(self, error: Error) -> Error {
        match self.earlier.filter(|_| !matches!(error.kind(), ErrorKind::Interrupted(_))) {
            Some(failed) => failed.with_detail(no_other_server(&error)),
            None => error,
        }
    }
}

fn no_other_server(error: &Error) -> String {
    format!("and no other server accepted it: {error}")
}

/// A server that offers an item, with its share of the requests.
pub(super) type WeightedServer<'a> = (&'a str, Option<f64>);

/// The result of choosing between servers that offer one item.
pub(super) enum ServerChoice {
    /// The index of the chosen server.
    Chosen(usize, Routing),
    /// Not all of them have a weight, so that the caller has to choose.
    Unweighted,
    /// None of them may be called now, with the reason for each.
    Unavailable(Vec<String>),
}

impl ToolHost {
    /// The same for a call that may be part of others. When the server that the router chose could
    /// not be reached before anything was sent to it, the next one gets the call.
    pub(super) async fn call_within(
        &self,
        mut request: CallRequest,
        nesting: &Nesting,
    ) -> Result<CallOutcome, Error> {
        let mut failover = Failover::default();
        let mut earlier: Option<CallOutcome> = None;
        loop {
            let outcome = match self.call_once(&request, nesting, failover.skipped()).await {
                Ok(done) => done,
                Err(error) => {
                    let interrupted = matches!(error.kind(), ErrorKind::Interrupted(_));
                    let Some(mut earlier) = earlier.filter(|_| !interrupted) else {
                        return Err(error);
                    };
                    let line = no_other_server(&error);
                    earlier.result = earlier.result.map_err(|failed| failed.with_detail(line));
                    return Ok(earlier);
                }
            };
            let routing = outcome.metadata.routing.as_ref();
            match &outcome.result {
                Err(error) if failover.passes_on(routing, error) => {}
                _ => return Ok(outcome),
            }
            // A separate record needs its own id.
            request.id = None;
            earlier = Some(outcome);
        }
    }
}

impl ToolDirectory {
    /// Of several servers with a weight each, the one whose turn it is; otherwise the name is
    /// ambiguous.
    pub(super) fn choose_weighted<'a>(
        &self,
        search: &Search<'_>,
        all: &[ToolCandidate<'a>],
        bad: &[(Arc<RegisteredProvider>, Error)],
    ) -> Result<RoutedCandidate<'a>, Error> {
        let name = search.name;
        let tool = all.first().map(|(_, tool)| tool.definition.name.tool()).unwrap_or_default();
        let servers: Vec<WeightedServer<'_>> = all
            .iter()
            .map(|(answer, _)| {
                let provider = &answer.provider;
                (provider.server.as_deref().unwrap_or_default(), provider.weight)
            })
            .collect();
        let skipped = self.passed_over(search.skipped, failed_servers(bad));
        match self.choose_server((ListKind::Tools, tool), &servers, search.is_call, skipped) {
            ServerChoice::Chosen(at, routing) => {
                let chosen = all.get(at).copied();
                chosen.map(|chosen| (chosen, Some(routing))).ok_or_else(|| unavailable(name, []))
            }
            ServerChoice::Unavailable(reasons) => {
                Err(unavailable(name, reasons).with_hint("a call by full name is always attempted"))
            }
            ServerChoice::Unweighted => {
                let names = all.iter().take(SHOWN).map(|(_, tool)| {
                    let definition = &tool.definition;
                    format!("{} ({})", definition.name, describe_origin(&definition.origin))
                });
                Err(Error::usage(format!("'{name}' is offered by {} components", all.len()))
                    .with_details(names)
                    .with_hint("use one of these full names"))
            }
        }
    }

    /// Of several servers that offer one item and have a weight each, the one whose turn it is. A
    /// turn is only taken when a request follows. `skipped` are those that were skipped before.
    pub(super) fn choose_server<'a>(
        &self,
        item: SharedItem<'_>,
        servers: &[WeightedServer<'a>],
        takes_turn: bool,
        skipped: Vec<SkippedServer>,
    ) -> ServerChoice {
        let candidate = |(server, weight): &WeightedServer<'a>| {
            let available = self.circuits.admits(server);
            Some(ServerCandidate { server, weight: (*weight)?, available })
        };
        let Some(candidates) = servers.iter().map(candidate).collect::<Option<Vec<_>>>() else {
            return ServerChoice::Unweighted;
        };
        let picked = if takes_turn {
            self.balance.pick(item, &candidates)
        } else {
            balancer::preferred(&candidates)
        };
        let reason = |server: &str| self.circuits.unavailable_error(server);
        let Some((at, chosen)) = picked.and_then(|at| Some((at, candidates.get(at)?))) else {
            return ServerChoice::Unavailable(
                servers.iter().map(|(server, _)| reason(server).to_string()).collect(),
            );
        };
        let server = chosen.server.to_owned();
        let mut routing = Routing { server, others: Vec::new(), skipped };
        for candidate in candidates.iter().filter(|other| other.server != chosen.server) {
            let server = candidate.server.to_owned();
            if candidate.available {
                routing.others.push(server);
            } else {
                let reason = reason(&server).message().to_owned();
                routing.skipped.push(SkippedServer { server, reason });
            }
        }
        if takes_turn {
            self.circuits.begin_trial(&routing.server);
        }
        ServerChoice::Chosen(at, routing)
    }

    /// The same for the only one that is left of several servers with a weight each; nothing when
    /// none was skipped.
    pub(super) fn routing_for_only(
        &self,
        server: Option<&str>,
        skipped: Vec<SkippedServer>,
    ) -> Option<Routing> {
        let server = server.filter(|server| self.weight_of(server).is_some())?.to_owned();
        let routing = Routing { server, others: Vec::new(), skipped };
        Some(routing).filter(|routing| !routing.skipped.is_empty())
    }

    /// The servers with a weight that were skipped so far: those that were tried for the request,
    /// and those that could not be asked.
    pub(super) fn passed_over<'e>(
        &self,
        tried: &[SkippedServer],
        failed: impl IntoIterator<Item = (&'e str, &'e Error)>,
    ) -> Vec<SkippedServer> {
        let failed = failed.into_iter().filter(|(server, _)| self.weight_of(server).is_some());
        let failed = failed.map(|(server, error)| SkippedServer {
            server: server.to_owned(),
            reason: error.message().to_owned(),
        });
        tried.iter().cloned().chain(failed).collect()
    }

    /// Whether a server is left alone, unless it is asked for by its name.
    pub(super) fn is_circuit_open(&self, provider: &RegisteredProvider) -> bool {
        let server = provider.server.as_deref();
        provider.weight.is_some()
            && server.is_some_and(|server| !self.circuits.admits(server))
            && provider.cached_snapshot().is_none()
    }
}

/// The error when all servers that offer something are left alone at the moment.
pub(super) fn unavailable(name: &str, reasons: impl IntoIterator<Item = String>) -> Error {
    Error::unreachable(format!("no server that offers '{name}' is available")).with_details(reasons)
}

/// Whether a request failed before anything of it was sent: its server could not be reached.
pub(super) fn is_unsent(error: &Error) -> bool {
    matches!(error.phase(), Some(ErrorPhase::Start | ErrorPhase::Handshake | ErrorPhase::List))
        && !matches!(error.kind(), ErrorKind::Interrupted(_) | ErrorKind::Internal)
}

#[cfg(test)]
mod tests;
