//! JSON as lines whose keys, texts, numbers and words are distinguished.

use serde_json::Value;

use crate::tui::theme::StyleRole;
use crate::tui::widgets::scroll_text::{ScrollText, StyledSpan};
use crate::util::json;

pub fn push(page: &mut ScrollText, value: &Value) {
    json::pretty_lines(value, |line| {
        page.push(spans(line));
        !page.is_cut()
    });
}

/// The longest text that is read as JSON, in bytes: a longer one is shown as the text that it is.
pub const LONGEST: usize = 4 << 20;

pub fn parse(text: &str) -> Option<Value> {
    if text.len() > LONGEST || !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

/// The pieces of one line: its indentation and key, and what follows.
fn spans(line: &str) -> Vec<StyledSpan> {
    let value_at = line.len() - line.trim_start().len();
    let (mut head, mut value) = line.split_at_checked(value_at).unwrap_or((line, ""));
    let mut spans = Vec::new();
    if let Some(end) = text_end(value)
        && value.get(end..).is_some_and(|rest| rest.starts_with(": "))
        && let Some((key, rest)) = line.split_at_checked(value_at + end)
    {
        spans.push((StyleRole::JsonKey, key.to_owned()));
        (head, value) = rest.split_at_checked(2).unwrap_or((rest, ""));
    }
    spans.push((StyleRole::Plain, head.to_owned()));
    let (shown, comma) = value.strip_suffix(',').map_or((value, ""), |shown| (shown, ","));
    spans.push((json_role(shown), shown.to_owned()));
    spans.push((StyleRole::Plain, comma.to_owned()));
    spans.retain(|(_, text)| !text.is_empty());
    spans
}

/// The kind of JSON value that a text starts.
pub fn json_role(value: &str) -> StyleRole {
    match value.bytes().next() {
        Some(b'"') => StyleRole::JsonText,
        Some(b'-' | b'0'..=b'9') => StyleRole::JsonNumber,
        Some(b't' | b'f' | b'n') => StyleRole::JsonWord,
        _ => StyleRole::Plain,
    }
}

/// The end of the quoted string that `from` starts with.
fn text_end(from: &str) -> Option<usize> {
    let mut is_escaped = true;
    for (at, byte) in from.bytes().enumerate() {
        match byte {
            b'"' if at > 0 && !is_escaped => return Some(at + 1),
            _ if at == 0 && byte != b'"' => return None,
            b'\\' if !is_escaped => is_escaped = true,
            _ => is_escaped = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_texts_numbers_and_words_are_told_apart_and_nothing_is_lost() {
        let value = json!({ "a \": b": "x: \"y\",", "n": [-1.5, true, null, {}], "e": [] });
        let mut page = ScrollText::default();
        push(&mut page, &value);
        assert_eq!(page.to_text(), json::pretty(&value));
        let pieces: Vec<(StyleRole, String)> = page
            .lines()
            .iter()
            .flat_map(|line| line.spans.clone())
            .filter(|(role, _)| *role != StyleRole::Plain)
            .map(|(role, text)| (role, text.trim().to_owned()))
            .collect();
        let expected = [
            (StyleRole::JsonKey, r#""a \": b""#),
            (StyleRole::JsonText, r#""x: \"y\",""#),
            (StyleRole::JsonKey, r#""n""#),
            (StyleRole::JsonNumber, "-1.5"),
            (StyleRole::JsonWord, "true"),
            (StyleRole::JsonWord, "null"),
            (StyleRole::JsonKey, r#""e""#),
        ];
        let expected: Vec<_> = expected.map(|(role, text)| (role, text.to_owned())).into();
        assert_eq!(pieces, expected);
    }
}
