//! YAML 1.2 from parser events, with anchors, aliases and `<<` merges.
//!
//! Types of plain YAML scalars: the core schema of YAML 1.2, with stricter rules for ambiguous
//! words.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Number;
use serde_yaml::granit_parser as events;
use serde_yaml::granit_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};

use super::{MAX_DEPTH, TreeBuilder};
use crate::config::node::{ConfigKey, ConfigNode, NodeValue, SourceText, TextPosition};
use crate::model::Diagnostic;

const MAX_ANCHORS: usize = 200;
const MAX_ALIASES: usize = 1_000;
const MAX_COPIED: usize = 20_000;

/// Parses one YAML document; a second one in the file is an error.
pub(super) fn parse(source: &Arc<SourceText>, text: &str) -> Result<ConfigNode, Diagnostic> {
    let mut options = events::Options::default();
    options.set_emit_comments(false);
    // The composer's own limit applies first; these only bound what the scanner stores.
    options.flow_nesting_limit = MAX_DEPTH * 2;
    options.block_nesting_limit = MAX_DEPTH * 2;
    let mut composer = Composer {
        events: Parser::new_from_str_with_options(text, options),
        builder: TreeBuilder::new(source),
        anchors: HashMap::new(),
        aliases: 0,
        copied: 0,
    };
    composer.document()
}

struct Composer<'a> {
    events: Parser<'a, StrInput<'a>>,
    builder: TreeBuilder,
    anchors: HashMap<usize, AnchorValue>,
    aliases: usize,
    copied: usize,
}

struct AnchorValue {
    node: ConfigNode,
    size: usize,
    height: usize,
}

impl<'a> Composer<'a> {
    fn document(&mut self) -> Result<ConfigNode, Diagnostic> {
        let start = TextPosition { line: 1, column: 1 };
        let mut root = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                _ if root.is_some() => {
                    let hint = "keep one document per file; `discover:` reads a whole directory";
                    let at = position(&span.start);
                    let second = self.builder.diagnostic(at, "a second document starts here");
                    return Err(second.with_hint(hint));
                }
                event => root = Some(self.value(event, &span, 0)?),
            }
        }
        Ok(root.unwrap_or_else(|| self.builder.node(NodeValue::Null, start)))
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Diagnostic> {
        match self.events.next_event() {
            None => Ok(None),
            Some(Ok(event)) => Ok(Some(event)),
            Some(Err(error)) => {
                let info = error.info();
                let what = if info.is_empty() { "this is not YAML".to_owned() } else { info };
                Err(self.builder.diagnostic(position(error.marker()), what))
            }
        }
    }

    fn expect(&mut self, at: TextPosition) -> Result<(Event<'a>, Span), Diagnostic> {
        self.next()?.ok_or_else(|| self.builder.diagnostic(at, "unexpected end of file"))
    }

    fn value(
        &mut self,
        event: Event<'a>,
        span: &Span,
        depth: usize,
    ) -> Result<ConfigNode, Diagnostic> {
        let at = position(&span.start);
        self.builder.count(1, depth, at)?;
        let before = self.builder.nodes;
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = self.scalar(text, style, tag.as_deref(), at)?;
                (self.builder.node(value, at), anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_collection_tag(tag.as_deref(), "seq", at)?;
                (self.list(at, depth)?, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_collection_tag(tag.as_deref(), "map", at)?;
                (self.map(at, depth)?, anchor)
            }
            Event::Alias(id) => return self.alias(id, depth, at),
            other => {
                return self.builder.fail(at, format!("unexpected YAML structure ({other:?})"));
            }
        };
        if anchor != 0 {
            if self.anchors.len() >= MAX_ANCHORS {
                return self.builder.fail(at, format!("more than {MAX_ANCHORS} anchors"));
            }
            let size = 1 + self.builder.nodes - before;
            let height = height(&node);
            self.anchors.insert(anchor, AnchorValue { node: node.clone(), size, height });
        }
        Ok(node)
    }

    fn alias(
        &mut self,
        id: usize,
        depth: usize,
        at: TextPosition,
    ) -> Result<ConfigNode, Diagnostic> {
        self.aliases += 1;
        if self.aliases > MAX_ALIASES {
            return self.builder.fail(at, format!("more than {MAX_ALIASES} aliases"));
        }
        let Some(anchored) = self.anchors.get(&id) else {
            return self.builder.fail(at, "the alias refers to a value that contains it");
        };
        // Counted before it is copied, so that an alias bomb costs nothing.
        self.copied += anchored.size;
        if self.copied > MAX_COPIED {
            return self.builder.fail(at, format!("aliases repeat more than {MAX_COPIED} values"));
        }
        self.builder.count(anchored.size, depth + anchored.height, at)?;
        Ok(anchored.node.clone())
    }

    fn list(&mut self, at: TextPosition, depth: usize) -> Result<ConfigNode, Diagnostic> {
        let mut items = Vec::new();
        loop {
            match self.expect(at)? {
                (Event::SequenceEnd, _) => break,
                (event, span) => items.push(self.value(event, &span, depth + 1)?),
            }
        }
        Ok(self.builder.node(NodeValue::list(items), at))
    }

    fn map(&mut self, at: TextPosition, depth: usize) -> Result<ConfigNode, Diagnostic> {
        let mut entries: Vec<(ConfigKey, ConfigNode)> = Vec::new();
        let mut merged = Vec::new();
        let at = loop {
            let (event, span) = self.expect(at)?;
            let key_at = position(&span.start);
            let (text, is_merge) = match event {
                Event::MappingEnd => break at,
                Event::Scalar(text, style, ..) => {
                    let is_merge = text == "<<" && style == ScalarStyle::Plain;
                    (text, is_merge)
                }
                Event::Alias(id) => match self.alias(id, depth, key_at)?.value {
                    NodeValue::Text(text) => (text.into(), false),
                    _ => return self.builder.fail(key_at, "a key must be a string"),
                },
                _ => return self.builder.fail(key_at, "a key must be a string"),
            };
            let (event, span) = self.expect(key_at)?;
            let value = self.value(event, &span, depth + 1)?;
            if is_merge {
                merged.push(value);
            } else {
                entries.push((self.builder.key(&text, key_at), value));
            }
        };
        if !merged.is_empty() {
            let mut keys = entries.iter().map(|(key, _)| Arc::clone(&key.text)).collect();
            for value in &merged {
                self.merge(&mut entries, &mut keys, value)?;
            }
        }
        Ok(self.builder.node(NodeValue::map(entries), at))
    }

    /// Adds the keys of a merged mapping (or of several) that are not there yet.
    fn merge(
        &self,
        entries: &mut Vec<(ConfigKey, ConfigNode)>,
        keys: &mut HashSet<Arc<str>>,
        value: &ConfigNode,
    ) -> Result<(), Diagnostic> {
        match &value.value {
            NodeValue::Map(more) => {
                // One that it has twice itself is added twice, and found as such.
                let new = more.iter().filter(|(key, _)| !keys.contains(&key.text));
                entries.extend(new.cloned());
                keys.extend(more.iter().map(|(key, _)| Arc::clone(&key.text)));
                Ok(())
            }
            NodeValue::List(items) => {
                items.iter().try_for_each(|item| self.merge(entries, keys, item))
            }
            _ => self.builder.fail(value.position, "only a mapping can be merged with <<"),
        }
    }

    fn scalar(
        &self,
        text: Cow<'a, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        at: TextPosition,
    ) -> Result<NodeValue, Diagnostic> {
        let plain =
            || resolve(&text).map_err(|why| self.builder.diagnostic(at, format!("{text}: {why}")));
        let Some(tag) = tag else {
            return match style {
                ScalarStyle::Plain => plain(),
                _ => Ok(NodeValue::Text(text.into_owned())),
            };
        };
        let suffix = tag.core_suffix();
        let value = match suffix {
            // The non-specific tag `!` and `!!str` both say "text".
            Some("str") => return Ok(NodeValue::Text(text.into_owned())),
            Some("null" | "bool" | "int" | "float") => plain()?,
            _ => return Err(self.unknown_tag(tag, at)),
        };
        let fits = matches!(
            (&value, suffix),
            (NodeValue::Null, Some("null"))
                | (NodeValue::Bool(_), Some("bool"))
                | (NodeValue::Number(_), Some("int" | "float"))
        );
        if !fits {
            return self.builder.fail(at, format!("'{text}' does not match its tag"));
        }
        Ok(value)
    }

    fn check_collection_tag(
        &self,
        tag: Option<&Tag>,
        core: &str,
        at: TextPosition,
    ) -> Result<(), Diagnostic> {
        match tag {
            Some(tag) if tag.core_suffix() != Some(core) => Err(self.unknown_tag(tag, at)),
            _ => Ok(()),
        }
    }

    fn unknown_tag(&self, tag: &Tag, at: TextPosition) -> Diagnostic {
        self.builder.diagnostic(at, format!("the tag {} is not allowed here", tag.original()))
    }
}

/// How many levels of collections are below `node`.
fn height(node: &ConfigNode) -> usize {
    let children: &mut dyn Iterator<Item = &ConfigNode> = match &node.value {
        NodeValue::List(items) => &mut items.iter(),
        NodeValue::Map(entries) => &mut entries.iter().map(|(_, v)| v),
        _ => return 0,
    };
    children.map(|child| 1 + height(child)).max().unwrap_or(0)
}

fn position(marker: &Marker) -> TextPosition {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    TextPosition { line: number(marker.line()), column: number(marker.col()).saturating_add(1) }
}

/// Resolves a plain scalar. Booleans are `true` and `false` only; a leading zero, an underscore or
/// a colon makes it text. `Err` for infinities and NaN, which JSON cannot represent.
pub(super) fn resolve(word: &str) -> Result<NodeValue, &'static str> {
    Ok(match word {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "true" | "True" | "TRUE" => NodeValue::Bool(true),
        "false" | "False" | "FALSE" => NodeValue::Bool(false),
        _ => match number(word)? {
            Some(number) => NodeValue::Number(number),
            None => NodeValue::Text(word.to_owned()),
        },
    })
}

/// Parses a number; `None` if the scalar is not a number.
pub(super) fn number(word: &str) -> Result<Option<Number>, &'static str> {
    let starts_like_one = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    if !starts_like_one {
        return Ok(None);
    }
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(word, ".nan" | ".NaN" | ".NAN") {
        return Err("infinities and NaN are not allowed here");
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = word.strip_prefix(prefix) {
            return Ok(u64::from_str_radix(digits, radix).ok().map(Number::from));
        }
    }
    let integer_digits = unsigned.split(['.', 'e', 'E']).next().unwrap_or_default();
    if integer_digits.len() > 1 && integer_digits.starts_with('0') {
        return Ok(None);
    }
    if !unsigned.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b)) {
        return Ok(None);
    }
    // JSON requires digits on both sides of the point and no leading plus.
    let word = word.strip_prefix('+').unwrap_or(word);
    let padded = match word.strip_prefix("-.").or_else(|| word.strip_prefix('.')) {
        Some(rest) if word.starts_with('-') => format!("-0.{rest}"),
        Some(rest) => format!("0.{rest}"),
        None if word.ends_with('.') => format!("{word}0"),
        None => word.to_owned(),
    };
    Ok(padded.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_yaml_1_2_says() {
        for (word, expected) in [
            ("12", "12"),
            ("+12", "12"),
            ("-12", "-12"),
            ("0x1F", "31"),
            ("0o17", "15"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("1.", "1.0"),
            ("1e3", "1e+3"),
            ("0", "0"),
            ("0.5", "0.5"),
        ] {
            let number = number(word).unwrap().map(|n| n.to_string());
            assert_eq!(number.as_deref(), Some(expected), "{word}");
        }
    }

    #[test]
    fn look_alikes_are_text() {
        for word in [
            "0755",
            "1_000",
            "1.2.3",
            "-",
            ".",
            "+",
            "1e",
            "12px",
            "0x",
            "0xZZ",
            "-x",
            "2026-11-21",
        ] {
            assert_eq!(number(word).unwrap(), None, "{word}");
        }
    }

    #[test]
    fn what_json_cannot_carry_is_refused() {
        assert!(number(".inf").is_err() && number("-.INF").is_err() && number(".nan").is_err());
    }
}
