//! Parsing a response head, as far as a lane needs it.

use httparse::{EMPTY_HEADER, Header, Response, Status};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// How many lines of response headers are read.
const MAX_HEADER_LINES: usize = 100;
const MAX_CONTENT_TYPE: usize = 80;

/// What precedes the body.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub status: u16,
    pub length: BodyLength,
    pub kind: BodyKind,
    pub is_reusable: bool,
    /// The body is compressed, and how.
    pub content_encoding: Option<String>,
    /// All headers, of a response other than 200.
    pub headers: HeaderMap,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    /// After this many bytes (`Content-Length`).
    Exactly(u64),
    /// After its last chunk (`Transfer-Encoding: chunked`).
    Chunked,
    /// When the server closes the connection.
    ToEnd,
}

/// The kinds of bodies that lanes tell apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// One message or a batch (`application/json`).
    Json,
    /// A stream of events (`text/event-stream`).
    Events,
    /// Something else: its media type, empty when there is none.
    Other(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeadError {
    /// It is not HTTP, and why.
    NotHttp(String),
    TooMany,
    /// It is longer than the limit: its size in bytes, or a lower bound.
    TooLong(usize),
}

/// Reads the head at the beginning of `bytes`, and how long it is; `None` when it goes on. Interim
/// responses (1xx) are heads without a body.
pub(super) fn read(bytes: &[u8], limit: usize) -> Result<Option<(ResponseHead, usize)>, HeadError> {
    let mut lines = [EMPTY_HEADER; MAX_HEADER_LINES];
    let mut response = Response::new(&mut lines);
    let size = match response.parse(bytes) {
        Ok(Status::Complete(size)) if size <= limit => size,
        Ok(Status::Partial) if bytes.len() <= limit => return Ok(None),
        Ok(Status::Complete(size)) => return Err(HeadError::TooLong(size)),
        Ok(Status::Partial) => return Err(HeadError::TooLong(bytes.len())),
        Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooMany),
        Err(error) => return Err(HeadError::NotHttp(error.to_string())),
    };
    let status = response.code.unwrap_or_default();
    let mut head = ResponseHead {
        status,
        length: BodyLength::ToEnd,
        kind: BodyKind::Other(String::new()),
        is_reusable: response.version == Some(1),
        content_encoding: None,
        headers: HeaderMap::new(),
    };
    let (mut length, mut chunked, mut coded) = (None, false, false);
    for Header { name, value } in &*response.headers {
        if name.eq_ignore_ascii_case("content-length") {
            let value = number(value).filter(|value| length.is_none_or(|length| length == *value));
            let Some(value) = value else {
                return Err(HeadError::NotHttp("invalid content-length parsed".to_owned()));
            };
            length = Some(value);
        } else if name.eq_ignore_ascii_case("content-type") {
            head.kind = body_kind(value);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            coded = true;
            let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
        } else if name.eq_ignore_ascii_case("connection") {
            for word in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if word.eq_ignore_ascii_case(b"close") {
                    head.is_reusable = false;
                } else if word.eq_ignore_ascii_case(b"keep-alive") {
                    head.is_reusable = true;
                }
            }
        } else if name.eq_ignore_ascii_case("content-encoding")
            && !value.eq_ignore_ascii_case(b"identity")
        {
            head.content_encoding =
                Some(String::from_utf8_lossy(value).chars().take(MAX_CONTENT_TYPE).collect());
        }
    }
    head.length = match (status, coded, length) {
        (100..=199 | 204 | 304, ..) => BodyLength::Exactly(0),
        // Both together is how requests are smuggled: such a connection is not used again.
        (_, true, Some(_)) if chunked => {
            head.is_reusable = false;
            BodyLength::Chunked
        }
        (_, true, _) if chunked => BodyLength::Chunked,
        (_, false, Some(length)) => BodyLength::Exactly(length),
        _ => {
            head.is_reusable = false;
            BodyLength::ToEnd
        }
    };
    if status != 200 {
        head.headers = header_map(response.headers);
    }
    Ok(Some((head, size)))
}

fn number(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

fn body_kind(value: &[u8]) -> BodyKind {
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        BodyKind::Json
    } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
        BodyKind::Events
    } else {
        let text = String::from_utf8_lossy(essence);
        BodyKind::Other(
            text.chars().take(MAX_CONTENT_TYPE).collect::<String>().to_ascii_lowercase(),
        )
    }
}

fn header_map(lines: &[Header<'_>]) -> HeaderMap {
    let field = |line: &Header<'_>| {
        Some((HeaderName::try_from(line.name).ok()?, HeaderValue::from_bytes(line.value).ok()?))
    };
    let mut fields = HeaderMap::new();
    for (name, value) in lines.iter().filter_map(field) {
        fields.append(name, value);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 64 << 10;

    fn parse(text: &str) -> ResponseHead {
        read(text.as_bytes(), LIMIT).unwrap().unwrap().0
    }

    #[test]
    fn the_ordinary_head() {
        let text = "HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\n\
                    content-length: 12\r\n\r\n";
        let (head, size) = read(format!("{text}{{}}").as_bytes(), LIMIT).unwrap().unwrap();
        assert_eq!((size, head.status, head.is_reusable), (text.len(), 200, true));
        assert_eq!((head.length, head.kind), (BodyLength::Exactly(12), BodyKind::Json));
        assert!(head.headers.is_empty());
        for end in 0..text.len() {
            assert!(read(&text.as_bytes()[..end], LIMIT).unwrap().is_none(), "{end}");
        }
    }

    #[test]
    fn where_a_body_ends() {
        for (lines, length, keeps) in [
            ("transfer-encoding: chunked", BodyLength::Chunked, true),
            ("Transfer-Encoding: gzip, Chunked", BodyLength::Chunked, true),
            ("transfer-encoding: chunked\r\ncontent-length: 3", BodyLength::Chunked, false),
            ("transfer-encoding: gzip", BodyLength::ToEnd, false),
            ("content-length: 3\r\nconnection: close", BodyLength::Exactly(3), false),
            ("content-length: 3\r\ncontent-length: 3", BodyLength::Exactly(3), true),
            ("x: y", BodyLength::ToEnd, false),
        ] {
            let head = parse(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n"));
            assert_eq!((head.length, head.is_reusable), (length, keeps), "{lines}");
        }
        let head = parse("HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\n");
        assert!(!head.is_reusable);
        let head = parse("HTTP/1.0 200 OK\r\ncontent-length: 3\r\nconnection: keep-alive\r\n\r\n");
        assert!(head.is_reusable);
        assert_eq!(parse("HTTP/1.1 204 No\r\n\r\n").length, BodyLength::Exactly(0));
    }

    #[test]
    fn what_is_no_head_says_so() {
        for text in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: +3\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
        ] {
            let unusable = read(text.as_bytes(), LIMIT).unwrap_err();
            assert!(matches!(unusable, HeadError::NotHttp(_)), "{text}");
        }
        let lines = "x: y\r\n".repeat(MAX_HEADER_LINES + 1);
        let many = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        assert_eq!(read(many.as_bytes(), LIMIT).unwrap_err(), HeadError::TooMany);
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n", "y".repeat(LIMIT));
        assert_eq!(read(long.as_bytes(), LIMIT).unwrap_err(), HeadError::TooLong(long.len()));
    }

    #[test]
    fn a_refusal_keeps_its_headers_and_an_answer_its_coding() {
        let head = parse("HTTP/1.1 429 Slow\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(head.headers["retry-after"], "5");
        let head = parse("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(head.content_encoding.as_deref(), Some("gzip"));
    }
}
