//! Converts one entry of an editor to an entry of a file of servers.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::secret_values::SecretValues;
use crate::model::safe_name;
use crate::util::text::is_one_of;

#[derive(Debug, Clone, PartialEq)]
pub struct ImportedServer {
    /// Its name here: that in the editor's file, with characters replaced that are not allowed in
    /// names.
    pub name: String,
    pub entry: Result<Value, &'static str>,
    /// Variables that must be set, because the file contained a secret or the editor asks for it.
    pub variables: Vec<String>,
    /// Other keys of the editor's entry, which are not imported.
    pub dropped: Vec<String>,
}

/// Keys that do not describe the server itself.
const OF_THE_EDITOR: &str = "alwaysAllow autoApprove available_tools bundled display_name gallery \
    id name settings source trust version";

/// Why an entry for `toolhost serve` is not imported.
pub(super) const TOOLHOST: &str = "it is toolhost itself";

pub(super) fn convert(editor: &str, name: &str, entry: &Value) -> ImportedServer {
    let name = safe_name(name).replace(|c: char| !c.is_ascii(), "-");
    let mut reader = EntryReader { editor, out: Map::new(), dropped: Vec::new() };
    let mut secrets = SecretValues::new(&name);
    let entry = match entry.as_object() {
        Some(entry) => reader.read(entry).map(|()| {
            secrets.replace(&mut reader.out);
            Value::Object(std::mem::take(&mut reader.out))
        }),
        None => Err("it is not a mapping"),
    };
    ImportedServer { name, entry, variables: secrets.variables, dropped: reader.dropped }
}

struct EntryReader<'a> {
    editor: &'a str,
    out: Map<String, Value>,
    dropped: Vec<String>,
}

impl EntryReader<'_> {
    fn read(&mut self, entry: &Map<String, Value>) -> Result<(), &'static str> {
        // Zed's oldest format puts the program into a mapping.
        if let Some(Value::Object(program)) = entry.get("command") {
            let mut flat = entry.clone();
            flat.remove("command");
            for (key, value) in program {
                flat.insert(if key == "path" { "command" } else { key }.to_owned(), value.clone());
            }
            return self.read(&flat);
        }
        for (key, value) in entry {
            self.key(key, value)?;
        }
        match (self.out.contains_key("command"), self.out.contains_key("url")) {
            (false, false) => Err("it has neither a command nor a URL"),
            (true, true) => Err("it has both a command and a URL"),
            (true, false) if self.starts_toolhost() => Err(TOOLHOST),
            _ => Ok(()),
        }
    }

    fn starts_toolhost(&self) -> bool {
        let program = self.out.get("command").and_then(Value::as_str).map(Path::new);
        let mut arguments = self.out.get("args").and_then(Value::as_array).into_iter().flatten();
        program.and_then(Path::file_stem).is_some_and(|program| program == "toolhost")
            && arguments.any(|argument| argument == "serve")
    }

    fn key(&mut self, key: &str, value: &Value) -> Result<(), &'static str> {
        match key {
            "command" | "cmd" => self.command(value),
            "args" | "description" | "cwd" | "envFile" | "env_keys" => self.put(key, value),
            "env" | "environment" | "envs" => self.put("env", &self.references(value)),
            "env_vars" => self.put("env_keys", value),
            "url" | "baseUrl" | "serverUrl" | "httpUrl" | "uri" => {
                self.put("url", &self.references(value));
            }
            "headers" | "http_headers" => self.put("headers", &self.references(value)),
            "env_http_headers" => {
                let pairs = value.as_object().into_iter().flatten();
                for (header, variable) in pairs {
                    let reference = format!("${{{}}}", variable.as_str().unwrap_or_default());
                    self.header(header, &reference);
                }
            }
            "bearer_token_env_var" => {
                self.put("auth", &json!({ "type": "bearer", "token_env_var": value }));
            }
            "type" | "transport" => match value.as_str() {
                Some("sse") => self.put("transport", &"sse".into()),
                Some("builtin" | "platform" | "frontend" | "inline_python") => {
                    return Err("it is part of the editor");
                }
                // The rest follows from the command or the URL.
                _ => {}
            },
            "dev" => self.put("watch", &value["watch"]),
            "disabled" => self.switch_off(value == &Value::Bool(true)),
            "enabled" => self.switch_off(value == &Value::Bool(false)),
            "timeout" | "tool_timeout_sec" => self.time("timeout", key, value),
            "startup_timeout_sec" | "startup_timeout_ms" => self.time("start_timeout", key, value),
            "includeTools" | "allowedTools" | "enabled_tools" => self.put("include", value),
            "excludeTools" | "disabledTools" | "disabled_tools" => self.put("exclude", value),
            key if is_one_of(key, OF_THE_EDITOR) => {}
            key => self.dropped.push(key.to_owned()),
        }
        Ok(())
    }

    fn put(&mut self, key: &str, value: &Value) {
        let is_empty = match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(pairs) => pairs.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        if !is_empty {
            self.out.insert(key.to_owned(), value.clone());
        }
    }

    /// A program, or a list of it and its arguments.
    fn command(&mut self, value: &Value) {
        match value {
            Value::Array(words) => {
                if let Some((command, args)) = words.split_first() {
                    self.put("command", command);
                    self.put("args", &Value::Array(args.to_vec()));
                }
            }
            other => self.put("command", other),
        }
    }

    fn header(&mut self, name: &str, value: &str) {
        let headers = self.out.entry("headers").or_insert_with(|| json!({}));
        if let Some(headers) = headers.as_object_mut() {
            headers.insert(name.to_owned(), value.into());
        }
    }

    fn switch_off(&mut self, is_off: bool) {
        if is_off {
            self.out.insert("disabled".to_owned(), true.into());
        }
    }

    fn time(&mut self, name: &str, key: &str, value: &Value) {
        let Some(number) = value.as_f64().filter(|number| *number > 0.0) else { return };
        let in_seconds = key.ends_with("_sec") || (key == "timeout" && self.editor == "goose");
        let unit = if in_seconds { "s" } else { "ms" };
        self.out.insert(name.to_owned(), format!("{number}{unit}").into());
    }

    fn references(&self, value: &Value) -> Value {
        match value {
            Value::Object(pairs) => {
                let pair = |(key, value): (&String, &Value)| (key.clone(), self.references(value));
                Value::Object(pairs.iter().map(pair).collect())
            }
            Value::String(text) => Value::String(match self.editor {
                "opencode" => text.replace("{env:", "${env:").replace("{file:", "${file:"),
                "gemini" | "goose" => bare_variable(text),
                _ => text.clone(),
            }),
            other => other.clone(),
        }
    }
}

/// `$NAME`, and `${ NAME }`, as `${NAME}`.
fn bare_variable(text: &str) -> String {
    let is_name = |name: &str| crate::config::references::is_name(name);
    if let Some(name) = text.strip_prefix('$').filter(|name| is_name(name)) {
        return format!("${{{name}}}");
    }
    text.replace("${ ", "${").replace(" }", "}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn converted(editor: &str, entry: &Value) -> Value {
        convert(editor, "s", entry).entry.unwrap()
    }

    #[test]
    fn each_editors_words_become_ours() {
        for (editor, theirs, ours) in [
            (
                "claude",
                json!({ "type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {} }),
                json!({ "command": "npx", "args": ["-y", "x"] }),
            ),
            (
                "zed",
                json!({ "source": "custom", "command": { "path": "x", "args": ["a"], "env": { "B": "c" } } }),
                json!({ "command": "x", "args": ["a"], "env": { "B": "c" } }),
            ),
            (
                "codex",
                json!({ "url": "https://x.test/mcp", "bearer_token_env_var": "T",
                        "env_http_headers": { "X-Team": "TEAM" }, "startup_timeout_sec": 20 }),
                json!({ "url": "https://x.test/mcp",
                        "auth": { "type": "bearer", "token_env_var": "T" },
                        "headers": { "X-Team": "${TEAM}" }, "start_timeout": "20s" }),
            ),
            (
                "gemini",
                json!({ "httpUrl": "https://x.test", "timeout": 5000, "trust": true,
                        "headers": { "A": "$TEAM" }, "excludeTools": ["rm"] }),
                json!({ "url": "https://x.test", "timeout": "5000ms",
                        "headers": { "A": "${TEAM}" }, "exclude": ["rm"] }),
            ),
            (
                "opencode",
                json!({ "type": "local", "command": ["bun", "x", "y"], "enabled": false,
                        "environment": { "A": "{env:B}" } }),
                json!({ "command": "bun", "args": ["x", "y"], "disabled": true,
                        "env": { "A": "${env:B}" } }),
            ),
            (
                "goose",
                json!({ "type": "stdio", "name": "G", "cmd": "uvx", "args": ["m"], "timeout": 300,
                        "envs": { "A": "b" }, "env_keys": ["K"] }),
                json!({ "command": "uvx", "args": ["m"], "timeout": "300s", "env": { "A": "b" },
                        "env_keys": ["K"] }),
            ),
            (
                "windsurf",
                json!({ "serverUrl": "https://x.test/sse", "type": "sse" }),
                json!({ "url": "https://x.test/sse", "transport": "sse" }),
            ),
        ] {
            assert_eq!(converted(editor, &theirs), ours, "{editor}");
        }
    }

    #[test]
    fn what_cannot_be_taken_over_says_why_and_what_is_left_out_is_named() {
        let builtin = convert("goose", "developer", &json!({ "type": "builtin", "enabled": true }));
        assert_eq!(builtin.entry, Err("it is part of the editor"));
        assert!(convert("zed", "s", &json!({ "settings": {} })).entry.is_err());
        let odd = convert("vscode", "My Server", &json!({ "command": "x", "watch": "**" }));
        assert_eq!((odd.name.as_str(), odd.dropped), ("My-Server", vec!["watch".to_owned()]));
    }
}
