//! The template engine for texts with `{name}`: arguments of commands, texts of requests and values
//! of pipelines.
//!
//! Owns: the syntax (`{…}` is a placeholder, `{{` and `}}` are braces), its errors, and how a value
//! is written inside a text. A value is inserted unchanged and never read as a template again.
//! Never does: decide what may stand between the braces (each kind has its own [`Placeholder`]), or
//! encode; the caller knows where the text goes.

use serde_json::{Map, Value};

use crate::config::node::{ConfigNode, NodeValue};
use crate::model::Diagnostic;

pub(super) trait Placeholder: Sized {
    /// Reads what stands between braces; `None` when the kind takes it for no placeholder at all.
    fn parse(inside: &str) -> Result<Option<Self>, Diagnostic>;
}

/// A text with placeholders of the kind `P`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextTemplate<P> {
    pub(super) parts: Vec<TemplatePart<P>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TemplatePart<P> {
    /// Text that stands for itself, with its braces unescaped.
    Literal(String),
    Placeholder(P),
}

impl<P: Placeholder> TextTemplate<P> {
    pub(super) fn parse(text: &str) -> Result<Self, Diagnostic> {
        let mut builder = TemplateBuilder::new(text);
        builder.read(text)?;
        Ok(builder.finish())
    }
}

impl<P> TextTemplate<P> {
    /// Its placeholders, in order; one that stands twice is given twice.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = &P> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Placeholder(placeholder) => Some(placeholder),
            TemplatePart::Literal(_) => None,
        })
    }

    /// The placeholder that makes up the whole text, if there is nothing else in it.
    pub(super) fn sole_placeholder(&self) -> Option<&P> {
        match self.parts.as_slice() {
            [TemplatePart::Placeholder(placeholder)] => Some(placeholder),
            _ => None,
        }
    }

    pub(super) fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [TemplatePart::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The text with every placeholder replaced by what `value` says, which is `None` for something
    /// absent. A text that is only an absent placeholder is absent itself.
    pub(super) fn render<E>(
        &self,
        mut value: impl FnMut(&P) -> Result<Option<String>, E>,
        missing: impl FnOnce(&P) -> E,
    ) -> Result<Option<String>, E> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(literal) => text.push_str(literal),
                TemplatePart::Placeholder(placeholder) => match value(placeholder)? {
                    Some(value) => text.push_str(&value),
                    None if self.sole_placeholder().is_some() => return Ok(None),
                    None => return Err(missing(placeholder)),
                },
            }
        }
        Ok(Some(text))
    }
}

/// Whether `name` can name an argument between braces: letters, digits, `_`, `-` and `.`.
pub(super) fn is_argument_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// A value inside a text: text unchanged, numbers and booleans as in JSON,
/// lists and objects as compact JSON. Null is absent.
pub(super) fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

pub(in crate::providers) struct TemplateBuilder<'t, P> {
    parts: Vec<TemplatePart<P>>,
    written: &'t str,
    /// How many bytes of it were read.
    position: usize,
    literal_braces: u32,
}

impl<'t, P: Placeholder> TemplateBuilder<'t, P> {
    /// A builder for the text `written`.
    pub(in crate::providers) fn new(written: &'t str) -> Self {
        Self { parts: Vec::new(), written, position: 0, literal_braces: 0 }
    }

    pub(in crate::providers) fn read(&mut self, piece: &str) -> Result<(), Diagnostic> {
        let mut rest = piece;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            self.literal(before);
            self.position += at;
            let after = if let Some(after) = from.strip_prefix("{{") {
                self.literal("{");
                after
            } else if let Some(after) = from.strip_prefix("}}") {
                self.literal("}");
                after
            } else if let Some(after) = from.strip_prefix('}') {
                let Some(left) = self.literal_braces.checked_sub(1) else {
                    return Err(self.unmatched('}'));
                };
                self.literal_braces = left;
                self.literal("}");
                after
            } else {
                let inside = from.strip_prefix('{').and_then(|from| from.split_once('}'));
                let Some((inside, after)) = inside else { return Err(self.unmatched('{')) };
                let Some(placeholder) = P::parse(inside)? else {
                    return Err(self.unmatched('{'));
                };
                self.parts.push(TemplatePart::Placeholder(placeholder));
                after
            };
            self.position += from.len() - after.len();
            rest = after;
        }
        self.literal(rest);
        self.position += rest.len();
        Ok(())
    }

    pub(in crate::providers) fn part(&mut self, part: TemplatePart<P>) {
        self.parts.push(part);
    }

    /// Adds `text`, which has an opening brace of another syntax at its end: the brace that closes
    /// it stands for itself.
    pub(in crate::providers) fn open_literal_brace(&mut self, text: &str) {
        self.literal(text);
        self.literal_braces += 1;
    }

    /// Goes past `length` bytes that are in other syntax, so that columns stay right.
    pub(in crate::providers) fn advance(&mut self, length: usize) {
        self.position += length;
    }

    pub(in crate::providers) fn unmatched(&self, brace: char) -> Diagnostic {
        let before = self.written.get(..self.position).unwrap_or_default();
        let column = before.chars().count() + 1;
        Diagnostic::error(format!(
            "the '{brace}' at column {column} of '{}' is not part of a placeholder",
            self.written
        ))
        .with_hint("write {name} for an argument, and {{ or }} for a literal brace")
    }

    pub(in crate::providers) fn finish(mut self) -> TextTemplate<P> {
        self.parts.shrink_to_fit();
        TextTemplate { parts: self.parts }
    }

    fn literal(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(TemplatePart::Literal(literal)) => literal.push_str(text),
            _ => self.parts.push(TemplatePart::Literal(text.to_owned())),
        }
    }
}

/// A value whose texts are templates; its keys are not.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::providers) enum TemplateTree<P> {
    /// A number, boolean or null, which stays what it is.
    Fixed(Value),
    Text(TextTemplate<P>),
    /// Without the items that are absent.
    List(Vec<Self>),
    /// Without the members that are absent.
    Map(Vec<(String, Self)>),
}

/// What a text becomes; `None` for something absent.
type TextFiller<'a, P, E> = dyn Fn(&TextTemplate<P>) -> Result<Option<Value>, E> + 'a;

impl<P: Placeholder> TemplateTree<P> {
    /// A value of a file; `text` reads each text of it and reports what is wrong.
    pub(in crate::providers) fn of(
        node: &ConfigNode,
        text: &mut dyn FnMut(&str, &ConfigNode) -> Option<TextTemplate<P>>,
    ) -> Self {
        match &node.value {
            NodeValue::Text(written) => {
                text(written, node).map_or(Self::Fixed(Value::Null), Self::Text)
            }
            NodeValue::List(items) => {
                Self::List(items.iter().map(|item| Self::of(item, text)).collect())
            }
            NodeValue::Map(entries) => {
                let entries = entries.iter();
                Self::Map(
                    entries.map(|(key, v)| (key.text.to_string(), Self::of(v, text))).collect(),
                )
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {
                Self::Fixed(node.to_json())
            }
        }
    }

    pub(in crate::providers) fn texts(&self) -> Vec<&TextTemplate<P>> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Text(template) => vec![template],
            Self::List(items) => items.iter().flat_map(Self::texts).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(_, value)| value.texts()).collect(),
        }
    }

    /// The placeholder that makes up the whole value, if there is nothing else in it.
    pub(in crate::providers) fn sole_placeholder(&self) -> Option<&P> {
        match self {
            Self::Text(template) => template.sole_placeholder(),
            _ => None,
        }
    }

    /// The value with every text filled by `text`.
    pub(in crate::providers) fn filled<E>(
        &self,
        text: &TextFiller<'_, P, E>,
    ) -> Result<Option<Value>, E> {
        Ok(match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Text(template) => text(template)?,
            Self::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.extend(item.filled(text)?);
                }
                Some(Value::Array(list))
            }
            Self::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    if let Some(value) = value.filled(text)? {
                        map.insert(key.clone(), value);
                    }
                }
                Some(Value::Object(map))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Name(String);

    impl Placeholder for Name {
        fn parse(inside: &str) -> Result<Option<Self>, Diagnostic> {
            Ok(is_argument_name(inside).then(|| Self(inside.to_owned())))
        }
    }

    fn render(text: &str, value: Option<&str>) -> Result<Option<String>, String> {
        let template = TextTemplate::<Name>::parse(text).map_err(|error| error.message)?;
        template.render(|_| Ok(value.map(str::to_owned)), |name| format!("no {}", name.0))
    }

    #[test]
    fn placeholders_and_braces_are_told_apart() {
        for (text, expected) in
            [("", ""), ("a{n}b", "a{1}b"), ("{{n}}", "{n}"), ("{{{n}}}", "{{1}}"), ("a}}b", "a}b")]
        {
            assert_eq!(render(text, Some("{1}")), Ok(Some(expected.to_owned())), "{text}");
        }
        assert_eq!(render("{n}", None), Ok(None));
        assert_eq!(render("<{n}>", None), Err("no n".to_owned()));
    }

    #[test]
    fn an_unmatched_brace_is_told_with_its_column() {
        for (text, brace, column) in
            [("{", '{', 1), ("é}", '}', 2), ("{a}{}", '{', 4), ("{{a{b", '{', 4), ("{a}}", '}', 4)]
        {
            let message = TextTemplate::<Name>::parse(text).unwrap_err().message;
            let expected = format!("the '{brace}' at column {column} of '{text}' is ");
            assert!(message.starts_with(&expected), "{message}");
        }
    }

    proptest! {
        #[test]
        fn escaped_text_is_itself(text in any::<String>()) {
            let escaped = text.replace('{', "{{").replace('}', "}}");
            let template = TextTemplate::<Name>::parse(&escaped).unwrap();
            prop_assert_eq!(template.literal(), Some(text.as_str()));
        }
    }
}
