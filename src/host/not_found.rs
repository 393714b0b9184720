//! Why a tool is not found: its name is unknown, its entry is out of service, or a server did not respond
//! during the search.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use super::ToolHost;
use super::directory::ToolDirectory;
use super::listings::RegisteredProvider;
use super::profiles::ProfileView;
use super::request::ListScope;
use super::router::{ProviderListings, SHOWN, Search, ToolCandidate, is_in_scope};
use crate::catalogue::build::Contribution;
use crate::catalogue::{ServerListing, naming};
use crate::config::spec::{DisabledEntry, FileRole};
use crate::model::{Error, ServerStatus, ToolDefinition, ToolName};

impl ToolDirectory {
    /// Nothing fits. The failure of a server is the answer when the name is known to be its own, when
    /// the caller asked for that server, or when no server answered at all; so is the mistake in an
    /// entry. Otherwise it is a note: a name that nothing has is wrong, whichever servers are silent.
    /// `begins` are the known components that the name may begin with, the longest first.
    pub(super) fn not_found_error(
        &self,
        search: &Search<'_>,
        begins: &[&str],
        pool: &[ToolCandidate<'_>],
        answers: &ProviderListings,
    ) -> Error {
        let Search { name, servers, .. } = *search;
        if let Some(error) = self.roster().removed_error(name) {
            return error;
        }
        let withheld = answers
            .listings
            .iter()
            .find_map(|listing| listing.snapshot.refusal(listing.provider.inner.component(), name));
        if let Some(refusal) = withheld {
            return refusal;
        }
        let declares = |(provider, _): &&(Arc<RegisteredProvider>, Error)| {
            provider.declared().tools.iter().any(|tool| {
                let tool_name = &tool.definition.name;
                (tool_name.full() == name || tool_name.tool() == name)
                    && (!search.view.is_scoped() || search.view.shows(&tool.definition))
            })
        };
        if let Some((_, error)) = answers.failures.iter().find(declares) {
            return error.clone();
        }
        let disabled = self.disabled_entry(|entry| {
            is_in_scope(servers, Some(&entry.name)) && entry.declares(name)
        });
        if let Some(entry) = disabled {
            return entry.error().with_detail(format!("it declares the tool '{name}'"));
        }
        let silent = SilentServers::of_providers(&answers.failures);
        if let Some(error) = begins.first().and_then(|owner| silent.failure_of(owner)) {
            return error;
        }
        let is_asked_for = !servers.is_empty() || !search.skipped.is_empty();
        let none_answered = answers.listings.is_empty() && pool.is_empty();
        if let (Some(error), true) = (silent.decisive_failure(), is_asked_for || none_answered) {
            return error;
        }
        let broken = self.disabled_entry(|entry| {
            entry.role == FileRole::Servers
                && !entry.is_switched_off()
                && is_in_scope(servers, Some(&entry.name))
        });
        if let Some(entry) = broken.filter(|_| none_answered) {
            return entry.error();
        }
        let visible =
            pool.iter().map(|(_, tool)| &tool.definition).filter(|tool| search.view.shows(tool));
        let visible: Vec<_> = visible.collect();
        let names: Vec<&ToolName> = visible.iter().map(|tool| &tool.name).collect();
        let near = unknown_name_hint(name, begins.first().copied(), &names);
        let is_of_entry =
            |entry: &DisabledEntry| naming::after_component(name, &entry.name).is_some();
        if let Some(entry) = self.disabled_entry(is_of_entry) {
            // A typo of a tool whose name begins like the entry's is no call of the entry.
            let begins_alike = |tool_name: &&ToolName| {
                naming::after_component(&tool_name.full(), &entry.name).is_some()
            };
            let alike: Vec<&ToolName> = names.iter().copied().filter(begins_alike).collect();
            if naming::did_you_mean(name, &alike).is_none() {
                return entry.error();
            }
        }
        let error = Error::usage(match servers {
            [] => format!("unknown tool '{name}'{}", search.view.scope_words()),
            [server] => format!("server '{server}' has no tool '{name}'"),
            servers => format!("none of {} servers has a tool '{name}'", servers.len()),
        });
        let end = &self.command_end;
        let hint = near.unwrap_or_else(|| format!("`toolhost list{end}` shows all tools"));
        let error = error.with_hint(hint);
        silent.annotate(error, &format!("'{name}'"))
    }
}

/// What to try instead of a name that no tool has: the ones that look like it, else all tools of the
/// component that it begins with.
fn unknown_name_hint(name: &str, owner: Option<&str>, names: &[&ToolName]) -> Option<String> {
    let own: Vec<&ToolName> =
        names.iter().copied().filter(|tool_name| tool_name.component() == owner).collect();
    let rest = owner.and_then(|owner| naming::after_component(name, owner));
    let near = match rest {
        Some(rest) if !own.is_empty() => naming::did_you_mean(rest, &own),
        _ => naming::did_you_mean(name, names),
    };
    if near.is_some() {
        return near;
    }
    match rest {
        Some(_) if !own.is_empty() => {
            let shown: Vec<String> = own.iter().take(SHOWN).map(|name| name.full()).collect();
            let more = if own.len() > SHOWN { " and more" } else { "" };
            Some(format!("its tools are {}{more}", shown.join(", ")))
        }
        _ => None,
    }
}

impl ToolHost {
    /// The servers whose entries cannot be used and of which something may be shown, with the reason
    /// as their state.
    #[doc(hidden)] // for the program's own commands
    pub fn servers_out_of_service(&self) -> Vec<ServerStatus> {
        self.servers_out_of_service_in(&self.profiles.default_view())
    }

    /// The same, as far as a profile may show them.
    pub(super) fn servers_out_of_service_in(&self, view: &ProfileView) -> Vec<ServerStatus> {
        let disabled = self.directory.disabled.get();
        let entries = disabled.iter().filter(|entry| view.may_show_disabled(entry));
        let providers = self.directory.providers();
        let broken = entries.filter(|e| e.role == FileRole::Servers && e.refusal.is_none());
        // A server of that name may be registered since.
        let broken = broken.filter(|entry| providers.server(&entry.name).is_none());
        let status = |entry: &DisabledEntry| {
            self.pipeline.masker.status(ServerStatus::failed(&entry.name, entry.state_error()))
        };
        broken.map(status).collect()
    }
}

impl ToolDirectory {
    /// What entries out of service add to a list: the tools that their files say they have, unless
    /// another entry offers one of that name.
    pub(super) fn out_of_service(
        &self,
        scope: &ListScope,
        local: &[Contribution],
        servers: &[Contribution],
    ) -> (Vec<Contribution>, Vec<Contribution>) {
        let (mut own, mut of_servers) = (Vec::new(), Vec::new());
        let disabled = self.disabled.get();
        if disabled.is_empty() {
            return (own, of_servers);
        }
        let listed = local.iter().chain(servers).flat_map(|part| &part.tools);
        let mut names: HashSet<String> = listed.map(|tool| tool.name.full()).collect();
        for entry in &*disabled {
            let is_listed = entry.role == FileRole::Tools || scope.includes_server(&entry.name);
            let mut tools = entry.unavailable_tools();
            tools.retain(|tool| is_listed && names.insert(tool.name.full()));
            let part = Contribution { tools, ..Contribution::default() };
            match entry.role {
                FileRole::Tools => own.push(part),
                FileRole::Servers => of_servers.push(part),
            }
        }
        (own, of_servers)
    }

    /// The first entry out of service that is meant.
    pub(super) fn disabled_entry(
        &self,
        is_meant: impl Fn(&DisabledEntry) -> bool,
    ) -> Option<DisabledEntry> {
        self.disabled.get().iter().find(|entry| is_meant(entry)).cloned()
    }

    /// The entry a person means is in a file, but something is wrong with it.
    pub(super) fn disabled_entry_error(&self, name: &str) -> Option<Error> {
        let entry = self.disabled_entry(|entry| {
            entry.name == name
                || ((entry.role == FileRole::Servers || entry.refusal.is_some())
                    && naming::after_component(name, &entry.name).is_some())
        });
        entry.map(|entry| entry.error())
    }

    /// What the file says of a tool whose entry is out of service, with the reason.
    pub(super) fn disabled_definition(&self, name: &str) -> Option<ToolDefinition> {
        let disabled = self.disabled.get();
        let tools = disabled.iter().flat_map(DisabledEntry::unavailable_tools);
        let tool = tools.into_iter().find(|tool| tool.name.full() == name)?;
        Some(ToolDefinition::clone(&tool))
    }
}

const MAX_NAMED: usize = 5;

pub(super) struct SilentServers<'a>(Vec<(&'a str, &'a Error)>);

impl<'a> SilentServers<'a> {
    /// The servers by name, each with its failure. What fails without being a server is listed under
    /// a name that says what it is.
    pub(super) fn new(failures: impl IntoIterator<Item = (&'a str, &'a Error)>) -> Self {
        Self(failures.into_iter().collect())
    }

    /// The providers that did not answer a search, by the names they have in the files.
    pub(super) fn of_providers(
        failures: impl IntoIterator<Item = &'a (Arc<RegisteredProvider>, Error)>,
    ) -> Self {
        Self::new(failures.into_iter().map(|(provider, error)| {
            let component = provider.server.as_deref().or_else(|| provider.inner.component());
            (component.unwrap_or("internal tools"), error)
        }))
    }

    /// The servers that one kind of offering could not be listed of.
    pub(super) fn of_listings(servers: &'a [ServerListing]) -> Self {
        Self::new(servers.iter().filter_map(|s| Some((s.name.as_str(), s.error.as_ref()?))))
    }

    /// How many servers did not answer.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn failure_of(&self, server: &str) -> Option<Error> {
        self.0.iter().find(|(name, _)| *name == server).map(|(_, error)| (*error).clone())
    }

    pub(super) fn decisive_failure(&self) -> Option<Error> {
        let (_, decisive) = self.0.iter().min_by_key(|(_, error)| error.kind().precedence())?;
        let others = self.0.iter().filter(|(_, error)| !std::ptr::eq(*error, *decisive));
        let others: Vec<&str> = others.map(|(name, _)| *name).collect();
        let error = Error::clone(decisive);
        Some(match others.as_slice() {
            [] => error,
            [other] => error.with_detail(format!("'{other}' did not answer either")),
            more => error.with_detail(format!(
                "{} more servers did not answer: {}",
                more.len(),
                named(more)
            )),
        })
    }

    /// One line for all of them: they may have `what` too. `None` if every server responded.
    pub(super) fn note(&self, what: &str) -> Option<String> {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
        let (servers, why) = match self.0.as_slice() {
            [] => return None,
            [(server, error)] => (format!("server '{server}'"), error.message().to_owned()),
            several => (format!("{} servers", several.len()), named(&names)),
        };
        Some(format!("{servers} did not answer and may offer {what}: {why}"))
    }

    pub(super) fn annotate(&self, error: Error, what: &str) -> Error {
        match self.note(what) {
            Some(line) => error.with_detail(line),
            None => error,
        }
    }
}

fn named(servers: &[&str]) -> String {
    let mut text = servers.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = servers.len().checked_sub(MAX_NAMED) {
        // Writing to a text does not fail.
        let _infallible = write!(text, " and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ErrorKind;

    #[test]
    fn all_silent_servers_cost_one_line() {
        let (refused, late) = (Error::unreachable("refused"), Error::timeout("too late"));
        let note =
            |failures: &[(&str, &Error)]| SilentServers::new(failures.iter().copied()).note("'x'");
        assert_eq!(note(&[]), None);
        assert_eq!(
            note(&[("a", &refused)]).unwrap(),
            "server 'a' did not answer and may offer 'x': refused"
        );
        let many: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|name| (name, &late)).into();
        assert_eq!(
            note(&many).unwrap(),
            "6 servers did not answer and may offer 'x': a, b, c, d, e and 1 more"
        );
    }

    #[test]
    fn the_failure_that_decides_names_the_others() {
        let (refused, late) = (Error::unreachable("refused"), Error::timeout("too late"));
        let silent = SilentServers::new([("a", &refused), ("b", &late)]);
        let error = silent.decisive_failure().unwrap();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(error.details(), ["'a' did not answer either"]);
        assert_eq!(silent.failure_of("a").unwrap().message(), "refused");
        assert!(silent.failure_of("c").is_none());
    }
}
