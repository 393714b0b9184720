//! Entries of TOML: each is a table of its own at the end of the file.

use serde_json::Value;

/// The text with the table of an entry replaced, added or removed.
pub(super) fn edited(text: &str, key: &str, name: &str, entry: Option<&Value>) -> String {
    let header = format!("{key}.{}", key_text(name));
    let is_of_entry = |line: &str| {
        let table = line.trim_start().strip_prefix('[');
        let rest = table.and_then(|table| table.trim_start().strip_prefix(header.as_str()));
        rest.is_some_and(|rest| rest.trim_start().starts_with([']', '.']))
    };
    let mut lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| is_of_entry(line)).unwrap_or(lines.len());
    let is_inside = |line: &&&str| !line.trim_start().starts_with('[') || is_of_entry(line);
    let mut end = start + lines[start..].iter().take_while(is_inside).count();
    // Comments above the next table belong to it.
    let is_comment = |line: &&&str| line.trim_start().starts_with('#');
    end -= lines[start..end].iter().rev().take_while(is_comment).count();
    let old = lines.get(start..end).unwrap_or_default().join("\n");
    let table = entry.map(|entry| table(&header, entry));
    if table.as_deref().is_some_and(|table| table.trim_end() == old.trim_end()) {
        return text.to_owned();
    }
    lines.drain(start..end);
    while start == lines.len() && lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    let mut new = lines.iter().flat_map(|line| [line, "\n"]).collect::<String>();
    if let Some(table) = table {
        if !new.is_empty() {
            new.push('\n');
        }
        new.push_str(&table);
    }
    new
}

fn table(header: &str, entry: &Value) -> String {
    let mut text = format!("[{header}]\n");
    for (key, value) in entry.as_object().into_iter().flatten() {
        // Text, numbers and lists of them are written as in JSON.
        text.extend([key_text(key).as_str(), " = ", &value.to_string(), "\n"]);
    }
    text
}

fn key_text(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.chars().all(is_bare) { name.to_owned() } else { Value::from(name).to_string() }
}
