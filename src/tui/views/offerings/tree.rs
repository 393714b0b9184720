//! The tree of offerings: servers, kinds, items.

use std::collections::BTreeSet;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::model::{Prompt, Resource, ResourceTemplate};
use crate::tui::views::offerings::tasks::{ServerOfferings, WatchedResource};

/// A kind of server offering: resource, template or prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OfferingKind {
    Resource,
    Template,
    Prompt,
}

impl OfferingKind {
    /// All of them, in the order of the tree.
    pub const ALL: [Self; 3] = [Self::Resource, Self::Template, Self::Prompt];

    /// The plural, for the heading of a group.
    pub fn title(self) -> &'static str {
        match self {
            Self::Resource => "resources",
            Self::Template => "resource templates",
            Self::Prompt => "prompts",
        }
    }
}

/// The identity of an item, independent of its position.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OfferingId {
    pub server: String,
    /// Whether it is a resource, a template or a prompt.
    pub kind: OfferingKind,
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfferingRow {
    Server(usize),
    Group(usize, OfferingKind),
    /// An item: the numbers of its server and of itself within its group.
    Item(usize, OfferingKind, usize),
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
    pub fn count(&self, kind: OfferingKind) -> usize {
        self.offerings.as_ref().map_or(0, |lists| match kind {
            OfferingKind::Resource => lists.resources.len(),
            OfferingKind::Template => lists.templates.len(),
            OfferingKind::Prompt => lists.prompts.len(),
        })
    }
}

#[derive(Debug, Default)]
pub struct OfferingTree {
    servers: Vec<OfferingServer>,
    rows: Vec<OfferingRow>,
    folded: BTreeSet<OfferingRow>,
    query: String,
}

impl OfferingTree {
    pub fn rows(&self) -> &[OfferingRow] {
        &self.rows
    }

    pub fn servers(&self) -> &[OfferingServer] {
        &self.servers
    }

    /// Whether the rows below a server or group are hidden.
    pub fn is_folded(&self, row: OfferingRow) -> bool {
        self.folded.contains(&row)
    }

    /// These servers are being asked.
    pub fn start_listing(&mut self, names: Vec<String>) {
        let mut before = std::mem::take(&mut self.servers);
        self.servers = names
            .into_iter()
            .map(|name| {
                let known = before.iter().position(|server| server.name == name);
                let known = known.map(|at| before.swap_remove(at));
                OfferingServer {
                    is_listing: true,
                    ..known.unwrap_or(OfferingServer { name, ..OfferingServer::default() })
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
        let Some(server) = self.servers.iter_mut().find(|known| known.name == server) else {
            return false;
        };
        server.offerings = Some(lists);
        server.is_listing = std::mem::take(&mut server.is_stale);
        let again = server.is_listing;
        self.rebuild_rows();
        again
    }

    /// A server says that a list changed; whether it is to be asked now.
    pub fn changed(&mut self, server: &str, is_shown: bool) -> bool {
        let Some(server) = self.servers.iter_mut().find(|known| known.name == server) else {
            return false;
        };
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

    pub fn fold(&mut self, row: OfferingRow) {
        if !self.folded.remove(&row) {
            self.folded.insert(row);
        }
        self.rebuild_rows();
    }

    /// Shows only items whose names match, by a fuzzy search.
    pub fn filter(&mut self, query: &str) {
        query.trim().clone_into(&mut self.query);
        self.rebuild_rows();
    }

    pub fn resource_at(&self, server: usize, at: usize) -> Option<&Resource> {
        self.servers.get(server)?.offerings.as_ref()?.resources.get(at)
    }

    pub fn template_at(&self, server: usize, at: usize) -> Option<&ResourceTemplate> {
        self.servers.get(server)?.offerings.as_ref()?.templates.get(at)
    }

    pub fn prompt_at(&self, server: usize, at: usize) -> Option<&Prompt> {
        self.servers.get(server)?.offerings.as_ref()?.prompts.get(at)
    }

    pub fn template(&self, item: &OfferingId) -> Option<&ResourceTemplate> {
        let lists = self.lists_of(item)?;
        lists.templates.iter().find(|template| template.template == item.name)
    }

    pub fn prompt(&self, item: &OfferingId) -> Option<&Prompt> {
        self.lists_of(item)?.prompts.iter().find(|prompt| prompt.name.full() == item.name)
    }

    pub fn resource(item: &OfferingId) -> Option<WatchedResource> {
        let is_resource = item.kind == OfferingKind::Resource;
        is_resource.then(|| WatchedResource { server: item.server.clone(), uri: item.name.clone() })
    }

    fn lists_of(&self, item: &OfferingId) -> Option<&ServerOfferings> {
        self.servers.iter().find(|server| server.name == item.server)?.offerings.as_ref()
    }

    /// The item of a row; `None` for servers and groups.
    pub fn item(&self, row: OfferingRow) -> Option<OfferingId> {
        let OfferingRow::Item(server, kind, at) = row else { return None };
        let name = match kind {
            OfferingKind::Resource => self.resource_at(server, at)?.uri.clone(),
            OfferingKind::Template => self.template_at(server, at)?.template.clone(),
            OfferingKind::Prompt => self.prompt_at(server, at)?.name.full(),
        };
        Some(OfferingId { server: self.servers.get(server)?.name.clone(), kind, name })
    }

    fn rebuild_rows(&mut self) {
        let mut finds = OfferingMatcher::of(&self.query);
        let is_searching = !self.query.is_empty();
        let mut rows = Vec::new();
        for (at, server) in self.servers.iter().enumerate() {
            let head = OfferingRow::Server(at);
            let mut below = Vec::new();
            for kind in OfferingKind::ALL {
                let found: Vec<usize> = (0..server.count(kind))
                    .filter(|item| finds.matches_item(server, kind, *item))
                    .collect();
                if found.is_empty() {
                    continue;
                }
                let group = OfferingRow::Group(at, kind);
                below.push(group);
                if is_searching || !self.folded.contains(&group) {
                    below.extend(found.into_iter().map(|item| OfferingRow::Item(at, kind, item)));
                }
            }
            // Who searches sees what is found, and nothing without a find.
            if is_searching && below.is_empty() {
                continue;
            }
            rows.push(head);
            if is_searching || !self.folded.contains(&head) {
                rows.append(&mut below);
            }
        }
        self.rows = rows;
    }
}

/// Finds items by a few letters.
struct OfferingMatcher {
    matcher: Matcher,
    pattern: Option<Pattern>,
    letters: Vec<char>,
}

impl OfferingMatcher {
    fn of(query: &str) -> Self {
        let pattern = (!query.is_empty())
            .then(|| Pattern::parse(query, CaseMatching::Smart, Normalization::Smart));
        Self { matcher: Matcher::new(Config::DEFAULT), pattern, letters: Vec::new() }
    }

    fn matches_item(&mut self, server: &OfferingServer, kind: OfferingKind, at: usize) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        let Some(lists) = &server.offerings else { return false };
        let full;
        let texts: [Option<&str>; 4] = match kind {
            OfferingKind::Resource => {
                let Some(item) = lists.resources.get(at) else { return false };
                [
                    Some(&item.uri),
                    Some(&item.name),
                    item.title.as_deref(),
                    item.description.as_deref(),
                ]
            }
            OfferingKind::Template => {
                let Some(item) = lists.templates.get(at) else { return false };
                let (title, about) = (item.title.as_deref(), item.description.as_deref());
                [Some(&item.template), Some(&item.name), title, about]
            }
            OfferingKind::Prompt => {
                let Some(item) = lists.prompts.get(at) else { return false };
                full = item.name.full();
                [Some(&full), item.title.as_deref(), item.description.as_deref(), None]
            }
        };
        texts.into_iter().flatten().any(|text| {
            pattern.score(Utf32Str::new(text, &mut self.letters), &mut self.matcher).is_some()
        })
    }
}
