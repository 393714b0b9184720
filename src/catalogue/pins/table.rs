//! The pins of the configured entries, and the pin status of one tool.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use super::content::{Pin, PinFileContent, PinGroup, PinnedEntry, fingerprint_of_text, touches};
use crate::catalogue::changes::{self, DefinitionChange};
use crate::catalogue::fingerprint::{content, hash};
use crate::config::spec::DriftPolicy;
use crate::model::{Error, Layer, Origin, PinState, ToolDefinition, ToolStatus};

const LINES: usize = 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredServer {
    pub file: String,
    /// What it is: its command line, or its address without the query.
    pub endpoint: String,
    pub entry: PinnedEntry,
    pub drift: DriftPolicy,
}

#[derive(Debug, Clone, Default)]
pub struct PinContext {
    pub servers: BTreeMap<String, ConfiguredServer>,
    /// Files of internal tools: by the path in a tool's place, as the system knows them.
    pub files: HashMap<PathBuf, String>,
    pub own_files: BTreeSet<String>,
}

impl PinContext {
    /// Whether a pin is of an entry of the user's own, which is there in every project. Pins that
    /// were written before entries were kept say only the file.
    fn is_user_entry(&self, file: Option<&str>, entry: Option<&PinnedEntry>) -> bool {
        match entry {
            Some(entry) => entry.layer.as_deref() == Some(Layer::User.as_str()),
            None => file.is_some_and(|file| self.own_files.contains(file)),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Pins {
    context: Arc<PinContext>,
    servers: BTreeMap<String, PinGroup>,
    tools: HashMap<String, Vec<(Option<String>, Pin)>>,
}

impl Pins {
    /// Of the pins in `content` those that are about something configured.
    pub fn new(context: Arc<PinContext>, content: PinFileContent) -> Self {
        let mut pins = Self { context, ..Self::default() };
        for group in content.groups {
            let Some(server) = group.server.clone() else {
                for (name, pin) in group.tools {
                    pins.tools.entry(name).or_default().push((group.file.clone(), pin));
                }
                continue;
            };
            let Some(owner) = pins.context.servers.get(&server) else { continue };
            let here = group.file.as_ref().is_none_or(|file| *file == owner.file);
            // A project's entry that took the name of a pinned server is not that server.
            let is_replaced = owner.entry.is_of_project()
                && !pins.servers.contains_key(&server)
                && pins.context.is_user_entry(group.file.as_deref(), group.entry.as_ref());
            if here || is_replaced {
                pins.servers.insert(server, group);
            }
        }
        pins
    }

    pub fn context(&self) -> &Arc<PinContext> {
        &self.context
    }

    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.tools.is_empty()
    }

    pub fn server(&self, name: &str) -> Option<&PinGroup> {
        self.servers.get(name)
    }

    pub fn servers(&self) -> impl Iterator<Item = (&str, &PinGroup)> {
        self.servers.iter().map(|(name, group)| (name.as_str(), group))
    }

    pub fn internal(&self) -> impl Iterator<Item = &str> {
        let here = |file: &Option<String>| {
            file.as_ref().is_none_or(|file| self.context.files.values().any(|path| path == file))
        };
        let pinned = self.tools.iter().filter(move |(_, all)| all.iter().any(|(f, _)| here(f)));
        pinned.map(|(name, _)| name.as_str())
    }

    pub fn pin(&self, tool: &ToolDefinition) -> Option<&Pin> {
        match server_of(tool) {
            Some(server) => self.servers.get(server)?.tools.get(tool.name.tool()),
            None => self.internal_pin(tool).map(|(pin, _)| pin),
        }
    }

    fn internal_pin(&self, tool: &ToolDefinition) -> Option<(&Pin, bool)> {
        let file = match &tool.origin {
            Origin::File(location) => self.context.files.get(&*location.file),
            Origin::Server(_) | Origin::Program => None,
        };
        let all = self.tools.get(&tool.name.full())?;
        let here = |(of, _): &&(Option<String>, Pin)| of.is_none() || of.as_ref() == file;
        // A project's entry that took the name of a pinned tool is not that tool.
        let is_of_project = tool.entry.as_ref().is_some_and(|entry| entry.project().is_some());
        let is_replaced = |(of, pin): &&(Option<String>, Pin)| {
            is_of_project && self.context.is_user_entry(of.as_deref(), pin.entry.as_ref())
        };
        let same = all.iter().find(here).map(|(_, pin)| (pin, true));
        same.or_else(|| all.iter().find(is_replaced).map(|(_, pin)| (pin, false)))
    }

    /// What differs from what was pinned; `None` of a tool that never was. `instructions` are its
    /// server's.
    pub fn compare(
        &self,
        tool: &ToolDefinition,
        instructions: Option<&str>,
    ) -> Option<Vec<DefinitionChange>> {
        let pin = self.pin(tool)?;
        let mut differences = if let Some(server) = server_of(tool) {
            self.server_changes(server, instructions)
        } else {
            let is_same_file = self.internal_pin(tool).is_some_and(|(_, same)| same);
            let entry = entry_changed(pin, tool, is_same_file);
            entry.into_iter().chain(touches_changed(pin, tool)).collect()
        };
        let now = content(tool);
        if hash(&now) != pin.fingerprint {
            let parts = pin.value().map(|before| changes::between(&before, &now));
            match parts {
                Some(parts) if !parts.is_empty() => differences.extend(parts),
                // The definition was too large to keep, or is not the one of the fingerprint.
                _ => differences.push(DefinitionChange {
                    part: "fingerprint",
                    before: Some(pin.fingerprint.clone()),
                    after: Some(hash(&now)),
                }),
            }
        }
        Some(differences)
    }

    pub fn server_changes(
        &self,
        server: &str,
        instructions: Option<&str>,
    ) -> Vec<DefinitionChange> {
        let mut differences = Vec::new();
        let (Some(group), Some(owner)) =
            (self.servers.get(server), self.context.servers.get(server))
        else {
            return differences;
        };
        let is_same_file = group.file.as_ref().is_none_or(|file| *file == owner.file);
        if let Some(entry) = &group.entry
            && !(is_same_file && entry.is_same_entry(&owner.entry))
        {
            let (before, after) = (Some(entry.describe()), Some(owner.entry.describe()));
            differences.push(DefinitionChange { part: "entry", before, after });
        }
        if let Some(endpoint) = group.endpoint.as_ref().filter(|was| **was != owner.endpoint) {
            let (before, after) = (Some(endpoint.clone()), Some(owner.endpoint.clone()));
            differences.push(DefinitionChange { part: "endpoint", before, after });
        }
        let was = group.instructions.as_ref().map(|pinned| pinned.fingerprint.as_str());
        if was != instructions.map(fingerprint_of_text).as_deref() {
            let before = group.instructions.as_ref().map(|pinned| {
                pinned.text.clone().unwrap_or_else(|| "(too long to keep)".to_owned())
            });
            let after = instructions.map(str::to_owned);
            differences.push(DefinitionChange { part: "instructions", before, after });
        }
        differences
    }

    pub fn mark_tools(&self, tools: &mut [Arc<ToolDefinition>], instructions: Option<&str>) {
        if self.is_empty() {
            return;
        }
        for tool in tools.iter_mut() {
            if matches!(tool.status, ToolStatus::Unavailable | ToolStatus::Declared) {
                continue;
            }
            let Some(differences) = self.compare(tool, instructions) else { continue };
            if differences.is_empty() {
                Arc::make_mut(tool).pin_state = PinState::Matches;
                continue;
            }
            let refusal = refusal(tool, &differences);
            let tool = Arc::make_mut(tool);
            tool.pin_state = PinState::Changed(refusal);
            tool.status = ToolStatus::Changed;
        }
    }

    pub fn check_call(&self, tool: &ToolDefinition) -> Result<Vec<String>, Error> {
        let PinState::Changed(error) = &tool.pin_state else { return Ok(Vec::new()) };
        let owner = server_of(tool).and_then(|server| self.context.servers.get(server));
        match owner.map_or(DriftPolicy::Block, |owner| owner.drift) {
            DriftPolicy::Block => Err(error.clone()),
            DriftPolicy::Allow => Ok(Vec::new()),
            DriftPolicy::Warn => {
                let first = format!("{} (`drift: warn` allows it)", error.message());
                Ok(std::iter::once(first).chain(error.details().iter().cloned()).collect())
            }
        }
    }
}

pub(super) fn server_of(tool: &ToolDefinition) -> Option<&str> {
    match &tool.origin {
        Origin::Server(name) => Some(name),
        Origin::File(_) | Origin::Program => None,
    }
}

fn entry_changed(pin: &Pin, tool: &ToolDefinition, is_same_file: bool) -> Option<DefinitionChange> {
    let (before, now) = (pin.entry.as_ref()?, tool.entry.as_ref()?);
    let now = PinnedEntry::of(now, &str::to_owned);
    let (from, to) = (Some(before.describe()), Some(now.describe()));
    let is_same = is_same_file && before.is_same_entry(&now);
    (!is_same).then_some(DefinitionChange { part: "entry", before: from, after: to })
}

fn touches_changed(pin: &Pin, tool: &ToolDefinition) -> Vec<DefinitionChange> {
    let now = touches(tool);
    if now == pin.touches {
        return Vec::new();
    }
    let text = |lines: &[String]| Some(lines.join("\n"));
    vec![DefinitionChange { part: "touches", before: text(&pin.touches), after: text(&now) }]
}

fn refusal(tool: &ToolDefinition, differences: &[DefinitionChange]) -> Error {
    let name = &tool.name;
    let error = Error::denied(format!(
        "drift: the pinned definition of '{name}' changed ({})",
        changes::names(differences)
    ))
    .with_details(changes::lines(differences, LINES))
    .with_hint(format!(
        "`toolhost verify {name}` shows the full difference, `toolhost pin {name}` accepts it"
    ));
    match server_of(tool) {
        Some(server) => error.with_server(server),
        None => error,
    }
}
