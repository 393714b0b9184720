//! The content of a pin file.
//!
//! A group for each server, and one for the internal tools of each file. A group that names no file
//! holds for the server or tools of that name wherever they are configured: so a file of pins in a
//! repository means the same on every machine.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalogue::fingerprint::{canonical, content, hash};
use crate::model::{EntryOrigin, Layer, Origin, ToolDefinition};

/// Maximum size in bytes of a definition kept to show a difference.
const MAX_STORED_DEFINITION: usize = 256 << 10;

#[derive(Debug, Clone, Default)]
pub struct PinFileContent {
    pub groups: Vec<PinGroup>,
}

/// The pins of one server, or of the internal tools of one file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PinGroup {
    /// The server's name; `None` for internal tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The file its entry is in; `None` matches any file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What the server is: its command line, or its address without the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<PinnedEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<PinnedText>,
    /// The tools: of a server by their own names, internal ones by their full names.
    pub tools: BTreeMap<String, Pin>,
}

/// The identity of the entry that was pinned. Where a file of pins is meant for any machine, only
/// what the entry says is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedEntry {
    /// The layer of its file: `user`, `project`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    pub fingerprint: String,
    /// Its command line, address or function, as the file writes it.
    #[serde(rename = "written")]
    pub declaration: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedText {
    /// `sha256:` followed by 64 hexadecimal digits.
    pub fingerprint: String,
    /// The text; `None` when it was too long to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// One tool as it was accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pin {
    pub fingerprint: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<PinnedEntry>,
    /// The definition; `None` when it was too large to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<RawValue>>,
}

impl PinFileContent {
    /// The group of a server, or of the internal tools (`None`), of this file; a new one when there
    /// is none.
    pub fn group_mut(&mut self, server: Option<&str>, file: Option<&str>) -> &mut PinGroup {
        let same = |g: &PinGroup| g.server.as_deref() == server && g.file.as_deref() == file;
        let at = self.groups.iter().position(same).unwrap_or_else(|| {
            self.groups.push(PinGroup {
                server: server.map(str::to_owned),
                file: file.map(str::to_owned),
                ..PinGroup::default()
            });
            self.groups.len() - 1
        });
        &mut self.groups[at]
    }

    /// Whether neither a tool nor a server is pinned.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.tools.is_empty())
    }

    /// Brings the groups into their order and removes empty ones, so that equal pins give equal
    /// files.
    pub fn normalize(&mut self) {
        self.groups.retain(|group| !group.tools.is_empty());
        self.groups.sort_unstable_by(|a, b| (&a.file, &a.server).cmp(&(&b.file, &b.server)));
    }
}

impl PinnedEntry {
    /// Of an entry as it is now; what it says passes `mask`.
    pub fn of(entry: &EntryOrigin, mask: &dyn Fn(&str) -> String) -> Self {
        Self {
            layer: Some(entry.layer.as_str().to_owned()),
            directory: Some(entry.directory.display().to_string()),
            fingerprint: fingerprint_of_text(&entry.declaration),
            declaration: mask(&entry.declaration),
        }
    }

    /// The same for any machine: without the place it is at on this one.
    #[must_use]
    pub fn portable(self) -> Self {
        Self { layer: None, directory: None, ..self }
    }

    pub fn is_of_project(&self) -> bool {
        self.layer.as_deref() == Some(Layer::Project.as_str())
    }

    /// Whether `now`, in the same file, is the same entry. A file that is found in one run and named
    /// in the next has another layer and is still the same file.
    pub fn is_same_entry(&self, now: &Self) -> bool {
        let place =
            |entry: &Self| entry.directory.clone().filter(|directory| !directory.is_empty());
        let is_same_place = place(self).zip(place(now)).is_none_or(|(before, now)| before == now);
        is_same_place && self.fingerprint == now.fingerprint
    }

    pub fn describe(&self) -> String {
        let location = [self.layer.as_deref(), self.directory.as_deref()];
        let location = location.into_iter().flatten().collect::<Vec<_>>().join(" ");
        if location.is_empty() {
            self.declaration.clone()
        } else {
            format!("{location}: {}", self.declaration)
        }
    }
}

impl PinnedText {
    /// Of `text`; what is kept of it passes `mask`.
    pub fn of(text: &str, mask: &dyn Fn(&str) -> String) -> Self {
        let fits = text.len() <= MAX_STORED_DEFINITION;
        Self { fingerprint: fingerprint_of_text(text), text: fits.then(|| mask(text)) }
    }
}

impl Pin {
    /// Of a tool as it is now; what is kept of its text passes `mask`.
    pub fn of(tool: &ToolDefinition, mask: &dyn Fn(&str) -> String) -> Self {
        let value = content(tool);
        let text = canonical(&value);
        let masked = (text.len() <= MAX_STORED_DEFINITION).then(|| mask(&text));
        Self {
            fingerprint: hash(&value),
            touches: touches(tool).iter().map(|line| mask(line)).collect(),
            entry: match &tool.origin {
                Origin::File(_) => tool.entry.as_ref().map(|entry| PinnedEntry::of(entry, mask)),
                // The group says it, once for all tools of the server.
                Origin::Server(_) | Origin::Program => None,
            },
            definition: masked.and_then(|text| RawValue::from_string(text).ok()),
        }
    }

    /// The definition as a tree.
    pub fn value(&self) -> Option<Value> {
        serde_json::from_str(self.definition.as_ref()?.get()).ok()
    }
}

pub fn fingerprint_of_text(text: &str) -> String {
    hash(&Value::String(text.to_owned()))
}

/// What an internal tool may touch. The directory of its file is written as `.`, so that a project
/// may stand anywhere.
pub fn touches(tool: &ToolDefinition) -> Vec<String> {
    let Origin::File(location) = &tool.origin else { return Vec::new() };
    let base = location.file.parent().and_then(Path::to_str).filter(|base| base.len() > 1);
    let relative =
        |line: &String| base.map_or_else(|| line.clone(), |base| line.replace(base, "."));
    tool.touches.iter().map(relative).collect()
}
