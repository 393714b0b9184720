//! Failover between servers that offer the same tool, prompt or resource, by weight: the greatest
//! goes first, of equals the first in the files, so that every process chooses the same.

use super::ToolHost;
use super::directory::ToolDirectory;
use super::nested::Nesting;
use super::request::{CallOutcome, CallRequest};
use crate::model::{Error, ErrorKind, ErrorPhase, Routing, SkippedServer};

/// The servers that were tried for one request before anything of it was sent.
#[derive(Debug, Default)]
pub(super) struct Failover {
    pub(super) skipped: Vec<SkippedServer>,
    earlier: Option<Error>,
}

impl Failover {
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
    /// Which of the servers that offer one item goes first, and how it was chosen, if it was: the only
    /// one, or that with the greatest weight, of equals the first. Nothing when there are several and
    /// one of them has no weight. `tried` are those that were tried for the request before, `failed`
    /// those that could not be asked.
    pub(super) fn choose_server<'e>(
        &self,
        servers: &[&str],
        tried: &[SkippedServer],
        failed: impl IntoIterator<Item = (&'e str, &'e Error)>,
    ) -> Option<(usize, Option<Routing>)> {
        let failed = failed.into_iter().filter(|(server, _)| self.weight_of(server).is_some());
        let failed = failed.map(|(server, error)| SkippedServer {
            server: server.to_owned(),
            reason: error.message().to_owned(),
        });
        let skipped: Vec<SkippedServer> = tried.iter().cloned().chain(failed).collect();
        let weights =
            servers.iter().map(|server| self.weight_of(server)).collect::<Option<Vec<_>>>();
        if servers.len() == 1 && (weights.is_none() || skipped.is_empty()) {
            return Some((0, None));
        }
        // Of equal maxima `max_by` gives the last.
        let by_weight = weights?.into_iter().enumerate().rev();
        let (at, _) = by_weight.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let chosen = (*servers.get(at)?).to_owned();
        let others = servers.iter().filter(|server| **server != chosen);
        let others = others.map(|server| (*server).to_owned()).collect();
        Some((at, Some(Routing { server: chosen, others, skipped })))
    }
}

/// Whether a request failed before anything of it was sent: its server could not be reached.
pub(super) fn is_unsent(error: &Error) -> bool {
    matches!(error.phase(), Some(ErrorPhase::Start | ErrorPhase::Handshake | ErrorPhase::List))
        && !matches!(error.kind(), ErrorKind::Interrupted(_) | ErrorKind::Internal)
}

#[cfg(test)]
mod tests;
