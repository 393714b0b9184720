//! The template engine for texts with `{name}`: arguments of commands, texts of requests and values
//! of pipelines.
//!
//! Owns: the syntax (`{…}` is a placeholder, `{{` and `}}` are braces), its errors, and how a value
//! is written inside a text. A value is inserted unchanged and never read as a template again.
//! Never does: decide what may stand between the braces (each kind has its own [`Placeholder`]), or
//! encode; the caller knows where the text goes.

mod builder;
mod tree;

use serde_json::Value;

use crate::model::Diagnostic;

pub(super) use self::builder::TemplateBuilder;
pub(super) use self::tree::TemplateTree;

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
