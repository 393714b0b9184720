//! The operations: their names in both vocabularies, descriptions, schemas and annotations.
//!
//! One operation has two sets of names: the short ones of components, and those of `LangChain`'s
//! `FileManagementToolkit`, which the documents' entries and the models trained on it use. Tools
//! and arguments are translated here; nothing else knows both.

use serde_json::{Value, json};
use strum::VariantArray as _;

use crate::model::{Annotations, JsonObject};
use crate::providers::arguments::{flag, object_schema, text};
use crate::providers::toolkit::ToolkitTool;

pub(super) const MAX_ENTRIES: u64 = 10_000;
/// How many there are when the call does not say.
pub(super) const DEFAULT_ENTRIES: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub(super) enum FileOperation {
    Read,
    List,
    Search,
    Info,
    Write,
    Append,
    Edit,
    Copy,
    Move,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// `read`, `list`, …, with `path`, `from` and `to`.
    Plain,
    /// `read_file`, `list_directory`, …, with `file_path`, `dir_path` and `source_path`.
    LangChain,
}

const fn tool(name: &'static str, aliases: &'static [&'static str]) -> ToolkitTool {
    ToolkitTool { name, aliases }
}

/// The tools of each operation, in their order: those that read stand first, so that they are a
/// slice of the whole.
static PLAIN: [ToolkitTool; 10] = [
    tool("read", &["read_file"]),
    tool("list", &["list_directory"]),
    tool("search", &["file_search", "file_system_search"]),
    tool("info", &["file_info", "stat"]),
    tool("write", &["write_file"]),
    tool("append", &["append_file"]),
    tool("edit", &["edit_file"]),
    tool("copy", &["copy_file"]),
    tool("move", &["move_file"]),
    tool("delete", &["file_delete", "delete_file"]),
];

static LANGCHAIN: [ToolkitTool; 7] = [
    tool("read_file", &["read"]),
    tool("list_directory", &["list"]),
    tool("file_search", &["file_system_search", "search"]),
    tool("write_file", &["write"]),
    tool("copy_file", &["copy"]),
    tool("move_file", &["move"]),
    tool("file_delete", &["delete_file", "delete"]),
];

impl Vocabulary {
    pub(super) fn tools(self) -> &'static [ToolkitTool] {
        match self {
            Self::Plain => &PLAIN,
            Self::LangChain => &LANGCHAIN,
        }
    }

    pub(super) fn read_only_tools(self) -> &'static [ToolkitTool] {
        let all = self.tools();
        let writes =
            |tool: &ToolkitTool| FileOperation::named(tool.name).is_some_and(FileOperation::writes);
        let end = all.iter().position(writes).unwrap_or(all.len());
        all.get(..end).unwrap_or(all)
    }
}

impl FileOperation {
    pub(super) fn named(word: &str) -> Option<Self> {
        let names = |tool: &&ToolkitTool| tool.name == word || tool.aliases.contains(&word);
        let at = PLAIN.iter().position(|tool| names(&tool))?;
        Self::VARIANTS.get(at).copied()
    }

    pub(super) fn name(self) -> &'static str {
        PLAIN[self as usize].name
    }

    pub(super) fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::List | Self::Search | Self::Info)
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Read => {
                "Read a text file or some of its lines. A long file is truncated, and the end of \
                 the result says how to continue"
            }
            Self::List => "List the entries of a directory, with types, sizes and dates",
            Self::Search => {
                "Find files by a pattern for their names, by text in them, or both. Binary files \
                 and .git directories are skipped, and links are not followed"
            }
            Self::Info => "The type, size, date and mode of a file or directory",
            Self::Write => {
                "Write a text file, replacing its content. Either all of it is written or nothing"
            }
            Self::Append => "Append text to a file, which is created if it does not exist",
            Self::Edit => {
                "Replace a piece of text in a file with another. It must occur in the file exactly \
                 once"
            }
            Self::Copy => "Copy a file; an existing one is kept unless overwrite is true",
            Self::Move => {
                "Move or rename a file or directory; an existing file is kept unless overwrite is \
                 true"
            }
            Self::Delete => "Delete a file or an empty directory",
        }
    }

    pub(super) fn touches(self, root: &str) -> String {
        match self {
            Self::Read => format!("reads files below {root}"),
            Self::List | Self::Info => format!("reads names, sizes and dates below {root}"),
            Self::Search => format!("reads names and files below {root}"),
            Self::Write => format!("creates and replaces files below {root}"),
            Self::Append | Self::Edit => format!("reads and changes files below {root}"),
            Self::Copy => format!("reads, creates and replaces files below {root}"),
            Self::Move => format!("moves and replaces files and directories below {root}"),
            Self::Delete => format!("deletes files and empty directories below {root}"),
        }
    }

    /// The truth about its effects. What replaces or deletes is destructive; adding to a file is
    /// not, and neither is safe to repeat when a second time does something else: `LangChain`'s
    /// `write_file` can add too.
    pub(super) fn annotations(self, vocabulary: Vocabulary) -> Annotations {
        let writes = self.writes();
        Annotations {
            title: None,
            read_only: Some(!writes),
            destructive: Some(writes && self != Self::Append),
            idempotent: Some(!writes || self == Self::Write && vocabulary == Vocabulary::Plain),
            open_world: Some(false),
        }
    }

    /// The arguments that have two names, the plain one first. Paths are those without a pattern.
    fn spellings(self) -> &'static [[&'static str; 2]] {
        match self {
            Self::List => &[["path", "dir_path"]],
            Self::Search => &[["path", "dir_path"], ["glob", "pattern"]],
            Self::Copy | Self::Move => &[["from", "source_path"], ["to", "destination_path"]],
            _ => &[["path", "file_path"]],
        }
    }

    pub(super) fn path_arguments(self) -> impl Iterator<Item = &'static str> {
        self.spellings().iter().map(|[plain, _]| *plain).filter(|plain| *plain != "glob")
    }

    /// The arguments of a call in either vocabulary, under their plain names.
    pub(super) fn plain_arguments(self, arguments: &JsonObject) -> JsonObject {
        let mut arguments = arguments.clone();
        for [plain, other] in self.spellings() {
            if let Some(value) = arguments.remove(*other) {
                arguments.entry(*plain).or_insert(value);
            }
        }
        arguments
    }

    pub(super) fn input_schema(self, vocabulary: Vocabulary) -> Value {
        let name = |plain: &'static str| {
            let names = self.spellings().iter().find(|[name, _]| *name == plain);
            names.filter(|_| vocabulary == Vocabulary::LangChain).map_or(plain, |names| names[1])
        };
        let path = name("path");
        let limit = json!({ "type": "integer", "minimum": 1, "maximum": MAX_ENTRIES,
            "default": DEFAULT_ENTRIES, "description": "Maximum number of entries to return" });
        let byte_offset = json!({ "type": "integer", "minimum": 0,
            "description": "The first byte to read, instead of a line" });
        match self {
            Self::Read => object(
                &[
                    (path, file("The file, relative to the directory of these tools")),
                    ("offset", count("The first line to read, from 1")),
                    ("limit", count("Maximum number of lines to read")),
                    ("byte_offset", byte_offset),
                    ("encoding", encoding("base64 returns the bytes of any file")),
                ],
                &[path],
            ),
            Self::List => object(
                &[
                    (path, directory_of("list")),
                    ("recursive", flag("Whether to list its subdirectories too, except .git")),
                    ("limit", limit),
                ],
                &[],
            ),
            Self::Search => object(
                &[
                    (
                        name("glob"),
                        json!({ "type": "string", "examples": ["*.md"], "description":
                            "A pattern such as *.md or src/**/*.rs. Without a slash it is matched \
                             against names, with one against paths" }),
                    ),
                    (path, directory_of("search")),
                    ("text", text("Text that a line of the file must contain")),
                    ("regex", flag("Whether the text is a regular expression")),
                    ("ignore_case", flag("Whether to ignore case")),
                    ("limit", limit),
                ],
                match vocabulary {
                    Vocabulary::Plain => &[],
                    Vocabulary::LangChain => &["pattern"],
                },
            ),
            Self::Info => object(&[(path, file("A file or directory"))], &[path]),
            Self::Write | Self::Append => {
                let mut properties = vec![
                    (path, file("The file; missing parent directories are created")),
                    ("text", text("The text to write")),
                    ("encoding", encoding("What the text is: plain text, or bytes in base64")),
                ];
                if vocabulary == Vocabulary::LangChain {
                    properties.push(("append", flag("Whether to append instead")));
                }
                object(&properties, &[path, "text"])
            }
            Self::Edit => object(
                &[
                    (path, file("The file")),
                    ("old", text("The text to replace, exactly, including line breaks")),
                    ("new", text("The text to replace it with")),
                ],
                &[path, "old", "new"],
            ),
            Self::Copy | Self::Move => {
                let (from, to) = (name("from"), name("to"));
                object(
                    &[
                        (from, file("The source path")),
                        (to, text("The new path, or a directory to put it into")),
                        ("overwrite", flag("Whether an existing file may be replaced")),
                    ],
                    &[from, to],
                )
            }
            Self::Delete => object(&[(path, file("A file or an empty directory"))], &[path]),
        }
    }

    pub(super) fn output_schema(self) -> Option<Value> {
        let entry = json!({
            "path": { "type": "string" },
            "type": { "enum": ["file", "directory", "link", "other"] },
            "size": { "type": "integer" },
            "modified": { "type": ["string", "null"], "format": "date-time" },
        });
        let required = json!(["path", "type", "size", "modified"]);
        Some(match self {
            Self::List => json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "entries": { "type": "array", "items":
                        { "type": "object", "properties": entry, "required": required } },
                    "truncated": { "type": "boolean" },
                },
                "required": ["path", "entries", "truncated"],
            }),
            Self::Search => json!({
                "type": "object",
                "properties": {
                    "matches": { "type": "array", "items": {
                        "type": "object",
                        "properties": {
                            "path": { "type": "string" },
                            "line": { "type": "integer" },
                            "text": { "type": "string" },
                        },
                        "required": ["path"],
                    } },
                    "truncated": { "type": "boolean" },
                },
                "required": ["matches", "truncated"],
            }),
            Self::Info => {
                let mut properties = entry;
                properties["mode"] = json!({ "type": "string" });
                properties["links"] = json!({ "type": "integer" });
                properties["target"] = json!({ "type": "string" });
                json!({ "type": "object", "properties": properties, "required": required })
            }
            _ => return None,
        })
    }
}

fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties = properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone()));
    object_schema(Value::Object(properties.collect()), required)
}

fn file(about: &str) -> Value {
    json!({ "type": "string", "description": about, "examples": ["notes.md"] })
}

fn encoding(about: &str) -> Value {
    json!({ "enum": ["text", "base64"], "default": "text", "description": about })
}

fn count(about: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "description": about })
}

fn directory_of(verb: &str) -> Value {
    json!({ "type": "string", "default": ".",
        "description": format!("The directory to {verb}; the default is the topmost one") })
}
