//! Writing entries to a server file, preserving its comments and layout.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::output::yaml;
use crate::config::editors;
use crate::config::environment::Environment;
use crate::config::node::{ConfigNode, NodeValue, SourceText};
use crate::config::parse;
use crate::config::read;
use crate::model::{Diagnostic, Error, ErrorKind};
use crate::util::atomic_file::{self, FileMode};
use crate::util::private_file;

const SERVERS: [&str; 3] = ["mcp_servers", "mcpServers", "servers"];

/// Which of the server files is written.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct McpFileArgs {
    /// Write mcp.yaml of your configuration directory
    #[arg(long, conflicts_with = "project")]
    pub user: bool,
    /// Write mcp.yaml of the current directory, or of the project it belongs to
    #[arg(long)]
    pub project: bool,
}

#[derive(Debug)]
pub struct McpFile {
    pub path: PathBuf,
    /// Whether it is in the user's configuration directory.
    pub is_own: bool,
    /// Its current text; empty if it does not exist.
    pub old: String,
    /// The text to write to it.
    pub new: String,
}

impl McpFile {
    /// The requested file; by default that of the project if it has a server file, otherwise the user's.
    pub fn open(args: McpFileArgs, environment: &dyn Environment) -> Result<Self, Error> {
        let own = environment.config_dir();
        let cwd = environment.cwd();
        let mut project = cwd.ancestors().filter(|directory| own.as_deref() != Some(directory));
        let project = project.find_map(existing);
        let (path, is_own) = match project {
            Some(path) if !args.user => (path, false),
            _ if args.project => (cwd.join("mcp.yaml"), false),
            _ => {
                let own = own.ok_or_else(|| {
                    Error::usage("there is no configuration directory").with_hint("--project")
                })?;
                (existing(&own).unwrap_or_else(|| own.join("mcp.yaml")), true)
            }
        };
        let old =
            if path.exists() { read::read(&path, true).map_err(error)?.1 } else { String::new() };
        Ok(Self { path, is_own, new: old.clone(), old })
    }

    pub fn has(&self, name: &str) -> Result<bool, Error> {
        editors::has_server(&self.path, &self.new, name).map_err(error)
    }

    /// Adds an entry after the existing ones.
    pub fn add(&mut self, name: &str, entry: &Value) -> Result<(), Error> {
        let mut map = serde_json::Map::new();
        map.insert(name.to_owned(), entry.clone());
        let lines = yaml::document(&Value::Object(map));
        let before = self.tree(&self.new)?;
        let added = inserted(&self.new, &before, &lines);
        let expected = with_entry(before.to_json(), name, Some(entry));
        self.change_to(added, &expected).map_err(|error| {
            error.with_hint(format!("paste this under its servers: {}", json!({ (name): entry })))
        })
    }

    /// Removes the lines of an entry.
    pub fn remove(&mut self, name: &str) -> Result<(), Error> {
        let before = self.tree(&self.new)?;
        let expected = with_entry(before.to_json(), name, None);
        self.change_to(removed(&self.new, &before, name), &expected)
            .map_err(|error| error.with_hint("remove it with an editor"))
    }

    fn change_to(&mut self, text: Option<String>, expected: &Value) -> Result<(), Error> {
        match text {
            Some(text)
                if self.tree(&text).is_ok_and(|tree| with_map(tree.to_json()) == *expected) =>
            {
                self.new = text;
                Ok(())
            }
            _ => Err(Error::config(format!(
                "cannot change {}: its layout is not supported",
                self.path.display()
            ))),
        }
    }

    /// Writes it, creating its directory if missing.
    pub fn write(&self) -> Result<(), Error> {
        let failed = |why: std::io::Error| {
            Error::internal(format!("cannot write {}: {why}", self.path.display()))
        };
        if self.is_own
            && let Some(directory) = self.path.parent()
        {
            private_file::make_directory(directory).map_err(failed)?;
        }
        let _turn = atomic_file::lock(&self.path).map_err(failed)?;
        let now = std::fs::read_to_string(&self.path).unwrap_or_default();
        if now != self.old {
            return Err(Error::internal(format!(
                "{} changed in the meantime",
                self.path.display()
            ))
            .with_hint("nothing was written; run the command again"));
        }
        atomic_file::replace(&self.path, self.new.as_bytes(), FileMode::Kept(0o644)).map_err(failed)
    }

    fn tree(&self, text: &str) -> Result<ConfigNode, Error> {
        let parsed = parse::parse(&SourceText::new(&self.path, text), text);
        parsed.map(|file| file.root).map_err(error)
    }
}

fn existing(directory: &Path) -> Option<PathBuf> {
    let names = ["mcp.yaml", "mcp.yml", "mcp.json"];
    names.iter().map(|name| directory.join(name)).find(|path| path.is_file())
}

pub fn error(diagnostic: Diagnostic) -> Error {
    Error::of_diagnostic(ErrorKind::Config, diagnostic)
}

/// The configuration with its servers in a map, even where the file has none.
fn with_map(mut tree: Value) -> Value {
    if tree.is_null() {
        tree = json!({});
    }
    if let Some(root) = tree.as_object_mut() {
        let key = SERVERS.iter().find(|key| root.contains_key(**key)).unwrap_or(&SERVERS[0]);
        let servers = root.entry(*key).or_insert_with(|| json!({}));
        if servers.is_null() {
            *servers = json!({});
        }
    }
    tree
}

fn with_entry(tree: Value, name: &str, entry: Option<&Value>) -> Value {
    let mut tree = with_map(tree);
    let key = SERVERS.iter().find(|key| tree.get(**key).is_some()).unwrap_or(&SERVERS[0]);
    if let Some(servers) = tree.get_mut(*key).and_then(Value::as_object_mut) {
        match entry {
            Some(entry) => drop(servers.insert(name.to_owned(), entry.clone())),
            None => drop(servers.shift_remove(name)),
        }
    }
    tree
}

/// The text without the lines of an entry; `None` where it has none of its own.
fn removed(text: &str, root: &ConfigNode, name: &str) -> Option<String> {
    let servers = SERVERS.iter().find_map(|key| root.get(key))?;
    let position = servers.key(name)?.position;
    let head = usize::try_from(position.line).ok()?.checked_sub(1)?;
    let depth = usize::try_from(position.column).ok()?.checked_sub(1)?;
    let mut lines: Vec<&str> = text.lines().collect();
    let inside = |line: &&&str| {
        let shown = line.trim_start();
        line.len() - shown.len() > depth || shown.starts_with(['}', ']'])
    };
    let block = lines.get(head + 1..)?.iter().take_while(inside).count();
    lines.drain(head..=head + block);
    Some(lines.join("\n") + "\n")
}

/// The text with the lines of an entry after the last one; `None` for another layout.
fn inserted(text: &str, root: &ConfigNode, entry: &str) -> Option<String> {
    let section = SERVERS.iter().find_map(|key| Some((root.key(key)?, root.get(key)?)));
    let Some((key, servers)) = section else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let blank = if text.trim().is_empty() { "" } else { "\n" };
        return Some(format!("{text}{gap}{blank}mcp_servers:\n{}", indented(entry, 2)));
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let head = usize::try_from(key.position.line).ok()?.checked_sub(1)?;
    let outer = usize::try_from(key.position.column).ok()?.checked_sub(1)?;
    let inner = match &servers.value {
        NodeValue::Map(pairs) if !pairs.is_empty() => {
            usize::try_from(pairs.first()?.0.position.column).ok()?.checked_sub(1)?
        }
        _ => {
            // `mcp_servers:` or `mcp_servers: {}`, without entries.
            let line = lines.get_mut(head)?;
            let bare = line.replacen("{}", "", 1);
            bare.trim_end().clone_into(line);
            outer + 2
        }
    };
    let belongs = |line: &String| {
        let depth = line.len() - line.trim_start().len();
        line.trim().is_empty() || depth > outer
    };
    let rest = lines.get(head + 1..)?;
    let block = rest.iter().take_while(|line| belongs(line)).count();
    let blank = rest.get(..block)?.iter().rev().take_while(|line| line.trim().is_empty()).count();
    let end = head + 1 + block - blank;
    lines.splice(end..end, indented(entry, inner).lines().map(str::to_owned));
    Some(lines.join("\n") + "\n")
}

fn indented(text: &str, by: usize) -> String {
    let line = |line: &str| format!("{:by$}{line}\n", "");
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(old: &str) -> Option<String> {
        let mut file = McpFile {
            path: "mcp.yaml".into(),
            is_own: true,
            old: old.to_owned(),
            new: old.to_owned(),
        };
        let entry = json!({ "command": "uvx", "args": ["x: y", "-1"] });
        file.add("new", &entry).ok()?;
        assert!(file.has("new").unwrap());
        Some(file.new)
    }

    const ENTRY: &str = "  new:\n    command: uvx\n    args:\n      - 'x: y'\n      - '-1'\n";

    #[test]
    fn an_entry_goes_behind_the_others_and_everything_else_stays() {
        let quoted = |text: Option<String>| text.map(|text| text.replace('"', "'"));
        assert_eq!(quoted(added("")), Some(format!("mcp_servers:\n{ENTRY}")));
        let old = "# mine\nmcp_servers:\n  a: { command: x } # why\n  # last\n\ndefaults:\n  retries: 1\n";
        let new = format!(
            "# mine\nmcp_servers:\n  a: {{ command: x }} # why\n  # last\n{ENTRY}\ndefaults:\n  retries: 1\n"
        );
        assert_eq!(quoted(added(old)), Some(new));
        for empty in ["mcpServers:\n", "mcpServers: {}\n"] {
            assert_eq!(quoted(added(empty)), Some(format!("mcpServers:\n{ENTRY}")), "{empty}");
        }
        let none = "defaults: { retries: 1 }";
        assert_eq!(quoted(added(none)), Some(format!("{none}\n\nmcp_servers:\n{ENTRY}")));
    }

    #[test]
    fn an_entry_leaves_and_everything_else_stays() {
        let removed = |old: &str| {
            let (old, new) = (old.to_owned(), old.to_owned());
            let mut file = McpFile { path: "mcp.yaml".into(), is_own: true, old, new };
            file.remove("a").ok().map(|()| file.new)
        };
        let old = "# mine\nmcp_servers:\n  a:\n    command: x\n    # why\n  # of b\n  b: { command: y }\n";
        let new = "# mine\nmcp_servers:\n  # of b\n  b: { command: y }\n";
        assert_eq!(removed(old).as_deref(), Some(new));
        let last = "mcp_servers:\n  a: { command: x }\n\ndefaults:\n  retries: 1\n";
        let empty = "mcp_servers:\n\ndefaults:\n  retries: 1\n";
        assert_eq!(removed(last).as_deref(), Some(empty));
        let json =
            "{ \"mcpServers\": {\n  \"a\": {\n    \"command\": \"x\"\n  },\n  \"b\": {}\n} }\n";
        assert_eq!(removed(json).as_deref(), Some("{ \"mcpServers\": {\n  \"b\": {}\n} }\n"));
        assert_eq!(removed("mcp_servers: { a: { command: x }, b: { command: y } }\n"), None);
    }

    #[test]
    fn a_file_without_lines_for_its_entries_is_left_alone() {
        for old in ["mcp_servers: { a: { command: x } }\n", "{ \"mcpServers\": { } }\n"] {
            assert_eq!(added(old), None, "{old}");
        }
    }
}
