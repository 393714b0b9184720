//! `builtin.http`: one HTTP request to an address that the call names.

use serde_json::{Value, json};

use super::{BuiltinFunction, FunctionBody, input};
use crate::model::Error;
use crate::providers::arguments::{Arguments, text};
use crate::providers::http::{DEFAULT_RESPONSE_BYTES, FetchRequest, MAX_RESPONSE_BYTES, METHODS};

pub(super) const FETCH: BuiltinFunction = BuiltinFunction {
    module: "builtin.http",
    name: "fetch",
    aliases: &[],
    title: "Fetch a URL",
    description: "Sends an HTTP request and returns the response: JSON as a value, text as text. \
                  Redirects are followed within the same origin.",
    input: || {
        let text_map = json!({ "type": "object", "additionalProperties": { "type": "string" },
            "description": "Headers to send" });
        let body = "The body: text is sent unchanged, anything else as JSON";
        let bytes = json!({ "type": "integer", "minimum": 1, "maximum": MAX_RESPONSE_BYTES,
            "default": DEFAULT_RESPONSE_BYTES,
            "description": "Number of bytes of the response to keep" });
        let properties = [
            ("url", text("The address, http or https")),
            ("method", json!({ "enum": METHODS, "default": "GET" })),
            ("headers", text_map),
            ("body", json!({ "description": body })),
            ("max_bytes", bytes),
        ];
        let mut schema = input(&properties, &["url"]);
        schema["examples"] = json!([{ "url": "https://example.com/" }]);
        schema
    },
    output: None,
    idempotent: false,
    run: FunctionBody::Network(request),
};

fn request(arguments: Arguments<'_>) -> Result<FetchRequest, Error> {
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
    let max_bytes = arguments.count("max_bytes", 1)?.unwrap_or(DEFAULT_RESPONSE_BYTES);
    if max_bytes > MAX_RESPONSE_BYTES {
        return Err(Error::usage(format!("'max_bytes' must be from 1 to {MAX_RESPONSE_BYTES}")));
    }
    Ok(FetchRequest {
        url: arguments.text("url")?.to_owned(),
        method: arguments.optional_text("method")?.unwrap_or("GET").to_ascii_uppercase(),
        headers,
        body: arguments.0.get("body").cloned(),
        max_bytes: usize::try_from(max_bytes).unwrap_or(usize::MAX),
    })
}
