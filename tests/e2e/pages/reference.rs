//! The reference is generated: commands from their help, configuration from its schemas.

use std::fmt::Write as _;

use serde_json::Value;

use super::{is_blessing, root};
use crate::support::Sandbox;

const COMMANDS: &str = "# Commands

Every command with its options, as `toolhost COMMAND --help` prints them.
";

/// The commands that a help page lists.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| line.starts_with("  "));
    names
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// The help of a command and of those below it.
fn describe(room: &Sandbox, words: &[&str], page: &mut String) {
    let help = room.toolhost(words.iter().copied().chain(["--help"])).check().out();
    if !words.is_empty() {
        let depth = "#".repeat(words.len() + 1);
        write!(page, "\n{depth} toolhost {}\n", words.join(" ")).unwrap();
    }
    let shown = help.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    write!(page, "\n```text\n{shown}\n```\n").unwrap();
    for name in commands(&help) {
        describe(room, &[words, &[name.as_str()]].concat(), page);
    }
}

/// What a value may be, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        let name = name.trim_end_matches("Keys").to_lowercase();
        return format!("[{name}](#{name})");
    }
    if let Some(values) = schema["enum"].as_array() {
        let words = values.iter().map(|value| format!("`{}`", value.to_string().trim_matches('"')));
        return words.collect::<Vec<_>>().join(", ");
    }
    if let Some(any) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
    {
        let pattern =
            |one: &Value| one["pattern"].as_str().is_some_and(|text| text.contains("min"));
        if any.iter().any(pattern) {
            return "duration".to_owned();
        }
        let values = any.iter().filter(|one| one["type"] != "null");
        return values.map(kind).collect::<Vec<_>>().join(" or ");
    }
    let name = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.collect::<Vec<_>>().join(" or ")
        }
        _ => return "anything".to_owned(),
    };
    match (name.as_str(), &schema["items"], &schema["additionalProperties"]) {
        ("array", items @ Value::Object(_), _) => format!("list of {}", kind(items)),
        ("object", _, values @ Value::Object(_)) => format!("map of {}", kind(values)),
        _ => name,
    }
}

/// A table of the keys of an object; other spellings stand beside the key they mean.
fn table(properties: &serde_json::Map<String, Value>, page: &mut String) {
    const OTHER: &str = "Another spelling of '";
    let text = |schema: &Value| schema["description"].as_str().unwrap_or_default().to_owned();
    page.push_str("\n| key | value | meaning |\n|---|---|---|\n");
    for (key, schema) in properties {
        let meaning = text(schema);
        if meaning.starts_with(OTHER) {
            continue;
        }
        let means_this = |schema: &Value| text(schema).starts_with(&format!("{OTHER}{key}'"));
        let spellings = properties.iter().filter(|(_, schema)| means_this(schema));
        let names = std::iter::once(key).chain(spellings.map(|(name, _)| name));
        let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let (kind, meaning) = (kind(schema).replace('|', "\\|"), meaning.replace('|', "\\|"));
        writeln!(page, "| {names} | {kind} | {meaning} |").unwrap();
    }
}

/// All keys of a file, from its schema.
fn keys(room: &Sandbox, file: &str) -> String {
    let schema = room.toolhost(["config", "schema", file]).check().json();
    let mut page = format!(
        "# {file}.yaml, key by key\n\n\
         Generated from `toolhost config schema {file}`, which an editor can check your file against.\n\n\
         ## The file\n"
    );
    table(schema["properties"].as_object().unwrap(), &mut page);
    for (name, part) in schema["$defs"].as_object().unwrap() {
        let name = name.trim_end_matches("Keys").to_lowercase();
        let Some(properties) = part["properties"].as_object() else {
            writeln!(page, "\n## {name}\n\n{}", kind(part)).unwrap();
            continue;
        };
        writeln!(page, "\n## {name}").unwrap();
        table(properties, &mut page);
    }
    page
}

#[track_caller]
fn compare(path: &str, text: &str) {
    let kept = std::fs::read_to_string(root().join(path)).unwrap_or_default();
    if kept != text && is_blessing() {
        std::fs::write(root().join(path), text).unwrap();
    }
    let differs = text.lines().zip(kept.lines()).find(|(new, old)| new != old);
    assert!(kept == text, "{path} is not what the program says; the first difference: {differs:?}");
}

#[test]
fn the_commands_are_what_their_help_says() {
    let mut page = COMMANDS.to_owned();
    describe(&Sandbox::new(), &[], &mut page);
    assert!(page.matches("\n## toolhost ").count() > 15, "{page}");
    compare("docs/reference/commands.md", &page);
}

#[test]
fn the_keys_of_the_files_are_what_their_schemas_say() {
    let room = Sandbox::new();
    for (file, path) in [
        ("tools", "tools-yaml"),
        ("mcp", "mcp-yaml"),
        ("console", "console-yaml"),
        ("tests", "tests-yaml"),
    ] {
        compare(&format!("docs/reference/{path}.md"), &keys(&room, file));
    }
}
