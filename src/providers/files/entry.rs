//! Entries of file tools: the directory, and the operations allowed in it.
//!
//! The directories of agents' data: one for each project, and one for each user of it.
//!
//! Toolkits of `LangChain` by name: ours, and what to use in place of the others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::operation::{FileOperation, Vocabulary};
use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::typed::{self, ByteSize, Located};
use crate::model::{Diagnostic, Diagnostics};
use crate::providers::engines::config::hash;
use crate::providers::toolkit::ToolkitKeys;
use crate::util::spelling::did_you_mean;

/// The keys of an entry, besides those of selecting.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct FilesKeys {
    /// FileManagementToolkit: the tools have LangChain's names, and all are given.
    #[serde(alias = "toolkit_class")]
    toolkit: Option<Located<String>>,
    /// The directory, relative to this file.
    root_dir: Option<Located<String>>,
    /// A directory by its name under 'scopes', in place of root_dir.
    scope: Option<Located<String>>,
    /// Which tools are given if none are selected; default: those that read, or all of a toolkit.
    pub(super) access: Option<Located<FileAccess>>,
    /// How much of a file is in one result; default: 1 MiB.
    max_file_bytes: Option<ByteSize<MAX_SHOWN_BYTES>>,
    /// Make the directory when it is first used; default: only AGENT_DATA_DIR.
    create: Option<bool>,
}

/// Maximum part of a file in one result, in bytes.
const MAX_SHOWN_BYTES: u64 = 16 << 20;
const DEFAULT_SHOWN_BYTES: u64 = 1 << 20;

/// What is allowed without being selected by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename = "Access", rename_all = "lowercase")]
pub(super) enum FileAccess {
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
    /// Maximum part of a file in one result, in bytes.
    pub(super) max_bytes: u64,
    /// The names of tools and arguments.
    pub(super) vocabulary: Vocabulary,
}

/// What the keys of an entry of a file in `base_dir`, an absolute path, mean.
pub(super) fn resolve(
    entry: &ConfigNode,
    keys: &FilesKeys,
    base_dir: &Path,
    scopes: &BTreeMap<String, PathBuf>,
    diagnostics: &Diagnostics,
) -> Option<FilesEntry> {
    diagnostics.extend(keys.toolkit.as_ref().and_then(|name| check(name).err()));
    let (directory, own) = diagnostics.ok(directory(entry, keys, base_dir, scopes))?;
    Some(FilesEntry {
        directory,
        create: keys.create.unwrap_or(own),
        max_bytes: keys.max_file_bytes.map_or(DEFAULT_SHOWN_BYTES, |size| size.0),
        vocabulary: vocabulary(entry, keys),
    })
}

impl FilesKeys {
    /// Whether an entry that selects nothing gives the tools that change files too: a toolkit does,
    /// as in `LangChain`, and each of them needs approval.
    pub(super) fn gives_all(&self, vocabulary: Vocabulary) -> bool {
        match self.access.as_deref() {
            Some(access) => *access == FileAccess::Write,
            None => vocabulary == Vocabulary::LangChain,
        }
    }
}

/// Toolkits, and entries that use their keys, have `LangChain`'s names.
pub(super) fn vocabulary(entry: &ConfigNode, keys: &FilesKeys) -> Vocabulary {
    let kind = entry.get_any(&["kind", "provider_type", "type"]).map(|(_, node)| node.as_text());
    match kind {
        Some(Ok("langchain_toolkit" | "toolkit" | "file_management" | FILE_MANAGEMENT)) => {
            Vocabulary::LangChain
        }
        _ if keys.toolkit.is_some() => Vocabulary::LangChain,
        _ => Vocabulary::Plain,
    }
}

fn directory(
    entry: &ConfigNode,
    keys: &FilesKeys,
    base_dir: &Path,
    scopes: &BTreeMap<String, PathBuf>,
) -> Result<(PathBuf, bool), Diagnostic> {
    if let Some(written) = &keys.root_dir {
        return match written.as_str() {
            "" => Err(written.error("expected the path of a directory, found an empty string")),
            text if text.contains('\0') => Err(written.error("a path has no NUL byte")),
            text => Ok((base_dir.join(text), false)),
        };
    }
    // `scope` has a second meaning, which names no directory.
    let scope = keys.scope.as_ref().filter(|word| !["global", "session"].contains(&word.as_str()));
    let Some(word) = scope else {
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
    if let Some(path) = scopes.get(word.as_str()) {
        return Ok((base_dir.join(path), is_agent_data(word)));
    }
    let names: Vec<&str> = scopes.keys().map(String::as_str).collect();
    let hint = did_you_mean(word, names.iter().copied())
        .unwrap_or_else(|| format!("the names are {}", names.join(", ")));
    Err(word.error(format!("unknown scope '{}'", word.value)).with_hint(hint))
}

fn is_agent_data(scope: &str) -> bool {
    matches!(scope, "AGENT_DATA_DIR" | "AGENT_DATA")
}

/// The effects of an entry: none that need consent as long as it only reads below the project;
/// otherwise the directory and what can be done in it.
pub(super) fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let (Some(keys), Some(toolkit)) =
        (typed::peek::<FilesKeys>(entry), typed::peek::<ToolkitKeys>(entry))
    else {
        return Vec::new();
    };
    let mut is_own = false;
    let written = if let Some(written) = &keys.root_dir {
        written.value.clone()
    } else {
        let scope = keys.scope.as_ref().map_or("", |scope| scope.as_str());
        match site.scopes.get(scope) {
            Some(written) => written.clone(),
            None if is_agent_data(scope) => {
                is_own = true;
                "toolhost's directory for agents' data".to_owned()
            }
            // An entry that cannot be resolved has no tools.
            None => return Vec::new(),
        }
    };
    let directory = if is_own { None } else { site.real(&written) };
    let is_inside = directory.as_deref().is_some_and(|path| path.starts_with(site.root));
    let selected = toolkit.selected();
    let writes = if selected.is_empty() {
        keys.gives_all(vocabulary(entry, &keys))
    } else {
        selected.iter().any(|word| FileOperation::named(word).is_none_or(FileOperation::writes))
    };
    // Making the directory is writing.
    let writes = writes || keys.create == Some(true);
    let shown = directory.map_or(written, |path| path.display().to_string());
    if writes {
        vec![EntryEffect::Writes(shown)]
    } else if is_inside {
        Vec::new()
    } else {
        vec![EntryEffect::Reads(shown)]
    }
}

/// The predefined directory of agents' data in the state directory, of which each project and user
/// has its own part. Earlier versions kept everything in it.
pub(super) const DIRECTORY: &str = "agent";

pub(super) fn of_project(state_dir: &Path, project: Option<&str>) -> PathBuf {
    let root = project.unwrap_or("no project");
    let name = root.rsplit('/').next().unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = name.chars().filter(is_plain).take(32).collect();
    state_dir.join("agents").join(format!("{name}-{}", hash(root, 6))).join("all")
}

/// Where the data of a user is, beside that of calls that name none.
pub(super) fn of_user(shared: &Path, user: &str) -> PathBuf {
    shared.with_file_name(format!("user-{}", hash(user, 16)))
}

pub(super) const FILE_MANAGEMENT: &str = "FileManagementToolkit";

/// Refuses an entry that names any toolkit but ours.
pub(super) fn check(name: &Located<String>) -> Result<(), Diagnostic> {
    // It may be a full import path.
    let word = name.rsplit('.').next().unwrap_or_default();
    if word == FILE_MANAGEMENT {
        return Ok(());
    }
    let hint = did_you_mean(word, std::iter::once(FILE_MANAGEMENT)).unwrap_or_else(|| {
        format!(
            "use {FILE_MANAGEMENT}, 'endpoint_url' or 'openapi' for requests, 'command' for a \
             program, 'module' and 'class' for a class of yours, or for a service or a database an \
             MCP server in mcp.yaml, whose tools get a name of yours with 'storage_type: postgresql' \
             and 'mcp_server'"
        )
    });
    Err(name.error(format!("unknown toolkit '{word}'")).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    fn checked(text: &str) -> Result<(), String> {
        let root = parse(&SourceText::new("t.yaml", text), text).unwrap();
        check(&typed::read(&root, &Diagnostics::default()).unwrap())
            .map_err(|diagnostic| diagnostic.hint.unwrap_or_default())
    }

    #[test]
    fn a_toolkit_is_ours_or_has_a_stand_in() {
        checked("FileManagementToolkit").unwrap();
        checked("langchain_community.agent_toolkits.FileManagementToolkit").unwrap();
        let near = checked("FileManagmentToolkit").unwrap_err();
        assert_eq!(near, "did you mean 'FileManagementToolkit'?");
        for name in ["GmailToolkit", "langchain_community.agent_toolkits.SQLDatabaseToolkit"] {
            let far = checked(name).unwrap_err();
            assert!(far.contains("an MCP server in mcp.yaml"), "{far}");
        }
    }
}
