//! Servers that stand in for each other: several that offer one tool, each with a weight.
//!
//! Owns: choosing one of them for a bare name, saying which were passed over and why, and giving a
//! call to the next one when nothing of it was sent. A call that was sent is never sent again.
//! Never does: decide by which rule (see `balance`), or when a server is left alone (`circuit`).

use std::sync::Arc;

use super::ToolHost;
use super::balance::{self, Choice};
use super::listings::Member;
use super::nested::Nesting;
use super::request::{CallOutcome, CallRequest};
use super::router::{Candidate, Chosen, SHOWN, Search};
use crate::catalogue::build::where_from;
use crate::model::{Fault, FaultKind, Phase, Routing, Skipped};

impl ToolHost {
    /// The same for a call that may be part of others. When the server that the router chose could
    /// not be reached before anything was sent to it, the next one gets the call.
    pub(super) async fn call_within(
        &self,
        mut request: CallRequest,
        nesting: &Nesting,
    ) -> Result<CallOutcome, Fault> {
        let mut skipped: Vec<Skipped> = Vec::new();
        let mut earlier: Option<CallOutcome> = None;
        loop {
            let (outcome, others) = match self.call_once(&request, nesting, &skipped).await {
                Ok(done) => done,
                Err(fault) => {
                    let interrupted = matches!(fault.kind(), FaultKind::Interrupted(_));
                    let Some(mut earlier) = earlier.filter(|_| !interrupted) else {
                        return Err(fault);
                    };
                    let line = format!("and no other server took the call: {fault}");
                    earlier.result = earlier.result.map_err(|failed| failed.detail(line));
                    return Ok(earlier);
                }
            };
            let unsent = outcome.result.as_ref().err().filter(|fault| is_unsent(fault));
            let server = outcome.metadata.routing.as_ref().map(|routing| &routing.server);
            let (Some(fault), Some(server), true) = (unsent, server, others) else {
                return Ok(outcome);
            };
            let reason = fault.message().to_owned();
            skipped.push(Skipped { server: server.clone(), reason });
            // A record of its own needs a name of its own.
            request.id = None;
            earlier = Some(outcome);
        }
    }

    /// Of several servers with a weight each, the one whose turn it is; otherwise the name is
    /// ambiguous.
    pub(super) fn one_of<'a>(
        &self,
        search: &Search<'_>,
        all: &[Candidate<'a>],
        bad: &[(Arc<Member>, Fault)],
    ) -> Result<Chosen<'a>, Fault> {
        let name = search.name;
        let choice = |(answer, _): &Candidate<'a>| {
            let weight = self.weight(&answer.member)?;
            let server = answer.member.server.clone()?;
            let available = self.circuits.admits(&server);
            Some((server, weight, available))
        };
        let Some(known) = all.iter().map(choice).collect::<Option<Vec<_>>>() else {
            let names = all.iter().take(SHOWN).map(|(_, tool)| {
                let definition = &tool.definition;
                format!("{} ({})", definition.name, where_from(&definition.origin))
            });
            return Err(Fault::usage(format!("'{name}' is offered by {} components", all.len()))
                .details(names)
                .hint("use one of these full names"));
        };
        let choices: Vec<Choice<'_>> = known
            .iter()
            .map(|(server, weight, available)| {
                let (weight, available) = (*weight, *available);
                Choice { server, weight, available }
            })
            .collect();
        let tool = all.first().map(|(_, tool)| tool.definition.name.tool()).unwrap_or_default();
        let picked =
            if search.calls { self.balance.pick(tool, &choices) } else { balance::first(&choices) };
        let Some((at, found)) = picked.and_then(|at| Some((at, *all.get(at)?))) else {
            let refusals =
                known.iter().map(|(server, ..)| self.circuits.refusal(server).to_string());
            return Err(Fault::unreachable(format!("no server that offers '{name}' is available"))
                .details(refusals)
                .hint("a full name is always tried"));
        };
        let mut routing = self.skipped(search, bad);
        for (index, (server, _, available)) in known.iter().enumerate() {
            if index == at {
                routing.server.clone_from(server);
            } else if *available {
                routing.others.push(server.clone());
            } else {
                let reason = self.circuits.refusal(server).message().to_owned();
                routing.skipped.push(Skipped { server: server.clone(), reason });
            }
        }
        if search.calls {
            self.circuits.begin(&routing.server);
        }
        Ok((found, Some(routing)))
    }

    /// The same for the only one that is left of several servers with a weight each.
    pub(super) fn alone(
        &self,
        search: &Search<'_>,
        (answer, _): Candidate<'_>,
        bad: &[(Arc<Member>, Fault)],
    ) -> Option<Routing> {
        self.weight(&answer.member)?;
        let server = answer.member.server.clone()?;
        let routing = Routing { server, ..self.skipped(search, bad) };
        Some(routing).filter(|routing| !routing.skipped.is_empty())
    }

    /// The servers with a weight that were passed over so far.
    fn skipped(&self, search: &Search<'_>, bad: &[(Arc<Member>, Fault)]) -> Routing {
        let failed = bad.iter().filter(|(member, _)| self.weight(member).is_some());
        let failed = failed.filter_map(|(member, fault)| {
            let reason = fault.message().to_owned();
            Some(Skipped { server: member.server.clone()?, reason })
        });
        let skipped = search.skipped.iter().cloned().chain(failed).collect();
        Routing { server: String::new(), others: Vec::new(), skipped }
    }

    /// What is told of a choice: reasons quote servers, which may say anything.
    pub(super) fn masked_routing(&self, mut routing: Routing) -> Routing {
        for skipped in &mut routing.skipped {
            skipped.reason = self.masker.text(&skipped.reason);
        }
        routing
    }

    /// The share of calls that the file gives a server.
    pub(super) fn weight(&self, member: &Member) -> Option<f64> {
        self.routing_weights.get(member.server.as_deref()?).copied()
    }

    /// Whether a server is left alone, unless it is asked for by its name.
    pub(super) fn is_resting(&self, member: &Member) -> bool {
        let server = member.server.as_deref();
        self.weight(member).is_some()
            && server.is_some_and(|server| !self.circuits.admits(server))
            && member.remembered().is_none()
    }
}

/// Whether a call failed before anything of it was sent: its server could not be reached.
pub(super) fn is_unsent(fault: &Fault) -> bool {
    matches!(fault.at_phase(), Some(Phase::Start | Phase::Handshake | Phase::List))
        && !matches!(fault.kind(), FaultKind::Interrupted(_) | FaultKind::Internal)
}

#[cfg(test)]
mod tests;
