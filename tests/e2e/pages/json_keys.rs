//! The table of promised JSON keys is what the schemas say.

use serde_json::Value;

use super::Page;
use crate::support::Sandbox;

/// The comment above the table.
const MARK: &str = "<!-- json keys -->";

/// How deep objects are written out: the output itself, and what stands in it.
const DEPTH: usize = 2;

/// What a schema is about, in place of references and of `null` beside something else.
fn resolve<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    if let Some(name) = schema["$ref"].as_str() {
        return resolve(root, root.pointer(name.trim_start_matches('#')).unwrap());
    }
    let either = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
    match either {
        Some(all) if schema.get("properties").is_none() => {
            all.iter().flat_map(|one| resolve(root, one)).collect()
        }
        _ => vec![schema],
    }
}

/// The shapes of what a schema describes: keys without their values.
fn shapes(root: &Value, schema: &Value, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    for schema in resolve(root, schema) {
        if let Some(properties) = schema["properties"].as_object().filter(|_| depth > 0) {
            let keys = properties.iter().map(|(key, value)| {
                match shapes(root, value, depth - 1).first() {
                    Some(shape) => format!("\"{key}\":{shape}"),
                    None => format!("\"{key}\""),
                }
            });
            found.push(format!("{{{}}}", keys.collect::<Vec<_>>().join(",")));
        } else if let Some(items) = schema.get("items") {
            found.extend(shapes(root, items, depth).iter().map(|shape| format!("[{shape}]")));
        }
    }
    found
}

/// The names of the schemas that are no file's.
fn names(room: &Sandbox) -> Vec<String> {
    let help = room.toolhost(["config", "schema", "--help"]).check().out();
    let (_, values) = help.split_once("[possible values:").unwrap();
    let (values, _) = values.split_once(']').unwrap();
    let names = values.split(',').map(str::trim);
    names.filter(|name| !matches!(*name, "tools" | "mcp" | "console")).map(str::to_owned).collect()
}

#[test]
fn the_table_of_json_keys_is_what_the_schemas_say() {
    let room = Sandbox::new();
    let mut table = vec!["| schema | of | keys |".to_owned(), "|---|---|---|".to_owned()];
    let names = names(&room);
    assert!(names.len() > 15, "{names:?}");
    for name in &names {
        let schema = room.toolhost(["config", "schema", name]).check().json();
        let title = schema["title"].as_str().unwrap().replacen("toolhost ", "", 1);
        for shape in shapes(&schema, &schema, DEPTH) {
            table.push(format!("| `{name}` | `{title}` | `{shape}` |"));
        }
    }
    let page = Page::read("docs/reference/json.md");
    let lines: Vec<&str> = page.text.lines().collect();
    let start = lines.iter().position(|line| *line == MARK).unwrap() + 1;
    let count = lines[start..].iter().take_while(|line| line.starts_with('|')).count();
    let is_right = lines[start..start + count] == table;
    let wrong = table.iter().find(|line| !lines.contains(&line.as_str())).cloned();
    page.correct(if is_right { Vec::new() } else { vec![(start, count, table)] });
    assert!(is_right, "docs/reference/json.md: the table is another one; a new line: {wrong:?}");
}
