//! Finding the server that offers a prompt, resource or template.

use super::Offerings;
use super::prompt_arguments::accepting;
use crate::catalogue::{ServerListing, naming};
use crate::host::ToolHost;
use crate::host::failover::Failover;
use crate::host::profiles::ProfileView;
use crate::host::router::unknown_server;
use crate::host::silent_servers::SilentServers;
use crate::model::{
    CompletionQuery, CompletionReference, Error, ErrorKind, JsonObject, Prompt, Resource,
    ResourceTemplate, Routing, ToolName,
};
use crate::util::spelling::did_you_mean;
use crate::util::uri_template;

const SHOWN: usize = 20;

/// Where to search, and through which profile.
#[derive(Clone, Copy)]
pub(super) struct OfferingSearch<'a> {
    /// Only these servers; all of which the profile shows something when empty.
    pub(super) servers: &'a [String],
    /// What may be found, and which servers may be contacted for that.
    pub(super) view: &'a ProfileView,
}

#[derive(Debug)]
pub(super) struct OfferingOwner {
    /// Its name in `mcp.yaml`.
    pub(super) server: String,
    /// How it was chosen, when it was.
    pub(super) routing: Option<Routing>,
}

/// What `list` gives, which asks these servers. No names would mean all of them.
async fn list_from<T>(
    servers: &[String],
    list: impl Future<Output = Offerings<T>>,
) -> Offerings<T> {
    if servers.is_empty() { Offerings::default() } else { list.await }
}

impl ToolHost {
    pub(super) async fn resource_owner(
        &self,
        uri: &str,
        search: OfferingSearch<'_>,
        failover: &Failover,
    ) -> Result<OfferingOwner, Error> {
        let servers = search.servers;
        // A profile hides by name, which only a list provides.
        if let ([server], true) = (servers, search.view.shows_everything()) {
            self.offerings_of(server)?;
            return Ok(OfferingOwner { server: server.clone(), routing: None });
        }
        let candidates = self.asked_servers(search, failover);
        let asked_search = OfferingSearch { servers: &candidates, ..search };
        let mut resources = list_from(&candidates, self.all_resources(asked_search)).await;
        let is_shown = |r: &Resource| search.view.shows_offering(&ToolName::of(&r.server, &r.name));
        let is_hidden = |r: &&Resource| r.uri == uri && !is_shown(r);
        let hiding: Vec<String> =
            resources.items.iter().filter(is_hidden).map(|r| r.server.clone()).collect();
        resources.items.retain(is_shown);
        let listed = resources.items.iter().filter(|resource| resource.uri == uri);
        let listed: Vec<&str> = listed.map(|resource| resource.server.as_str()).collect();
        if let Some(owner) = self.choose_owner(uri, &listed, &resources.servers, failover)? {
            return Ok(owner);
        }
        let templates = list_from(&candidates, self.templates_in(asked_search)).await;
        // What is hidden is not found through a template of the same server either.
        let templates_shown = templates.items.iter().filter(|t| !hiding.contains(&t.server));
        let made = templates_shown.filter(|t| uri_template::matches(&t.template, uri));
        let made: Vec<&str> = made.map(|template| template.server.as_str()).collect();
        if let Some(owner) = self.choose_owner(uri, &made, &templates.servers, failover)? {
            return Ok(owner);
        }
        let end = &self.directory.command_end;
        let hint = did_you_mean(uri, resources.items.iter().map(|r| r.uri.as_str()));
        let hint = hint.unwrap_or_else(|| {
            format!(
                "`toolhost resources list{end}` shows all; --server asks one server for it all the \
                 same"
            )
        });
        let error = Error::usage(format!("no server lists the resource '{uri}'")).with_hint(hint);
        Err(resources.missing(uri, servers, error))
    }

    /// The prompt that a name means, and its server. With `arguments` it is one that takes them.
    pub(super) async fn lookup_prompt(
        &self,
        name: &str,
        arguments: Option<&JsonObject>,
        search: OfferingSearch<'_>,
        failover: &Failover,
    ) -> Result<(Prompt, OfferingOwner), Error> {
        let servers = search.servers;
        let query = (name, arguments);
        let providers = self.directory.providers();
        if let Some(unknown) = servers.iter().find(|server| providers.server(server).is_none()) {
            return Err(self.unknown_server(unknown));
        }
        let scope = self.candidate_servers(name, search);
        let is_qualified = scope != servers;
        if is_qualified {
            let prompts = self.prompts_in(OfferingSearch { servers: &scope, ..search }).await;
            if let Ok(resolved) = self.choose_prompt(query, prompts, failover)? {
                return Ok(resolved);
            }
            // It only looked like a name that starts with a server's.
        }
        let candidates = self.asked_servers(search, failover);
        let asked_search = OfferingSearch { servers: &candidates, ..search };
        let prompts = list_from(&candidates, self.prompts_in(asked_search)).await;
        let prompts = match self.choose_prompt(query, prompts, failover)? {
            Ok(resolved) => return Ok(resolved),
            Err(prompts) => prompts,
        };
        let anywhere = OfferingSearch { servers: &[], ..search };
        let owner = self.candidate_servers(name, anywhere).into_iter().next();
        let silent = SilentServers::of_listings(&prompts.servers);
        let owner_failure = owner.and_then(|owner| silent.failure_of(&owner));
        if let Some(error) = owner_failure.filter(|_| prompts.refusal(name).is_none()) {
            return Err(error);
        }
        let names: Vec<&ToolName> = prompts.items.iter().map(|prompt| &prompt.name).collect();
        let end = &self.directory.command_end;
        let hint = naming::did_you_mean(name, &names)
            .unwrap_or_else(|| format!("`toolhost prompts list{end}` shows all prompts"));
        let error = Error::usage(format!("unknown prompt '{name}'")).with_hint(hint);
        Err(prompts.missing(name, servers, error))
    }

    /// The prompt that a name means, and whose; the list itself when it is on none of it. Of several
    /// only those are considered that take the arguments.
    fn choose_prompt(
        &self,
        (name, arguments): (&str, Option<&JsonObject>),
        mut prompts: Offerings<Prompt>,
        failover: &Failover,
    ) -> Result<Result<(Prompt, OfferingOwner), Offerings<Prompt>>, Error> {
        let names: Vec<&ToolName> = prompts.items.iter().map(|prompt| &prompt.name).collect();
        let candidates = match naming::resolve(name, &names) {
            naming::NameResolution::Found(at) => vec![at],
            naming::NameResolution::Ambiguous(all) => all,
            naming::NameResolution::Unknown => return Ok(Err(prompts)),
        };
        let candidates = match arguments {
            Some(arguments) => {
                accepting(&prompts.items, candidates, arguments, &self.directory.command_end)?
            }
            None => candidates,
        };
        let owners: Vec<&str> =
            candidates.iter().filter_map(|at| names.get(*at)?.component()).collect();
        let owner = match self.choose_owner(name, &owners, &prompts.servers, failover) {
            Ok(owner) => owner,
            // Full names say which is meant, as --server does.
            Err(error) if error.kind() == ErrorKind::Usage => {
                let full = candidates.iter().filter_map(|at| names.get(*at)).map(|n| n.full());
                let message = format!("'{name}' is offered by {} servers", candidates.len());
                return Err(Error::usage(message)
                    .with_details(full.take(SHOWN))
                    .with_hint("use one of these full names"));
            }
            Err(error) => return Err(error),
        };
        let at = owner.as_ref().and_then(|owner| {
            let is_owners = |at: &&usize| {
                names.get(**at).and_then(|name| name.component()) == Some(&owner.server)
            };
            candidates.iter().find(is_owners).copied()
        });
        Ok(match (owner, at) {
            (Some(owner), Some(at)) => Ok((prompts.items.swap_remove(at), owner)),
            _ => Err(prompts),
        })
    }

    /// The servers to ask for something that several may offer: not those that were tried already.
    fn asked_servers(&self, search: OfferingSearch<'_>, failover: &Failover) -> Vec<String> {
        let OfferingSearch { servers, view } = search;
        let providers = self.directory.providers();
        // One that is named and hidden is refused where it would be asked, and so is an unknown one.
        let candidates: Vec<String> = if servers.is_empty() {
            let shown = providers.iter().filter(|provider| view.may_show(provider));
            shown.filter_map(|provider| provider.server.clone()).collect()
        } else {
            servers.to_vec()
        };
        candidates.into_iter().filter(|server| !failover.was_tried(server)).collect()
    }

    /// The server among the `owners` of an item that a request goes to; `None` when there is none.
    fn choose_owner(
        &self,
        item: &str,
        owners: &[&str],
        listings: &[ServerListing],
        failover: &Failover,
    ) -> Result<Option<OfferingOwner>, Error> {
        let mut owners = owners.to_vec();
        owners.dedup();
        // One may have been removed since it was listed.
        let providers = self.directory.providers();
        owners.retain(|owner| providers.server(owner).is_some());
        let failed = listings.iter().filter_map(|s| Some((s.name.as_str(), s.error.as_ref()?)));
        if owners.is_empty() {
            return Ok(None);
        }
        match self.directory.choose_server(&owners, &failover.skipped, failed) {
            Some((at, routing)) => Ok(owners
                .get(at)
                .map(|server| OfferingOwner { server: (*server).to_owned(), routing })),
            None => Err(Error::usage(format!("'{item}' is offered by {} servers", owners.len()))
                .with_details(owners.iter().take(SHOWN).map(|owner| (*owner).to_owned()))
                .with_hint("name one of them with --server")),
        }
    }

    /// The servers a name may belong to: those it starts with, otherwise all that are allowed.
    fn candidate_servers(&self, name: &str, search: OfferingSearch<'_>) -> Vec<String> {
        let OfferingSearch { servers, view } = search;
        let providers = self.directory.providers();
        let shown = providers.iter().filter(|provider| view.may_show(provider));
        let names = shown.filter_map(|provider| provider.server.as_deref());
        let is_allowed = |s: &&str| servers.is_empty() || servers.iter().any(|name| name == s);
        let begins = naming::components(name, names.filter(is_allowed));
        if begins.is_empty() {
            return servers.to_vec();
        }
        begins.into_iter().map(str::to_owned).collect()
    }

    /// The server that a reference means, and the query as sent to it.
    pub(super) async fn resolve_completion(
        &self,
        mut query: CompletionQuery,
        search: OfferingSearch<'_>,
        failover: &Failover,
    ) -> Result<(CompletionQuery, OfferingOwner), Error> {
        let servers = search.servers;
        let (server, argument_names): (OfferingOwner, Vec<String>) = match &query.reference {
            CompletionReference::Prompt(name) => {
                let (prompt, server) = self.lookup_prompt(name, None, search, failover).await?;
                let argument_names =
                    prompt.arguments.iter().map(|argument| argument.name.clone()).collect();
                query.reference = CompletionReference::Prompt(prompt.name.tool().to_owned());
                (server, argument_names)
            }
            CompletionReference::Template(template) => {
                let candidates = self.asked_servers(search, failover);
                let asked_search = OfferingSearch { servers: &candidates, ..search };
                let templates = list_from(&candidates, self.templates_in(asked_search)).await;
                let exact = templates.items.iter().filter(|t| t.template == *template);
                let owners: Vec<&str> = exact.map(|t| t.server.as_str()).collect();
                let owner = self.choose_owner(template, &owners, &templates.servers, failover)?;
                let Some(server) = owner else {
                    let end = &self.directory.command_end;
                    return Err(no_template(template, &templates, servers, end));
                };
                let argument_names =
                    uri_template::variables(template).into_iter().map(str::to_owned);
                (server, argument_names.collect())
            }
        };
        let arguments = std::iter::once(&query.argument).chain(query.context.keys());
        for word in arguments {
            if !argument_names.contains(word) {
                return Err(unknown_argument(word, &argument_names));
            }
        }
        Ok((query, server))
    }

    pub(in crate::host) fn unknown_server(&self, name: &str) -> Error {
        unknown_server(name, self.directory.server_names().iter().map(String::as_str))
    }
}

impl<T> Offerings<T> {
    /// The error for something that is on none of the lists: that its entry withholds it; or the failure
    /// of a server that was asked for, or the decisive one when no server answered; or `error`.
    fn missing(&self, name: &str, servers: &[String], error: Error) -> Error {
        if let Some(refusal) = self.refusal(name) {
            return refusal;
        }
        let silent = SilentServers::of_listings(&self.servers);
        match silent.decisive_failure() {
            Some(failure) if !servers.is_empty() || silent.count() == self.servers.len() => failure,
            _ => silent.annotate(error, &format!("'{name}'")),
        }
    }
}

fn no_template(
    template: &str,
    templates: &Offerings<ResourceTemplate>,
    servers: &[String],
    command_end: &str,
) -> Error {
    let known_templates = templates.items.iter().map(|t| t.template.as_str());
    let hint = did_you_mean(template, known_templates).unwrap_or_else(|| {
        format!("`toolhost resources list --templates{command_end}` shows all templates")
    });
    let error = Error::usage(format!("unknown template '{template}'")).with_hint(hint);
    templates.missing(template, servers, error)
}

fn unknown_argument(word: &str, names: &[String]) -> Error {
    let hint = did_you_mean(word, names.iter().map(String::as_str));
    let hint = hint.unwrap_or_else(|| match names {
        [] => "it has no arguments".to_owned(),
        _ => format!("its arguments are {}", names.join(", ")),
    });
    Error::usage(format!("unknown argument '{word}'")).with_hint(hint)
}
