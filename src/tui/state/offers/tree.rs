//! What servers offer, as rows of a tree: servers, the sorts of what each offers, the items.
//!
//! Owns: the lists, which rows there are by filter and folding. Rows are made when something
//! changes, never for a frame.

use std::collections::BTreeSet;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::model::{Prompt, Resource, ResourceTemplate};
use crate::tui::event::offers::{Followed, Lists};

/// A sort of what is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// A resource.
    Resource,
    /// A template of addresses.
    Template,
    /// A prompt.
    Prompt,
}

impl ItemKind {
    /// All of them, in the order of the tree.
    pub const ALL: [Self; 3] = [Self::Resource, Self::Template, Self::Prompt];

    /// What several are called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Resource => "resources",
            Self::Template => "resource templates",
            Self::Prompt => "prompts",
        }
    }
}

/// One thing that is offered, wherever it stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// The server.
    pub server: String,
    /// What it is.
    pub kind: ItemKind,
    /// Its address, its template, or its full name.
    pub name: String,
}

/// A row of the tree, by positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// A server.
    Server(usize),
    /// A sort of what it offers.
    Group(usize, ItemKind),
    /// One of these.
    Item(usize, ItemKind, usize),
}

/// A server and what it offers.
#[derive(Debug, Default)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// What it offers, once it was asked.
    pub lists: Option<Lists>,
    /// Whether it is being asked.
    pub is_asked: bool,
    /// Whether it said that something changed since it was asked.
    is_stale: bool,
}

impl Server {
    /// How many of a sort there are.
    pub fn count(&self, kind: ItemKind) -> usize {
        self.lists.as_ref().map_or(0, |lists| match kind {
            ItemKind::Resource => lists.resources.len(),
            ItemKind::Template => lists.templates.len(),
            ItemKind::Prompt => lists.prompts.len(),
        })
    }
}

/// The tree.
#[derive(Debug, Default)]
pub struct Tree {
    servers: Vec<Server>,
    rows: Vec<Row>,
    folded: BTreeSet<Row>,
    query: String,
}

impl Tree {
    /// The rows that are seen.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The servers.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Whether what stands below a row is hidden.
    pub fn is_folded(&self, row: Row) -> bool {
        self.folded.contains(&row)
    }

    /// These servers are being asked.
    pub fn begin(&mut self, names: Vec<String>) {
        let mut before = std::mem::take(&mut self.servers);
        self.servers = names
            .into_iter()
            .map(|name| {
                let known = before.iter().position(|server| server.name == name);
                let known = known.map(|at| before.swap_remove(at));
                Server { is_asked: true, ..known.unwrap_or(Server { name, ..Server::default() }) }
            })
            .collect();
        self.lay();
    }

    /// All servers are being asked again.
    pub fn ask_all(&mut self) {
        self.servers.iter_mut().for_each(|server| server.is_asked = true);
    }

    /// Takes in what a server offers; whether it has to be asked again already.
    pub fn take(&mut self, server: &str, lists: Lists) -> bool {
        let Some(server) = self.servers.iter_mut().find(|known| known.name == server) else {
            return false;
        };
        server.lists = Some(lists);
        server.is_asked = std::mem::take(&mut server.is_stale);
        let again = server.is_asked;
        self.lay();
        again
    }

    /// A server says that a list changed; whether it is to be asked now.
    pub fn changed(&mut self, server: &str, is_shown: bool) -> bool {
        let Some(server) = self.servers.iter_mut().find(|known| known.name == server) else {
            return false;
        };
        let ask = is_shown && !server.is_asked;
        server.is_stale = !ask;
        server.is_asked |= ask;
        ask
    }

    /// The servers that said so while nobody looked; they are being asked now.
    pub fn stale(&mut self) -> Vec<String> {
        let stale = self.servers.iter_mut().filter(|server| server.is_stale && !server.is_asked);
        stale
            .map(|server| {
                (server.is_stale, server.is_asked) = (false, true);
                server.name.clone()
            })
            .collect()
    }

    /// Hides what stands below a row, or shows it again.
    pub fn fold(&mut self, row: Row) {
        if !self.folded.remove(&row) {
            self.folded.insert(row);
        }
        self.lay();
    }

    /// Searches for this.
    pub fn filter(&mut self, query: &str) {
        query.trim().clone_into(&mut self.query);
        self.lay();
    }

    /// The resource of a row.
    pub fn resource_at(&self, server: usize, at: usize) -> Option<&Resource> {
        self.servers.get(server)?.lists.as_ref()?.resources.get(at)
    }

    /// The template of a row.
    pub fn template_at(&self, server: usize, at: usize) -> Option<&ResourceTemplate> {
        self.servers.get(server)?.lists.as_ref()?.templates.get(at)
    }

    /// The prompt of a row.
    pub fn prompt_at(&self, server: usize, at: usize) -> Option<&Prompt> {
        self.servers.get(server)?.lists.as_ref()?.prompts.get(at)
    }

    /// The template of this item.
    pub fn template(&self, item: &Item) -> Option<&ResourceTemplate> {
        let lists = self.lists_of(item)?;
        lists.templates.iter().find(|template| template.template == item.name)
    }

    /// The prompt of this item.
    pub fn prompt(&self, item: &Item) -> Option<&Prompt> {
        self.lists_of(item)?.prompts.iter().find(|prompt| prompt.name.full() == item.name)
    }

    /// The resource that an item is.
    pub fn resource(&self, item: &Item) -> Option<Followed> {
        let is_resource = item.kind == ItemKind::Resource;
        is_resource.then(|| Followed { server: item.server.clone(), uri: item.name.clone() })
    }

    fn lists_of(&self, item: &Item) -> Option<&Lists> {
        self.servers.iter().find(|server| server.name == item.server)?.lists.as_ref()
    }

    /// What stands in a row.
    pub fn item(&self, row: Row) -> Option<Item> {
        let Row::Item(server, kind, at) = row else { return None };
        let name = match kind {
            ItemKind::Resource => self.resource_at(server, at)?.uri.clone(),
            ItemKind::Template => self.template_at(server, at)?.template.clone(),
            ItemKind::Prompt => self.prompt_at(server, at)?.name.full(),
        };
        Some(Item { server: self.servers.get(server)?.name.clone(), kind, name })
    }

    fn lay(&mut self) {
        let mut finds = Finds::of(&self.query);
        let is_searching = !self.query.is_empty();
        let mut rows = Vec::new();
        for (at, server) in self.servers.iter().enumerate() {
            let head = Row::Server(at);
            let mut below = Vec::new();
            for kind in ItemKind::ALL {
                let found: Vec<usize> =
                    (0..server.count(kind)).filter(|item| finds.one(server, kind, *item)).collect();
                if found.is_empty() {
                    continue;
                }
                let group = Row::Group(at, kind);
                below.push(group);
                if is_searching || !self.folded.contains(&group) {
                    below.extend(found.into_iter().map(|item| Row::Item(at, kind, item)));
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
struct Finds {
    matcher: Matcher,
    pattern: Option<Pattern>,
    letters: Vec<char>,
}

impl Finds {
    fn of(query: &str) -> Self {
        let pattern = (!query.is_empty())
            .then(|| Pattern::parse(query, CaseMatching::Smart, Normalization::Smart));
        Self { matcher: Matcher::new(Config::DEFAULT), pattern, letters: Vec::new() }
    }

    fn one(&mut self, server: &Server, kind: ItemKind, at: usize) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        let Some(lists) = &server.lists else { return false };
        let full;
        let texts: [Option<&str>; 4] = match kind {
            ItemKind::Resource => {
                let Some(item) = lists.resources.get(at) else { return false };
                [
                    Some(&item.uri),
                    Some(&item.name),
                    item.title.as_deref(),
                    item.description.as_deref(),
                ]
            }
            ItemKind::Template => {
                let Some(item) = lists.templates.get(at) else { return false };
                let (title, about) = (item.title.as_deref(), item.description.as_deref());
                [Some(&item.template), Some(&item.name), title, about]
            }
            ItemKind::Prompt => {
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
