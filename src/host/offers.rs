//! What servers offer beside tools, through the one gateway: listed all at once, and found by name
//! or address.
//!
//! Owns: asking every server for one list, whose prompt or address is meant, the arguments of
//! prompts, and masking what comes back. Never does: know a kind of server, or keep what was listed.

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{ToolHost, limits};
use crate::catalogue::{ServerListing, filter, naming};
use crate::model::{
    Change, Completion, CompletionQuery, Fault, FaultKind, Freshness, JsonObject, Offered, Origin,
    Problem, Prompt, PromptMessages, Reference, Resource, ResourceContents, ResourceTemplate,
    Signal, Source, ToolDefinition, ToolName, Wanted, map_json,
};
use crate::provider::Offers;
use crate::util::units::show_duration;
use crate::util::uri_template;

/// How many owners of one address are listed.
const SHOWN: usize = 20;

/// One list of everything of one sort, as it was at one moment.
#[derive(Debug)]
pub struct Offerings<T> {
    /// The items, server by server in the order of the files.
    pub items: Vec<T>,
    /// The servers that were asked, and what came of it.
    pub servers: Vec<ServerListing>,
    /// How long each server that answered says its list holds.
    pub freshness: Vec<(String, Freshness)>,
    /// Findings about single items.
    pub problems: Vec<Problem>,
}

impl<T> Default for Offerings<T> {
    fn default() -> Self {
        Self { items: Vec::new(), servers: Vec::new(), freshness: Vec::new(), problems: Vec::new() }
    }
}

/// A change at one of the servers that are watched.
#[derive(Debug)]
pub struct Seen {
    /// The server.
    pub server: String,
    /// What happened.
    pub change: Change,
}

impl ToolHost {
    /// The prompts of all servers, or of the named ones, all at once. One bad server costs itself.
    pub async fn prompts(&self, servers: &[String]) -> Offerings<Prompt> {
        let mut all = self.gather(servers, "prompts", |offers| offers.prompts()).await;
        all.items.retain(|prompt| self.shows_offer(&prompt.name));
        all
    }

    /// The resources of all servers, or of the named ones, all at once.
    pub async fn resources(&self, servers: &[String]) -> Offerings<Resource> {
        let mut all = self.gather(servers, "resources", |offers| offers.resources()).await;
        all.items.retain(|r| self.shows_offer(&ToolName::of(&r.server, &r.name)));
        all
    }

    /// The templates of resources of all servers, or of the named ones, all at once.
    pub async fn templates(&self, servers: &[String]) -> Offerings<ResourceTemplate> {
        let mut all = self.gather(servers, "templates", |offers| offers.templates()).await;
        all.items.retain(|t| self.shows_offer(&ToolName::of(&t.server, &t.name)));
        all
    }

    /// Reads a resource. One named server is asked directly, whether it lists the address or not.
    ///
    /// # Errors
    /// An address that nobody has or several have, and what reading ran into.
    pub async fn read(
        &self,
        uri: &str,
        servers: &[String],
        cancel: &CancellationToken,
    ) -> Result<ResourceContents, Fault> {
        let work = async {
            let server = self.owner(uri, servers).await?;
            self.offers_of(&server)?.read(uri, cancel).await
        };
        let mut read = given_up(work, cancel).await.map_err(|f| self.masker.fault(f))?;
        if !self.masker.is_empty() {
            let rewrite = |text: &str| self.masker.text(text);
            read.contents.iter_mut().for_each(|part| *part = map_json(part, &rewrite));
            read.meta = read.meta.map(|meta| map_json(&meta, &rewrite));
        }
        Ok(read)
    }

    /// Finds the one prompt a person means, contacting no more servers than needed.
    ///
    /// # Errors
    /// Unknown and ambiguous names (with suggestions), and what finding out ran into.
    pub async fn find_prompt(&self, name: &str, servers: &[String]) -> Result<Prompt, Fault> {
        self.prompt_of(name, servers).await.map_err(|fault| self.masker.fault(fault))
    }

    /// Fills in a prompt. Its arguments are checked before anything is sent.
    ///
    /// # Errors
    /// A name that nobody has or several have, arguments that do not fit, and what asking ran into.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: &JsonObject,
        servers: &[String],
        cancel: &CancellationToken,
    ) -> Result<PromptMessages, Fault> {
        let work = async {
            let prompt = self.prompt_of(name, servers).await?;
            check_arguments(&prompt, arguments)?;
            let server = prompt.name.component().unwrap_or_default();
            self.offers_of(server)?.prompt(prompt.name.tool(), arguments, cancel).await
        };
        let mut filled = given_up(work, cancel).await.map_err(|f| self.masker.fault(f))?;
        if !self.masker.is_empty() {
            let rewrite = |text: &str| self.masker.text(text);
            filled.messages.iter_mut().for_each(|m| *m = map_json(m, &rewrite));
            filled.description = filled.description.as_deref().map(rewrite);
            filled.meta = filled.meta.map(|meta| map_json(&meta, &rewrite));
        }
        Ok(filled)
    }

    /// Asks what an argument may be. The reference of `query` is what a person typed: the name of a
    /// prompt as in a list, or a template of addresses.
    ///
    /// # Errors
    /// A reference that nobody has or several have, an argument that it does not have, and what
    /// asking ran into.
    pub async fn complete(
        &self,
        query: CompletionQuery,
        servers: &[String],
        cancel: &CancellationToken,
    ) -> Result<Completion, Fault> {
        let work = async {
            let (server, query) = self.meant(query, servers).await?;
            self.offers_of(&server)?.complete(&query, cancel).await
        };
        let done = given_up(work, cancel).await.map_err(|f| self.masker.fault(f))?;
        let values = done.values.iter().map(|value| self.masker.text(value)).collect();
        Ok(Completion { values, ..done })
    }

    /// Finds the servers of these resources and hands on what they tell about changes, until
    /// `cancel` fires or nobody takes it any more. A server that fails is told as such, and the
    /// others go on.
    ///
    /// # Errors
    /// An address that nobody has or several have. When every server failed, its failure.
    pub async fn watch(
        &self,
        uris: &[String],
        servers: &[String],
        seen: &mpsc::Sender<Seen>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let mut wanted: Vec<(String, Wanted)> = Vec::new();
        let owners = async {
            for uri in uris {
                let server = self.owner(uri, servers).await?;
                let known = wanted.iter_mut().find(|(known, _)| *known == server);
                match known {
                    Some((_, wanted)) if wanted.uris.contains(uri) => {}
                    Some((_, wanted)) => wanted.uris.push(uri.clone()),
                    None => {
                        let only = Wanted { lists: Vec::new(), uris: vec![uri.clone()] };
                        wanted.push((server, only));
                    }
                }
            }
            Ok(())
        };
        given_up(owners, cancel).await.map_err(|fault| self.masker.fault(fault))?;
        self.follow(wanted, seen, cancel).await
    }

    /// Hands on what servers tell about changes: for each server what is wanted of it.
    ///
    /// # Errors
    /// When every server failed, the decisive failure.
    pub async fn follow(
        &self,
        wanted: Vec<(String, Wanted)>,
        seen: &mpsc::Sender<Seen>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let all = wanted.iter().map(|(server, wanted)| async move {
            let outcome = match self.offers_of(server) {
                Ok(offers) => self.follow_one(server, offers, wanted, seen, cancel).await,
                Err(fault) => Err(fault),
            };
            let fault = outcome.err().map(|fault| self.masker.fault(fault));
            if let Some(fault) = &fault
                && wanted_by_others(fault)
            {
                let seen_last =
                    Seen { server: server.clone(), change: Change::Failed(fault.clone()) };
                // Whoever does not listen any more does not want to know this either.
                let _unheard = seen.send(seen_last).await;
            }
            fault
        });
        let faults: Vec<Option<Fault>> = join_all(all).await;
        let failed: Vec<Fault> = faults.iter().flatten().cloned().collect();
        if failed.is_empty() || failed.len() < faults.len() {
            return Ok(());
        }
        failed.into_iter().min_by_key(|fault| fault.kind().precedence()).map_or(Ok(()), Err)
    }

    async fn follow_one(
        &self,
        server: &str,
        offers: &dyn Offers,
        wanted: &Wanted,
        seen: &mpsc::Sender<Seen>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let (sender, mut changes) = mpsc::channel(1);
        let handing_on = async {
            while let Some(change) = changes.recv().await {
                let change = match change {
                    Change::Interrupted(fault) => Change::Interrupted(self.masker.fault(fault)),
                    other => other,
                };
                if seen.send(Seen { server: server.to_owned(), change }).await.is_err() {
                    return;
                }
            }
        };
        let watching = async move { offers.watch(wanted, &sender, cancel).await };
        let (outcome, ()) = tokio::join!(watching, handing_on);
        outcome
    }

    /// Asks all servers, or the named ones, for one list.
    async fn gather<T>(
        &self,
        servers: &[String],
        what: &str,
        ask: impl for<'a> Fn(&'a dyn Offers) -> BoxFuture<'a, Result<Offered<T>, Fault>>,
    ) -> Offerings<T> {
        let asked = self.members.iter().filter_map(|member| {
            let name = member.server.as_ref()?;
            let wanted = servers.is_empty() || servers.contains(name);
            Some((name, member.provider.as_offers().filter(|_| wanted)?))
        });
        let ask = &ask;
        let all = join_all(asked.map(|(name, offers)| async move {
            let answer = tokio::time::timeout(limits::LISTING, ask(offers)).await;
            (name, answer.unwrap_or_else(|_elapsed| Err(too_late(what))))
        }))
        .await;
        let mut offerings = Offerings::default();
        for (name, answer) in all {
            let (fault, partial) = match answer {
                Ok(offered) => {
                    offerings.items.extend(offered.items);
                    offerings.problems.extend(offered.problems);
                    offerings.freshness.push((name.clone(), offered.freshness));
                    (None, offered.partial)
                }
                Err(fault) => (Some(self.masker.fault(fault.server(name))), false),
            };
            offerings.servers.push(ServerListing { name: name.clone(), fault, partial });
        }
        for name in servers.iter().filter(|name| !self.has_server(name)) {
            let fault = Some(self.unknown_server(name));
            offerings.servers.push(ServerListing { name: name.clone(), fault, partial: false });
        }
        for problem in &mut offerings.problems {
            problem.message = self.masker.text(&problem.message);
        }
        offerings
    }

    /// The server that has the resource with this address.
    async fn owner(&self, uri: &str, servers: &[String]) -> Result<String, Fault> {
        if let [server] = servers {
            self.offers_of(server)?;
            return Ok(server.clone());
        }
        let resources = self.resources(servers).await;
        let listed = resources.items.iter().filter(|resource| resource.uri == uri);
        let listed: Vec<&str> = listed.map(|resource| resource.server.as_str()).collect();
        if let Some(owner) = only(uri, &listed)? {
            return Ok(owner);
        }
        let templates = self.templates(servers).await;
        let made = templates.items.iter().filter(|t| uri_template::matches(&t.template, uri));
        let made: Vec<&str> = made.map(|template| template.server.as_str()).collect();
        if let Some(owner) = only(uri, &made)? {
            return Ok(owner);
        }
        if let Some(fault) = worst(&resources.servers) {
            return Err(fault.detail(format!("nobody else offers '{uri}'")));
        }
        let near = naming::nearest(uri, resources.items.iter().map(|r| r.uri.as_str()));
        let fault = Fault::usage(format!("no server lists the resource '{uri}'"));
        Err(match near {
            Some(near) => fault.hint(format!("did you mean '{near}'?")),
            None => fault.hint(
                "`toolhost resources list` shows all; --server asks one server for it all the same",
            ),
        })
    }

    async fn prompt_of(&self, name: &str, servers: &[String]) -> Result<Prompt, Fault> {
        if let Some(unknown) = servers.iter().find(|server| !self.has_server(server)) {
            return Err(self.unknown_server(unknown));
        }
        let scope = self.scope_of(name, servers);
        let mut prompts = self.prompts(&scope).await;
        let mut found = resolve(name, &prompts.items)?;
        if found.is_none() && scope != servers {
            // It only looked like a name that begins with a server's.
            prompts = self.prompts(servers).await;
            found = resolve(name, &prompts.items)?;
        }
        if let Some(at) = found {
            return Ok(prompts.items.swap_remove(at));
        }
        if let Some(fault) = worst(&prompts.servers) {
            return Err(fault.detail(format!("nobody else offers the prompt '{name}'")));
        }
        let names: Vec<&ToolName> = prompts.items.iter().map(|prompt| &prompt.name).collect();
        let near = naming::suggest(name, &names);
        let fault = Fault::usage(format!("unknown prompt '{name}'"));
        Err(if near.is_empty() {
            fault.hint("`toolhost prompts list` shows all prompts")
        } else {
            let near: Vec<String> = near.iter().map(|name| format!("'{name}'")).collect();
            fault.hint(format!("did you mean {}?", near.join(" or ")))
        })
    }

    /// The servers that a name may belong to: those it begins with, otherwise all that are allowed.
    fn scope_of(&self, name: &str, servers: &[String]) -> Vec<String> {
        let known = self.members.iter().filter_map(|member| member.server.as_deref());
        let allowed = known.filter(|s| servers.is_empty() || servers.iter().any(|name| name == s));
        let begins = naming::components(name, allowed);
        if begins.is_empty() {
            return servers.to_vec();
        }
        begins.into_iter().map(str::to_owned).collect()
    }

    /// The server that is meant by a reference, and the question as it is put to it.
    async fn meant(
        &self,
        mut query: CompletionQuery,
        servers: &[String],
    ) -> Result<(String, CompletionQuery), Fault> {
        let (server, known): (String, Vec<String>) = match &query.reference {
            Reference::Prompt(name) => {
                let prompt = self.prompt_of(name, servers).await?;
                let server = prompt.name.component().unwrap_or_default().to_owned();
                let known = prompt.arguments.iter().map(|argument| argument.name.clone()).collect();
                query.reference = Reference::Prompt(prompt.name.tool().to_owned());
                (server, known)
            }
            Reference::Template(template) => {
                let templates = self.templates(servers).await;
                let exact = templates.items.iter().filter(|t| t.template == *template);
                let owners: Vec<&str> = exact.map(|t| t.server.as_str()).collect();
                let Some(server) = only(template, &owners)? else {
                    return Err(no_template(template, &templates));
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

    fn offers_of(&self, server: &str) -> Result<&dyn Offers, Fault> {
        let member = self.members.iter().find(|member| member.server.as_deref() == Some(server));
        member
            .and_then(|member| member.provider.as_offers())
            .ok_or_else(|| self.unknown_server(server))
    }

    fn unknown_server(&self, name: &str) -> Fault {
        let known = self.members.iter().filter_map(|member| member.server.as_deref());
        let fault = Fault::usage(format!("unknown server '{name}'"));
        match naming::nearest(name, known) {
            Some(near) => fault.hint(format!("did you mean '{near}'?")),
            None => fault.hint("`toolhost servers` shows all servers"),
        }
    }

    /// Whether the host's profile shows something of a server.
    fn shows_offer(&self, name: &ToolName) -> bool {
        self.profile.as_ref().is_none_or(|profile| {
            let origin = Origin::Server(name.component().unwrap_or_default().to_owned());
            filter::shows(profile, &ToolDefinition::new(name.clone(), Source::Mcp, "mcp", origin))
        })
    }
}

/// Ends work that nobody waits for any more. Requests hear `cancel` themselves and tell their
/// server; what has none under way ends here.
async fn given_up<T>(
    work: impl Future<Output = Result<T, Fault>>,
    cancel: &CancellationToken,
) -> Result<T, Fault> {
    let late = async {
        cancel.cancelled().await;
        tokio::time::sleep(limits::INTERRUPT_GRACE).await;
    };
    tokio::select! {
        biased;
        done = work => done,
        () = late => {
            let interrupted = FaultKind::Interrupted(Signal::Interrupt);
            Err(Fault::new(interrupted, "the request was given up"))
        }
    }
}

/// Whether a failure is worth telling beside what the other servers say.
fn wanted_by_others(fault: &Fault) -> bool {
    !matches!(fault.kind(), FaultKind::Interrupted(_))
}

fn too_late(what: &str) -> Fault {
    let limit = show_duration(limits::LISTING);
    Fault::timeout(format!("did not start and list its {what} within {limit}"))
}

/// The only one of the servers that have an address.
fn only(uri: &str, owners: &[&str]) -> Result<Option<String>, Fault> {
    let mut owners = owners.to_vec();
    owners.dedup();
    match owners[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.to_owned())),
        _ => Err(Fault::usage(format!("'{uri}' is offered by {} servers", owners.len()))
            .details(owners.iter().take(SHOWN).map(|owner| (*owner).to_owned()))
            .hint("name one of them with --server")),
    }
}

/// The decisive failure of those that did not answer: what is looked for may be theirs.
fn worst(servers: &[ServerListing]) -> Option<Fault> {
    let faults = servers.iter().filter_map(|server| server.fault.clone());
    faults.min_by_key(|fault| fault.kind().precedence())
}

fn resolve(name: &str, prompts: &[Prompt]) -> Result<Option<usize>, Fault> {
    let names: Vec<&ToolName> = prompts.iter().map(|prompt| &prompt.name).collect();
    match naming::resolve(name, &names) {
        naming::Resolution::Found(at) => Ok(Some(at)),
        naming::Resolution::Unknown => Ok(None),
        naming::Resolution::Ambiguous(all) => {
            let full = all.iter().take(SHOWN).filter_map(|at| names.get(*at)).map(|n| n.full());
            Err(Fault::usage(format!("'{name}' is offered by {} servers", all.len()))
                .details(full)
                .hint("use one of these full names"))
        }
    }
}

fn no_template(template: &str, templates: &Offerings<ResourceTemplate>) -> Fault {
    if let Some(fault) = worst(&templates.servers) {
        return fault.detail(format!("nobody else offers the template '{template}'"));
    }
    let known = templates.items.iter().map(|t| t.template.as_str());
    let fault = Fault::usage(format!("unknown template '{template}'"));
    match naming::nearest(template, known) {
        Some(near) => fault.hint(format!("did you mean '{near}'?")),
        None => fault.hint("`toolhost resources list --templates` shows all templates"),
    }
}

fn unknown_argument(word: &str, known: &[String]) -> Fault {
    let fault = Fault::usage(format!("there is no argument '{word}'"));
    match naming::nearest(word, known.iter().map(String::as_str)) {
        Some(near) => fault.hint(format!("did you mean '{near}'?")),
        None if known.is_empty() => fault.hint("it has no arguments"),
        None => fault.hint(format!("its arguments are {}", known.join(", "))),
    }
}

/// Checks the arguments of a prompt: all problems at once.
fn check_arguments(prompt: &Prompt, given: &JsonObject) -> Result<(), Fault> {
    let known = || prompt.arguments.iter().map(|argument| argument.name.as_str());
    let missing = prompt.arguments.iter().filter(|a| a.required && !given.contains_key(&a.name));
    let missing = missing.map(|argument| format!("{}: required, and missing", argument.name));
    let unknown =
        given.keys().filter(|key| !known().any(|name| name == *key)).map(
            |key| match naming::nearest(key, known()) {
                Some(near) => format!("{key}: unknown; did you mean '{near}'?"),
                None => format!("{key}: unknown"),
            },
        );
    let problems: Vec<String> = missing.chain(unknown).collect();
    if problems.is_empty() {
        return Ok(());
    }
    let fault = Fault::usage(format!("the arguments do not fit the prompt '{}'", prompt.name));
    let example: Vec<String> = prompt
        .arguments
        .iter()
        .map(|a| if a.required { format!("{}=…", a.name) } else { format!("[{}=…]", a.name) })
        .collect();
    let hint = match example.as_slice() {
        [] => "it takes no arguments".to_owned(),
        words => format!("toolhost prompts get {} {}", prompt.name, words.join(" ")),
    };
    Err(fault.details(problems).hint(hint))
}
