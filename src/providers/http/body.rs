//! The body of a request: templates, arguments, and their encoding.
//!
//! A text of the template that is only a placeholder becomes the argument itself, with its
//! type; when the argument is absent, the member or item is left out. Within a larger text a
//! value is put in as text.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::template::{ContextField, HttpPlaceholder, TemplateReader, TemplateValues};
use crate::config::node::{ConfigNode, NodeValue};
use crate::model::{Diagnostic, Error};
use crate::providers::hinted_error::HintedError as _;
use crate::providers::template::{TextTemplate, value_text};

/// The encoding of a body, which the key `body_type` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum BodyType {
    Json,
    Form,
    /// As UTF-8 text without further encoding.
    Text,
}

impl BodyType {
    /// The `Content-Type` of the encoding, for requests whose entry sets none.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Form => "application/x-www-form-urlencoded",
            Self::Text => "text/plain; charset=utf-8",
        }
    }

    /// The bytes of a body. A list in a form is one field for each item; other structure in it
    /// travels as JSON.
    pub(super) fn encode(self, body: &Value) -> Vec<u8> {
        match (self, body) {
            (Self::Form, Value::Object(fields)) => {
                let mut form = form_urlencoded::Serializer::new(String::new());
                for (name, value) in fields {
                    let values = match value {
                        Value::Array(items) => items.as_slice(),
                        other => std::slice::from_ref(other),
                    };
                    form.extend_pairs(
                        values.iter().filter_map(value_text).map(|text| (name, text)),
                    );
                }
                form.finish().into_bytes()
            }
            (Self::Text, body) => value_text(body).unwrap_or_default().into_bytes(),
            (_, body) => body.to_string().into_bytes(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum BodyTemplate {
    /// A number, boolean or null from the file, sent unchanged.
    Fixed(Value),
    /// A text; one that is a single argument keeps the argument's type.
    Text(TextTemplate<HttpPlaceholder>),
    /// A list, without the items whose argument is absent.
    List(Vec<Self>),
    /// An object; names have no placeholders.
    Object(Vec<(String, Self)>),
}

impl BodyTemplate {
    pub(super) fn read(node: &ConfigNode, reader: &TemplateReader<'_>) -> Result<Self, Diagnostic> {
        Ok(match &node.value {
            NodeValue::Text(text) => {
                Self::Text(reader.read(text).map_err(|error| error.diagnostic(&node.location()))?)
            }
            NodeValue::List(items) => Self::List(
                items.iter().map(|item| Self::read(item, reader)).collect::<Result<_, _>>()?,
            ),
            NodeValue::Map(entries) => {
                let member = |(key, value): &(crate::config::node::ConfigKey, ConfigNode)| {
                    Ok((key.text.clone(), Self::read(value, reader)?))
                };
                Self::Object(entries.iter().map(member).collect::<Result<_, Diagnostic>>()?)
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {
                Self::Fixed(node.to_json())
            }
        })
    }

    pub(super) fn templates(&self) -> Vec<&TextTemplate<HttpPlaceholder>> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Text(template) => vec![template],
            Self::List(items) => items.iter().flat_map(Self::templates).collect(),
            Self::Object(members) => {
                members.iter().flat_map(|(_, shape)| shape.templates()).collect()
            }
        }
    }

    /// The value of one request; `None` if it is only an absent argument.
    pub(super) fn fill(&self, values: &TemplateValues<'_>) -> Result<Option<Value>, Error> {
        Ok(match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Text(template) => match (template.sole_placeholder(), values.context) {
                (Some(HttpPlaceholder::Argument(name)), _) => {
                    values.arguments.get(name).filter(|value| !value.is_null()).cloned()
                }
                (Some(HttpPlaceholder::Context(ContextField::Metadata(key))), Some(context)) => {
                    context.metadata.get(key).filter(|value| !value.is_null()).cloned()
                }
                _ => values.text(template)?.map(Value::String),
            },
            Self::List(items) => {
                let mut list = Vec::new();
                for item in items {
                    list.extend(item.fill(values)?);
                }
                Some(Value::Array(list))
            }
            Self::Object(members) => {
                let mut object = Map::new();
                for (name, shape) in members {
                    if let Some(value) = shape.fill(values)? {
                        object.insert(name.clone(), value);
                    }
                }
                Some(Value::Object(object))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_repeats_lists_and_leaves_out_nothings() {
        let body = json!({ "a": "x y&", "n": 3, "l": [1, "é"], "o": { "k": true }, "z": null });
        let form = String::from_utf8(BodyType::Form.encode(&body)).unwrap();
        assert_eq!(form, "a=x+y%26&n=3&l=1&l=%C3%A9&o=%7B%22k%22%3Atrue%7D");
        assert_eq!(BodyType::Text.encode(&json!("a\n")), b"a\n");
        assert_eq!(BodyType::Json.encode(&json!({ "a": 1.50 })), b"{\"a\":1.5}");
    }
}
