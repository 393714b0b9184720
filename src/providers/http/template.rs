//! Templates in requests: `{name}` for an argument, `{context.…}` for the context of a call,
//! `${VAR}` for the user's environment.

use secrecy::{ExposeSecret as _, SecretString};

use crate::config::consent::Expander;
use crate::config::references::{AllowedReferences, ReferencePiece, pieces, variable};
use crate::config::secrets::names_secret;
use crate::model::{Diagnostic, Error, JsonObject, ToolContext};
use crate::providers::template::{
    Placeholder, TemplateBuilder, TemplatePart, TextTemplate, is_argument_name, value_text,
};

#[derive(Debug, Clone)]
pub(super) enum HttpPlaceholder {
    /// The value of a reference of the entry, and the reference. It is sent, but not shown.
    Secret(SecretString, String),
    Argument(String),
    /// Something of the context of the call: one of [`CONTEXT_FIELDS`], without its first word.
    Context(String),
}

impl HttpPlaceholder {
    /// What stands for it where its value is not shown.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Secret(_, name) => format!("***({name})"),
            Self::Argument(name) => format!("{{{name}}}"),
            Self::Context(field) => format!("{{context.{field}}}"),
        }
    }
}

/// The parts of the context as placeholders name them.
const CONTEXT_FIELDS: [&str; 7] = [
    "context.session_id",
    "context.call_id",
    "context.user_id",
    "context.traceparent",
    "context.cwd",
    "context.metadata.NAME",
    "context.environment.NAME",
];

impl Placeholder for HttpPlaceholder {
    fn parse(inside: &str) -> Result<Option<Self>, Diagnostic> {
        if !is_argument_name(inside) {
            return Ok(None);
        }
        let Some(path) = inside.strip_prefix("context.") else {
            return Ok(Some(Self::Argument(inside.to_owned())));
        };
        let is_field = |field: &str| match field.strip_suffix("NAME") {
            Some(group) => inside.starts_with(group),
            None => field == inside,
        };
        if CONTEXT_FIELDS.iter().any(|field| is_field(field)) {
            return Ok(Some(Self::Context(path.to_owned())));
        }
        Err(Diagnostic::error(format!("the context has no '{{{inside}}}'"))
            .with_hint(format!("it has {}", CONTEXT_FIELDS.join(", "))))
    }
}

#[derive(Clone, Copy)]
pub(super) struct TemplateReader<'a> {
    /// Leads references to their values.
    pub(super) expander: Expander<'a>,
    /// Whether every reference is a secret, and not only those with telling names.
    pub(super) all_secret: bool,
}

impl TemplateReader<'_> {
    pub(super) fn read(&self, written: &str) -> Result<TextTemplate<HttpPlaceholder>, Diagnostic> {
        let mut builder = TemplateBuilder::new(written);
        for piece in pieces(written) {
            match piece {
                ReferencePiece::Text(text) => builder.read(text)?,
                ReferencePiece::Escaped => {
                    builder.open_literal_brace("${");
                    builder.advance("$${".len());
                }
                ReferencePiece::Reference(reference) => {
                    builder.part(self.reference(reference)?);
                    builder.advance("${}".len() + reference.len());
                }
                ReferencePiece::Unclosed => {
                    builder.advance("$".len());
                    return Err(builder.unmatched('{'));
                }
            }
        }
        Ok(builder.finish())
    }

    fn reference(&self, reference: &str) -> Result<TemplatePart<HttpPlaceholder>, Diagnostic> {
        let allowed =
            if self.all_secret { AllowedReferences::Secrets } else { AllowedReferences::Variables };
        let value = self.expander.text(&format!("${{{reference}}}"), allowed)?;
        let name = variable(reference).unwrap_or(reference).to_owned();
        Ok(if self.all_secret || names_secret(&name) {
            TemplatePart::Placeholder(HttpPlaceholder::Secret(SecretString::from(value), name))
        } else {
            TemplatePart::Literal(value)
        })
    }
}

#[derive(Clone, Copy)]
pub(super) struct TemplateValues<'a> {
    pub(super) arguments: &'a JsonObject,
    /// The context; without one its placeholders are kept unchanged.
    pub(super) context: Option<&'a ToolContext>,
    pub(super) masked: bool,
}

impl TemplateValues<'_> {
    /// The value of a placeholder as text; `None` when it is absent.
    pub(super) fn value(&self, placeholder: &HttpPlaceholder) -> Option<String> {
        match placeholder {
            HttpPlaceholder::Secret(..) if self.masked => Some(placeholder.shown()),
            HttpPlaceholder::Secret(value, _) => Some(value.expose_secret().to_owned()),
            HttpPlaceholder::Argument(name) => self.arguments.get(name).and_then(value_text),
            HttpPlaceholder::Context(field) => match self.context {
                Some(context) => context_field(context, field),
                None => Some(placeholder.shown()),
            },
        }
    }

    /// The whole text; `None` if it is only a placeholder for something absent.
    pub(super) fn text(
        &self,
        template: &TextTemplate<HttpPlaceholder>,
    ) -> Result<Option<String>, Error> {
        template.render(|placeholder| Ok(self.value(placeholder)), missing_value_error)
    }
}

fn context_field(context: &ToolContext, field: &str) -> Option<String> {
    match field.split_once('.') {
        Some(("metadata", key)) => context.metadata.get(key).and_then(value_text),
        Some((_, key)) => context.environment.get(key).cloned(),
        None => match field {
            "session_id" => Some(context.session_id.to_string()),
            "call_id" => Some(context.call_id.0.to_string()),
            "user_id" => context.user_id.clone(),
            "traceparent" => context.trace.as_ref().map(|trace| trace.traceparent().to_owned()),
            _ => Some(context.cwd.display().to_string()),
        },
    }
}

pub(super) fn missing_value_error(placeholder: &HttpPlaceholder) -> Error {
    match placeholder {
        HttpPlaceholder::Context(field) => {
            let error = Error::usage(format!("the call has no context.{field}"));
            match field.strip_prefix("environment.") {
                Some(key) => error.with_hint(format!(
                    "--context {key}=VALUE gives it to an entry with 'context_env: [{key}]'"
                )),
                None => error,
            }
        }
        HttpPlaceholder::Argument(name) => {
            Error::usage(format!("'{name}' is missing: the request needs it inside a text"))
        }
        HttpPlaceholder::Secret(..) => Error::internal("a text of the entry is absent"),
    }
}

impl TextTemplate<HttpPlaceholder> {
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.placeholders().filter_map(|placeholder| match placeholder {
            HttpPlaceholder::Argument(name) => Some(name.as_str()),
            _ => None,
        })
    }

    pub(super) fn is_call_value(&self) -> bool {
        matches!(
            self.sole_placeholder(),
            Some(HttpPlaceholder::Argument(_) | HttpPlaceholder::Context(_))
        )
    }

    /// Its texts that are the same in every request: literals, and the values of secrets.
    pub(super) fn fixed_texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Literal(text) => Some(text.as_str()),
            TemplatePart::Placeholder(HttpPlaceholder::Secret(value, _)) => {
                Some(value.expose_secret())
            }
            TemplatePart::Placeholder(_) => None,
        })
    }

    /// The names of the references whose values it hands out.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.placeholders().filter_map(|placeholder| match placeholder {
            HttpPlaceholder::Secret(_, name) => Some(name.as_str()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::config::consent::Grant;
    use crate::config::environment::FixedEnvironment;
    use crate::config::expanded::ExpandedValues;

    fn read(text: &str) -> Result<TextTemplate<HttpPlaceholder>, Diagnostic> {
        let environment = FixedEnvironment {
            vars: [("API_TOKEN", "s{x}t"), ("HOST", "h{y}")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ..FixedEnvironment::default()
        };
        let expanded = ExpandedValues::default();
        let grant = Grant::for_tests();
        let expander = Expander::new(&grant, &environment, Path::new("/"), &expanded);
        TemplateReader { expander, all_secret: false }.read(text)
    }

    fn fill(text: &str, arguments: Value, masked: bool) -> Result<Option<String>, String> {
        let Value::Object(arguments) = arguments else { panic!("not an object") };
        let values = TemplateValues { arguments: &arguments, context: None, masked };
        let template = read(text).map_err(|error| error.message)?;
        values.text(&template).map_err(|error| error.to_string())
    }

    #[test]
    fn placeholders_references_and_braces_are_told_apart() {
        let arguments = json!({ "n": 3, "s": "{n}" });
        for (text, expected) in [
            ("a{n}b", "a3b"),
            ("{s}", "{n}"),
            ("{{n}}", "{n}"),
            ("${HOST}/{n}", "h{y}/3"),
            ("$${n}", "${n}"),
            ("Bearer ${API_TOKEN}", "Bearer s{x}t"),
            ("{context.session_id}", "{context.session_id}"),
        ] {
            assert_eq!(fill(text, arguments.clone(), false), Ok(Some(expected.into())), "{text}");
        }
        let masked = fill("Bearer ${API_TOKEN} ${HOST}", arguments, true);
        assert_eq!(masked, Ok(Some("Bearer ***(API_TOKEN) h{y}".into())));
    }

    #[test]
    fn what_is_absent_is_left_out_or_asked_for() {
        assert_eq!(fill("{x}", json!({}), false), Ok(None));
        assert_eq!(fill("{x}", json!({ "x": null }), false), Ok(None));
        assert!(fill("a{x}", json!({}), false).unwrap_err().contains("'x' is missing"));
    }

    #[test]
    fn what_is_no_placeholder_is_refused_without_the_value_of_a_variable() {
        for text in ["{", "}", "{}", "{a b}", "a}", "${API_TOKEN", "${API_TOKEN}{"] {
            let why = read(text).unwrap_err().message;
            assert!(why.contains("is not part of a placeholder"), "{why}");
            assert!(!why.contains("s{x}t"), "{why}");
        }
        let why = read("{context.home}").unwrap_err().message;
        assert_eq!(why, "the context has no '{context.home}'");
        assert!(read("${NOPE}").unwrap_err().message.contains("NOPE is not set"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[{}$a-c.:-]{0,14}") {
            if let Ok(template) = read(&text) {
                prop_assert!(template.arguments().all(is_argument_name));
            }
        }
    }
}
