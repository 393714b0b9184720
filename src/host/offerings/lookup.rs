//! Finding the server that offers a prompt, resource or template.
//!
//! Owns: the order of the search — what is listed, then templates, then nothing — and what is said
//! when nothing or several things fit. The rules of names are in `catalogue::naming`.

use super::Offerings;
use crate::catalogue::{ServerListing, naming};
use crate::host::ToolHost;
use crate::host::router::unknown_server;
use crate::host::silent_servers::SilentServers;
use crate::model::{
    CompletionQuery, CompletionReference, Error, Prompt, ResourceTemplate, ToolName,
};
use crate::util::spelling::did_you_mean;
use crate::util::uri_template;

/// How many owners of one address are listed.
const SHOWN: usize = 20;

impl ToolHost {
    /// The server that has the resource with this address.
    pub(super) async fn resource_owner(
        &self,
        uri: &str,
        servers: &[String],
    ) -> Result<String, Error> {
        // A profile hides by names, which only a list tells.
        if let ([server], true) =
            (servers, self.directory.profiles.default_view().shows_everything())
        {
            self.offerings_of(server)?;
            return Ok(server.clone());
        }
        let resources = self.resources(servers).await;
        let listed = resources.items.iter().filter(|resource| resource.uri == uri);
        let listed: Vec<&str> = listed.map(|resource| resource.server.as_str()).collect();
        if let Some(owner) = single_owner(uri, &listed)? {
            return Ok(owner);
        }
        let templates = self.templates(servers).await;
        let made = templates.items.iter().filter(|t| uri_template::matches(&t.template, uri));
        let made: Vec<&str> = made.map(|template| template.server.as_str()).collect();
        if let Some(owner) = single_owner(uri, &made)? {
            return Ok(owner);
        }
        let silent = SilentServers::of_listings(&resources.servers);
        if let Some(error) = decisive_error(&silent, &resources.servers, servers) {
            return Err(error);
        }
        let hint = did_you_mean(uri, resources.items.iter().map(|r| r.uri.as_str()));
        let error = Error::usage(format!("no server lists the resource '{uri}'"));
        let error = silent.annotate(error, &format!("'{uri}'"));
        Err(error.with_hint(hint.unwrap_or_else(|| {
            "`toolhost resources list` shows all; --server asks one server for it all the same"
                .to_owned()
        })))
    }

    pub(super) async fn lookup_prompt(
        &self,
        name: &str,
        servers: &[String],
    ) -> Result<Prompt, Error> {
        let providers = self.directory.providers();
        if let Some(unknown) = servers.iter().find(|server| providers.server(server).is_none()) {
            return Err(self.unknown_server(unknown));
        }
        let scope = self.candidate_servers(name, servers);
        let mut prompts = self.prompts(&scope).await;
        let mut index = resolve(name, &prompts.items)?;
        if index.is_none() && scope != servers {
            // It only looked like a name that begins with a server's.
            prompts = self.prompts(servers).await;
            index = resolve(name, &prompts.items)?;
        }
        if let Some(at) = index {
            return Ok(prompts.items.swap_remove(at));
        }
        let silent = SilentServers::of_listings(&prompts.servers);
        let owner = self.candidate_servers(name, &[]).into_iter().next();
        let owner_failure = owner.and_then(|owner| silent.failure_of(&owner));
        let failure = owner_failure.or_else(|| decisive_error(&silent, &prompts.servers, servers));
        if let Some(error) = failure {
            return Err(error);
        }
        let names: Vec<&ToolName> = prompts.items.iter().map(|prompt| &prompt.name).collect();
        let hint = naming::did_you_mean(name, &names)
            .unwrap_or_else(|| "`toolhost prompts list` shows all prompts".to_owned());
        let error = Error::usage(format!("unknown prompt '{name}'")).with_hint(hint);
        Err(silent.annotate(error, &format!("'{name}'")))
    }

    /// The servers that a name may belong to: those it begins with, otherwise all that are allowed.
    fn candidate_servers(&self, name: &str, servers: &[String]) -> Vec<String> {
        let known = self.directory.server_names();
        let is_allowed = |s: &&str| servers.is_empty() || servers.iter().any(|name| name == s);
        let begins = naming::components(name, known.iter().map(String::as_str).filter(is_allowed));
        if begins.is_empty() {
            return servers.to_vec();
        }
        begins.into_iter().map(str::to_owned).collect()
    }

    /// The server that is meant by a reference, and the question as it is put to it.
    pub(super) async fn resolve_completion(
        &self,
        mut query: CompletionQuery,
        servers: &[String],
    ) -> Result<(String, CompletionQuery), Error> {
        let (server, known): (String, Vec<String>) = match &query.reference {
            CompletionReference::Prompt(name) => {
                let prompt = self.lookup_prompt(name, servers).await?;
                let server = prompt.name.component().unwrap_or_default().to_owned();
                let known = prompt.arguments.iter().map(|argument| argument.name.clone()).collect();
                query.reference = CompletionReference::Prompt(prompt.name.tool().to_owned());
                (server, known)
            }
            CompletionReference::Template(template) => {
                let templates = self.templates(servers).await;
                let exact = templates.items.iter().filter(|t| t.template == *template);
                let owners: Vec<&str> = exact.map(|t| t.server.as_str()).collect();
                let Some(server) = single_owner(template, &owners)? else {
                    return Err(no_template(template, &templates, servers));
                };
                let known = uri_template::variables(template).into_iter().map(str::to_owned);
                (server, known.collect())
            }
        };
        let words = std::iter::once(&query.argument).chain(query.context.keys());
        for word in words {
            if !known.contains(word) {
                return Err(unknown_argument(word, &known));
            }
        }
        Ok((server, query))
    }

    pub(in crate::host) fn unknown_server(&self, name: &str) -> Error {
        unknown_server(name, self.directory.server_names().iter().map(String::as_str))
    }
}

/// The only one of the servers that have an address.
fn single_owner(uri: &str, owners: &[&str]) -> Result<Option<String>, Error> {
    let mut owners = owners.to_vec();
    owners.dedup();
    match owners[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.to_owned())),
        _ => Err(Error::usage(format!("'{uri}' is offered by {} servers", owners.len()))
            .with_details(owners.iter().take(SHOWN).map(|owner| (*owner).to_owned()))
            .with_hint("name one of them with --server")),
    }
}

/// The failure that answers a search without a result: that of a server the caller asked for, or the
/// decisive one when no server answered. Otherwise silent servers are only a note.
fn decisive_error(
    silent: &SilentServers<'_>,
    asked: &[ServerListing],
    servers: &[String],
) -> Option<Error> {
    let error = silent.decisive_failure()?;
    (!servers.is_empty() || silent.count() == asked.len()).then_some(error)
}

fn resolve(name: &str, prompts: &[Prompt]) -> Result<Option<usize>, Error> {
    let names: Vec<&ToolName> = prompts.iter().map(|prompt| &prompt.name).collect();
    match naming::resolve(name, &names) {
        naming::NameResolution::Found(at) => Ok(Some(at)),
        naming::NameResolution::Unknown => Ok(None),
        naming::NameResolution::Ambiguous(all) => {
            let full = all.iter().take(SHOWN).filter_map(|at| names.get(*at)).map(|n| n.full());
            Err(Error::usage(format!("'{name}' is offered by {} servers", all.len()))
                .with_details(full)
                .with_hint("use one of these full names"))
        }
    }
}

fn no_template(
    template: &str,
    templates: &Offerings<ResourceTemplate>,
    servers: &[String],
) -> Error {
    let silent = SilentServers::of_listings(&templates.servers);
    if let Some(error) = decisive_error(&silent, &templates.servers, servers) {
        return error;
    }
    let known = templates.items.iter().map(|t| t.template.as_str());
    let hint = did_you_mean(template, known)
        .unwrap_or_else(|| "`toolhost resources list --templates` shows all templates".to_owned());
    let error = Error::usage(format!("unknown template '{template}'")).with_hint(hint);
    silent.annotate(error, &format!("'{template}'"))
}

fn unknown_argument(word: &str, known: &[String]) -> Error {
    let hint = did_you_mean(word, known.iter().map(String::as_str));
    let hint = hint.unwrap_or_else(|| match known {
        [] => "it has no arguments".to_owned(),
        _ => format!("its arguments are {}", known.join(", ")),
    });
    Error::usage(format!("there is no argument '{word}'")).with_hint(hint)
}
