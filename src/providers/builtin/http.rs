//! `builtin.http`: one HTTP request to an address that the call names.

use serde_json::{Value, json};

use super::arguments::BuiltinArguments;
use super::{BuiltinFunction, FunctionBody, NetworkRules};
use crate::model::Error;
use crate::providers::http::FetchRequest;

/// How much of an answer is kept when the call does not say, in bytes.
const DEFAULT_BYTES: u64 = 256 << 10;
/// The most of an answer that can be kept, in bytes.
const MAX_BYTES: u64 = 16 << 20;

pub(super) const FETCH: BuiltinFunction = BuiltinFunction {
    module: "builtin.http",
    name: "fetch",
    aliases: &[],
    title: "Fetch a URL",
    description: "Sends an HTTP request and returns the response: JSON as a value, text as text. \
                  Redirects are followed within the same origin.",
    input: || {
        json!({
            "type": "object",
            "properties": {
                "url": { "type": "string", "description": "The address, http or https" },
                "method": {
                    "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
                    "default": "GET",
                },
                "headers": {
                    "type": "object",
                    "additionalProperties": { "type": "string" },
                    "description": "Headers to send",
                },
                "body": { "description": "The body: text is sent unchanged, anything else as JSON" },
                "max_bytes": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_BYTES,
                    "default": DEFAULT_BYTES,
                    "description": "Number of bytes of the response to keep",
                },
            },
            "required": ["url"],
            "additionalProperties": false,
            "examples": [{ "url": "https://example.com/" }],
        })
    },
    output: None,
    idempotent: false,
    run: FunctionBody::Network(request),
};

fn request(arguments: BuiltinArguments<'_>, rules: NetworkRules) -> Result<FetchRequest, Error> {
    let mut headers = Vec::new();
    match arguments.0.get("headers") {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => {
            for (name, value) in map {
                let text = value
                    .as_str()
                    .ok_or_else(|| Error::usage(format!("the header '{name}' must be text")))?;
                headers.push((name.clone(), text.to_owned()));
            }
        }
        Some(_) => return Err(Error::usage("the values of 'headers' must be text")),
    }
    let max_bytes = match arguments.0.get("max_bytes") {
        None | Some(Value::Null) => DEFAULT_BYTES,
        Some(value) => value
            .as_u64()
            .filter(|bytes| (1..=MAX_BYTES).contains(bytes))
            .ok_or_else(|| Error::usage(format!("'max_bytes' must be from 1 to {MAX_BYTES}")))?,
    };
    Ok(FetchRequest {
        url: arguments.text("url")?,
        method: arguments
            .optional_text("method")?
            .map_or_else(|| "GET".to_owned(), |method| method.to_ascii_uppercase()),
        headers,
        body: arguments.0.get("body").cloned(),
        max_bytes: usize::try_from(max_bytes).unwrap_or(usize::MAX),
        requires_public: rules.requires_public,
        insecure: rules.insecure,
    })
}
