//! From a name as typed to the provider that owns the tool, contacting no more than needed.
//!
//! Owns: the order of the search — an exact local name contacts nobody, one that a file
//! declares its provider, a qualified name one server, a bare name all — and what is said when
//! nothing fits. The rules of names are in `catalogue::naming`, the choice between servers that
//! stand in for each other in `failover`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::ToolHost;
use super::listings::{Member, Snapshot, Tool};
use crate::catalogue::filter;
use crate::catalogue::naming::{self, Resolution};
use crate::config::spec::{DisabledEntry, FileRole};
use crate::model::{Fault, Origin, Routing, Skipped, ToolName};

/// How many candidates and failures are listed.
pub(super) const SHOWN: usize = 20;

/// Where a call goes.
pub(super) struct Route {
    pub(super) member: Arc<Member>,
    pub(super) tool: Arc<Tool>,
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
    pub(super) fn has_others(&self) -> bool {
        self.routing.as_ref().is_some_and(|routing| !routing.others.is_empty())
    }
}

/// What is looked for, and where.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) name: &'a str,
    /// Only these servers; all when empty.
    pub(super) servers: &'a [String],
    /// Bounds starting and listing.
    pub(super) limit: Duration,
    /// A call follows, which takes a turn of its server.
    pub(super) calls: bool,
    /// Servers that were tried for this call already.
    pub(super) skipped: &'a [Skipped],
}

impl<'a> Search<'a> {
    /// For somebody who only looks.
    pub(super) fn of(name: &'a str, limit: Duration) -> Self {
        Self { name, servers: &[], limit, calls: false, skipped: &[] }
    }
}

/// A candidate that was chosen, and how when there were several.
pub(super) type Chosen<'a> = (Candidate<'a>, Option<Routing>);

/// One list that takes part in a search.
pub(super) struct Answer {
    pub(super) member: Arc<Member>,
    snapshot: Arc<Snapshot>,
    fresh: bool,
}

/// Answers, and the servers that gave none.
#[derive(Default)]
struct Answers {
    good: Vec<Answer>,
    bad: Vec<(Arc<Member>, Fault)>,
}

/// A tool and the list it is on.
pub(super) type Candidate<'a> = (&'a Answer, &'a Arc<Tool>);

impl ToolHost {
    /// Finds the one tool that is meant.
    pub(super) async fn route(&self, search: &Search<'_>) -> Result<Route, Fault> {
        let Search { name, servers, limit, .. } = *search;
        let in_scope = |tool: &ToolName| is_in_scope(servers, tool.component());
        self.check_scope(servers)?;
        let local = self.local_answers();
        if let Some(found) = exact(&local, name).filter(|(_, tool)| in_scope(&tool.definition.name))
        {
            return self.admit((found, None), Vec::new());
        }

        // A name that a file declares for a provider which is no server, but has to be asked for the
        // rest of the definition: nobody else is.
        let owner = self
            .remote()
            .filter(|member| is_in_scope(servers, member.provider.component()))
            .find(|member| member.server.is_none() && member.declared().exact(name).is_some());
        if let Some(owner) = owner {
            let answers = self.ask(&[owner], limit).await;
            return match exact(&answers.good, name) {
                Some(found) => self.admit((found, None), Vec::new()),
                None => Err(self.nothing(name, servers, &[], &answers)),
            };
        }

        // A qualified name: only the servers whose names it begins with.
        let known: Vec<String> = self.components(&local);
        let begins = naming::components(name, known.iter().map(String::as_str));
        let asked: Vec<&Arc<Member>> = self
            .remote()
            .filter(|member| member.provider.component().is_some_and(|c| begins.contains(&c)))
            .filter(|member| is_in_scope(servers, member.provider.component()))
            .collect();
        let contacts_some = !asked.is_empty();
        let answers = self.ask(&asked, limit).await;
        let pool: Vec<Candidate<'_>> = candidates(local.iter().chain(&answers.good))
            .filter(|(_, tool)| {
                let component = tool.definition.name.component();
                component.is_some_and(|c| begins.contains(&c))
            })
            .filter(|(_, tool)| in_scope(&tool.definition.name))
            .collect();
        match self.choose(search, &pool, &answers.bad)? {
            Some(found) => return self.admit(found, Vec::new()),
            None if contacts_some => return Err(self.nothing(name, servers, &pool, &answers)),
            None => {}
        }
        if let Some(fault) = self.out_of_service(name) {
            return Err(fault);
        }

        // A bare name: everybody has to be asked, for it must be the only one.
        // Those that keep failing are not even connected to, where others can stand in for them.
        let (asked, resting): (Vec<_>, Vec<_>) = self
            .remote()
            .filter(|member| is_in_scope(servers, member.provider.component()))
            .filter(|member| {
                search.skipped.iter().all(|s| member.server.as_ref() != Some(&s.server))
            })
            .partition(|member| !self.is_resting(member));
        let mut answers = self.ask(&asked, limit).await;
        answers.bad.extend(resting.into_iter().filter_map(|member| {
            let fault = self.circuits.refusal(member.server.as_deref()?);
            Some((Arc::clone(member), fault))
        }));
        let pool: Vec<Candidate<'_>> = candidates(local.iter().chain(&answers.good))
            .filter(|(_, tool)| in_scope(&tool.definition.name))
            .collect();
        match self.choose(search, &pool, &answers.bad)? {
            Some(found) => {
                // Of servers that stand in for each other nothing else was expected.
                let routed = found.1.is_some();
                let expected = |member: &Member| routed && self.weight(member).is_some();
                let unasked = answers.bad.iter().filter(|(member, _)| !expected(member));
                let unasked = unasked.take(SHOWN).map(|(_, fault)| {
                    format!("{fault}; whether it offers '{name}' too is not known")
                });
                self.admit(found, unasked.collect())
            }
            None => Err(self.nothing(name, servers, &pool, &answers)),
        }
    }

    /// Asks all of these at once. What a server fails with counts for its circuit.
    async fn ask(&self, members: &[&Arc<Member>], limit: Duration) -> Answers {
        let all = join_all(members.iter().map(|member| member.listed(limit))).await;
        let mut answers = Answers::default();
        for (member, answer) in members.iter().zip(all) {
            let member = Arc::clone(member);
            match answer {
                Ok((snapshot, fresh)) => answers.good.push(Answer { member, snapshot, fresh }),
                Err(fault) => {
                    if let Some(server) = &member.server {
                        self.circuits.note(server, Err(&fault));
                    }
                    answers.bad.push((member, fault));
                }
            }
        }
        answers
    }

    /// Local lists in file order, so that of two equal names the first is found.
    fn local_answers(&self) -> Vec<Answer> {
        self.members
            .iter()
            .filter(|member| !member.is_remote())
            .map(|member| Answer {
                member: Arc::clone(member),
                snapshot: member.declared(),
                fresh: false,
            })
            .collect()
    }

    fn remote(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.members.iter().filter(|member| member.is_remote())
    }

    fn components(&self, local: &[Answer]) -> Vec<String> {
        let remote = self.remote().filter_map(|m| m.provider.component()).map(str::to_owned);
        let local = candidates(local)
            .filter_map(|(_, tool)| tool.definition.name.component())
            .map(str::to_owned);
        let mut all: Vec<String> = remote.chain(local).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// `--server` must name something that exists.
    fn check_scope(&self, servers: &[String]) -> Result<(), Fault> {
        if servers.is_empty() {
            return Ok(());
        }
        let known = self.components(&self.local_answers());
        let Some(server) = servers.iter().find(|server| !known.contains(server)) else {
            return Ok(());
        };
        if let Some(fault) = self.out_of_service(server) {
            return Err(fault);
        }
        let fault = Fault::usage(format!("unknown server '{server}'"));
        Err(match naming::nearest(server, known.iter().map(String::as_str)) {
            Some(near) => fault.hint(format!("did you mean '{near}'?")),
            None => fault.hint("`toolhost servers` shows all servers"),
        })
    }

    /// Resolves a name among candidates. Tools that the profile hides do not count, unless
    /// nothing else is meant.
    fn choose<'a>(
        &self,
        search: &Search<'_>,
        pool: &[Candidate<'a>],
        bad: &[(Arc<Member>, Fault)],
    ) -> Result<Option<Chosen<'a>>, Fault> {
        let visible: Vec<Candidate<'a>> =
            pool.iter().copied().filter(|(_, tool)| self.shows(tool)).collect();
        for pool in [visible.as_slice(), pool] {
            // What is listed comes first: another spelling never makes a name ambiguous.
            let listed = pool.iter().map(|found| (*found, &found.1.definition.name));
            let spelled = pool
                .iter()
                .flat_map(|found| found.1.definition.aliases.iter().map(|alias| (*found, alias)));
            let rounds: [Vec<(Candidate<'a>, &ToolName)>; 2] =
                [listed.collect(), spelled.collect()];
            for round in rounds {
                let names: Vec<&ToolName> = round.iter().map(|(_, name)| *name).collect();
                let found = |at: usize| round.get(at).map(|(found, _)| *found);
                match naming::resolve(search.name, &names) {
                    Resolution::Found(at) => {
                        return Ok(found(at).map(|found| (found, self.alone(search, found, bad))));
                    }
                    Resolution::Ambiguous(all) => {
                        let all: Vec<Candidate<'a>> = all.into_iter().filter_map(found).collect();
                        return self.one_of(search, &all, bad).map(Some);
                    }
                    Resolution::Unknown => {}
                }
            }
        }
        Ok(None)
    }

    fn shows(&self, tool: &Tool) -> bool {
        self.profile.as_ref().is_none_or(|profile| filter::shows(profile, &tool.definition))
    }

    fn admit(
        &self,
        ((answer, tool), routing): Chosen<'_>,
        warnings: Vec<String>,
    ) -> Result<Route, Fault> {
        if !self.shows(tool) {
            let name = &tool.definition.name;
            return Err(Fault::denied(format!("'{name}' is not part of the profile in use")));
        }
        Ok(Route {
            member: Arc::clone(&answer.member),
            tool: Arc::clone(tool),
            connect: answer.snapshot.connect.filter(|_| answer.fresh),
            protocol: answer.snapshot.protocol.clone(),
            warnings,
            routing,
        })
    }

    /// The entry a person means is in a file, but something is wrong with it.
    fn out_of_service(&self, name: &str) -> Option<Fault> {
        let entry = self.disabled.iter().find(|entry| {
            entry.name == name
                || ((entry.role == FileRole::Servers || entry.refusal.is_some())
                    && naming::after_component(name, &entry.name).is_some())
        })?;
        Some(broken(entry))
    }

    /// The same for a name that nobody has, and that may be one of the tools of an entry.
    fn out_of_service_with_its_tools(&self, name: &str) -> Option<Fault> {
        let entry = self
            .disabled
            .iter()
            .find(|entry| naming::after_component(name, &entry.name).is_some())?;
        Some(broken(entry))
    }

    /// Nothing fits. When some servers could not be asked the tool may be theirs, and then their
    /// failure is the answer.
    fn nothing(
        &self,
        name: &str,
        servers: &[String],
        pool: &[Candidate<'_>],
        answers: &Answers,
    ) -> Fault {
        let declares = |(member, _): &&(Arc<Member>, Fault)| {
            member.declared().tools.iter().any(|tool| {
                let known = &tool.definition.name;
                known.full() == name || known.tool() == name
            })
        };
        let owner = answers.bad.iter().find(declares);
        let disabled = self.disabled.iter().find(|entry| {
            is_in_scope(servers, Some(&entry.name))
                && entry.declares.iter().any(|tool| tool == name)
        });
        if let (None, Some(entry)) = (owner, disabled) {
            return broken(entry).detail(format!("it declares the tool '{name}'"));
        }
        let worst = || answers.bad.iter().min_by_key(|(_, fault)| fault.kind().precedence());
        if let Some((_, fault)) = owner.or_else(worst) {
            let fault = fault.clone();
            if fault.server_name().is_some_and(|s| naming::after_component(name, s).is_some()) {
                return fault;
            }
            return fault.detail(match answers.bad.len() - 1 {
                0 => format!("nobody else offers '{name}'"),
                others => format!("nobody else offers '{name}', but {others} more failed"),
            });
        }
        if let Some(fault) = self.out_of_service_with_its_tools(name) {
            return fault;
        }
        let names: Vec<&ToolName> = pool
            .iter()
            .filter(|(_, tool)| self.shows(tool))
            .map(|(_, tool)| &tool.definition.name)
            .collect();
        let near = naming::suggest(name, &names);
        let fault = Fault::usage(match servers {
            [] => format!("unknown tool '{name}'"),
            [server] => format!("server '{server}' has no tool '{name}'"),
            servers => format!("none of {} servers has a tool '{name}'", servers.len()),
        });
        if near.is_empty() {
            fault.hint("`toolhost list` shows all tools")
        } else {
            let near: Vec<String> = near.iter().map(|name| format!("'{name}'")).collect();
            fault.hint(format!("did you mean {}?", near.join(" or ")))
        }
    }
}

fn broken(entry: &DisabledEntry) -> Fault {
    if let Some(refusal) = &entry.refusal {
        return refusal.clone();
    }
    let problem = &entry.problem;
    let mut fault =
        Fault::config(format!("'{}' is out of service: {}", entry.name, problem.message));
    if let Some(place) = &problem.place {
        fault = fault.place(place.clone());
    }
    if let Some(hint) = &problem.hint {
        fault = fault.hint(hint);
    }
    fault
}

fn candidates<'a>(
    answers: impl IntoIterator<Item = &'a Answer>,
) -> impl Iterator<Item = Candidate<'a>> {
    answers
        .into_iter()
        .flat_map(|answer| answer.snapshot.tools.iter().map(move |tool| (answer, tool)))
}

/// The local tool with exactly this full name; of several the one that stands first in its file,
/// as in the catalogue.
fn exact<'a>(local: &'a [Answer], name: &str) -> Option<Candidate<'a>> {
    local
        .iter()
        .filter_map(|answer| answer.snapshot.exact(name).map(|tool| (answer, tool)))
        .min_by_key(|(_, tool)| match &tool.definition.origin {
            Origin::File(place) => (place.line, place.column),
            Origin::Server(_) | Origin::Program => (u32::MAX, 0),
        })
}

fn is_in_scope(servers: &[String], component: Option<&str>) -> bool {
    servers.is_empty() || component.is_some_and(|c| servers.iter().any(|server| server == c))
}
