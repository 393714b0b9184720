//! The errors for unknown tool names.

use std::sync::Arc;

use super::directory::ToolDirectory;
use super::listings::RegisteredProvider;
use super::router::{ProviderListings, SHOWN, Search, ToolCandidate, is_in_scope};
use super::silent_servers::SilentServers;
use crate::catalogue::naming;
use crate::config::spec::{DisabledEntry, FileRole};
use crate::model::{Error, ToolName};

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
