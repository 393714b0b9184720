//! Entries of file tools: the directory, and the operations allowed in it.
//!
//! | key | says | default |
//! |---|---|---|
//! | `toolkit`, `toolkit_class` | `FileManagementToolkit`: the tools have `LangChain`'s names | short names |
//! | `root_dir` | the directory, relative to the file | `scope` |
//! | `scope` | a named directory | |
//! | `access` | `read` or `write`: the tools if none are selected | `read`; all of a toolkit |
//! | `max_file_bytes` | maximum part of a file in one result, up to 16 MiB | 1 MiB |
//! | `create` | make the directory when it is first used | for `AGENT_DATA_DIR` |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::operation::{FileOperation, Vocabulary};
use super::toolkits::{self, FILE_MANAGEMENT};
use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::{ConfigNode, NodeValue};
use crate::model::Diagnostic;
use crate::providers::toolkit;
use crate::util::spelling::did_you_mean;
use crate::util::units;

/// The keys of an entry that this kind understands: its own, and those of selecting.
pub(super) const KEYS: &[&str] = &{
    let [a, b, c, d, e] = toolkit::KEYS;
    [
        a,
        b,
        c,
        d,
        e,
        "toolkit",
        "toolkit_class",
        "root_dir",
        "scope",
        "access",
        "max_file_bytes",
        "create",
    ]
};

/// Maximum part of a file in one result, in bytes.
const MAX_SHOWN_BYTES: u64 = 16 << 20;
const DEFAULT_SHOWN_BYTES: u64 = 1 << 20;

/// What is allowed without being selected by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
    /// The key is absent: reading, and anything else the entry selects by name.
    Unspecified,
    /// Only the tools that read; selecting another one is an error.
    Read,
    /// All tools, those that change files included.
    Write,
}

/// An entry of kind `files` with every key checked; nothing was opened yet.
#[derive(Debug)]
pub(super) struct FilesEntry {
    pub(super) directory: PathBuf,
    pub(super) create: bool,
    /// Which tools the entry gives, from `access`.
    pub(super) access: FileAccess,
    /// Maximum part of a file in one result, in bytes.
    pub(super) max_bytes: u64,
    /// The names of tools and arguments.
    pub(super) vocabulary: Vocabulary,
}

/// Reads an entry of a file in `base_dir`, an absolute path.
pub(super) fn read(
    entry: &ConfigNode,
    base_dir: &Path,
    scopes: &BTreeMap<String, PathBuf>,
) -> Result<FilesEntry, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut report = |diagnostic| diagnostics.push(diagnostic);
    toolkits::check(entry).unwrap_or_else(&mut report);
    let directory = directory(entry, base_dir, scopes).map_err(&mut report).ok();
    let access = access(entry).map_err(&mut report).unwrap_or(FileAccess::Unspecified);
    let max_bytes = max_bytes(entry).map_err(&mut report).unwrap_or(DEFAULT_SHOWN_BYTES);
    let create = entry.get("create").map(ConfigNode::as_bool).transpose();
    let create = create.map_err(&mut report).unwrap_or_default();
    match directory {
        Some((directory, own)) if diagnostics.is_empty() => Ok(FilesEntry {
            directory,
            create: create.unwrap_or(own),
            access,
            max_bytes,
            vocabulary: vocabulary(entry),
        }),
        _ => Err(diagnostics),
    }
}

/// Whether an entry that selects nothing gives the tools that change files too: a toolkit does, as in
/// `LangChain`, and each of them needs approval.
pub(super) fn gives_all(access: FileAccess, vocabulary: Vocabulary) -> bool {
    match access {
        FileAccess::Write => true,
        FileAccess::Unspecified => vocabulary == Vocabulary::LangChain,
        FileAccess::Read => false,
    }
}

/// Toolkits, and entries that use their keys, have `LangChain`'s names.
pub(super) fn vocabulary(entry: &ConfigNode) -> Vocabulary {
    let kind = entry.get_any(&["kind", "provider_type", "type"]).map(|(_, node)| node.as_text());
    let toolkit = entry.get_any(&["toolkit", "toolkit_class"]).is_some();
    match kind {
        Some(Ok("langchain_toolkit" | "toolkit" | "file_management" | FILE_MANAGEMENT)) => {
            Vocabulary::LangChain
        }
        _ if toolkit => Vocabulary::LangChain,
        _ => Vocabulary::Plain,
    }
}

fn directory(
    entry: &ConfigNode,
    base_dir: &Path,
    scopes: &BTreeMap<String, PathBuf>,
) -> Result<(PathBuf, bool), Diagnostic> {
    if let Some(node) = entry.get("root_dir").filter(|node| !node.is_null()) {
        return match node.as_text()? {
            "" => Err(node.expected("the path of a directory")),
            text if text.contains('\0') => Err(node.expected("a path without a NUL byte")),
            text => Ok((base_dir.join(text), false)),
        };
    }
    // `scope` has a second meaning, which names no directory.
    let scope = entry.get("scope").filter(|node| !node.is_null());
    let Some(node) = scope.filter(|node| !matches!(node.as_text(), Ok("global" | "session")))
    else {
        let diagnostic = Diagnostic::error("no directory is configured");
        return Err(match entry.get("root_dir") {
            // YAML reads a bare ~ as null.
            Some(node) => diagnostic
                .with_hint("for your home directory, write \"~\" in quotes")
                .with_location(node.location()),
            None => diagnostic
                .with_hint("add 'root_dir: ./data', or 'scope: PROJECT_ROOT'")
                .with_location(entry.location()),
        });
    };
    let word = node.as_text()?;
    if let Some(path) = scopes.get(word) {
        return Ok((base_dir.join(path), matches!(word, "AGENT_DATA_DIR" | "AGENT_DATA")));
    }
    let names: Vec<&str> = scopes.keys().map(String::as_str).collect();
    let hint = did_you_mean(word, names.iter().copied())
        .unwrap_or_else(|| format!("the names are {}", names.join(", ")));
    Err(Diagnostic::error(format!("unknown scope '{word}'"))
        .with_hint(hint)
        .with_location(node.location()))
}

fn access(entry: &ConfigNode) -> Result<FileAccess, Diagnostic> {
    let Some(node) = entry.get("access").filter(|node| !node.is_null()) else {
        return Ok(FileAccess::Unspecified);
    };
    match node.as_text()? {
        "read" => Ok(FileAccess::Read),
        "write" => Ok(FileAccess::Write),
        other => Err(Diagnostic::error(format!("'access' must be read or write, found '{other}'"))
            .with_location(node.location())),
    }
}

fn max_bytes(entry: &ConfigNode) -> Result<u64, Diagnostic> {
    let Some(node) = entry.get("max_file_bytes").filter(|node| !node.is_null()) else {
        return Ok(DEFAULT_SHOWN_BYTES);
    };
    units::size(&node.as_scalar_text()?)
        .filter(|size| (1..=MAX_SHOWN_BYTES).contains(size))
        .ok_or_else(|| node.expected("a size from 1 to 16MiB, such as 256KiB"))
}

/// The effects of an entry: none that need consent as long as it only reads below the project;
/// otherwise the directory and what can be done in it.
pub(super) fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let mut is_own = false;
    let written = if let Some(node) = entry.get("root_dir").filter(|node| !node.is_null()) {
        node.as_text().ok().map(str::to_owned)
    } else {
        let scope = entry.get("scope").and_then(|node| node.as_text().ok()).unwrap_or_default();
        let predefined = matches!(scope, "AGENT_DATA_DIR" | "AGENT_DATA");
        match site.scopes.get(scope) {
            Some(written) => Some(written.clone()),
            None if predefined => {
                is_own = true;
                Some("toolhost's directory for agents' data".to_owned())
            }
            // An entry that cannot be resolved has no tools.
            None => return Vec::new(),
        }
    };
    let written = written.unwrap_or_default();
    let directory = if is_own { None } else { site.real(&written) };
    let is_inside = directory.as_deref().is_some_and(|path| path.starts_with(site.root));
    let selected = selected(entry);
    let writes = match (access(entry), selected.is_empty()) {
        (Ok(access), true) if gives_all(access, vocabulary(entry)) => true,
        _ => {
            selected.iter().any(|word| FileOperation::named(word).is_none_or(FileOperation::writes))
        }
    };
    // Making the directory is writing.
    let creates = entry.get("create").is_some_and(|node| !matches!(node.as_bool(), Ok(false)));
    let writes = writes || creates;
    let shown = directory.map_or(written, |path| path.display().to_string());
    if writes {
        vec![EntryEffect::Writes(shown)]
    } else if is_inside {
        Vec::new()
    } else {
        vec![EntryEffect::Reads(shown)]
    }
}

fn selected(entry: &ConfigNode) -> Vec<String> {
    if let Some(Ok(word)) = entry.get("original_tool_name").map(ConfigNode::as_text) {
        return vec![word.to_owned()];
    }
    let list = entry.get_any(&["tools", "selected_tools"]).map(|(_, node)| node);
    let items = list.and_then(|list| list.as_list().ok()).unwrap_or_default();
    let word = |item: &ConfigNode| {
        if let NodeValue::Text(word) = &item.value {
            return Some(word.clone());
        }
        let named = item.get_any(&["original_tool_name", "name", "tool_name"])?;
        named.1.as_text().ok().map(str::to_owned)
    };
    items.iter().filter_map(word).collect()
}
