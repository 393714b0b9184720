//! The head of a response, as far as an exchange needs it.
//!
//! Owns: reading it without building anything in the ordinary case, and where its body ends
//! (RFC 9112, 6.3). Never does: say what a status means.

use httparse::{EMPTY_HEADER, Header, Response, Status};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Lines of response headers.
const LINES: usize = 100;
/// The longest content type that is kept, in characters.
const KIND: usize = 80;

/// What was said before the body.
#[derive(Debug)]
pub(super) struct Head {
    /// The HTTP status.
    pub status: u16,
    /// Where the body ends.
    pub length: Length,
    /// What the body is.
    pub kind: Kind,
    /// The connection can be used again.
    pub keeps: bool,
    /// The body is compressed, and how.
    pub coding: Option<String>,
    /// All headers, of a response other than 200.
    pub fields: HeaderMap,
}

/// Where a body ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// After so many bytes.
    Exactly(u64),
    /// Where its coding says.
    Chunked,
    /// With the connection.
    ToEnd,
}

/// What a body is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `application/json`.
    Json,
    /// `text/event-stream`.
    Events,
    /// Something else: its media type, empty when there is none.
    Other(String),
}

/// No head that could be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It is not HTTP, and why.
    NotHttp(String),
    /// It has too many lines.
    TooMany,
    /// It is longer than the limit: so many bytes, or more.
    TooLong(usize),
}

/// Reads the head at the beginning of `bytes`, and how long it is; `None` when it goes on. Interim
/// responses (1xx) are heads without a body.
///
/// # Errors
/// When it is none, or longer than `limit` bytes.
pub(super) fn read(bytes: &[u8], limit: usize) -> Result<Option<(Head, usize)>, Unusable> {
    let mut lines = [EMPTY_HEADER; LINES];
    let mut response = Response::new(&mut lines);
    let size = match response.parse(bytes) {
        Ok(Status::Complete(size)) if size <= limit => size,
        Ok(Status::Partial) if bytes.len() <= limit => return Ok(None),
        Ok(Status::Complete(size)) => return Err(Unusable::TooLong(size)),
        Ok(Status::Partial) => return Err(Unusable::TooLong(bytes.len())),
        Err(httparse::Error::TooManyHeaders) => return Err(Unusable::TooMany),
        Err(error) => return Err(Unusable::NotHttp(error.to_string())),
    };
    let status = response.code.unwrap_or_default();
    let mut head = Head {
        status,
        length: Length::ToEnd,
        kind: Kind::Other(String::new()),
        keeps: response.version == Some(1),
        coding: None,
        fields: HeaderMap::new(),
    };
    let (mut length, mut chunked, mut coded) = (None, false, false);
    for Header { name, value } in &*response.headers {
        if name.eq_ignore_ascii_case("content-length") {
            let value = number(value).filter(|value| length.is_none_or(|length| length == *value));
            let Some(value) = value else {
                return Err(Unusable::NotHttp("invalid content-length parsed".to_owned()));
            };
            length = Some(value);
        } else if name.eq_ignore_ascii_case("content-type") {
            head.kind = kind(value);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            coded = true;
            let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
        } else if name.eq_ignore_ascii_case("connection") {
            for word in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if word.eq_ignore_ascii_case(b"close") {
                    head.keeps = false;
                } else if word.eq_ignore_ascii_case(b"keep-alive") {
                    head.keeps = true;
                }
            }
        } else if name.eq_ignore_ascii_case("content-encoding")
            && !value.eq_ignore_ascii_case(b"identity")
        {
            head.coding = Some(String::from_utf8_lossy(value).chars().take(KIND).collect());
        }
    }
    head.length = match (status, coded, length) {
        (100..=199 | 204 | 304, ..) => Length::Exactly(0),
        // Both together is how requests are smuggled: such a connection is not used again.
        (_, true, Some(_)) if chunked => {
            head.keeps = false;
            Length::Chunked
        }
        (_, true, _) if chunked => Length::Chunked,
        (_, false, Some(length)) => Length::Exactly(length),
        _ => {
            head.keeps = false;
            Length::ToEnd
        }
    };
    if status != 200 {
        head.fields = fields(response.headers);
    }
    Ok(Some((head, size)))
}

fn number(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

fn kind(value: &[u8]) -> Kind {
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Kind::Json
    } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
        Kind::Events
    } else {
        let text = String::from_utf8_lossy(essence);
        Kind::Other(text.chars().take(KIND).collect::<String>().to_ascii_lowercase())
    }
}

fn fields(lines: &[Header<'_>]) -> HeaderMap {
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

    fn parse(text: &str) -> Head {
        read(text.as_bytes(), LIMIT).unwrap().unwrap().0
    }

    #[test]
    fn the_ordinary_head() {
        let text = "HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\n\
                    content-length: 12\r\n\r\n";
        let (head, size) = read(format!("{text}{{}}").as_bytes(), LIMIT).unwrap().unwrap();
        assert_eq!((size, head.status, head.keeps), (text.len(), 200, true));
        assert_eq!((head.length, head.kind), (Length::Exactly(12), Kind::Json));
        assert!(head.fields.is_empty());
        for end in 0..text.len() {
            assert!(read(&text.as_bytes()[..end], LIMIT).unwrap().is_none(), "{end}");
        }
    }

    #[test]
    fn where_a_body_ends() {
        for (lines, length, keeps) in [
            ("transfer-encoding: chunked", Length::Chunked, true),
            ("Transfer-Encoding: gzip, Chunked", Length::Chunked, true),
            ("transfer-encoding: chunked\r\ncontent-length: 3", Length::Chunked, false),
            ("transfer-encoding: gzip", Length::ToEnd, false),
            ("content-length: 3\r\nconnection: close", Length::Exactly(3), false),
            ("content-length: 3\r\ncontent-length: 3", Length::Exactly(3), true),
            ("x: y", Length::ToEnd, false),
        ] {
            let head = parse(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n"));
            assert_eq!((head.length, head.keeps), (length, keeps), "{lines}");
        }
        let head = parse("HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\n");
        assert!(!head.keeps);
        let head = parse("HTTP/1.0 200 OK\r\ncontent-length: 3\r\nconnection: keep-alive\r\n\r\n");
        assert!(head.keeps);
        assert_eq!(parse("HTTP/1.1 204 No\r\n\r\n").length, Length::Exactly(0));
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
            assert!(matches!(unusable, Unusable::NotHttp(_)), "{text}");
        }
        let lines = "x: y\r\n".repeat(LINES + 1);
        let many = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        assert_eq!(read(many.as_bytes(), LIMIT).unwrap_err(), Unusable::TooMany);
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n", "y".repeat(LIMIT));
        assert_eq!(read(long.as_bytes(), LIMIT).unwrap_err(), Unusable::TooLong(long.len()));
    }

    #[test]
    fn a_refusal_keeps_its_headers_and_an_answer_its_coding() {
        let head = parse("HTTP/1.1 429 Slow\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(head.fields["retry-after"], "5");
        let head = parse("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(head.coding.as_deref(), Some("gzip"));
    }
}
