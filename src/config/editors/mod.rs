//! Imports servers from the files of editors and agents into a file of servers.

mod entry;
mod secret_values;
mod toml;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::environment::Environment;
use super::node::SourceText;
use super::{parse, read};
use crate::model::Diagnostic;

pub use entry::ImportedServer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EditorBase {
    Project,
    Home,
    /// The directory for program configuration: `~/.config`, or its macOS counterpart.
    Configuration,
}

/// An editor or agent that stores servers in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Editor {
    pub name: &'static str,
    pub title: &'static str,
    files: &'static [(EditorBase, &'static str)],
    servers: &'static [&'static str],
}

use EditorBase::{Configuration, Home, Project};

pub const EDITORS: &[Editor] = &[
    Editor {
        name: "claude",
        title: "Claude Code",
        files: &[(Project, ".mcp.json"), (Home, ".claude.json")],
        servers: &["mcpServers"],
    },
    Editor {
        name: "claude-desktop",
        title: "Claude Desktop",
        files: &[(Configuration, "Claude/claude_desktop_config.json")],
        servers: &["mcpServers"],
    },
    Editor {
        name: "cursor",
        title: "Cursor",
        files: &[(Project, ".cursor/mcp.json"), (Home, ".cursor/mcp.json")],
        servers: &["mcpServers"],
    },
    Editor {
        name: "vscode",
        title: "VS Code",
        files: &[(Project, ".vscode/mcp.json"), (Configuration, "Code/User/mcp.json")],
        servers: &["servers"],
    },
    Editor {
        name: "windsurf",
        title: "Windsurf",
        files: &[(Home, ".codeium/windsurf/mcp_config.json")],
        servers: &["mcpServers"],
    },
    Editor {
        name: "zed",
        title: "Zed",
        files: &[
            (Project, ".zed/settings.json"),
            (Configuration, "zed/settings.json"),
            (Home, ".config/zed/settings.json"),
        ],
        servers: &["context_servers"],
    },
    Editor {
        name: "codex",
        title: "Codex",
        files: &[(Project, ".codex/config.toml"), (Home, ".codex/config.toml")],
        servers: &["mcp_servers"],
    },
    Editor {
        name: "gemini",
        title: "Gemini CLI",
        files: &[(Project, ".gemini/settings.json"), (Home, ".gemini/settings.json")],
        servers: &["mcpServers"],
    },
    Editor {
        name: "opencode",
        title: "opencode",
        files: &[
            (Project, "opencode.json"),
            (Project, "opencode.jsonc"),
            (Configuration, "opencode/opencode.json"),
            (Configuration, "opencode/opencode.jsonc"),
            (Home, ".config/opencode/opencode.json"),
        ],
        servers: &["mcp"],
    },
    Editor {
        name: "goose",
        title: "goose",
        files: &[(Configuration, "goose/config.yaml"), (Home, ".config/goose/config.yaml")],
        servers: &["extensions"],
    },
];

impl Editor {
    pub fn named(name: &str) -> Option<&'static Self> {
        EDITORS.iter().find(|editor| editor.name == name)
    }

    /// Its existing files: those of the project in `cwd` first.
    pub fn files(&self, environment: &dyn Environment) -> Vec<PathBuf> {
        let (home, config) = (environment.home(), environment.config_dir());
        let mut paths: Vec<PathBuf> = Vec::new();
        for (base, path) in self.files {
            let base = match base {
                Project => Some(environment.cwd()),
                Home => home.clone(),
                Configuration => config.as_deref().and_then(Path::parent).map(Path::to_path_buf),
            };
            let path = base.map(|base| base.join(path));
            paths.extend(path.filter(|path| path.is_file() && !paths.contains(path)));
        }
        paths
    }
}

/// The servers of an editor's file, as entries of a file of servers. Without an `editor` the
/// structure of the file determines it. For Claude Code, the servers that it stores for the
/// directory `cwd` are included.
pub fn read_file(
    path: &Path,
    editor: Option<&Editor>,
    cwd: &Path,
) -> Result<Vec<ImportedServer>, Diagnostic> {
    let (source, text) = read::read(path, true)?;
    let root = if path.extension().is_some_and(|extension| extension == "toml") {
        toml::parse(&source, &text)?
    } else {
        parse::parse(&source, &text)?.root.to_json()
    };
    let editors = editor.map_or(EDITORS, std::slice::from_ref);
    let matching = editors.iter().find_map(|editor| {
        let servers = editor.servers.iter().try_fold(&root, |node, key| node.get(key))?;
        Some((editor, servers.as_object()?))
    });
    let Some((editor, servers)) = matching else {
        let keys: Vec<&str> = editors.iter().flat_map(|editor| editor.servers).copied().collect();
        return Err(Diagnostic::error(format!("{} contains no servers", path.display()))
            .with_hint(format!("servers are expected under {}", unique(keys).join(", ")))
            .with_location(read::file_location(path)));
    };
    let own = root.get("projects").and_then(|all| all.get(&*cwd.to_string_lossy()));
    let own = own.and_then(|project| project.get("mcpServers")).and_then(Value::as_object);
    let none = Map::new();
    let all = own.unwrap_or(&none).iter().chain(servers);
    let mut imported: Vec<ImportedServer> = Vec::new();
    for (name, entry) in all {
        let server = entry::convert(editor.name, name, entry);
        if !imported.iter().any(|existing| existing.name == server.name) {
            imported.push(server);
        }
    }
    Ok(imported)
}

fn unique(mut values: Vec<&str>) -> Vec<&str> {
    values.sort_unstable();
    values.dedup();
    values
}

/// Whether a file of servers contains an entry with this name.
pub fn has_server(path: &Path, text: &str, name: &str) -> Result<bool, Diagnostic> {
    let root = parse::parse(&SourceText::new(path, text), text)?.root;
    Ok(super::entries::servers_as_written(&root).iter().any(|(existing, _, _)| existing == name))
}
