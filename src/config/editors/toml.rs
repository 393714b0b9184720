//! Reading a file of Codex, the one editor that writes TOML.

use std::sync::Arc;

use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Value as TomlValue};

use crate::config::node::SourceText;
use crate::model::{Diagnostic, SourceLocation};

/// The file as JSON; dates become texts.
pub(super) fn parse(source: &Arc<SourceText>, text: &str) -> Result<Value, Diagnostic> {
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
