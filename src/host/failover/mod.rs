//! Failover between servers that offer the same tool, by weight.
//!
//! Owns: choosing one of them for a bare name, saying which were passed over and why, and giving a
//! call to the next one when nothing of it was sent. A call that was sent is never sent again.
//! Never does: decide by which rule (see `balancer`), or when a server is left alone (`circuit`).

use std::sync::Arc;

use super::ToolHost;
use super::balancer::{self, ServerCandidate};
use super::directory::ToolDirectory;
use super::listings::RegisteredProvider;
use super::nested::Nesting;
use super::request::{CallOutcome, CallRequest};
use super::router::{RoutedCandidate, SHOWN, Search, ToolCandidate};
use crate::catalogue::build::describe_origin;
use crate::model::{Error, ErrorKind, ErrorPhase, Routing, SkippedServer};

impl ToolHost {
    /// The same for a call that may be part of others. When the server that the router chose could
    /// not be reached before anything was sent to it, the next one gets the call.
    pub(super) async fn call_within(
        &self,
        mut request: CallRequest,
        nesting: &Nesting,
    ) -> Result<CallOutcome, Error> {
        let mut skipped: Vec<SkippedServer> = Vec::new();
        let mut earlier: Option<CallOutcome> = None;
        loop {
            let (outcome, others) = match self.call_once(&request, nesting, &skipped).await {
                Ok(done) => done,
                Err(error) => {
                    let interrupted = matches!(error.kind(), ErrorKind::Interrupted(_));
                    let Some(mut earlier) = earlier.filter(|_| !interrupted) else {
                        return Err(error);
                    };
                    let line = format!("and no other server took the call: {error}");
                    earlier.result = earlier.result.map_err(|failed| failed.with_detail(line));
                    return Ok(earlier);
                }
            };
            let unsent = outcome.result.as_ref().err().filter(|error| is_unsent(error));
            let server = outcome.metadata.routing.as_ref().map(|routing| &routing.server);
            let (Some(error), Some(server), true) = (unsent, server, others) else {
                return Ok(outcome);
            };
            tracing::warn!(server, kind = error.kind().as_str(), "call goes to another server");
            let reason = error.message().to_owned();
            skipped.push(SkippedServer { server: server.clone(), reason });
            // A record of its own needs a name of its own.
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
        let choice = |(answer, _): &ToolCandidate<'a>| {
            let weight = answer.provider.weight?;
            let server = answer.provider.server.clone()?;
            let available = self.circuits.admits(&server);
            Some((server, weight, available))
        };
        let Some(known) = all.iter().map(choice).collect::<Option<Vec<_>>>() else {
            let names = all.iter().take(SHOWN).map(|(_, tool)| {
                let definition = &tool.definition;
                format!("{} ({})", definition.name, describe_origin(&definition.origin))
            });
            return Err(Error::usage(format!("'{name}' is offered by {} components", all.len()))
                .with_details(names)
                .with_hint("use one of these full names"));
        };
        let choices: Vec<ServerCandidate<'_>> = known
            .iter()
            .map(|(server, weight, available)| {
                let (weight, available) = (*weight, *available);
                ServerCandidate { server, weight, available }
            })
            .collect();
        let tool = all.first().map(|(_, tool)| tool.definition.name.tool()).unwrap_or_default();
        let picked = if search.is_call {
            self.balance.pick(tool, &choices)
        } else {
            balancer::preferred(&choices)
        };
        let Some((at, found)) = picked.and_then(|at| Some((at, *all.get(at)?))) else {
            let refusals = known
                .iter()
                .map(|(server, ..)| self.circuits.unavailable_error(server).to_string());
            return Err(Error::unreachable(format!("no server that offers '{name}' is available"))
                .with_details(refusals)
                .with_hint("a full name is always tried"));
        };
        let mut routing = skipped_servers(search, bad);
        for (index, (server, _, available)) in known.iter().enumerate() {
            if index == at {
                routing.server.clone_from(server);
            } else if *available {
                routing.others.push(server.clone());
            } else {
                let reason = self.circuits.unavailable_error(server).message().to_owned();
                routing.skipped.push(SkippedServer { server: server.clone(), reason });
            }
        }
        if search.is_call {
            self.circuits.begin_trial(&routing.server);
        }
        Ok((found, Some(routing)))
    }

    /// Whether a server is left alone, unless it is asked for by its name.
    pub(super) fn is_circuit_open(&self, provider: &RegisteredProvider) -> bool {
        let server = provider.server.as_deref();
        provider.weight.is_some()
            && server.is_some_and(|server| !self.circuits.admits(server))
            && provider.cached_snapshot().is_none()
    }
}

impl Search<'_> {
    /// How the only one was chosen that is left of several servers with a weight each.
    pub(super) fn routing_for_only(
        &self,
        (answer, _): ToolCandidate<'_>,
        bad: &[(Arc<RegisteredProvider>, Error)],
    ) -> Option<Routing> {
        answer.provider.weight?;
        let server = answer.provider.server.clone()?;
        let routing = Routing { server, ..skipped_servers(self, bad) };
        Some(routing).filter(|routing| !routing.skipped.is_empty())
    }
}

/// The servers with a weight that were passed over so far.
fn skipped_servers(search: &Search<'_>, bad: &[(Arc<RegisteredProvider>, Error)]) -> Routing {
    let failed = bad.iter().filter(|(provider, _)| provider.weight.is_some());
    let failed = failed.filter_map(|(provider, error)| {
        let reason = error.message().to_owned();
        Some(SkippedServer { server: provider.server.clone()?, reason })
    });
    let skipped = search.skipped.iter().cloned().chain(failed).collect();
    Routing { server: String::new(), others: Vec::new(), skipped }
}

/// Whether a call failed before anything of it was sent: its server could not be reached.
pub(super) fn is_unsent(error: &Error) -> bool {
    matches!(error.phase(), Some(ErrorPhase::Start | ErrorPhase::Handshake | ErrorPhase::List))
        && !matches!(error.kind(), ErrorKind::Interrupted(_) | ErrorKind::Internal)
}

#[cfg(test)]
mod tests;
