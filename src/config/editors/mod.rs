//! Imports servers from the files of editors and agents into a file of servers.

mod entry;
mod secret_values;
mod toml;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

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
    /// The key that holds them.
    pub servers: &'static str,
}

use EditorBase::{Configuration, Home, Project};

/// One that keeps its servers where most do.
const fn usual(
    name: &'static str,
    title: &'static str,
    files: &'static [(EditorBase, &'static str)],
) -> Editor {
    Editor { name, title, files, servers: "mcpServers" }
}

pub const EDITORS: &[Editor] = &[
    usual(
        "claude",
        "Claude Code",
        &[
            (Project, ".mcp.json"),
            (Project, ".claude/settings.local.json"),
            (Project, ".claude/settings.json"),
            (Home, ".claude.json"),
            (Home, ".claude/settings.json"),
        ],
    ),
    usual(
        "claude-desktop",
        "Claude Desktop",
        &[(Configuration, "Claude/claude_desktop_config.json")],
    ),
    usual("cursor", "Cursor", &[(Project, ".cursor/mcp.json"), (Home, ".cursor/mcp.json")]),
    Editor {
        servers: "servers",
        ..usual(
            "vscode",
            "VS Code",
            &[(Project, ".vscode/mcp.json"), (Configuration, "Code/User/mcp.json")],
        )
    },
    usual("windsurf", "Windsurf", &[(Home, ".codeium/windsurf/mcp_config.json")]),
    Editor {
        servers: "context_servers",
        ..usual(
            "zed",
            "Zed",
            &[
                (Project, ".zed/settings.json"),
                (Configuration, "zed/settings.json"),
                (Home, ".config/zed/settings.json"),
            ],
        )
    },
    Editor {
        servers: "mcp_servers",
        ..usual("codex", "Codex", &[(Project, ".codex/config.toml"), (Home, ".codex/config.toml")])
    },
    usual(
        "gemini",
        "Gemini CLI",
        &[(Project, ".gemini/settings.json"), (Home, ".gemini/settings.json")],
    ),
    usual("antigravity", "Antigravity", &[(Home, ".gemini/antigravity/mcp_config.json")]),
    usual("qwen", "Qwen Code", &[(Project, ".qwen/settings.json"), (Home, ".qwen/settings.json")]),
    usual("copilot", "GitHub Copilot CLI", &[(Home, ".copilot/mcp-config.json")]),
    usual(
        "kiro",
        "Kiro",
        &[(Project, ".kiro/settings/mcp.json"), (Home, ".kiro/settings/mcp.json")],
    ),
    usual(
        "amazonq",
        "Amazon Q Developer",
        &[(Project, ".amazonq/mcp.json"), (Home, ".aws/amazonq/mcp.json")],
    ),
    usual("junie", "Junie", &[(Project, ".junie/mcp/mcp.json"), (Home, ".junie/mcp/mcp.json")]),
    usual(
        "cline",
        "Cline",
        &[(
            Configuration,
            "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        )],
    ),
    usual(
        "roo",
        "Roo Code",
        &[
            (Project, ".roo/mcp.json"),
            (
                Configuration,
                "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ),
        ],
    ),
    usual("lmstudio", "LM Studio", &[(Home, ".lmstudio/mcp.json")]),
    Editor {
        servers: "mcp",
        ..usual(
            "opencode",
            "opencode",
            &[
                (Project, "opencode.json"),
                (Project, "opencode.jsonc"),
                (Configuration, "opencode/opencode.json"),
                (Configuration, "opencode/opencode.jsonc"),
                (Home, ".config/opencode/opencode.json"),
            ],
        )
    },
    Editor {
        servers: "extensions",
        ..usual(
            "goose",
            "goose",
            &[(Configuration, "goose/config.yaml"), (Home, ".config/goose/config.yaml")],
        )
    },
];

impl Editor {
    pub fn named(name: &str) -> Option<&'static Self> {
        EDITORS.iter().find(|editor| editor.name == name)
    }

    /// Its existing files: those of the project in `cwd` first.
    pub fn files(&self, environment: &dyn Environment) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for (_, path) in self.places(environment) {
            if path.is_file() && !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }

    fn places(&self, environment: &dyn Environment) -> impl Iterator<Item = (bool, PathBuf)> {
        let (home, config) = (environment.home(), environment.config_dir());
        let config = config.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        let cwd = environment.cwd();
        self.files.iter().filter_map(move |(base, path)| {
            let directory = match base {
                Project => Some(&cwd),
                Home => home.as_ref(),
                Configuration => config.as_ref(),
            };
            Some((*base == Project, directory?.join(path)))
        })
    }

    /// The file in which its servers are declared for the project in the working directory, or for
    /// the user: the one that exists, or else the one whose directory does.
    pub fn own_file(&self, project: bool, environment: &dyn Environment) -> Option<PathBuf> {
        let places = self.places(environment).filter(|(of_project, _)| *of_project == project);
        let mut places: Vec<PathBuf> = places.map(|(_, path)| path).collect();
        let first = places.first()?.clone();
        places.retain(|path| path.file_stem() == first.file_stem());
        let existing = places.iter().find(|path| path.exists());
        let beside = || places.iter().find(|path| path.parent().is_some_and(Path::is_dir));
        Some(existing.or_else(beside).unwrap_or(&first).clone())
    }

    /// Its entry for `toolhost serve`, in its own words.
    pub fn entry(&self, program: &str, arguments: &[String]) -> Value {
        let all: Vec<&str> =
            std::iter::once(program).chain(arguments.iter().map(String::as_str)).collect();
        match self.name {
            "opencode" => json!({ "type": "local", "command": all, "enabled": true }),
            "goose" => json!({ "type": "stdio", "name": "toolhost", "cmd": program,
                               "args": arguments, "enabled": true, "timeout": 300 }),
            "copilot" => json!({ "type": "local", "command": program, "args": arguments,
                                 "tools": ["*"] }),
            "vscode" | "claude" => {
                json!({ "type": "stdio", "command": program, "args": arguments })
            }
            "zed" => json!({ "source": "custom", "command": program, "args": arguments,
                             "env": {} }),
            _ => json!({ "command": program, "args": arguments }),
        }
    }
}

/// The servers of an editor's file, as entries of a file of servers. Without an `editor` the structure
/// of the file determines it; one without servers is a warning. For Claude Code, the servers that it
/// stores for the directory `cwd` are included.
pub fn read_file(
    path: &Path,
    editor: Option<&Editor>,
    cwd: &Path,
) -> Result<Vec<ImportedServer>, Diagnostic> {
    let root = parse_file(path, &read::read(path, true)?.1)?;
    let editors = editor.map_or(EDITORS, std::slice::from_ref);
    let matching =
        editors.iter().find_map(|editor| Some((editor, root.get(editor.servers)?.as_object()?)));
    let Some((editor, servers)) = matching else {
        let keys: Vec<&str> = editors.iter().map(|editor| editor.servers).collect();
        return Err(Diagnostic::warning(format!("{} contains no servers", path.display()))
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

/// The content of an editor's file.
pub fn parse_file(path: &Path, text: &str) -> Result<Value, Diagnostic> {
    let source = SourceText::new(path, text);
    if path.extension().is_some_and(|extension| extension == "toml") {
        return toml::parse(&source, text);
    }
    Ok(parse::parse(&source, text)?.root.to_json())
}

fn unique(mut values: Vec<&str>) -> Vec<&str> {
    values.sort_unstable();
    values.dedup();
    values
}

/// Whether an editor's entry starts `toolhost serve`.
pub fn is_toolhost(entry: &Value) -> bool {
    entry::convert("", "toolhost", entry).entry == Err(entry::TOOLHOST)
}

/// Whether a file of servers contains an entry with this name.
pub fn has_server(path: &Path, text: &str, name: &str) -> Result<bool, Diagnostic> {
    let root = parse::parse(&SourceText::new(path, text), text)?.root;
    Ok(super::entries::servers_as_written(&root).iter().any(|(existing, _, _)| existing == name))
}
