//! The pins that hold for what is configured now, and what one tool is by them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use super::book::{Book, Group, Pin, PinnedEntry, fingerprint_of_text, touches};
use crate::catalogue::changes::{self, Change};
use crate::catalogue::fingerprint::{content, hash};
use crate::config::spec::Drift;
use crate::model::{Fault, Origin, Pinned, ToolDefinition, ToolStatus};

/// The most lines of a difference in a failure.
const LINES: usize = 30;

/// A server as it is configured now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The file its entry stands in, as the system knows it.
    pub file: String,
    /// What it is: its command line, or its address without the query.
    pub endpoint: String,
    /// Whose entry it is.
    pub entry: PinnedEntry,
    /// What a change of its pinned tools means.
    pub drift: Drift,
}

/// What is configured now, as far as pins are bound to it.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The servers by name.
    pub servers: BTreeMap<String, Owner>,
    /// Files of internal tools: by the path in a tool's place, as the system knows them.
    pub files: HashMap<PathBuf, String>,
    /// Those files, as the system knows them, that are not a project's.
    pub own_files: BTreeSet<String>,
}

impl Known {
    /// Whether a pin is of an entry that is not a project's. Pins that were written before entries
    /// were kept say only the file.
    fn is_users(&self, file: Option<&str>, entry: Option<&PinnedEntry>) -> bool {
        match entry {
            Some(entry) => entry.layer.is_some() && !entry.is_of_project(),
            None => file.is_some_and(|file| self.own_files.contains(file)),
        }
    }
}

/// What a tool is by its pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It has no pin.
    New,
    /// It is what was pinned.
    Same,
    /// It is something else. Holds what differs.
    Changed(Vec<Change>),
}

/// The pins that hold for what is configured.
#[derive(Debug, Clone, Default)]
pub struct Pins {
    known: Arc<Known>,
    servers: BTreeMap<String, Group>,
    /// Internal tools by full name, with the file for which the pin holds.
    tools: HashMap<String, Vec<(Option<String>, Pin)>>,
}

impl Pins {
    /// Of the pins in `book` those that are about something configured.
    pub fn new(known: Arc<Known>, book: Book) -> Self {
        let mut pins = Self { known, ..Self::default() };
        for group in book.groups {
            let Some(server) = group.server.clone() else {
                for (name, pin) in group.tools {
                    pins.tools.entry(name).or_default().push((group.file.clone(), pin));
                }
                continue;
            };
            let Some(owner) = pins.known.servers.get(&server) else { continue };
            let here = group.file.as_ref().is_none_or(|file| *file == owner.file);
            // A project's entry that took the name of a pinned server is not that server.
            let taken = owner.entry.is_of_project()
                && !pins.servers.contains_key(&server)
                && pins.known.is_users(group.file.as_deref(), group.entry.as_ref());
            if here || taken {
                pins.servers.insert(server, group);
            }
        }
        pins
    }

    /// What is configured now.
    pub fn known(&self) -> &Arc<Known> {
        &self.known
    }

    /// Whether there is no pin at all.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.tools.is_empty()
    }

    /// The pins of a server.
    pub fn server(&self, name: &str) -> Option<&Group> {
        self.servers.get(name)
    }

    /// The servers that have pins.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &Group)> {
        self.servers.iter().map(|(name, group)| (name.as_str(), group))
    }

    /// The full names of internal tools whose pins hold for files that are read now.
    pub fn internal(&self) -> impl Iterator<Item = &str> {
        let here = |file: &Option<String>| {
            file.as_ref().is_none_or(|file| self.known.files.values().any(|known| known == file))
        };
        let pinned = self.tools.iter().filter(move |(_, all)| all.iter().any(|(f, _)| here(f)));
        pinned.map(|(name, _)| name.as_str())
    }

    /// The pin of a tool.
    pub fn pin(&self, tool: &ToolDefinition) -> Option<&Pin> {
        if let Some(server) = server_of(tool) {
            return self.servers.get(server)?.tools.get(tool.name.tool());
        }
        let file = match &tool.origin {
            Origin::File(place) => self.known.files.get(&*place.file),
            Origin::Server(_) | Origin::Program => None,
        };
        let all = self.tools.get(&tool.name.full())?;
        let here = |(of, _): &&(Option<String>, Pin)| of.is_none() || of.as_ref() == file;
        // A project's entry that took the name of a pinned tool is not that tool.
        let is_of_project = tool.entry.as_ref().is_some_and(|entry| entry.project().is_some());
        let taken = |(of, pin): &&(Option<String>, Pin)| {
            is_of_project && self.known.is_users(of.as_deref(), pin.entry.as_ref())
        };
        all.iter().find(here).or_else(|| all.iter().find(taken)).map(|(_, pin)| pin)
    }

    /// What a tool is by its pin; `instructions` are its server's.
    pub fn judge(&self, tool: &ToolDefinition, instructions: Option<&str>) -> Verdict {
        let Some(pin) = self.pin(tool) else { return Verdict::New };
        let mut found = match server_of(tool) {
            Some(server) => self.server_changes(server, instructions),
            None => entry_changed(pin, tool).into_iter().chain(touched(pin, tool)).collect(),
        };
        let now = content(tool);
        if hash(&now) != pin.fingerprint {
            let parts = pin.value().map(|before| changes::between(&before, &now));
            match parts {
                Some(parts) if !parts.is_empty() => found.extend(parts),
                // The definition was too large to keep, or is not the one of the fingerprint.
                _ => found.push(Change {
                    part: "fingerprint",
                    before: Some(pin.fingerprint.clone()),
                    after: Some(hash(&now)),
                }),
            }
        }
        if found.is_empty() { Verdict::Same } else { Verdict::Changed(found) }
    }

    /// In what a server differs from its pins, beside its tools.
    pub fn server_changes(&self, server: &str, instructions: Option<&str>) -> Vec<Change> {
        let mut found = Vec::new();
        let (Some(group), Some(owner)) = (self.servers.get(server), self.known.servers.get(server))
        else {
            return found;
        };
        if let Some(entry) = &group.entry
            && !entry.is(&owner.entry)
        {
            let (before, after) = (Some(entry.line()), Some(owner.entry.line()));
            found.push(Change { part: "entry", before, after });
        }
        if let Some(endpoint) = group.endpoint.as_ref().filter(|was| **was != owner.endpoint) {
            let (before, after) = (Some(endpoint.clone()), Some(owner.endpoint.clone()));
            found.push(Change { part: "endpoint", before, after });
        }
        let was = group.instructions.as_ref().map(|words| words.fingerprint.as_str());
        if was != instructions.map(fingerprint_of_text).as_deref() {
            let before = group
                .instructions
                .as_ref()
                .map(|words| words.text.clone().unwrap_or_else(|| "(too long to keep)".to_owned()));
            let after = instructions.map(str::to_owned);
            found.push(Change { part: "instructions", before, after });
        }
        found
    }

    /// Marks listed tools by their pins.
    pub fn mark(&self, tools: &mut [Arc<ToolDefinition>], instructions: Option<&str>) {
        if self.is_empty() {
            return;
        }
        for tool in tools.iter_mut() {
            if matches!(tool.status, ToolStatus::Unavailable | ToolStatus::Declared) {
                continue;
            }
            match self.judge(tool, instructions) {
                Verdict::New => {}
                Verdict::Same => Arc::make_mut(tool).pinned = Pinned::Same,
                Verdict::Changed(found) => {
                    let refusal = refusal(tool, &found);
                    let tool = Arc::make_mut(tool);
                    tool.pinned = Pinned::Changed(refusal);
                    tool.status = ToolStatus::Changed;
                }
            }
        }
    }

    /// Whether a tool may be called as far as its pin goes. Gives what to warn about.
    ///
    /// # Errors
    /// A fault of kind denied with the difference, for a tool that changed and whose entry does
    /// not let changes pass.
    pub fn admit(&self, tool: &ToolDefinition) -> Result<Vec<String>, Fault> {
        let Pinned::Changed(fault) = &tool.pinned else { return Ok(Vec::new()) };
        let owner = server_of(tool).and_then(|server| self.known.servers.get(server));
        match owner.map_or(Drift::Block, |owner| owner.drift) {
            Drift::Block => Err(fault.clone()),
            Drift::Allow => Ok(Vec::new()),
            Drift::Warn => {
                let first = format!("{} (`drift: warn` lets it pass)", fault.message());
                Ok(std::iter::once(first).chain(fault.detail_lines().iter().cloned()).collect())
            }
        }
    }
}

/// The server a tool belongs to.
pub(super) fn server_of(tool: &ToolDefinition) -> Option<&str> {
    match &tool.origin {
        Origin::Server(name) => Some(name),
        Origin::File(_) | Origin::Program => None,
    }
}

/// The change when an internal tool comes from another entry than the one that was pinned.
fn entry_changed(pin: &Pin, tool: &ToolDefinition) -> Option<Change> {
    let (before, now) = (pin.entry.as_ref()?, tool.entry.as_ref()?);
    let now = PinnedEntry::of(now, &str::to_owned);
    let (from, to) = (Some(before.line()), Some(now.line()));
    (!before.is(&now)).then_some(Change { part: "entry", before: from, after: to })
}

fn touched(pin: &Pin, tool: &ToolDefinition) -> Vec<Change> {
    let now = touches(tool);
    if now == pin.touches {
        return Vec::new();
    }
    let text = |lines: &[String]| Some(lines.join("\n"));
    vec![Change { part: "touches", before: text(&pin.touches), after: text(&now) }]
}

fn refusal(tool: &ToolDefinition, found: &[Change]) -> Fault {
    let name = &tool.name;
    let fault = Fault::denied(format!(
        "drift: the pinned definition of '{name}' changed ({})",
        changes::names(found)
    ))
    .details(changes::lines(found, LINES))
    .hint(format!(
        "`toolhost verify {name}` shows the whole difference, `toolhost pin {name}` accepts it"
    ));
    match server_of(tool) {
        Some(server) => fault.server(server),
        None => fault,
    }
}
