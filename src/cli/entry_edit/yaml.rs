//! Entries of a YAML file: whole lines, so that comments and layout stay.

use super::place;
use crate::config::node::{ConfigNode, NodeValue};

/// The text without the lines of an entry; `None` where it has none of its own.
pub(super) fn removed(text: &str, root: &ConfigNode, keys: &[&str], name: &str) -> Option<String> {
    let servers = keys.iter().find_map(|key| root.get(key))?;
    let (head, depth) = place(servers.key(name)?.position)?;
    without_block(text, head, depth)
}

/// The text without the lines of an item; `None` where it has none of its own.
pub(super) fn without_item(
    text: &str,
    root: &ConfigNode,
    keys: &[&str],
    name: &str,
) -> Option<String> {
    let items = keys.iter().find_map(|key| root.get(key))?.as_list().ok()?;
    let is_meant = |key: &str, item: &ConfigNode| item.get(key)?.text().map(|text| text == name);
    let is_meant = |item: &&ConfigNode| {
        ["name", "tool_name"].iter().any(|key| is_meant(key, item) == Some(true))
    };
    let (head, column) = place(items.iter().find(is_meant)?.position)?;
    let depth = column.checked_sub("- ".len())?;
    let is_block = text.lines().nth(head)?.get(depth..)?.starts_with("- ");
    is_block.then(|| without_block(text, head, depth)).flatten()
}

/// The text without a line, and those below it that are indented more.
fn without_block(text: &str, head: usize, depth: usize) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let inside = |line: &&&str| {
        let shown = line.trim_start();
        line.len() - shown.len() > depth || shown.starts_with(['}', ']'])
    };
    let block = lines.get(head + 1..)?.iter().take_while(inside).count();
    lines.drain(head..=head + block);
    Some(lines.join("\n") + "\n")
}

/// The text with the lines of an entry after the last one; `None` for another layout.
pub(super) fn inserted(
    text: &str,
    root: &ConfigNode,
    keys: &[&str],
    entry: &str,
) -> Option<String> {
    let section = keys.iter().find_map(|key| Some((root.key(key)?, root.get(key)?)));
    let Some((key, servers)) = section else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let blank = if text.trim().is_empty() { "" } else { "\n" };
        return Some(format!("{text}{gap}{blank}{}:\n{}", keys[0], indented(entry, 2)));
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (head, outer) = place(key.position)?;
    let inner = match &servers.value {
        NodeValue::Map(pairs) if !pairs.is_empty() => place(pairs.first()?.0.position)?.1,
        NodeValue::List(items) if !items.is_empty() => {
            place(items.first()?.position)?.1.checked_sub("- ".len())?
        }
        _ => {
            // `mcp_servers:` or `mcp_servers: {}`, without entries.
            let line = lines.get_mut(head)?;
            let bare = line.replacen("{}", "", 1).replacen("[]", "", 1);
            bare.trim_end().clone_into(line);
            outer + 2
        }
    };
    let belongs = |line: &String| {
        let depth = line.len() - line.trim_start().len();
        line.trim().is_empty() || depth > outer
    };
    let rest = lines.get(head + 1..)?;
    let block = rest.iter().take_while(|line| belongs(line)).count();
    let blank = rest.get(..block)?.iter().rev().take_while(|line| line.trim().is_empty()).count();
    let end = head + 1 + block - blank;
    lines.splice(end..end, indented(entry, inner).lines().map(str::to_owned));
    Some(lines.join("\n") + "\n")
}

fn indented(text: &str, by: usize) -> String {
    let line = |line: &str| format!("{:by$}{line}\n", "");
    text.lines().map(line).collect()
}
