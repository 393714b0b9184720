//! Imports servers from the files of editors and agents into a file of servers.
//!
//! Reading a file of Codex, the one editor that writes TOML.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toml_edit::{DocumentMut, Item, Value as TomlValue};

use super::discover::FileRole;
use super::environment::Environment;
use super::node::SourceText;
use super::{entries, parse, read};
use crate::model::{Diagnostic, SourceLocation};
pub use entry::ImportedServer;

mod entry;
mod secret_values;

/// An editor or agent that stores servers in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Editor {
    pub name: &'static str,
    pub title: &'static str,
    /// The key that holds them.
    pub servers: &'static str,
    /// Its files: below the project (`./`), the home directory (`~/`), or the directory for program
    /// configuration (`*/`), which is `~/.config` or its macOS counterpart.
    files: &'static [&'static str],
}

const fn editor(
    name: &'static str,
    title: &'static str,
    servers: &'static str,
    files: &'static [&'static str],
) -> Editor {
    Editor { name, title, servers, files }
}

/// Where most keep their servers.
const USUAL: &str = "mcpServers";

pub const EDITORS: &[Editor] = &[
    editor(
        "claude",
        "Claude Code",
        USUAL,
        &[
            "./.mcp.json",
            "./.claude/settings.local.json",
            "./.claude/settings.json",
            "~/.claude.json",
            "~/.claude/settings.json",
        ],
    ),
    editor("claude-desktop", "Claude Desktop", USUAL, &["*/Claude/claude_desktop_config.json"]),
    editor("cursor", "Cursor", USUAL, &["./.cursor/mcp.json", "~/.cursor/mcp.json"]),
    editor("vscode", "VS Code", "servers", &["./.vscode/mcp.json", "*/Code/User/mcp.json"]),
    editor("windsurf", "Windsurf", USUAL, &["~/.codeium/windsurf/mcp_config.json"]),
    editor(
        "zed",
        "Zed",
        "context_servers",
        &["./.zed/settings.json", "*/zed/settings.json", "~/.config/zed/settings.json"],
    ),
    editor("codex", "Codex", "mcp_servers", &["./.codex/config.toml", "~/.codex/config.toml"]),
    editor("gemini", "Gemini CLI", USUAL, &["./.gemini/settings.json", "~/.gemini/settings.json"]),
    editor("antigravity", "Antigravity", USUAL, &["~/.gemini/antigravity/mcp_config.json"]),
    editor("qwen", "Qwen Code", USUAL, &["./.qwen/settings.json", "~/.qwen/settings.json"]),
    editor("copilot", "GitHub Copilot CLI", USUAL, &["~/.copilot/mcp-config.json"]),
    editor("kiro", "Kiro", USUAL, &["./.kiro/settings/mcp.json", "~/.kiro/settings/mcp.json"]),
    editor(
        "amazonq",
        "Amazon Q Developer",
        USUAL,
        &["./.amazonq/mcp.json", "~/.aws/amazonq/mcp.json"],
    ),
    editor("junie", "Junie", USUAL, &["./.junie/mcp/mcp.json", "~/.junie/mcp/mcp.json"]),
    editor(
        "cline",
        "Cline",
        USUAL,
        &["*/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"],
    ),
    editor(
        "roo",
        "Roo Code",
        USUAL,
        &[
            "./.roo/mcp.json",
            "*/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        ],
    ),
    editor("lmstudio", "LM Studio", USUAL, &["~/.lmstudio/mcp.json"]),
    editor(
        "opencode",
        "opencode",
        "mcp",
        &[
            "./opencode.json",
            "./opencode.jsonc",
            "*/opencode/opencode.json",
            "*/opencode/opencode.jsonc",
            "~/.config/opencode/opencode.json",
        ],
    ),
    editor("goose", "goose", "extensions", &["*/goose/config.yaml", "~/.config/goose/config.yaml"]),
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
        self.files.iter().filter_map(move |file| {
            let (base, path) = file.split_once('/')?;
            let directory = match base {
                "." => Some(&cwd),
                "~" => home.as_ref(),
                _ => config.as_ref(),
            };
            Some((base == ".", directory?.join(path)))
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
        let keys: BTreeSet<&str> = editors.iter().map(|editor| editor.servers).collect();
        let keys = Vec::from_iter(keys).join(", ");
        return Err(Diagnostic::warning(format!("{} contains no servers", path.display()))
            .with_hint(format!("servers are expected under {keys}"))
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
        return parse_toml(&source, text);
    }
    Ok(parse::parse(&source, text)?.to_json())
}

/// Whether an editor's entry starts `toolhost serve`.
pub fn is_toolhost(entry: &Value) -> bool {
    entry::convert("", "toolhost", entry).entry == Err(entry::TOOLHOST)
}

/// Whether a file of servers contains an entry with this name.
pub fn has_server(path: &Path, text: &str, name: &str) -> Result<bool, Diagnostic> {
    let root = parse::parse(&SourceText::new(path, text), text)?;
    let mut servers = entries::written(&root, FileRole::Servers);
    Ok(servers.any(|server| server.name().is_ok_and(|(existing, _)| existing == name)))
}

/// The file as JSON; dates become texts.
fn parse_toml(source: &Arc<SourceText>, text: &str) -> Result<Value, Diagnostic> {
    let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let count = |n: usize| u32::try_from(n + 1).unwrap_or(u32::MAX);
        Diagnostic::error(format!("invalid TOML: {}", error.message().replace('\n', ", ")))
            .with_location(SourceLocation {
                file: Arc::clone(&source.path),
                line: count(line),
                column: count(column),
                text: Arc::from(source.line(line).unwrap_or_default()),
            })
    })?;
    Ok(item(document.as_item()))
}

fn item(node: &Item) -> Value {
    match node {
        Item::None => Value::Null,
        Item::Value(node) => value(node),
        Item::Table(table) => object(table.iter()),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| object(table.iter())).collect(),
    }
}

fn object<'a>(pairs: impl Iterator<Item = (&'a str, &'a Item)>) -> Value {
    let pairs = pairs.map(|(key, node)| (key.to_owned(), item(node)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn value(node: &TomlValue) -> Value {
    match node {
        TomlValue::String(text) => text.value().as_str().into(),
        TomlValue::Integer(number) => (*number.value()).into(),
        TomlValue::Float(number) => (*number.value()).into(),
        TomlValue::Boolean(flag) => (*flag.value()).into(),
        TomlValue::Datetime(date) => date.value().to_string().into(),
        TomlValue::Array(items) => items.iter().map(value).collect(),
        TomlValue::InlineTable(table) => table
            .iter()
            .map(|(key, node)| (key.to_owned(), value(node)))
            .collect::<Map<_, _>>()
            .into(),
    }
}
