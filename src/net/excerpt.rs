//! Excerpts of a peer's answer for error messages.

use std::borrow::Cow;

use serde_json::Value;

use crate::util::text;

/// Maximum number of characters of a peer's own text that are kept.
const MAX_CHARS: usize = 300;

/// The peer's own message in a body: a JSON error's message, a page's title, or the first line.
pub fn server_message(body: &[u8]) -> Option<String> {
    let text = lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let line = json_message(text)
        .or_else(|| title(text))
        .or_else(|| text.lines().next().map(str::to_owned))?;
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| truncate(&line))
}

fn json_message(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let at = |path: &str| value.pointer(path)?.as_str();
    if let (Some(title), Some(detail)) = (at("/title"), at("/detail")) {
        return Some(format!("{title}: {detail}"));
    }
    [
        "/error/message",
        "/message",
        "/error_description",
        "/error",
        "/detail",
        "/title",
        "/detail/0/msg",
        "/errors/0/message",
        "/errors/0",
    ]
    .into_iter()
    .find_map(at)
    .map(str::to_owned)
}

fn title(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower.get(start..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    text.get(start..end).map(str::to_owned).filter(|title| !title.trim().is_empty())
}

/// Bytes as text; what is not UTF-8 is replaced.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The first 300 characters of a peer's own text, with `…` if it is longer.
pub fn truncate(text: &str) -> String {
    text::truncate(text, MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_words_are_a_line() {
        assert_eq!(server_message(b"\n\n  try later \nmore"), Some("try later".into()));
        assert_eq!(server_message(b"<html><head><Title>Oh\n no</title>"), Some("Oh no".into()));
        assert_eq!(server_message(b"<html><p>x"), Some("<html><p>x".into()));
        assert_eq!(
            server_message(br#"{"error":{"message":"no session"}}"#),
            Some("no session".into())
        );
        assert_eq!(server_message(br#"{"error":"invalid_token"}"#), Some("invalid_token".into()));
        let problem = br#"{"type":"about:blank","title":"Gone","detail":"try /v2","status":410}"#;
        assert_eq!(server_message(problem), Some("Gone: try /v2".into()));
        assert_eq!(
            server_message(br#"{"detail":[{"loc":["q"],"msg":"too long"}]}"#),
            Some("too long".into())
        );
        assert_eq!(server_message(b" \n "), None);
        assert_eq!(server_message(&[b'x'; 5000]).unwrap().chars().count(), MAX_CHARS + 1);
    }
}
