//! The body of a request: templates, arguments, and their encoding.
//!
//! A text of the template that is only a placeholder becomes the argument itself, with its
//! type; when the argument is absent, the member or item is left out. Within a larger text a
//! value is put in as text.

use std::borrow::Cow;

use reqwest::header::HeaderValue;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use url::form_urlencoded;

use super::template::{HttpPlaceholder, TemplateReader, TemplateValues};
use crate::config::node::ConfigNode;
use crate::model::{Diagnostics, Error};
use crate::providers::template::{TemplateTree, value_text};
use crate::util::base64;
use crate::util::hex::hex;

/// The encoding of a body, which the key `body_type` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum BodyType {
    Json,
    Form,
    Multipart,
    Ndjson,
    Text,
    Bytes,
}

/// A file in a body: its text, or a mapping.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileValue {
    base64: Option<String>,
    text: Option<String>,
    filename: Option<String>,
    #[serde(rename = "type")]
    media_type: Option<String>,
}

impl BodyType {
    /// The `Content-Type`, for requests whose entry sets none, and the bytes of a body. A list in a
    /// form is one field for each item; other structure in it travels as JSON.
    pub(super) fn encode(self, body: &Value) -> Result<(Cow<'static, str>, Vec<u8>), Error> {
        Ok(match (self, body) {
            (Self::Form, Value::Object(fields)) => {
                let mut form = form_urlencoded::Serializer::new(String::new());
                for (name, value) in fields_of(fields) {
                    form.extend_pairs(value_text(value).map(|text| (name, text)));
                }
                ("application/x-www-form-urlencoded".into(), form.finish().into_bytes())
            }
            (Self::Multipart, Value::Object(fields)) => multipart(fields)?,
            (Self::Ndjson, body) => {
                let items = body.as_array().map_or(std::slice::from_ref(body), Vec::as_slice);
                let lines = items.iter().flat_map(|item| [item.to_string(), "\n".to_owned()]);
                ("application/x-ndjson".into(), lines.collect::<String>().into_bytes())
            }
            (Self::Text, body) => {
                let text = value_text(body).unwrap_or_default();
                ("text/plain; charset=utf-8".into(), text.into_bytes())
            }
            (Self::Bytes, body) => {
                let (file, bytes) = file(body)?;
                let kind = file.and_then(|file| file.media_type);
                (kind.map_or("application/octet-stream".into(), Cow::Owned), bytes)
            }
            (_, body) => ("application/json".into(), body.to_string().into_bytes()),
        })
    }
}

/// The fields of a form; one that holds a list stands once for each item.
fn fields_of(fields: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    fields.iter().flat_map(|(name, value)| {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        values.iter().filter(|value| !value.is_null()).map(move |value| (name, value))
    })
}

fn multipart(fields: &Map<String, Value>) -> Result<(Cow<'static, str>, Vec<u8>), Error> {
    let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let mut parts = Vec::new();
    for (name, value) in fields_of(fields) {
        let (file, bytes) = file(value)?;
        let mut head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(name));
        if let Some(file) = file {
            let filename = file.filename.as_deref().unwrap_or("file");
            let media_type = file.media_type.as_deref().unwrap_or("application/octet-stream");
            let filename = quoted(filename);
            head = format!("{head}; filename=\"{filename}\"\r\nContent-Type: {media_type}");
        }
        parts.push([head.as_bytes(), b"\r\n\r\n", &bytes, b"\r\n"].concat());
    }
    // It is in none of the parts, because it depends on all of them.
    let boundary = hex(&Sha256::digest(parts.concat()));
    let mut body = Vec::new();
    for part in parts {
        body.extend([format!("--{boundary}\r\n").as_bytes(), &part].concat());
    }
    body.extend(format!("--{boundary}--\r\n").as_bytes());
    Ok((format!("multipart/form-data; boundary={boundary}").into(), body))
}

/// The bytes of a value, and what is said of them if it is a file.
fn file(value: &Value) -> Result<(Option<FileValue>, Vec<u8>), Error> {
    let is_file = ["base64", "text"].iter().any(|key| value.get(key).is_some());
    let Some(file) = Some(value).filter(|_| is_file).and_then(|v| FileValue::deserialize(v).ok())
    else {
        return Ok((None, value_text(value).unwrap_or_default().into_bytes()));
    };
    if file.media_type.as_deref().is_some_and(|kind| HeaderValue::from_str(kind).is_err()) {
        return Err(Error::usage("the type of a file in the body is one line of text"));
    }
    let bytes = match (&file.base64, &file.text) {
        (Some(text), _) => base64::decode(text)
            .ok_or_else(|| Error::usage("'base64' of a file in the body is not base64"))?,
        (None, text) => text.clone().unwrap_or_default().into_bytes(),
    };
    Ok((Some(file), bytes))
}

pub(super) type BodyTemplate = TemplateTree<HttpPlaceholder>;

impl TemplateTree<HttpPlaceholder> {
    pub(super) fn read(
        node: &ConfigNode,
        reader: &TemplateReader<'_>,
        diagnostics: &Diagnostics,
    ) -> Self {
        Self::of(node, &mut |text, node| {
            let read = reader.read(text);
            diagnostics.ok(read.map_err(|error| error.with_location(node.location())))
        })
    }

    /// The value of one request; `None` if it is only an absent argument.
    pub(super) fn fill(&self, values: &TemplateValues<'_>) -> Result<Option<Value>, Error> {
        self.filled(&|template| {
            let value = match (template.sole_placeholder(), values.context) {
                (Some(HttpPlaceholder::Argument(name)), _) => values.arguments.get(name),
                (Some(HttpPlaceholder::Context(field)), Some(context))
                    if field.starts_with("metadata.") =>
                {
                    field.strip_prefix("metadata.").and_then(|key| context.metadata.get(key))
                }
                _ => return Ok(values.text(template)?.map(Value::String)),
            };
            Ok(value.filter(|value| !value.is_null()).cloned())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn encoded(kind: BodyType, body: &Value) -> String {
        let (media_type, bytes) = kind.encode(body).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        match media_type.split_once("boundary=") {
            Some((_, boundary)) => text.replace(boundary, "B").replace("\r\n", "\n"),
            None => text,
        }
    }

    #[test]
    fn a_form_repeats_lists_and_leaves_out_nothings() {
        let body = json!({ "a": "x y&", "n": 3, "l": [1, "é"], "o": { "k": true }, "z": null });
        assert_eq!(
            encoded(BodyType::Form, &body),
            "a=x+y%26&n=3&l=1&l=%C3%A9&o=%7B%22k%22%3Atrue%7D"
        );
        assert_eq!(encoded(BodyType::Text, &json!("a\n")), "a\n");
        assert_eq!(encoded(BodyType::Json, &json!({ "a": 1.50 })), "{\"a\":1.5}");
        assert_eq!(encoded(BodyType::Ndjson, &json!([{ "a": 1 }, 2])), "{\"a\":1}\n2\n");
        assert_eq!(encoded(BodyType::Bytes, &json!({ "base64": "aGk=" })), "hi");
    }

    #[test]
    fn a_field_of_a_form_cannot_make_another() {
        let body = json!({
            "a\"\r\nb": "x", "n": [1],
            "f": { "base64": "aGk=", "filename": "\"\r\n.png", "type": "image/png" }
        });
        insta::assert_snapshot!(encoded(BodyType::Multipart, &body), @r#"
        --B
        Content-Disposition: form-data; name="a%22%0D%0Ab"

        x
        --B
        Content-Disposition: form-data; name="n"

        1
        --B
        Content-Disposition: form-data; name="f"; filename="%22%0D%0A.png"
        Content-Type: image/png

        hi
        --B--
        "#);
        let odd = json!({ "f": { "text": "", "type": "a\r\nX: b" } });
        assert!(BodyType::Multipart.encode(&odd).is_err());
        assert!(BodyType::Bytes.encode(&json!({ "base64": "!" })).is_err());
    }
}
