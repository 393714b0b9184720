//! Entries of JSON with comments.

use serde::Serialize as _;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, json};

use super::place;
use crate::config::node::{ConfigNode, NodeValue, TextPosition};
use crate::config::parse::block_comment_length;
use crate::util::json::quoted_end;

pub(super) fn edited(
    text: &str,
    root: &ConfigNode,
    keys: &[&str],
    name: &str,
    entry: Option<&Value>,
) -> Option<String> {
    let file = JsonText { text: text.strip_prefix('\u{feff}').unwrap_or(text) };
    let mark = text.strip_suffix(file.text)?;
    let key = keys.iter().find(|key| root.get(key).is_some());
    let new = match (key.and_then(|key| root.get(key)), entry) {
        (Some(servers), entry) => {
            let count = |node: &ConfigNode, key: &str| {
                node.entries().iter().filter(|(other, _)| *other.text == *key).count()
            };
            if count(root, key?) > 1 || count(servers, name) > 1 {
                return None;
            }
            match (servers.get(name), entry) {
                (Some(old), Some(entry)) if old.to_json() == *entry => file.text.to_owned(),
                (Some(old), Some(entry)) => file.replaced(old, entry)?,
                (None, Some(entry)) => file.inserted(servers, name, entry)?,
                (Some(_), None) => file.removed(servers, name)?,
                (None, None) => file.text.to_owned(),
            }
        }
        (None, Some(entry)) => {
            let servers = json!({ name: entry });
            if root.is_null() {
                let gap = if file.text.trim().is_empty() { "" } else { file.text };
                format!("{gap}{}\n", pretty(&json!({ keys[0]: servers }), "", "  ")?)
            } else {
                file.inserted(root, keys[0], &servers)?
            }
        }
        (None, None) => file.text.to_owned(),
    };
    Some(format!("{mark}{new}"))
}

struct JsonText<'a> {
    text: &'a str,
}

impl JsonText<'_> {
    fn offset(&self, position: TextPosition) -> Option<usize> {
        let (before, column) = place(position)?;
        let lines = self.text.split_inclusive('\n');
        let start: usize = lines.clone().take(before).map(str::len).sum();
        let line = self.text.get(start..)?;
        Some(start + line.char_indices().nth(column)?.0)
    }

    /// The white space that begins the line of `offset`.
    fn indentation(&self, offset: usize) -> &str {
        let start = self.before(offset).rfind('\n').map_or(0, |end| end + 1);
        blank_start(self.after(start))
    }

    fn before(&self, offset: usize) -> &str {
        self.text.get(..offset).unwrap_or_default()
    }

    fn after(&self, offset: usize) -> &str {
        self.text.get(offset..).unwrap_or_default()
    }

    /// One step of indentation, as the first indented line has it.
    fn step(&self) -> &str {
        match self.text.lines().map(blank_start).find(|indentation| !indentation.is_empty()) {
            Some(tabs) if tabs.starts_with('\t') => "\t",
            first => first.unwrap_or("  "),
        }
    }

    /// Where the value that begins at `start` ends.
    fn end(&self, start: usize) -> Option<usize> {
        let (mut at, mut depth) = (start, 0_usize);
        loop {
            let rest = self.text.get(at..)?;
            let next = rest.chars().next()?;
            at += match next {
                '"' => quoted_end(rest)?,
                '/' => comment_length(rest)?,
                _ => next.len_utf8(),
            };
            match next {
                '{' | '[' => depth += 1,
                '}' | ']' | ',' | ' ' | '\t' | '\r' | '\n' | '/' if depth == 0 => {
                    return Some(self.text.len() - rest.len());
                }
                '}' | ']' => depth -= 1,
                _ => {}
            }
            if depth == 0 && matches!(next, '"' | '}' | ']') {
                return Some(at);
            }
        }
    }

    /// The place of the comma after a value that ends at `at`.
    fn comma(&self, mut at: usize) -> Option<usize> {
        loop {
            let rest = self.text.get(at..)?;
            at += match rest.chars().next()? {
                ',' => return Some(at),
                '/' => comment_length(rest)?,
                next if next.is_whitespace() => next.len_utf8(),
                _ => return None,
            };
        }
    }

    fn replaced(&self, old: &ConfigNode, entry: &Value) -> Option<String> {
        let start = self.offset(old.position)?;
        let new = pretty(entry, self.indentation(start), self.step())?;
        Some(format!("{}{new}{}", self.before(start), self.after(self.end(start)?)))
    }

    /// A new entry stands first: every line that is there stays as it is.
    fn inserted(&self, map: &ConfigNode, name: &str, entry: &Value) -> Option<String> {
        let NodeValue::Map(entries) = &map.value else { return None };
        let start = self.offset(map.position)? + 1;
        let (before, after) = self.text.split_at(start);
        let outer = self.indentation(start);
        let step = self.step();
        let inner = match entries.first() {
            Some((key, _)) => self.indentation(self.offset(key.position)?).to_owned(),
            None => format!("{outer}{step}"),
        };
        let comma = if entries.is_empty() { "" } else { "," };
        let key = Value::from(name);
        let rest = after.split_inclusive('\n').next()?;
        let is_blank = rest.trim().is_empty() || rest.trim_start().starts_with("//");
        if is_blank && rest.ends_with('\n') {
            let entry = pretty(entry, &inner, step)?;
            let below = self.after(start + rest.len());
            return Some(format!("{before}{rest}{inner}{key}: {entry}{comma}\n{below}"));
        }
        if entries.is_empty() && self.text.contains('\n') {
            let entry = pretty(entry, &inner, step)?;
            return Some(format!("{before}\n{inner}{key}: {entry}\n{outer}{}", after.trim_start()));
        }
        Some(format!("{before}{key}:{entry}{comma}{after}"))
    }

    fn removed(&self, map: &ConfigNode, name: &str) -> Option<String> {
        let index = map.entries().iter().position(|(key, _)| *key.text == *name)?;
        let (key, value) = map.entries().get(index)?;
        let mut start = self.offset(key.position)?;
        let mut end = self.end(self.offset(value.position)?)?;
        let mut comma = None;
        if let Some(after) = self.comma(end) {
            end = after + 1;
        } else if let Some((_, previous)) = index.checked_sub(1).and_then(|i| map.entries().get(i))
        {
            comma = Some(self.comma(self.end(self.offset(previous.position)?)?)?);
        }
        let begins_line = self.before(start).trim_end_matches([' ', '\t']);
        let ends_line = self.after(end).trim_start_matches([' ', '\t', '\r']);
        if begins_line.ends_with('\n') && ends_line.starts_with('\n') {
            start = begins_line.len();
            end = self.text.len() - ends_line.len() + 1;
        }
        let kept = match comma {
            Some(at) => format!("{}{}", self.before(at), self.text.get(at + 1..start)?),
            None => self.before(start).to_owned(),
        };
        let last = self.after(end);
        // A map that was empty on one line is so again.
        let closes = last.trim_start().starts_with('}') && map.entries().len() == 1;
        match kept.trim_end() {
            opened if closes && opened.ends_with('{') => {
                Some(format!("{opened}{}", last.trim_start()))
            }
            _ => Some(format!("{kept}{last}")),
        }
    }
}

fn blank_start(line: &str) -> &str {
    let blank = line.find(|c| !matches!(c, ' ' | '\t')).unwrap_or(line.len());
    line.get(..blank).unwrap_or_default()
}

fn comment_length(text: &str) -> Option<usize> {
    if text.starts_with("/*") {
        return block_comment_length(text);
    }
    Some(text.find('\n').unwrap_or(text.len()))
}

fn pretty(value: &Value, indentation: &str, step: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(step.as_bytes());
    value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter)).ok()?;
    Some(String::from_utf8(bytes).ok()?.replace('\n', &format!("\n{indentation}")))
}
