//! Writing one JSON object on a line, member by member, for records.

use serde::Serialize;

/// An object being written. Members are in the order in which they are added; duplicate names are
/// not detected.
#[derive(Debug)]
pub struct JsonLineWriter(Vec<u8>);

impl JsonLineWriter {
    pub fn new() -> Self {
        let mut line = Vec::with_capacity(512);
        line.push(b'{');
        Self(line)
    }

    /// Adds a text. The name must need no escape.
    pub fn text(&mut self, name: &'static str, text: &str) -> &mut Self {
        self.name(name);
        self.written(text)
    }

    pub fn text_if(&mut self, name: &'static str, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    pub fn text_or_null(&mut self, name: &'static str, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(name, text),
            None => self.raw(name, "null"),
        }
    }

    pub fn value(&mut self, name: &'static str, value: &impl Serialize) -> &mut Self {
        self.name(name);
        self.written(value)
    }

    /// Adds any value whose JSON has at most `limit` bytes; in place of a larger one what
    /// `instead` makes of its JSON.
    pub fn value_bounded<S: Serialize>(
        &mut self,
        name: &'static str,
        value: &impl Serialize,
        limit: usize,
        instead: impl FnOnce(&str) -> S,
    ) -> &mut Self {
        self.name(name);
        let start = self.0.len();
        self.written(value);
        let length = self.0.len() - start;
        if length > limit {
            let whole = self.0.split_off(start);
            self.written(&instead(&String::from_utf8_lossy(&whole)));
        }
        self
    }

    pub fn raw(&mut self, name: &'static str, json: &str) -> &mut Self {
        self.name(name);
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    pub fn finish(&mut self) -> String {
        self.0.push(b'}');
        let line = std::mem::take(&mut self.0);
        // All of it came from texts and from serialised values.
        String::from_utf8(line).unwrap_or_default()
    }

    fn name(&mut self, name: &'static str) {
        self.0.extend_from_slice(if self.0.len() > 1 { b",\"" } else { b"\"" });
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    fn written(&mut self, value: &(impl Serialize + ?Sized)) -> &mut Self {
        let start = self.0.len();
        if serde_json::to_writer(&mut self.0, value).is_err() {
            // Maps whose keys are no texts; there are none, and a line stays a line.
            self.0.truncate(start);
            self.0.extend_from_slice(b"null");
        }
        self
    }
}

impl Default for JsonLineWriter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn members_stand_as_they_were_added() {
        let mut row = JsonLineWriter::new();
        row.text("a", "x").value("b", &1.5).text_if("c", None).text_or_null("d", None);
        row.raw("e", "[1]").text_if("f", Some("\"\n"));
        assert_eq!(row.finish(), r#"{"a":"x","b":1.5,"d":null,"e":[1],"f":"\"\n"}"#);
        assert_eq!(JsonLineWriter::new().finish(), "{}");
    }

    #[test]
    fn what_is_too_large_is_replaced() {
        let mut row = JsonLineWriter::new();
        let instead = |whole: &str| json!({ "bytes": whole.len() });
        row.value_bounded("a", &json!([1, 2]), 5, instead);
        row.value_bounded("b", &json!([1, 2, 3]), 5, instead).text("c", "");
        assert_eq!(row.finish(), r#"{"a":[1,2],"b":{"bytes":7},"c":""}"#);
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>()) {
            let line = JsonLineWriter::new().text("a", &text).finish();
            prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), json!({ "a": text }));
        }
    }
}
