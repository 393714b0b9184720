//! What an entry of this kind says: the directory, and what may be done in it.
//!
//! | key | says | default |
//! |---|---|---|
//! | `toolkit`, `toolkit_class` | `FileManagementToolkit`: the tools have `LangChain`'s names | short names |
//! | `root_dir` | the directory, relative to the file | `scope` |
//! | `scope` | a named directory | |
//! | `access` | `read` or `write`: what is given when nothing is selected | `read` |
//! | `max_file_bytes` | the most of a file that one answer holds, up to 16 MiB | 1 MiB |
//! | `create` | make the directory when it is first used | for `AGENT_DATA_DIR` |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::table::{Operation, Vocabulary};
use crate::config::consent::{Effect, Site};
use crate::config::keys::suggestion;
use crate::config::node::{Node, NodeValue};
use crate::model::Problem;
use crate::providers::toolkit;
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

/// The one toolkit there is.
const TOOLKIT: &str = "FileManagementToolkit";
/// The most of a file that one answer may hold, in bytes.
const MOST_SHOWN: u64 = 16 << 20;
/// How much it holds when the entry does not say, in bytes.
const SHOWN: u64 = 1 << 20;

/// What may be done without being selected by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Reading, because nothing was said.
    Unsaid,
    /// Reading and nothing else.
    Read,
    /// Everything.
    Write,
}

/// A checked entry.
#[derive(Debug)]
pub(super) struct Entry {
    /// The directory, absolute.
    pub(super) directory: PathBuf,
    /// Whether it is made when it is first used.
    pub(super) create: bool,
    /// What may be done.
    pub(super) access: Access,
    /// The most of a file that one answer holds, in bytes.
    pub(super) most: u64,
    /// The names of tools and arguments.
    pub(super) vocabulary: Vocabulary,
}

/// Reads an entry of a file in `base_dir`, an absolute path.
///
/// # Errors
/// All that is wrong with it.
pub(super) fn read(
    entry: &Node,
    base_dir: &Path,
    scopes: &BTreeMap<String, PathBuf>,
) -> Result<Entry, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut take = |result: Result<(), Problem>| problems.extend(result.err());
    take(known_toolkit(entry));
    let mut found = None;
    take(directory(entry, base_dir, scopes).map(|directory| found = Some(directory)));
    let mut access = Access::Unsaid;
    take(self::access(entry).map(|said| access = said));
    let mut most = SHOWN;
    take(self::most(entry).map(|said| most = said));
    let mut create = None;
    take(entry.get("create").map(Node::as_bool).transpose().map(|said| create = said));
    match found {
        Some((directory, own)) if problems.is_empty() => Ok(Entry {
            directory,
            create: create.unwrap_or(own),
            access,
            most,
            vocabulary: vocabulary(entry),
        }),
        _ => Err(problems),
    }
}

fn known_toolkit(entry: &Node) -> Result<(), Problem> {
    let Some((_, node)) = entry.get_any(&["toolkit_class", "toolkit"]) else { return Ok(()) };
    let word = node.as_text()?;
    if word == TOOLKIT {
        return Ok(());
    }
    let problem = Problem::error(format!("there is no toolkit '{word}'")).at(node.place());
    Err(match suggestion(word, std::iter::once(TOOLKIT)) {
        Some(meant) => problem.hint(format!("did you mean '{meant}'?")),
        None => problem.hint(format!("there is {TOOLKIT}")),
    })
}

/// Toolkits, and entries that use their words, have `LangChain`'s names.
pub(super) fn vocabulary(entry: &Node) -> Vocabulary {
    let said = entry.get_any(&["kind", "provider_type", "type"]).map(|(_, node)| node.as_text());
    let toolkit = entry.get_any(&["toolkit", "toolkit_class"]).is_some();
    match said {
        Some(Ok("langchain_toolkit" | "toolkit" | "file_management" | TOOLKIT)) => {
            Vocabulary::LangChain
        }
        _ if toolkit => Vocabulary::LangChain,
        _ => Vocabulary::Plain,
    }
}

/// The directory, and whether it is toolhost's own, which is made without being asked for.
fn directory(
    entry: &Node,
    base_dir: &Path,
    scopes: &BTreeMap<String, PathBuf>,
) -> Result<(PathBuf, bool), Problem> {
    if let Some(node) = entry.get("root_dir").filter(|node| !node.is_null()) {
        return match node.as_text()? {
            "" => Err(node.expected("the path of a directory")),
            text if text.contains('\0') => Err(node.expected("a path without a NUL byte")),
            text => Ok((base_dir.join(text), false)),
        };
    }
    // `scope` has a second meaning, for which there is no directory.
    let scope = entry.get("scope").filter(|node| !node.is_null());
    let Some(node) = scope.filter(|node| !matches!(node.as_text(), Ok("global" | "session")))
    else {
        let problem = Problem::error("nothing says which directory this is about");
        return Err(match entry.get("root_dir") {
            // YAML reads a lone ~ as nothing.
            Some(node) => problem.hint("for your home write \"~\", in quotes").at(node.place()),
            None => {
                problem.hint("add 'root_dir: ./data', or 'scope: PROJECT_ROOT'").at(entry.place())
            }
        });
    };
    let word = node.as_text()?;
    if let Some(path) = scopes.get(word) {
        return Ok((base_dir.join(path), matches!(word, "AGENT_DATA_DIR" | "AGENT_DATA")));
    }
    let names: Vec<&str> = scopes.keys().map(String::as_str).collect();
    let hint = suggestion(word, names.iter().copied()).map_or_else(
        || format!("there are {}", names.join(", ")),
        |meant| format!("did you mean '{meant}'?"),
    );
    Err(Problem::error(format!("there is no scope '{word}'")).hint(hint).at(node.place()))
}

fn access(entry: &Node) -> Result<Access, Problem> {
    let Some(node) = entry.get("access").filter(|node| !node.is_null()) else {
        return Ok(Access::Unsaid);
    };
    match node.as_text()? {
        "read" => Ok(Access::Read),
        "write" => Ok(Access::Write),
        other => {
            Err(Problem::error(format!("'access' is read or write, found '{other}'"))
                .at(node.place()))
        }
    }
}

fn most(entry: &Node) -> Result<u64, Problem> {
    let Some(node) = entry.get("max_file_bytes").filter(|node| !node.is_null()) else {
        return Ok(SHOWN);
    };
    units::size(&node.as_scalar_text()?)
        .filter(|size| (1..=MOST_SHOWN).contains(size))
        .ok_or_else(|| node.expected("a size from 1 to 16MiB, such as 256KiB"))
}

/// What an entry would do: nothing that has to be agreed to as long as it only reads below the
/// project; else the directory and what can be done in it.
pub(super) fn effects(entry: &Node, site: &Site<'_>) -> Vec<Effect> {
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
            // What cannot be resolved gives no tools.
            None => return Vec::new(),
        }
    };
    let written = written.unwrap_or_default();
    let directory = if is_own { None } else { site.real(&written) };
    let is_inside = directory.as_deref().is_some_and(|path| path.starts_with(site.root));
    let selected = selected(entry);
    let writes = match (access(entry), selected.is_empty()) {
        (Ok(Access::Write), true) => true,
        _ => selected.iter().any(|word| Operation::named(word).is_none_or(Operation::writes)),
    };
    // Making the directory is writing.
    let creates = entry.get("create").is_some_and(|node| !matches!(node.as_bool(), Ok(false)));
    let writes = writes || creates;
    let shown = directory.map_or(written, |path| path.display().to_string());
    if writes {
        vec![Effect::Writes(shown)]
    } else if is_inside {
        Vec::new()
    } else {
        vec![Effect::Reads(shown)]
    }
}

/// The words of the tools that the entry selects.
fn selected(entry: &Node) -> Vec<String> {
    if let Some(Ok(word)) = entry.get("original_tool_name").map(Node::as_text) {
        return vec![word.to_owned()];
    }
    let list = entry.get_any(&["tools", "selected_tools"]).map(|(_, node)| node);
    let items = list.and_then(|list| list.as_list().ok()).unwrap_or_default();
    let word = |item: &Node| {
        if let NodeValue::Text(word) = &item.value {
            return Some(word.clone());
        }
        let named = item.get_any(&["original_tool_name", "name", "tool_name"])?;
        named.1.as_text().ok().map(str::to_owned)
    };
    items.iter().filter_map(word).collect()
}
