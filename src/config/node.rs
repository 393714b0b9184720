//! A configuration file as a tree with the source position of every key and value.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::model::{Diagnostic, SourceLocation};

/// The name of the text for a server that only the command line names.
pub const COMMAND_LINE: &str = "command line";

#[derive(Debug)]
pub struct SourceText {
    pub path: Arc<PathBuf>,
    text: Box<str>,
    starts: Vec<u32>,
    /// Lines quoted by locations, each once: a file may be one long line with thousands of values.
    quoted: Mutex<HashMap<usize, Arc<str>>>,
}

impl SourceText {
    /// Stores a file's text, for the lines shown with carets.
    pub fn new(path: impl Into<PathBuf>, text: &str) -> Arc<Self> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = ends.filter_map(|(at, _)| u32::try_from(at + 1).ok());
        let starts = std::iter::once(0).chain(starts).collect();
        let quoted = Mutex::default();
        Arc::new(Self { path: Arc::new(path.into()), text: text.into(), starts, quoted })
    }

    /// Whether this text was made from options of the command line, so that its lines say nothing.
    fn is_made_from_options(&self) -> bool {
        self.path.to_str().is_some_and(|path| path.starts_with("--") || path == COMMAND_LINE)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A line for a message, shared by all locations in it; `index` counts from 0.
    fn quoted(&self, index: usize) -> Arc<str> {
        let mut quoted = self.quoted.lock().unwrap_or_else(PoisonError::into_inner);
        let line = || Arc::from(self.line(index).unwrap_or_default());
        Arc::clone(quoted.entry(index).or_insert_with(line))
    }

    /// A line, without its line break; `index` counts from 0.
    pub fn line(&self, index: usize) -> Option<&str> {
        let rest = self.text.get(*self.starts.get(index)? as usize..)?;
        rest.lines().next()
    }
}

/// A line and a column, both from 1; 0 means unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextPosition {
    /// The line, counted from 1; 0 when unknown.
    pub line: u32,
    pub column: u32,
}

#[derive(Debug, Clone)]
pub struct ConfigNode {
    pub value: NodeValue,
    pub position: TextPosition,
    pub source: Arc<SourceText>,
}

#[derive(Debug, Clone)]
pub enum NodeValue {
    Null,
    /// `true` or `false` without quotes.
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    /// A sequence, in file order.
    List(Arc<Vec<ConfigNode>>),
    /// A mapping, in file order.
    Map(Arc<Vec<(ConfigKey, ConfigNode)>>),
}

#[derive(Debug, Clone)]
pub struct ConfigKey {
    /// The key as written, without quotes.
    pub text: Arc<str>,
    pub position: TextPosition,
}

impl NodeValue {
    pub fn list(mut items: Vec<ConfigNode>) -> Self {
        items.shrink_to_fit();
        Self::List(Arc::new(items))
    }

    pub fn map(mut entries: Vec<(ConfigKey, ConfigNode)>) -> Self {
        entries.shrink_to_fit();
        Self::Map(Arc::new(entries))
    }
}

impl ConfigNode {
    pub fn location(&self) -> SourceLocation {
        location_in(&self.source, self.position)
    }

    pub fn location_of(&self, key: &ConfigKey) -> SourceLocation {
        location_in(&self.source, key.position)
    }

    /// Another value in its place.
    pub fn with_value(&self, value: NodeValue) -> Self {
        Self { value, position: self.position, source: Arc::clone(&self.source) }
    }

    /// An error about it.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(message).with_location(self.location())
    }

    /// A warning about it.
    pub fn warning(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::warning(message).with_location(self.location())
    }

    /// The value under `key`; also `None` if this is not a mapping.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(k, _)| *k.text == *key).map(|(_, v)| v)
    }

    /// The first of several spellings that is present, with the spelling found.
    pub fn get_any<'k>(&self, keys: &[&'k str]) -> Option<(&'k str, &Self)> {
        keys.iter().find_map(|k| self.get(k).map(|n| (*k, n)))
    }

    pub fn key(&self, key: &str) -> Option<&ConfigKey> {
        self.entries().iter().find(|(k, _)| *k.text == *key).map(|(k, _)| k)
    }

    /// The entries of a mapping; empty for anything else.
    pub fn entries(&self) -> &[(ConfigKey, Self)] {
        match &self.value {
            NodeValue::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The entries of a mapping, of this tree alone.
    pub fn entries_mut(&mut self) -> Option<&mut Vec<(ConfigKey, Self)>> {
        match &mut self.value {
            NodeValue::Map(entries) => Some(Arc::make_mut(entries)),
            _ => None,
        }
    }

    /// Whether the value is `null`, `~` or empty.
    pub fn is_null(&self) -> bool {
        matches!(self.value, NodeValue::Null)
    }

    /// The type of the value, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Number(_) => "a number",
            NodeValue::Text(_) => "text",
            NodeValue::List(_) => "a list",
            NodeValue::Map(_) => "a mapping",
        }
    }

    pub fn expected(&self, what: &str) -> Diagnostic {
        let actual = match &self.value {
            NodeValue::Text(text) if text.is_empty() => "an empty string",
            _ => self.kind(),
        };
        self.error(format!("expected {what}, found {actual}"))
    }

    pub fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Result<&str, Diagnostic> {
        self.text().ok_or_else(|| self.expected("text"))
    }

    /// Text, or a scalar written as text (`port: 80`, `flag: true`).
    pub fn as_scalar_text(&self) -> Result<String, Diagnostic> {
        match &self.value {
            NodeValue::Text(text) => Ok(text.clone()),
            NodeValue::Bool(value) => Ok(value.to_string()),
            NodeValue::Number(value) => Ok(value.to_string()),
            _ => Err(self.expected("text")),
        }
    }

    pub fn as_bool(&self) -> Result<bool, Diagnostic> {
        match &self.value {
            NodeValue::Bool(value) => Ok(*value),
            _ => Err(self.expected("true or false")),
        }
    }

    /// A whole number that is not negative.
    pub fn as_count(&self) -> Result<u64, Diagnostic> {
        let count = match &self.value {
            NodeValue::Number(number) => number.as_u64(),
            _ => None,
        };
        count.ok_or_else(|| self.expected("a whole number, 0 or more"))
    }

    pub fn as_list(&self) -> Result<&[Self], Diagnostic> {
        match &self.value {
            NodeValue::List(items) => Ok(items),
            _ => Err(self.expected("a list")),
        }
    }

    pub fn as_map(&self) -> Result<&[(ConfigKey, Self)], Diagnostic> {
        match &self.value {
            NodeValue::Map(entries) => Ok(entries),
            _ => Err(self.expected("a mapping")),
        }
    }

    pub fn as_texts(&self) -> Result<Vec<String>, Diagnostic> {
        match &self.value {
            NodeValue::Text(text) => Ok(vec![text.clone()]),
            NodeValue::List(items) => items.iter().map(Self::as_scalar_text).collect(),
            _ => Err(self.expected("a list of texts")),
        }
    }

    /// Hands every value at or below it that holds no others to `look`, with the keys that lead
    /// there, joined by dots.
    pub fn for_each_leaf<'n>(&'n self, look: &mut dyn FnMut(&str, &'n Self)) {
        fn walk<'n>(
            node: &'n ConfigNode,
            path: &mut String,
            look: &mut dyn FnMut(&str, &'n ConfigNode),
        ) {
            match &node.value {
                NodeValue::List(items) => items.iter().for_each(|item| walk(item, path, look)),
                NodeValue::Map(pairs) => {
                    for (key, value) in pairs.iter() {
                        let before = path.len();
                        if before > 0 {
                            path.push('.');
                        }
                        path.push_str(&key.text);
                        walk(value, path, look);
                        path.truncate(before);
                    }
                }
                _ => look(path, node),
            }
        }
        walk(self, &mut String::new(), look);
    }

    /// An error for every key that this mapping has already; look-ups find the first of them.
    pub fn own_repeated_keys(&self) -> Vec<Diagnostic> {
        let mut firsts = HashMap::new();
        let mut repeated = Vec::new();
        for (key, _) in self.entries() {
            let first = *firsts.entry(&*key.text).or_insert(key.position);
            if first != key.position {
                let TextPosition { line, column } = first;
                let first = format!("first defined at line {line} column {column}");
                let message = format!("duplicate key '{}', {first}", key.text);
                repeated.push(Diagnostic::error(message).with_location(self.location_of(key)));
            }
        }
        repeated
    }

    /// The same for every mapping at or below it.
    pub fn repeated_keys(&self) -> Vec<Diagnostic> {
        fn walk(node: &ConfigNode, repeated: &mut Vec<Diagnostic>) {
            repeated.extend(node.own_repeated_keys());
            match &node.value {
                NodeValue::List(items) => items.iter().for_each(|item| walk(item, repeated)),
                _ => node.entries().iter().for_each(|(_, value)| walk(value, repeated)),
            }
        }
        let mut repeated = Vec::new();
        walk(self, &mut repeated);
        repeated
    }

    /// The node as plain JSON, without positions.
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(value) => Value::Number(value.clone()),
            NodeValue::Text(value) => Value::String(value.clone()),
            NodeValue::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            NodeValue::Map(entries) => Value::Object(
                entries.iter().map(|(k, v)| (k.text.to_string(), v.to_json())).collect(),
            ),
        }
    }
}

fn location_in(source: &SourceText, position: TextPosition) -> SourceLocation {
    if source.is_made_from_options() {
        let file = Arc::clone(&source.path);
        return SourceLocation { file, line: 0, column: 0, text: Arc::from("") };
    }
    let text = match position.line.checked_sub(1) {
        Some(index) => source.quoted(index as usize),
        None => Arc::from(""),
    };
    SourceLocation {
        file: Arc::clone(&source.path),
        line: position.line,
        column: position.column,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_one_line_share_its_text() {
        let option = SourceText::new("--tools-module x", "{a: 1, b: 2}\n");
        let place = location_in(&option, TextPosition { line: 1, column: 2 });
        assert_eq!((place.line, &*place.text), (0, ""), "a made line is not shown");
        let source = SourceText::new("f", "{a: 1, b: 2}\n");
        let location = |column| location_in(&source, TextPosition { line: 1, column });
        assert_eq!(&*location(2).text, "{a: 1, b: 2}");
        assert!(Arc::ptr_eq(&location(2).text, &location(8).text));
    }
}
