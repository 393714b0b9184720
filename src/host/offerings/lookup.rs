//! Finding the server that offers a prompt, resource or template.

use super::Offerings;
use super::requests::accepting;
use crate::catalogue::{ServerListing, naming};
use crate::host::ToolHost;
use crate::host::not_found::SilentServers;
use crate::host::profiles::ProfileView;
use crate::host::request::LookupScope;
use crate::host::router::unknown_server;
use crate::model::{
    CompletionQuery, CompletionReference, Error, ErrorKind, JsonObject, Prompt, Resource,
    ResourceTemplate, Routing, SkippedServer, ToolName,
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
    /// The servers that were tried for the request already; they are not asked again.
    pub(super) tried: &'a [SkippedServer],
}

impl<'a> OfferingSearch<'a> {
    pub(super) fn of(scope: &'a LookupScope, view: &'a ProfileView) -> Self {
        Self { servers: &scope.servers, view, tried: &[] }
    }
}

#[derive(Debug)]
pub(super) struct OfferingOwner {
    /// Its name in `mcp.yaml`.
    pub(super) server: String,
    /// How it was chosen, when it was.
    pub(super) routing: Option<Routing>,
}

impl ToolHost {
    pub(super) async fn resource_owner(
        &self,
        uri: &str,
        search: OfferingSearch<'_>,
    ) -> Result<OfferingOwner, Error> {
        let OfferingSearch { servers, view, .. } = search;
        // A profile hides by name, which only a list provides.
        if let ([server], true) = (servers, view.shows_everything()) {
            self.offerings_of(server)?;
            return Ok(OfferingOwner { server: server.clone(), routing: None });
        }
        let resources = self.all_resources(search).await;
        let (shown, hidden): (Vec<&Resource>, Vec<&Resource>) = resources
            .items
            .iter()
            .partition(|r| view.shows_offering(&ToolName::of(&r.server, &r.name)));
        let listed = shown.iter().filter(|r| r.uri == uri).map(|r| r.server.as_str());
        if let Some(owner) = self.choose_owner(uri, listed, &resources.servers, search)? {
            return Ok(owner);
        }
        let templates = self.templates_in(search).await;
        // What is hidden is not found through a template of the same server either.
        let hides = |server: &str| hidden.iter().any(|r| r.uri == uri && r.server == server);
        let made = templates.items.iter().filter(|t| !hides(&t.server));
        let made = made.filter(|t| uri_template::matches(&t.template, uri));
        let made = made.map(|template| template.server.as_str());
        if let Some(owner) = self.choose_owner(uri, made, &templates.servers, search)? {
            return Ok(owner);
        }
        let end = &self.directory.command_end;
        let hint = did_you_mean(uri, shown.iter().map(|r| r.uri.as_str()));
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
    ) -> Result<(Prompt, OfferingOwner), Error> {
        let OfferingSearch { servers, .. } = search;
        let providers = self.directory.providers();
        if let Some(unknown) = servers.iter().find(|server| providers.server(server).is_none()) {
            return Err(self.unknown_server(unknown));
        }
        let begins = self.servers_named_in(name, search);
        if !begins.is_empty() && begins != servers {
            let search = OfferingSearch { servers: &begins, ..search };
            let prompts = self.prompts_in(search).await;
            if let Some(chosen) = self.choose_prompt(name, arguments, &prompts, search)? {
                return Ok(chosen);
            }
            // It only looked like a name that starts with a server's.
        }
        let prompts = self.prompts_in(search).await;
        if let Some(chosen) = self.choose_prompt(name, arguments, &prompts, search)? {
            return Ok(chosen);
        }
        let anywhere = OfferingSearch { servers: &[], ..search };
        let owner = self.servers_named_in(name, anywhere).into_iter().next();
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

    /// The prompt that a name means, and whose; `None` when it is on none of the lists. Of several
    /// only those are considered that take the arguments.
    fn choose_prompt(
        &self,
        name: &str,
        arguments: Option<&JsonObject>,
        prompts: &Offerings<Prompt>,
        search: OfferingSearch<'_>,
    ) -> Result<Option<(Prompt, OfferingOwner)>, Error> {
        let mut candidates = naming::resolve(name, &prompts.items, |prompt| &prompt.name);
        if let Some(arguments) = arguments {
            candidates = accepting(candidates, arguments, &self.directory.command_end)?;
        }
        let owners = candidates.iter().filter_map(|prompt| prompt.name.component());
        let owner = match self.choose_owner(name, owners, &prompts.servers, search) {
            // Full names say which is meant, as --server does.
            Err(error) if error.kind() == ErrorKind::Usage => {
                let full = candidates.iter().map(|prompt| prompt.name.full());
                let message = format!("'{name}' is offered by {} servers", candidates.len());
                return Err(Error::usage(message)
                    .with_details(full.take(SHOWN))
                    .with_hint("use one of these full names"));
            }
            owner => owner?,
        };
        Ok(owner.and_then(|owner| {
            let is_owners = |prompt: &&&Prompt| prompt.name.component() == Some(&owner.server);
            let prompt = Prompt::clone(candidates.iter().find(is_owners)?);
            Some((prompt, owner))
        }))
    }

    /// The server among the `owners` of an item that a request goes to; `None` when there is none.
    fn choose_owner<'o>(
        &self,
        item: &str,
        owners: impl Iterator<Item = &'o str>,
        listings: &[ServerListing],
        search: OfferingSearch<'_>,
    ) -> Result<Option<OfferingOwner>, Error> {
        // One may have been removed since it was listed.
        let providers = self.directory.providers();
        let mut owners: Vec<&str> =
            owners.filter(|owner| providers.server(owner).is_some()).collect();
        owners.dedup();
        if owners.is_empty() {
            return Ok(None);
        }
        let failed = listings.iter().filter_map(|s| Some((s.name.as_str(), s.error.as_ref()?)));
        match self.directory.choose_server(&owners, search.tried, failed) {
            Some((at, routing)) => Ok(owners
                .get(at)
                .map(|server| OfferingOwner { server: (*server).to_owned(), routing })),
            None => Err(Error::usage(format!("'{item}' is offered by {} servers", owners.len()))
                .with_details(owners.iter().take(SHOWN).map(|owner| (*owner).to_owned()))
                .with_hint("name one of them with --server")),
        }
    }

    /// The servers that a name may begin with, of those that are searched.
    fn servers_named_in(&self, name: &str, search: OfferingSearch<'_>) -> Vec<String> {
        let OfferingSearch { servers, view, .. } = search;
        let providers = self.directory.providers();
        let shown = providers.iter().filter(|provider| view.may_show(provider));
        let names = shown.filter_map(|provider| provider.server.as_deref());
        let is_allowed = |s: &&str| servers.is_empty() || servers.iter().any(|name| name == s);
        let begins = naming::components(name, names.filter(is_allowed));
        begins.into_iter().map(str::to_owned).collect()
    }

    /// The server that a reference means, and the query as sent to it.
    pub(super) async fn resolve_completion(
        &self,
        mut query: CompletionQuery,
        search: OfferingSearch<'_>,
    ) -> Result<(CompletionQuery, OfferingOwner), Error> {
        let (owner, argument_names): (OfferingOwner, Vec<String>) = match &query.reference {
            CompletionReference::Prompt(name) => {
                let (prompt, owner) = self.lookup_prompt(name, None, search).await?;
                let argument_names =
                    prompt.arguments.iter().map(|argument| argument.name.clone()).collect();
                query.reference = CompletionReference::Prompt(prompt.name.tool().to_owned());
                (owner, argument_names)
            }
            CompletionReference::Template(template) => {
                let templates = self.templates_in(search).await;
                let exact = templates.items.iter().filter(|t| t.template == *template);
                let owners = exact.map(|t| t.server.as_str());
                let owner = self.choose_owner(template, owners, &templates.servers, search)?;
                let Some(owner) = owner else {
                    let end = &self.directory.command_end;
                    return Err(no_template(template, &templates, search.servers, end));
                };
                let argument_names =
                    uri_template::variables(template).into_iter().map(str::to_owned);
                (owner, argument_names.collect())
            }
        };
        let arguments = std::iter::once(&query.argument).chain(query.context.keys());
        for word in arguments {
            if !argument_names.contains(word) {
                return Err(unknown_argument(word, &argument_names));
            }
        }
        Ok((query, owner))
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
