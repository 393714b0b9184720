//! Changing one entry of a configuration file (YAML, JSON with comments, TOML) as a person would:
//! the rest of the text stays, and a layout that does not allow it is refused.

mod json;
mod toml;
mod yaml;

use std::path::Path;

use serde_json::{Map, Value, json};

use super::mcp_file;
use super::output::yaml as yaml_output;
use crate::config::node::{ConfigNode, SourceText, TextPosition};
use crate::config::{editors, parse};
use crate::model::Error;

/// The text with an entry added or replaced (`Some`) or removed. Servers are under the first of
/// `keys` that the file has.
pub fn edited(
    path: &Path,
    text: &str,
    keys: &[&str],
    name: &str,
    entry: Option<&Value>,
) -> Result<String, Error> {
    let before = editors::parse_file(path, text).map_err(mcp_file::error)?;
    let expected = with_entry(before, keys, name, entry);
    let tree = || parse::parse(&SourceText::new(path, text), text).map_err(mcp_file::error);
    let new = match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => Some(toml::edited(text, keys[0], name, entry)),
        _ if parse::is_json(path, text) => json::edited(text, &tree()?, keys, name, entry),
        _ => yaml_edited(text, &tree()?, keys, name, entry),
    };
    let hint = match entry {
        Some(entry) => format!("paste this under its servers: {}", json!({ name: entry })),
        None => "remove it with an editor".to_owned(),
    };
    verified(path, new, |after| with_map(after, keys) == expected, hint)
}

/// The new text, if it says what it should.
fn verified(
    path: &Path,
    new: Option<String>,
    is_expected: impl Fn(Value) -> bool,
    hint: String,
) -> Result<String, Error> {
    new.filter(|new| editors::parse_file(path, new).is_ok_and(&is_expected)).ok_or_else(|| {
        let what = format!("cannot change {}: its layout is not supported", path.display());
        Error::config(what).with_hint(hint)
    })
}

/// Where a key or value begins, in lines and columns from 0.
fn place(position: TextPosition) -> Option<(usize, usize)> {
    let from_zero = |number: u32| usize::try_from(number).ok()?.checked_sub(1);
    Some((from_zero(position.line)?, from_zero(position.column)?))
}

/// The text with an entry behind those of a list.
pub fn appended(path: &Path, text: &str, keys: &[&str], entry: &Value) -> Result<String, Error> {
    let hint = format!("paste this under its {}: {}", keys[0], json!([entry]));
    let document = yaml_output::document(&json!([entry]));
    let add = |items: &mut Vec<Value>| items.push(entry.clone());
    let new = |root: &ConfigNode| yaml::inserted(text, root, keys, &document);
    with_list(path, text, keys, new, add, hint)
}

/// The text without the entry of a list that has this name.
pub fn without_item(path: &Path, text: &str, keys: &[&str], name: &str) -> Result<String, Error> {
    let remove = |items: &mut Vec<Value>| {
        if let Some(at) = position(items, name) {
            items.remove(at);
        }
    };
    let new = |root: &ConfigNode| yaml::without_item(text, root, keys, name);
    with_list(path, text, keys, new, remove, "remove it with an editor".to_owned())
}

/// Where an entry is in a list.
pub fn position(items: &[Value], name: &str) -> Option<usize> {
    items.iter().position(|item| item["name"] == name || item["tool_name"] == name)
}

/// The `new` text, if its first list of entries differs as `change` says, and nothing else.
fn with_list(
    path: &Path,
    text: &str,
    keys: &[&str],
    new: impl FnOnce(&ConfigNode) -> Option<String>,
    change: impl FnOnce(&mut Vec<Value>),
    hint: String,
) -> Result<String, Error> {
    let root = parse::parse(&SourceText::new(path, text), text).map_err(mcp_file::error)?;
    let tree = |value: Value| {
        let mut tree = value.as_object().cloned().unwrap_or_default();
        let key = keys.iter().find(|key| tree.contains_key(**key)).unwrap_or(&keys[0]);
        let items = tree.get(*key).and_then(Value::as_array).cloned().unwrap_or_default();
        tree.shift_remove(*key);
        (tree, items)
    };
    let mut expected = tree(root.to_json());
    change(&mut expected.1);
    verified(path, new(&root), |after| tree(after) == expected, hint)
}

fn yaml_edited(
    text: &str,
    root: &ConfigNode,
    keys: &[&str],
    name: &str,
    entry: Option<&Value>,
) -> Option<String> {
    let servers = keys.iter().find_map(|key| root.get(key));
    let is_there = servers.is_some_and(|servers| servers.get(name).is_some());
    let rest = if is_there { yaml::removed(text, root, keys, name)? } else { text.to_owned() };
    let Some(entry) = entry else { return Some(rest) };
    let root = parse::parse(&SourceText::new("x.yaml", &rest), &rest).ok()?;
    yaml::inserted(&rest, &root, keys, &yaml_output::document(&json!({ name: entry })))
}

/// The configuration with its servers in a map, even where the file has none.
fn with_map(mut tree: Value, keys: &[&str]) -> Value {
    if tree.is_null() {
        tree = json!({});
    }
    if let Some(root) = tree.as_object_mut() {
        let key = keys.iter().find(|key| root.contains_key(**key)).unwrap_or(&keys[0]);
        let servers = root.entry(*key).or_insert_with(|| json!({}));
        if servers.is_null() {
            *servers = json!({});
        }
    }
    tree
}

fn with_entry(tree: Value, keys: &[&str], name: &str, entry: Option<&Value>) -> Value {
    let mut tree = with_map(tree, keys);
    let key = keys.iter().find(|key| tree.get(**key).is_some()).unwrap_or(&keys[0]);
    if let Some(servers) = tree.get_mut(*key).and_then(Value::as_object_mut) {
        match entry {
            Some(entry) => drop(servers.insert(name.to_owned(), entry.clone())),
            None => drop(Map::shift_remove(servers, name)),
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, key: &str, old: &str, new: &str) {
        let entry = json!({ "command": "toolhost", "args": ["serve"] });
        let edit = |text: &str, entry| edited(Path::new(file), text, &[key], "toolhost", entry);
        let text = edit(old, Some(&entry)).unwrap();
        assert_eq!(text, new);
        assert_eq!(edit(&text, Some(&entry)).unwrap(), new, "a second time changes nothing");
        let other = json!({ "command": "other" });
        let other = edit(&text, Some(&other)).unwrap();
        assert!(other.contains("other") && !other.contains("\"serve\""), "{other}");
        let left = edit(&text, None).unwrap();
        let without = |text: &str| {
            let tree = editors::parse_file(Path::new(file), text).unwrap();
            with_entry(tree, &[key], "toolhost", None)
        };
        assert_eq!(without(&left), without(old), "{left}");
        if old.contains(key) {
            assert_eq!(left, old);
        }
    }

    #[test]
    fn json_keeps_its_comments_its_order_and_its_indentation() {
        let entry = "\"toolhost\": {\n      \"command\": \"toolhost\",\n      \"args\": [\n        \"serve\"\n      ]\n    }";
        let key = "mcpServers";
        check("a.json", key, "", &format!("{{\n  \"{key}\": {{\n    {entry}\n  }}\n}}\n"));
        let around = |inside: &str| {
            format!(
                "// mine\n{{\n  \"z\": 1, // why\n  \"{key}\": {{{inside}}},\n  \"a\": [1,]\n}}\n"
            )
        };
        let other = " // these\n    // of b\n    \"b\": { \"command\": \"x\" }, // last\n  ";
        let new = around(&other.replacen("these\n", &format!("these\n    {entry},\n"), 1));
        check("a.jsonc", key, &around(other), &new);
        check("a.json", key, &around(""), &around(&format!("\n    {entry}\n  ")));
        let tabs = "{\n\t\"mcpServers\": {\n\t\t\"b\": {}\n\t}\n}";
        let new = entry
            .replace("      ", "\t\t\t")
            .replace("\t\t\t  ", "\t\t\t\t")
            .replace("\n    }", "\n\t\t}");
        let new = tabs.replace("\"b\"", &format!("{new},\n\t\t\"b\""));
        check("a.json", key, tabs, &new);
        let entry = r#""toolhost":{"command":"toolhost","args":["serve"]}"#;
        check(
            "a.json",
            key,
            r#"{"mcpServers":{"b":{}}}"#,
            &format!(r#"{{"mcpServers":{{{entry},"b":{{}}}}}}"#),
        );
        check(
            "a.json",
            key,
            "\u{feff}{\"a\":1}",
            &format!("\u{feff}{{\"mcpServers\":{{{entry}}},\"a\":1}}"),
        );
    }

    #[test]
    fn a_comment_does_not_end_where_it_begins() {
        let old = "{ /*/ x, \"b\" */ \"mcpServers\": { \"a\": {} /*/ , */ } }";
        let left = edited(Path::new("a.json"), old, &["mcpServers"], "a", None).unwrap();
        assert_eq!(left, "{ /*/ x, \"b\" */ \"mcpServers\": {  /*/ , */ } }");
    }

    #[test]
    fn toml_gets_a_table_at_its_end() {
        let table = "[mcp_servers.toolhost]\ncommand = \"toolhost\"\nargs = [\"serve\"]\n";
        let key = "mcp_servers";
        check("config.toml", key, "", table);
        let old = "model = \"x\" # mine\n\n[mcp_servers.docs]\ncommand = \"y\"\n\n# why\n[mcp_servers.docs.env]\nA = \"b\"\n";
        check("config.toml", key, old, &format!("{old}\n{table}"));
        let inline = "mcp_servers = { docs = { command = \"y\" } }\n";
        edited(Path::new("config.toml"), inline, &[key], "x", Some(&json!({}))).unwrap_err();
        let between = format!("{table}\n# of b\n[mcp_servers.b]\ncommand = \"x\"\n");
        let left = edited(Path::new("config.toml"), &between, &[key], "toolhost", None).unwrap();
        assert_eq!(left, "# of b\n[mcp_servers.b]\ncommand = \"x\"\n");
    }

    #[test]
    fn what_cannot_be_changed_safely_is_refused() {
        let entry = json!({ "command": "x" });
        for text in [
            "{ \"mcpServers\": [] }",
            "{ \"mcpServers\": {}, \"mcpServers\": {} }",
            "[]",
            "{ \"mcpServers\": {\n",
        ] {
            edited(Path::new("a.json"), text, &["mcpServers"], "x", Some(&entry)).unwrap_err();
        }
    }
}
