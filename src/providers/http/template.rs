//! Texts with placeholders: `{name}` for an argument, `{context.…}` for the context of a call,
//! `${VAR}` for what the user's environment holds.
//!
//! Owns: reading such a text and filling it in. A value is put in as it is and never looked at
//! again. Never does: encode; whoever uses the text knows where it goes.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::config::consent::Expander;
use crate::config::references::{AllowedReferences, ReferencePiece, pieces, variable};
use crate::config::secrets::names_secret;
use crate::model::{Error, JsonObject, ToolContext};

/// A text with placeholders.
#[derive(Debug, Clone, Default)]
pub(super) struct HttpTemplate {
    pub(super) parts: Vec<HttpTemplatePart>,
}

/// A part of a template.
#[derive(Debug, Clone)]
pub(super) enum HttpTemplatePart {
    /// Text that stands for itself.
    Literal(String),
    /// What a reference of the entry led to, and the reference. It is sent and not shown.
    Secret(SecretString, String),
    /// An argument of the call.
    Argument(String),
    /// Something of the call's context.
    Context(ContextField),
}

/// What a placeholder can take from the context of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContextField {
    /// `{context.session_id}`
    SessionId,
    /// `{context.cwd}`
    Cwd,
    /// `{context.metadata.NAME}`
    Metadata(String),
    /// `{context.environment.NAME}`
    Environment(String),
}

/// What is wrong with a text, and what to write instead. Holds no value of a reference.
#[derive(Debug)]
pub(super) struct TemplateError {
    pub(super) message: String,
    pub(super) hint: String,
}

/// How the texts of an entry are read.
#[derive(Clone, Copy)]
pub(super) struct TemplateReader<'a> {
    /// Leads references to their values.
    pub(super) expander: Expander<'a>,
    /// Whether every reference is a secret, and not only those with telling names.
    pub(super) all_secret: bool,
}

impl TemplateReader<'_> {
    /// Reads a text as it stands in the file.
    ///
    /// # Errors
    /// When a brace belongs to no placeholder, or a reference leads nowhere.
    pub(super) fn read(&self, written: &str) -> Result<HttpTemplate, TemplateError> {
        let mut parts =
            TemplateBuilder { template: HttpTemplate::default(), written, literal_braces: 0 };
        for piece in pieces(written) {
            match piece {
                ReferencePiece::Text(text) => parts.text(text)?,
                ReferencePiece::Escaped => {
                    parts.push_literal("${");
                    parts.literal_braces += 1;
                }
                ReferencePiece::Reference(reference) => {
                    parts.template.parts.push(self.reference(reference)?);
                }
                ReferencePiece::Unclosed => return Err(brace('{', written)),
            }
        }
        Ok(parts.template)
    }

    fn reference(&self, reference: &str) -> Result<HttpTemplatePart, TemplateError> {
        let allowed =
            if self.all_secret { AllowedReferences::Secrets } else { AllowedReferences::Variables };
        let value = self.expander.text(&format!("${{{reference}}}"), allowed).map_err(|wrong| {
            TemplateError { message: wrong.message, hint: wrong.hint.unwrap_or_default() }
        })?;
        let name = variable(reference).unwrap_or(reference).to_owned();
        Ok(if self.all_secret || names_secret(&name) {
            HttpTemplatePart::Secret(SecretString::from(value), name)
        } else {
            HttpTemplatePart::Literal(value)
        })
    }
}

struct TemplateBuilder<'t> {
    template: HttpTemplate,
    written: &'t str,
    /// How many `$${` still wait for the brace that closes them.
    literal_braces: u32,
}

impl TemplateBuilder<'_> {
    fn push_literal(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.template.parts.last_mut() {
            Some(HttpTemplatePart::Literal(literal)) => literal.push_str(text),
            _ => self.template.parts.push(HttpTemplatePart::Literal(text.to_owned())),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), TemplateError> {
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            self.push_literal(before);
            rest = if let Some(after) = from.strip_prefix("{{") {
                self.push_literal("{");
                after
            } else if let Some(after) = from.strip_prefix("}}") {
                self.push_literal("}");
                after
            } else if let Some(after) = from.strip_prefix('}') {
                if self.literal_braces == 0 {
                    return Err(brace('}', self.written));
                }
                self.literal_braces -= 1;
                self.push_literal("}");
                after
            } else {
                let inside = from.strip_prefix('{').and_then(|from| from.split_once('}'));
                let Some((name, after)) = inside.filter(|(name, _)| is_name(name)) else {
                    return Err(brace('{', self.written));
                };
                self.template.parts.push(placeholder(name)?);
                after
            };
        }
        self.push_literal(rest);
        Ok(())
    }
}

fn placeholder(name: &str) -> Result<HttpTemplatePart, TemplateError> {
    let Some(path) = name.strip_prefix("context.") else {
        return Ok(HttpTemplatePart::Argument(name.to_owned()));
    };
    Ok(HttpTemplatePart::Context(match path.split_once('.') {
        None if path == "session_id" => ContextField::SessionId,
        None if path == "cwd" => ContextField::Cwd,
        Some(("metadata", key)) => ContextField::Metadata(key.to_owned()),
        Some(("environment", key)) => ContextField::Environment(key.to_owned()),
        _ => {
            return Err(TemplateError {
                message: format!("'{{{name}}}' is nothing a call is surrounded by"),
                hint: "there are context.session_id, context.cwd, context.metadata.NAME and \
                       context.environment.NAME"
                    .to_owned(),
            });
        }
    }))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn brace(brace: char, text: &str) -> TemplateError {
    TemplateError {
        message: format!("the '{brace}' in '{text}' belongs to no placeholder"),
        hint: "write {name} for an argument, and {{ or }} for a brace itself".to_owned(),
    }
}

/// What a template is filled with.
#[derive(Clone, Copy)]
pub(super) struct TemplateValues<'a> {
    /// The arguments, with the schema's defaults.
    pub(super) arguments: &'a JsonObject,
    /// The context; without them their placeholders stay as they are written.
    pub(super) context: Option<&'a ToolContext>,
    /// Whether secrets are left out, for showing.
    pub(super) masked: bool,
}

impl TemplateValues<'_> {
    /// The text of a part; `None` when it is absent.
    pub(super) fn part(&self, part: &HttpTemplatePart) -> Option<String> {
        match part {
            HttpTemplatePart::Literal(text) => Some(text.clone()),
            HttpTemplatePart::Secret(_, name) if self.masked => Some(format!("***({name})")),
            HttpTemplatePart::Secret(value, _) => Some(value.expose_secret().to_owned()),
            HttpTemplatePart::Argument(name) => self.arguments.get(name).and_then(show),
            HttpTemplatePart::Context(context_field) => self.context_field(context_field),
        }
    }

    fn context_field(&self, context_field: &ContextField) -> Option<String> {
        let Some(context) = self.context else {
            return Some(format!("{{{}}}", context_field.name()));
        };
        match context_field {
            ContextField::SessionId => Some(context.session_id.clone()),
            ContextField::Cwd => Some(context.cwd.display().to_string()),
            ContextField::Metadata(key) => context.metadata.get(key).and_then(show),
            ContextField::Environment(key) => context.environment.get(key).cloned(),
        }
    }

    /// The whole text; `None` when it is nothing but a placeholder that is absent.
    ///
    /// # Errors
    /// A usage error when something is absent within a larger text.
    pub(super) fn text(&self, template: &HttpTemplate) -> Result<Option<String>, Error> {
        let mut filled = String::new();
        for part in &template.parts {
            match self.part(part) {
                Some(text) => filled.push_str(&text),
                None if template.as_placeholder().is_some() => return Ok(None),
                None => return Err(missing_value_error(part)),
            }
        }
        Ok(Some(filled))
    }
}

impl ContextField {
    /// The name a placeholder has for it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::SessionId => "context.session_id".to_owned(),
            Self::Cwd => "context.cwd".to_owned(),
            Self::Metadata(key) => format!("context.metadata.{key}"),
            Self::Environment(key) => format!("context.environment.{key}"),
        }
    }
}

/// The error for a part that a larger text needs.
pub(super) fn missing_value_error(part: &HttpTemplatePart) -> Error {
    match part {
        HttpTemplatePart::Context(context_field) => {
            let error = Error::usage(format!("the call has no {}", context_field.name()));
            match context_field {
                ContextField::Environment(key) => {
                    let declared = format!("context_env: [{key}]");
                    error.with_hint(format!(
                        "--context {key}=VALUE gives it to an entry with '{declared}'"
                    ))
                }
                _ => error,
            }
        }
        HttpTemplatePart::Argument(name) => {
            Error::usage(format!("'{name}' is missing: the request needs it inside a text"))
        }
        HttpTemplatePart::Literal(_) | HttpTemplatePart::Secret(..) => {
            Error::internal("a text of the entry is absent")
        }
    }
}

impl HttpTemplate {
    /// The names of the arguments in it.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            HttpTemplatePart::Argument(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The one part it consists of, when that is a placeholder.
    pub(super) fn as_placeholder(&self) -> Option<&HttpTemplatePart> {
        match self.parts.as_slice() {
            [part @ (HttpTemplatePart::Argument(_) | HttpTemplatePart::Context(_))] => Some(part),
            _ => None,
        }
    }

    /// The names of the references whose values it hands out.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            HttpTemplatePart::Secret(_, name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// A value as it stands in a text; `None` is absent.
pub(super) fn show(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::config::consent::Grant;
    use crate::config::environment::FixedEnvironment;
    use crate::config::expanded::ExpandedValues;

    fn read(text: &str) -> Result<HttpTemplate, String> {
        let environment = FixedEnvironment {
            vars: [("API_TOKEN", "s{x}t"), ("HOST", "h{y}")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ..FixedEnvironment::default()
        };
        let expanded = ExpandedValues::default();
        let grant = Grant::for_tests();
        let expander = grant.expander(&environment, Path::new("/"), &expanded);
        TemplateReader { expander, all_secret: false }.read(text).map_err(|wrong| wrong.message)
    }

    fn fill(text: &str, arguments: Value, masked: bool) -> Result<Option<String>, String> {
        let Value::Object(arguments) = arguments else { panic!("not an object") };
        let filling = TemplateValues { arguments: &arguments, context: None, masked };
        filling.text(&read(text)?).map_err(|error| error.to_string())
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
            let why = read(text).unwrap_err();
            assert!(why.contains("belongs to no"), "{why}");
            assert!(!why.contains("s{x}t"), "{why}");
        }
        assert!(read("{context.home}").unwrap_err().contains("surrounded"));
        assert!(read("${NOPE}").unwrap_err().contains("NOPE is not set"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[{}$a-c.:-]{0,14}") {
            if let Ok(template) = read(&text) {
                prop_assert!(template.arguments().all(is_name));
            }
        }
    }
}
