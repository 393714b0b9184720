//! Which requests over HTTP are plain, valid calls of a tool.

use http::request::Parts;
use http::{HeaderMap, Method};
use rmcp::model::ProtocolVersion;

use crate::serve::catalogue_server::StatelessCall;
use crate::serve::listen::client_message::ToolCallMessage;

/// The revisions whose clients call in a session.
const SESSION_VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
];
/// Where a request says its revision.
const PROTOCOL_VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// The prefix of an encoded name in a header (SEP-2243).
const ENCODED_PREFIX: &str = "=?";

pub(super) enum PlainCall {
    Stateless(StatelessCall),
    InSession(String, ToolCallMessage),
}

/// The headers that decide what a request is. One that is not text, or there twice, makes it no plain
/// call.
#[derive(Default)]
struct CallHeaders<'a> {
    host: Option<&'a str>,
    accept: Option<&'a str>,
    content_type: Option<&'a str>,
    version: Option<&'a str>,
    method: Option<&'a str>,
    name: Option<&'a str>,
    session: Option<&'a str>,
}

impl PlainCall {
    /// Reads a request; `None` for one that is not a plain call. `takes_headers` says of a tool whether
    /// arguments are repeated in headers.
    pub(super) fn read(
        head: &Parts,
        body: &[u8],
        takes_headers: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        if head.method != Method::POST {
            return None;
        }
        let headers = CallHeaders::read(&head.headers)?;
        if !is_plain_host(headers.host?)
            || !accepts_both(headers.accept?)
            || !is_json(headers.content_type?)
        {
            return None;
        }
        let is_modern = match headers.version {
            Some(version) if version == ProtocolVersion::V_2026_07_28.as_str() => true,
            Some(version)
                if SESSION_VERSIONS.iter().all(|supported| supported.as_str() != version) =>
            {
                return None;
            }
            Some(_) | None => false,
        };
        let session = headers.session.map(str::to_owned);
        if (is_modern && headers.method != Some("tools/call")) || (!is_modern && session.is_none())
        {
            return None;
        }
        let call = ToolCallMessage::read(std::str::from_utf8(body).ok()?)?;
        if !is_modern {
            let own = call.meta.as_ref().and_then(|meta| meta.get(PROTOCOL_VERSION_KEY));
            return own.is_none().then_some(Self::InSession(session?, call));
        }
        let ToolCallMessage { id, params, meta } = call;
        let meta = meta?;
        let capabilities = meta.client_capabilities()?;
        let is_same_version = meta
            .get(PROTOCOL_VERSION_KEY)
            .is_some_and(|version| version.as_str() == headers.version);
        let is_same_name = headers
            .name
            .is_some_and(|name| name == params.name && !name.starts_with(ENCODED_PREFIX));
        let is_plain = is_same_version && is_same_name && !takes_headers(&params.name);
        let place = head.extensions.get().cloned();
        let call = StatelessCall { id, params, meta, capabilities, place };
        is_plain.then_some(Self::Stateless(call))
    }
}

impl<'a> CallHeaders<'a> {
    fn read(headers: &'a HeaderMap) -> Option<Self> {
        let mut call_headers = Self::default();
        for (name, value) in headers {
            let place = match name.as_str() {
                "host" => &mut call_headers.host,
                "accept" => &mut call_headers.accept,
                "content-type" => &mut call_headers.content_type,
                "mcp-protocol-version" => &mut call_headers.version,
                "mcp-method" => &mut call_headers.method,
                "mcp-name" => &mut call_headers.name,
                "mcp-session-id" => &mut call_headers.session,
                name if name.starts_with("mcp-param-") => return None,
                _ => continue,
            };
            if place.replace(value.to_str().ok()?).is_some() {
                return None;
            }
        }
        Some(call_headers)
    }
}

/// Whether this is a name or an address of four numbers, with a port or without.
fn is_plain_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        && (1..=5).contains(&port.len())
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether both kinds of answers are taken, and none is weighed.
fn accepts_both(accept: &str) -> bool {
    if accept.contains([';', '"']) {
        return false;
    }
    let is_taken =
        |kind: &str| accept.split(',').any(|taken| taken.trim().eq_ignore_ascii_case(kind));
    is_taken("application/json") && is_taken("text/event-stream")
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split_once(';').map_or(content_type, |(kind, _)| kind);
    kind.trim().eq_ignore_ascii_case("application/json")
}
