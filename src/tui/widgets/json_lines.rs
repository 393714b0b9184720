//! JSON as lines whose keys, texts, numbers and words are distinguished.

use serde_json::Value;

use crate::present::page::json_line;
pub use crate::present::page::json_role;
use crate::tui::widgets::scroll_text::ScrollText;
use crate::util::json;

pub fn push(page: &mut ScrollText, value: &Value) {
    json::pretty_lines(value, |line| {
        page.push(json_line(line).spans().to_vec());
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::present::Role;

    #[test]
    fn keys_texts_numbers_and_words_are_told_apart_and_nothing_is_lost() {
        let value = json!({ "a \": b": "x: \"y\",", "n": [-1.5, true, null, {}], "e": [] });
        let mut page = ScrollText::default();
        push(&mut page, &value);
        assert_eq!(page.to_text(), json::pretty(&value));
        let pieces: Vec<(Role, String)> = page
            .lines()
            .iter()
            .flat_map(|line| line.spans.clone())
            .filter(|(role, _)| *role != Role::Plain)
            .map(|(role, text)| (role, text.trim().to_owned()))
            .collect();
        let expected = [
            (Role::JsonKey, r#""a \": b""#),
            (Role::JsonText, r#""x: \"y\",""#),
            (Role::JsonKey, r#""n""#),
            (Role::JsonNumber, "-1.5"),
            (Role::JsonWord, "true"),
            (Role::JsonWord, "null"),
            (Role::JsonKey, r#""e""#),
        ];
        let expected: Vec<_> = expected.map(|(role, text)| (role, text.to_owned())).into();
        assert_eq!(pieces, expected);
    }
}
