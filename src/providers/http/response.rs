//! Turning a response into the result of a call.
//!
//! | the answer | the result |
//! |---|---|
//! | 2xx with JSON | that value, or the part `response_path` names |
//! | 2xx with text | text |
//! | 2xx with an image, sound or other data | a block with the data |
//! | 2xx without a body | null |
//! | 401, 407 | no success, `auth` |
//! | other 4xx, 5xx | no success, `tool` |

use bytes::Bytes;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use url::Url;

use super::pointer;
use crate::model::{Error, ErrorPhase, ToolResult};
use crate::net::address::display_url;
use crate::net::response::{content_type, lossy, server_message, truncate};
use crate::util::base64;
use crate::util::units::show_size;

/// Response headers that are included in the metadata of a result, if present.
const REPORTED_HEADERS: &str = "content-type content-language date etag last-modified link \
    location retry-after ratelimit-remaining x-ratelimit-remaining x-ratelimit-reset x-request-id";

/// The response to a request, its body read up to the entry's limit.
#[derive(Debug)]
pub(super) struct HttpResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) url: Url,
    pub(super) body: Bytes,
    /// Whether the body was longer than the limit, so that its end is missing.
    pub(super) is_truncated: bool,
    /// The announced length, when there was one.
    pub(super) expected: Option<u64>,
}

/// The parts of a request that decide how its response is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponseRules<'a> {
    pub(super) method: &'a Method,
    /// The part of the answer that is the result.
    pub(super) response_path: Option<&'a str>,
    /// How much of the answer was kept, in bytes.
    pub(super) max_response: usize,
    pub(super) limit_name: &'static str,
    pub(super) auth_hint: &'static str,
}

pub(super) fn read(rules: ResponseRules<'_>, answer: &HttpResponse) -> Result<ToolResult, Error> {
    let mut result = if answer.status.is_client_error() || answer.status.is_server_error() {
        error_result(rules, answer)
    } else if answer.status.is_success() {
        success(rules, answer).map_err(|error| error.with_phase(ErrorPhase::Call))?
    } else {
        return Err(Error::protocol(format!(
            "{} answered {}",
            display_url(&answer.url),
            answer.status
        ))
        .with_phase(ErrorPhase::Call));
    };
    result.meta = Some(json!({
        "status": answer.status.as_u16(),
        "url": display_url(&answer.url),
        "headers": reported_headers(&answer.headers),
    }));
    Ok(result)
}

fn reported_headers(headers: &HeaderMap) -> Map<String, Value> {
    let all = REPORTED_HEADERS.split(' ').filter_map(|name| Some((name, headers.get(name)?)));
    all.map(|(name, value)| (name.to_owned(), Value::String(truncate(&lossy(value.as_bytes())))))
        .collect()
}

fn error_result(rules: ResponseRules<'_>, answer: &HttpResponse) -> ToolResult {
    let (status, place) = (answer.status, display_url(&answer.url));
    let message = match server_message(&answer.body) {
        Some(detail) => format!("{place} answered {status}: {detail}"),
        None => format!("{place} answered {status}"),
    };
    let error = match status {
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            let values = answer.headers.get_all(WWW_AUTHENTICATE).iter().take(5);
            let challenges =
                values.map(|v| format!("www-authenticate: {}", truncate(&lossy(v.as_bytes()))));
            Error::auth(message.clone()).with_details(challenges).with_hint(rules.auth_hint)
        }
        _ => Error::tool(message.clone()),
    };
    let body = lossy(&answer.body);
    let mut result = ToolResult::failure(message);
    result.error = Some(
        error.with_phase(ErrorPhase::Call).with_data(json!({ "http_status": status.as_u16() })),
    );
    if is_json(&content_type(&answer.headers))
        && let Ok(value) = serde_json::from_str::<Value>(&body)
    {
        result.content = vec![json!({ "type": "text", "text": body })];
        result.structured = value.is_object().then(|| value.clone());
        result.output = value;
    }
    result
}

fn success(rules: ResponseRules<'_>, answer: &HttpResponse) -> Result<ToolResult, Error> {
    if rules.method == Method::HEAD {
        let status = answer.status.as_u16();
        return Ok(ToolResult::json(
            json!({ "status": status, "headers": reported_headers(&answer.headers) }),
        ));
    }
    if answer.body.is_empty() {
        return Ok(ToolResult { success: true, ..ToolResult::default() });
    }
    let kind = content_type(&answer.headers);
    let sniffed = kind.is_empty() && serde_json::from_slice::<Value>(&answer.body).is_ok();
    let selects = rules.response_path.is_some();
    if is_json(&kind) || sniffed || (selects && !is_binary(&kind, &answer.body)) {
        return json_result(rules, answer);
    }
    if selects {
        return Err(Error::protocol(format!("the response is {kind}, not JSON"))
            .with_hint("'response_path' in the entry needs JSON"));
    }
    Ok(if is_binary(&kind, &answer.body) {
        data(&kind, rules, answer)
    } else {
        text(rules, answer)
    })
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json") || kind == "text/json"
}

fn is_binary(kind: &str, body: &[u8]) -> bool {
    let texts =
        ["application/xml", "application/javascript", "application/yaml", "application/x-ndjson"];
    let says_text = kind.starts_with("text/")
        || kind.ends_with("+xml")
        || kind.ends_with("+json")
        || is_json(kind)
        || texts.contains(&kind)
        || kind == "application/x-www-form-urlencoded";
    !says_text
        && (["image/", "audio/", "video/"].iter().any(|p| kind.starts_with(p)) || !is_text(body))
}

fn is_text(body: &[u8]) -> bool {
    match std::str::from_utf8(body) {
        Ok(text) => !text.contains('\0'),
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
    }
}

fn json_result(rules: ResponseRules<'_>, answer: &HttpResponse) -> Result<ToolResult, Error> {
    if answer.is_truncated {
        if let Some(path) = rules.response_path {
            return Err(Error::protocol(format!(
                "the response is larger than {}, so '{path}' cannot be looked for in it",
                show_size(rules.max_response as u64)
            ))
            .with_hint(format!("'{}' allows more", rules.limit_name)));
        }
        return Ok(text(rules, answer));
    }
    let value: Value = serde_json::from_slice(&answer.body).map_err(|cause| {
        let head = truncate(&lossy(&answer.body));
        let error = Error::protocol(format!("the response is not the JSON it should be: {cause}"));
        error.with_detail(format!("it starts with: {head}"))
    })?;
    let Some(path) = rules.response_path else { return Ok(ToolResult::json(value)) };
    Ok(match pointer::follow(&value, path) {
        Ok(part) => ToolResult::json(part),
        Err(error) => {
            let mut result = ToolResult::failure(error.message());
            result.content.push(json!({ "type": "text", "text": value.to_string() }));
            result
        }
    })
}

fn text(rules: ResponseRules<'_>, answer: &HttpResponse) -> ToolResult {
    let mut result = ToolResult::text(lossy(&answer.body).trim_start_matches('\u{feff}'));
    if answer.is_truncated {
        // The mark also tells the masker that the cut may have left a part of a secret.
        let text = lossy(&answer.body).trim_end_matches('\u{fffd}').to_owned();
        result = ToolResult::text(format!("{}…", text.trim_start_matches('\u{feff}')));
        result.warnings.push(cut_notice(rules, answer));
    } else if std::str::from_utf8(&answer.body).is_err() {
        result.warnings.push("the response is not UTF-8: other bytes were replaced".to_owned());
    }
    result
}

fn cut_notice(rules: ResponseRules<'_>, answer: &HttpResponse) -> String {
    let limit = show_size(rules.max_response as u64);
    let of = answer.expected.map(|all| format!(" of {}", show_size(all))).unwrap_or_default();
    format!("the response was truncated: {limit}{of} are kept ('{}' allows more)", rules.limit_name)
}

/// Data as a block in MCP's shape; half of an image is of no use.
fn data(kind: &str, rules: ResponseRules<'_>, answer: &HttpResponse) -> ToolResult {
    let kind = if kind.is_empty() { "application/octet-stream" } else { kind };
    if answer.is_truncated {
        let size = answer.expected.map_or_else(
            || format!("more than {}", show_size(rules.max_response as u64)),
            show_size,
        );
        let mut result = ToolResult::text(format!("[{kind}, {size}: too large to store]"));
        result.warnings.push(cut_notice(rules, answer));
        return result;
    }
    let encoded = base64::encode(&answer.body);
    let block = match kind.split('/').next() {
        Some(word @ ("image" | "audio")) => {
            json!({ "type": word, "mimeType": kind, "data": encoded })
        }
        _ => json!({
            "type": "resource",
            "resource": { "uri": display_url(&answer.url), "mimeType": kind, "blob": encoded },
        }),
    };
    ToolResult { success: true, content: vec![block], ..ToolResult::default() }
}
