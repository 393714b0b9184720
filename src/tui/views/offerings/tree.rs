//! The tree of offerings: servers, kinds, items.

use strum::VariantArray as _;

use std::collections::BTreeSet;

use crate::model::{Error, Prompt, PromptArgument, Resource, ResourceTemplate};
use crate::tui::widgets::filter::WordMatcher;

/// A kind of server offering: resource, template or prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::VariantArray)]
pub enum OfferingKind {
    Resource,
    Template,
    Prompt,
}

impl OfferingKind {
    pub fn title(self) -> &'static str {
        match self {
            Self::Resource => "resources",
            Self::Template => "resource templates",
            Self::Prompt => "prompts",
        }
    }
}

/// A resource, a template or a prompt.
#[derive(Debug, Clone)]
pub struct Offering {
    pub kind: OfferingKind,
    /// How it is asked for: its address, its template, or its full name.
    pub id: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    pub size: Option<u64>,
    pub arguments: Vec<PromptArgument>,
    pub warnings: Vec<String>,
}

impl From<Resource> for Offering {
    fn from(resource: Resource) -> Self {
        let Resource { uri, name, title, description, mime_type, size, warnings, .. } = resource;
        let (kind, arguments) = (OfferingKind::Resource, Vec::new());
        Self { kind, id: uri, name, title, description, mime_type, size, arguments, warnings }
    }
}

impl From<ResourceTemplate> for Offering {
    fn from(template: ResourceTemplate) -> Self {
        let ResourceTemplate {
            template: id, name, title, description, mime_type, warnings, ..
        } = template;
        let (kind, arguments) = (OfferingKind::Template, Vec::new());
        Self { kind, id, name, title, description, mime_type, size: None, arguments, warnings }
    }
}

impl From<Prompt> for Offering {
    fn from(prompt: Prompt) -> Self {
        let (id, name) = (prompt.name.full(), prompt.name.tool().to_owned());
        let Prompt { title, description, arguments, warnings, .. } = prompt;
        let (kind, mime_type, size) = (OfferingKind::Prompt, None, None);
        Self { kind, id, name, title, description, mime_type, size, arguments, warnings }
    }
}

#[derive(Debug, Default)]
pub struct ServerOfferings {
    pub items: Vec<Offering>,
    /// The distinct errors of lists that could not be read.
    pub errors: Vec<Error>,
    /// Warnings about entries that were left out.
    pub problems: Vec<String>,
}

/// The identity of an item, independent of its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferingId {
    pub server: String,
    /// Whether it is a resource, a template or a prompt.
    pub kind: OfferingKind,
    /// Its address, its template, or its full name.
    pub name: String,
}

impl OfferingId {
    pub fn resource(server: &str, uri: &str) -> Self {
        let (server, name) = (server.to_owned(), uri.to_owned());
        Self { server, kind: OfferingKind::Resource, name }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfferingRow {
    Server(String),
    Group(String, OfferingKind),
    Item(OfferingId),
}

#[derive(Debug, Default)]
pub struct OfferingServer {
    pub name: String,
    pub offerings: Option<ServerOfferings>,
    pub is_listing: bool,
    /// Whether it said that something changed since it was asked.
    is_stale: bool,
}

impl OfferingServer {
    pub fn items(&self) -> &[Offering] {
        self.offerings.as_ref().map_or(&[], |offerings| &offerings.items)
    }

    pub fn count(&self, kind: OfferingKind) -> usize {
        self.items().iter().filter(|item| item.kind == kind).count()
    }
}

#[derive(Debug, Default)]
pub struct OfferingTree {
    pub servers: Vec<OfferingServer>,
    pub rows: Vec<OfferingRow>,
    /// The servers and groups whose rows are hidden.
    pub folded: BTreeSet<OfferingRow>,
    query: String,
}

impl OfferingTree {
    pub fn start_listing(&mut self, names: Vec<String>) {
        let mut before = std::mem::take(&mut self.servers);
        self.servers = names
            .into_iter()
            .map(|name| {
                let at = before.iter().position(|server| server.name == name);
                let own = at.map(|at| before.swap_remove(at));
                OfferingServer {
                    is_listing: true,
                    ..own.unwrap_or(OfferingServer { name, ..OfferingServer::default() })
                }
            })
            .collect();
        self.rebuild_rows();
    }

    pub fn ask_all(&mut self) {
        self.servers.iter_mut().for_each(|server| server.is_listing = true);
    }

    /// Takes in what a server offers; whether it has to be asked again already.
    pub fn set_offerings(&mut self, server: &str, lists: ServerOfferings) -> bool {
        let Some(server) = self.server_mut(server) else { return false };
        server.offerings = Some(lists);
        server.is_listing = std::mem::take(&mut server.is_stale);
        let again = server.is_listing;
        self.rebuild_rows();
        again
    }

    /// A server says that a list changed; whether it is to be asked now.
    pub fn changed(&mut self, server: &str, is_shown: bool) -> bool {
        let Some(server) = self.server_mut(server) else { return false };
        let ask = is_shown && !server.is_listing;
        server.is_stale = !ask;
        server.is_listing |= ask;
        ask
    }

    /// Takes the servers whose lists changed while the view was hidden.
    pub fn stale(&mut self) -> Vec<String> {
        let stale = self.servers.iter_mut().filter(|server| server.is_stale && !server.is_listing);
        stale
            .map(|server| {
                (server.is_stale, server.is_listing) = (false, true);
                server.name.clone()
            })
            .collect()
    }

    pub fn server(&self, name: &str) -> Option<&OfferingServer> {
        self.servers.iter().find(|server| server.name == name)
    }

    fn server_mut(&mut self, name: &str) -> Option<&mut OfferingServer> {
        self.servers.iter_mut().find(|server| server.name == name)
    }

    pub fn fold(&mut self, row: OfferingRow) {
        if !self.folded.remove(&row) {
            self.folded.insert(row);
        }
        self.rebuild_rows();
    }

    /// Shows only items that match.
    pub fn filter(&mut self, query: &str) {
        query.trim().clone_into(&mut self.query);
        self.rebuild_rows();
    }

    pub fn offering(&self, item: &OfferingId) -> Option<&Offering> {
        let mut items = self.server(&item.server)?.items().iter();
        items.find(|own| own.kind == item.kind && own.id == item.name)
    }

    fn rebuild_rows(&mut self) {
        let is_searching = !self.query.is_empty();
        let mut words = WordMatcher::read(&self.query);
        let mut is_match = |item: &Offering| {
            let texts = [Some(&item.id), Some(&item.name), item.title.as_ref()];
            let texts = texts.into_iter().chain([item.description.as_ref()]).flatten();
            let texts: Vec<&str> = texts.map(String::as_str).collect();
            words.admits(&item.id, &texts.join("\n"))
        };
        let mut rows = Vec::new();
        let is_open = |row: &OfferingRow| is_searching || !self.folded.contains(row);
        for server in &self.servers {
            let head = OfferingRow::Server(server.name.clone());
            let mut below = Vec::new();
            for &kind in OfferingKind::VARIANTS {
                let items = server.items().iter().filter(|item| item.kind == kind);
                let id = |item: &Offering| OfferingId {
                    server: server.name.clone(),
                    kind,
                    name: item.id.clone(),
                };
                let items: Vec<OfferingRow> = items
                    .filter(|item| is_match(item))
                    .map(|item| OfferingRow::Item(id(item)))
                    .collect();
                let group = OfferingRow::Group(server.name.clone(), kind);
                let is_group_open = is_open(&group);
                below.extend((!items.is_empty()).then_some(group));
                below.extend(items.into_iter().filter(|_| is_group_open));
            }
            // Who searches sees what is found, and nothing without a find.
            if is_searching && below.is_empty() {
                continue;
            }
            let is_server_open = is_open(&head);
            rows.push(head);
            rows.extend(below.into_iter().filter(|_| is_server_open));
        }
        self.rows = rows;
    }
}
