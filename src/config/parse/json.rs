//! Parsing JSON with comments and trailing commas.
//!
//! Strings and numbers are passed to `serde_json` piece by piece; this file only handles the
//! structure, so that every key and value keeps its position.

use std::sync::Arc;

use super::TreeBuilder;
use crate::config::node::{ConfigNode, NodeValue, SourceText, TextPosition};
use crate::model::Diagnostic;

/// Parses one JSON value with comments and trailing commas; an empty text is `null`.
pub(super) fn parse(source: &Arc<SourceText>, text: &str) -> Result<ConfigNode, Diagnostic> {
    let start = TextPosition { line: 1, column: 1 };
    let mut reader =
        JsonParser { text, offset: 0, builder: TreeBuilder::new(source), position: start };
    reader.skip_blank()?;
    if reader.peek().is_none() {
        return Ok(reader.builder.node(NodeValue::Null, reader.position));
    }
    let root = reader.value(0)?;
    reader.skip_blank()?;
    if reader.peek().is_some() {
        return Err(reader.diagnostic("text after the end of the JSON value"));
    }
    Ok(root)
}

/// How long the `/* … */` is that `text` begins with; `None` if it does not end.
pub fn block_comment_length(text: &str) -> Option<usize> {
    const MARK: usize = 2;
    text.get(MARK..)?.find("*/").map(|end| MARK + end + MARK)
}

struct JsonParser<'a> {
    text: &'a str,
    offset: usize,
    builder: TreeBuilder,
    position: TextPosition,
}

impl<'a> JsonParser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn diagnostic(&self, message: impl Into<String>) -> Diagnostic {
        self.builder.diagnostic(self.position, message)
    }

    /// Advances by `bytes`, counting lines and columns.
    fn advance(&mut self, bytes: usize) {
        let end = (self.offset + bytes).min(self.text.len());
        for c in self.text.get(self.offset..end).unwrap_or_default().chars() {
            if c == '\n' {
                self.position.line = self.position.line.saturating_add(1);
                self.position.column = 1;
            } else {
                self.position.column = self.position.column.saturating_add(1);
            }
        }
        self.offset = end;
    }

    fn skip_blank(&mut self) -> Result<(), Diagnostic> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            if blank > 0 {
                self.advance(blank);
            } else if rest.starts_with("//") {
                self.advance(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("/*") {
                let Some(length) = block_comment_length(rest) else {
                    return Err(self.diagnostic("unterminated comment"));
                };
                self.advance(length);
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<ConfigNode, Diagnostic> {
        let at = self.position;
        self.builder.count(1, depth, at)?;
        let value = match self.peek() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => NodeValue::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(_) => self.word()?,
            None => return Err(self.diagnostic("unexpected end of file: expected a value")),
        };
        Ok(self.builder.node(value, at))
    }

    fn map(&mut self, depth: usize) -> Result<NodeValue, Diagnostic> {
        let mut entries = Vec::new();
        self.items(b'}', |reader| {
            if reader.peek() != Some(b'"') {
                return Err(reader.diagnostic("expected a key in double quotes or '}'"));
            }
            let position = reader.position;
            let text = reader.string()?;
            reader.skip_blank()?;
            if reader.peek() != Some(b':') {
                return Err(reader.diagnostic("expected ':' after the key"));
            }
            reader.advance(1);
            reader.skip_blank()?;
            let value = reader.value(depth + 1)?;
            let key = reader.builder.key(&text, position);
            entries.push((key, value));
            Ok(())
        })?;
        Ok(NodeValue::map(entries))
    }

    fn list(&mut self, depth: usize) -> Result<NodeValue, Diagnostic> {
        let mut items = Vec::new();
        self.items(b']', |reader| {
            items.push(reader.value(depth + 1)?);
            Ok(())
        })?;
        Ok(NodeValue::list(items))
    }

    /// Reads what is between two brackets, with commas in between and perhaps at the end.
    fn items(
        &mut self,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        self.advance(1);
        loop {
            self.skip_blank()?;
            if self.peek() == Some(close) {
                break;
            }
            item(self)?;
            self.skip_blank()?;
            match self.peek() {
                Some(b',') => self.advance(1),
                Some(next) if next == close => break,
                _ => {
                    let close = char::from(close);
                    return Err(self.diagnostic(format!("expected ',' or '{close}'")));
                }
            }
        }
        self.advance(1);
        Ok(())
    }

    fn string(&mut self) -> Result<String, Diagnostic> {
        let mut escaped = false;
        let length = self.rest().bytes().skip(1).position(|b| {
            let ends = b == b'"' && !escaped;
            escaped = b == b'\\' && !escaped;
            ends
        });
        let Some(length) = length else {
            return Err(self.diagnostic("unterminated string"));
        };
        let piece = self.rest().get(..length + 2).unwrap_or_default();
        let Ok(text) = serde_json::from_str(piece) else {
            return Err(self.diagnostic("invalid escape or raw control character in this string"));
        };
        self.advance(piece.len());
        Ok(text)
    }

    fn number(&mut self) -> Result<NodeValue, Diagnostic> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
        let piece = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let Ok(number) = serde_json::from_str(piece) else {
            return Err(self.diagnostic(format!("'{piece}' is not a number")));
        };
        self.advance(piece.len());
        Ok(NodeValue::Number(number))
    }

    fn word(&mut self) -> Result<NodeValue, Diagnostic> {
        for (word, value) in [
            ("true", NodeValue::Bool(true)),
            ("false", NodeValue::Bool(false)),
            ("null", NodeValue::Null),
        ] {
            if self.rest().starts_with(word) {
                self.advance(word.len());
                return Ok(value);
            }
        }
        Err(self.diagnostic("expected a JSON value"))
    }
}
