//! Failover between servers that offer the same tool, prompt or resource, by weight: the greatest
//! goes first, of equals the first in the files, so that every process chooses the same.

use std::sync::Arc;

use super::ToolHost;
use super::directory::ToolDirectory;
use super::listings::{RegisteredProvider, failed_servers};
use super::nested::Nesting;
use super::request::{CallOutcome, CallRequest};
use super::router::{RoutedCandidate, SHOWN, Search, ToolCandidate};
use crate::catalogue::build::describe_origin;
use crate::model::{Error, ErrorKind, ErrorPhase, Routing, SkippedServer};

/// The servers that were tried for one request before anything of it was sent.
#[derive(Debug, Default)]
pub(super) struct Failover {
    pub(super) skipped: Vec<SkippedServer>,
    earlier: Option<Error>,
}

impl Failover {
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

pub(super) type WeightedServer<'a> = (&'a str, Option<f64>);

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
            let outcome = match self.call_once(&request, nesting, &failover.skipped).await {
                Ok(outcome) => outcome,
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
    /// Of several servers with a weight each, the one that goes first; otherwise the name is
    /// ambiguous.
    pub(super) fn choose_weighted<'a>(
        &self,
        search: &Search<'_>,
        all: &[ToolCandidate<'a>],
        bad: &[(Arc<RegisteredProvider>, Error)],
    ) -> Result<RoutedCandidate<'a>, Error> {
        let servers: Vec<WeightedServer<'_>> = all
            .iter()
            .map(|(answer, _)| {
                let provider = &answer.provider;
                (provider.server.as_deref().unwrap_or_default(), provider.weight)
            })
            .collect();
        let skipped = self.passed_over(search.skipped, failed_servers(bad));
        if let Some((at, routing)) = Self::choose_server(&servers, skipped)
            && let Some(chosen) = all.get(at)
        {
            return Ok((*chosen, Some(routing)));
        }
        let names = all.iter().take(SHOWN).map(|(_, tool)| {
            let definition = &tool.definition;
            format!("{} ({})", definition.name, describe_origin(&definition.origin))
        });
        Err(Error::usage(format!("'{}' is offered by {} components", search.name, all.len()))
            .with_details(names)
            .with_hint("use one of these full names"))
    }

    /// Of several servers that offer one item and have a weight each, the one with the greatest
    /// weight, of equals the first; nothing when one of them has none. `skipped` are those that were
    /// skipped before.
    pub(super) fn choose_server(
        servers: &[WeightedServer<'_>],
        skipped: Vec<SkippedServer>,
    ) -> Option<(usize, Routing)> {
        let weights = servers.iter().map(|(_, weight)| *weight).collect::<Option<Vec<_>>>()?;
        // Of equal maxima `max_by` gives the last.
        let (at, _) = weights.iter().enumerate().rev().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let (chosen, _) = servers.get(at)?;
        let others = servers.iter().filter(|(server, _)| server != chosen);
        let others = others.map(|(server, _)| (*server).to_owned()).collect();
        Some((at, Routing { server: (*chosen).to_owned(), others, skipped }))
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
}

/// Whether a request failed before anything of it was sent: its server could not be reached.
pub(super) fn is_unsent(error: &Error) -> bool {
    matches!(error.phase(), Some(ErrorPhase::Start | ErrorPhase::Handshake | ErrorPhase::List))
        && !matches!(error.kind(), ErrorKind::Interrupted(_) | ErrorKind::Internal)
}

#[cfg(test)]
mod tests;
