//! Writing entries to a server file, preserving its comments and layout.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::entry_edit;
use crate::config::environment::Environment;
use crate::config::{editors, read};
use crate::model::{Diagnostic, Error, ErrorKind};
use crate::present::{Page, difference};
use crate::util::atomic_file::{self, FileMode};
use crate::util::diff::{self, Hunk};
use crate::util::private_file;

const SERVERS: [&str; 3] = ["mcp_servers", "mcpServers", "servers"];

const TOOLS: [&str; 2] = ["tools", "tools_config"];

/// Which of the server files is written.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct McpFileArgs {
    /// Write to your configuration directory
    #[arg(long, conflicts_with = "project")]
    pub user: bool,
    /// Write to the current directory, or the project it belongs to
    #[arg(long)]
    pub project: bool,
}

#[derive(Debug)]
pub struct McpFile {
    pub path: PathBuf,
    /// Whether it is in the user's configuration directory.
    pub is_own: bool,
    /// The keys that may hold its servers; the first is written where it has none.
    pub keys: &'static [&'static str],
    /// Its current text; empty if it does not exist.
    pub old: String,
    /// The text to write to it.
    pub new: String,
}

impl McpFile {
    /// The requested file; by default that of the project if it has a server file, otherwise the user's.
    pub fn open(args: McpFileArgs, environment: &dyn Environment) -> Result<Self, Error> {
        Self::find("mcp", &SERVERS, args, environment)
    }

    /// The file of tools, chosen in the same way.
    pub fn tools(args: McpFileArgs, environment: &dyn Environment) -> Result<Self, Error> {
        Self::find("tools", &TOOLS, args, environment)
    }

    fn find(
        stem: &str,
        keys: &'static [&'static str],
        args: McpFileArgs,
        environment: &dyn Environment,
    ) -> Result<Self, Error> {
        let existing = |directory: &Path| existing(stem, directory);
        let usual = format!("{stem}.yaml");
        let own = environment.config_dir();
        let cwd = environment.cwd();
        let mut project = cwd.ancestors().filter(|directory| own.as_deref() != Some(directory));
        let project = project.find_map(existing);
        let (path, is_own) = match project {
            Some(path) if !args.user => (path, false),
            _ if args.project => (cwd.join(&usual), false),
            _ => {
                let own = own.ok_or_else(|| {
                    Error::usage("there is no configuration directory").with_hint("--project")
                })?;
                (existing(&own).unwrap_or_else(|| own.join(&usual)), true)
            }
        };
        let old =
            if path.exists() { read::read(&path, true).map_err(error)?.1 } else { String::new() };
        Ok(Self { path, is_own, keys, new: old.clone(), old })
    }

    /// Whether a server, or in a file of tools a tool, has this name.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        if self.keys != TOOLS {
            return editors::has_server(&self.path, &self.new, name).map_err(error);
        }
        let root = editors::parse_file(&self.path, &self.new).map_err(error)?;
        let mut lists = self.keys.iter().filter_map(|key| root.get(key)?.as_array());
        Ok(lists.any(|list| entry_edit::position(list, name).is_some()))
    }

    /// Adds or replaces a server (`Some`), or removes it.
    pub fn set(&mut self, name: &str, entry: Option<&Value>) -> Result<(), Error> {
        self.edit(|path, text, keys| entry_edit::edited(path, text, keys, name, entry))
    }

    /// Adds a tool to a file of tools.
    pub fn add_tool(&mut self, entry: &Value) -> Result<(), Error> {
        self.edit(|path, text, keys| entry_edit::appended(path, text, keys, entry))
    }

    /// Removes a server, or from a file of tools a tool.
    pub fn remove(&mut self, name: &str) -> Result<(), Error> {
        if self.keys != TOOLS {
            return self.set(name, None);
        }
        self.edit(|path, text, keys| entry_edit::without_item(path, text, keys, name))
    }

    /// Fails if an entry has this name already.
    pub fn require_new(&self, name: &str) -> Result<(), Error> {
        if !self.has(name)? {
            return Ok(());
        }
        let what = format!("'{name}' is already in {}", self.path.display());
        Err(Error::usage(what).with_hint("choose another name, or edit the file"))
    }

    /// What is to be written, beside what is there.
    pub fn hunks(&self) -> Vec<Hunk> {
        diff::hunks(&self.old, &self.new, 2)
    }

    pub fn difference(&self) -> Page {
        let path = self.path.display().to_string();
        difference::page(&self.hunks(), &path, &path)
    }

    /// Edits the text, which keeps its line ends.
    fn edit(
        &mut self,
        edit: impl FnOnce(&Path, &str, &[&str]) -> Result<String, Error>,
    ) -> Result<(), Error> {
        let old = self.new.replace("\r\n", "\n");
        let new = edit(&self.path, &old, self.keys)?;
        if new != old {
            let is_dos = self.new.split('\n').next().is_some_and(|line| line.ends_with('\r'));
            self.new = if is_dos { new.replace('\n', "\r\n") } else { new };
        }
        Ok(())
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
        let mode = FileMode::Kept(if self.is_own { private_file::FILE } else { 0o644 });
        atomic_file::replace(&self.path, self.new.as_bytes(), mode).map_err(failed)
    }
}

fn existing(stem: &str, directory: &Path) -> Option<PathBuf> {
    let names = ["yaml", "yml", "json"].iter();
    names
        .map(|suffix| directory.join(format!("{stem}.{suffix}")))
        .find(|path| path.is_file() || path.is_symlink())
}

pub fn error(diagnostic: Diagnostic) -> Error {
    Error::of_diagnostic(ErrorKind::Config, diagnostic)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn added(old: &str) -> Option<String> {
        let mut file = McpFile {
            path: "mcp.yaml".into(),
            is_own: true,
            keys: &SERVERS,
            old: old.to_owned(),
            new: old.to_owned(),
        };
        let entry = json!({ "command": "uvx", "args": ["x: y", "-1"] });
        file.set("new", Some(&entry)).ok()?;
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
            let mut file =
                McpFile { path: "mcp.yaml".into(), is_own: true, keys: &SERVERS, old, new };
            file.set("a", None).ok().map(|()| file.new)
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
