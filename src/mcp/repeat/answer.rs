//! Partial parsing of a call's response, only as far as the benchmark needs.
//!
//! [`plain_answer_id`] never guesses: it returns an id only when the full parser would find one
//! well-formed response with this id, without warnings, that is not an error. Everything else
//! (and some unusual spellings of a plain response) is left to the full parser.

use bytes::Bytes;

use crate::mcp::message::{self, ParsedInput, RawJson, RpcMessage};
use crate::mcp::{results, rounds};
use crate::model::{Error, ToolResult};

/// How deep a plain answer may nest. The usual reading knows a limit beyond this one.
const DEPTH: u32 = 100;
/// How far the end of a text is looked for byte by byte, before a search is worth its start.
const SHORT_TEXT: usize = 24;

/// The id of the plain answer that a line is, if it is one.
pub fn plain_answer_id(line: &[u8]) -> Option<i64> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // Control characters may occur between values, never in strings: not worth telling apart.
    if line.iter().any(|byte| *byte < b' ') || std::str::from_utf8(line).is_err() {
        return None;
    }
    AnswerScanner { bytes: line, at: 0 }.answer()
}

/// The way through a line. Every step fails where the usual reading would, or might.
struct AnswerScanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> AnswerScanner<'a> {
    fn answer(&mut self) -> Option<i64> {
        let (mut version, mut id, mut result) = (false, None, false);
        self.space();
        self.members(DEPTH, |scan, key| match key {
            b"jsonrpc" => {
                let previous = std::mem::replace(&mut version, true);
                (!previous && scan.text()? == b"2.0").then_some(())
            }
            b"id" => {
                let previous = id.replace(scan.whole_number()?);
                previous.is_none().then_some(())
            }
            b"result" => {
                let previous = std::mem::replace(&mut result, true);
                (!previous).then_some(())?;
                scan.result()
            }
            b"error" | b"method" => None,
            _ => scan.value(DEPTH),
        })?;
        self.space();
        if self.at < self.bytes.len() || !version || !result {
            return None;
        }
        id
    }

    fn result(&mut self) -> Option<()> {
        self.members(DEPTH - 1, |scan, key| match key {
            b"isError" => scan.word(b"false"),
            b"resultType" => (scan.text()? == b"complete").then_some(()),
            _ => scan.value(DEPTH - 1),
        })
    }

    /// An object, whose values `take` goes through.
    fn members(
        &mut self,
        depth: u32,
        mut take: impl FnMut(&mut Self, &'a [u8]) -> Option<()>,
    ) -> Option<()> {
        depth.checked_sub(1)?;
        self.byte(b'{')?;
        self.space();
        if self.byte(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.text()?;
            self.space();
            self.byte(b':')?;
            self.space();
            take(self, key)?;
            self.space();
            match self.next()? {
                b',' => self.space(),
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    fn list(&mut self, depth: u32) -> Option<()> {
        depth.checked_sub(1)?;
        self.byte(b'[')?;
        self.space();
        if self.byte(b']').is_some() {
            return Some(());
        }
        loop {
            self.value(depth - 1)?;
            self.space();
            match self.next()? {
                b',' => self.space(),
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    fn value(&mut self, depth: u32) -> Option<()> {
        match self.peek()? {
            b'"' => self.skip_text(),
            b'{' => {
                depth.checked_sub(1)?;
                self.object(depth - 1)
            }
            b'[' => self.list(depth),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        self.byte(b'{')?;
        self.space();
        if self.byte(b'}').is_some() {
            return Some(());
        }
        loop {
            self.skip_text()?;
            self.space();
            self.byte(b':')?;
            self.space();
            self.value(depth)?;
            self.space();
            match self.next()? {
                b',' => self.space(),
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// A text without escapes, whose bytes are what it says.
    fn text(&mut self) -> Option<&'a [u8]> {
        self.byte(b'"')?;
        let rest = self.bytes.get(self.at..)?;
        let length = quote_or_escape(rest)?;
        self.at += length + 1;
        (rest.get(length) == Some(&b'"')).then(|| rest.get(..length))?
    }

    fn skip_text(&mut self) -> Option<()> {
        self.byte(b'"')?;
        loop {
            self.at += quote_or_escape(self.bytes.get(self.at..)?)?;
            if self.next()? == b'"' {
                return Some(());
            }
            match self.next()? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                b'u' => {
                    let unit = self.bytes.get(self.at..self.at + 4)?;
                    // Half of a surrogate pair would be a warning.
                    let pair = matches!(unit.first(), Some(b'd' | b'D'));
                    (!pair && unit.iter().all(u8::is_ascii_hexdigit)).then_some(())?;
                    self.at += 4;
                }
                _ => return None,
            }
        }
    }

    /// A number without sign, fraction and exponent, of at most 18 digits.
    fn whole_number(&mut self) -> Option<i64> {
        let from = self.at;
        self.digits()?;
        let digits = self.bytes.get(from..self.at)?;
        if digits.len() > 18 || (digits.len() > 1 && digits.first() == Some(&b'0')) {
            return None;
        }
        // The next step of the reader checks what follows: neither `.` nor `e` can follow a value.
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    fn number(&mut self) -> Option<()> {
        let _sign = self.byte(b'-');
        let leading_zero = self.peek()? == b'0';
        let from = self.at;
        self.digits()?;
        if leading_zero && self.at > from + 1 {
            return None;
        }
        if self.byte(b'.').is_some() {
            self.digits()?;
        }
        if self.byte(b'e').or_else(|| self.byte(b'E')).is_some() {
            let _sign = self.byte(b'+').or_else(|| self.byte(b'-'));
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > from).then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let end = self.at + word.len();
        (self.bytes.get(self.at..end)? == word).then(|| self.at = end)
    }

    fn space(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    fn byte(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.at += 1)
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

fn quote_or_escape(rest: &[u8]) -> Option<usize> {
    let near = rest.iter().take(SHORT_TEXT).position(|byte| matches!(byte, b'"' | b'\\'));
    near.or_else(|| memchr::memchr2(b'"', b'\\', rest))
}

/// The outcome of the one answer that a line is: what [`plain_answer_id`] recognised, read as usual.
pub fn read_outcome(line: &[u8]) -> Result<RawJson, Error> {
    let broken = || Error::protocol("a response could not be read a second time");
    match message::read(&Bytes::copy_from_slice(line)) {
        ParsedInput::Messages(messages, _) => match messages.into_iter().next() {
            Some(RpcMessage::Response { outcome, .. }) => outcome,
            _ => Err(broken()),
        },
        ParsedInput::Unreadable(error) | ParsedInput::Broken(error) => Err(error),
        ParsedInput::NonMessage(_) => Err(broken()),
    }
}

/// The result that an answer to a call is, read and checked whole. Nothing follows in a run: where
/// the server would ask first or work on, no usable answer came.
pub fn read_result(outcome: Result<RawJson, Error>) -> Result<ToolResult, Error> {
    let raw = outcome.map_err(rounds::with_hint)?;
    let serde_json::Value::Object(result) = raw.parse()? else {
        return Err(results::unusable_result("is not an object", raw.get()));
    };
    match result.get("resultType").map(|kind| kind.as_str().unwrap_or_default()) {
        None | Some("complete") => results::read(result, raw.get()),
        Some("input_required") => {
            Err(Error::denied("the server asks for input, which a benchmark run does not provide"))
        }
        Some("task") => Err(Error::tool(
            "the server started a task for the call, which a benchmark run does not follow",
        )),
        Some(other) => Err(results::unusable_result(
            &format!("has the unknown resultType {other:?}"),
            raw.get(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::ErrorKind;

    #[test]
    fn plain_answers_are_recognised_however_they_are_ordered_and_spaced() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1000000007,"result":{"content":[],"isError":false}}"#,
            r#"{"result":{"content":[]},"id":1000000007,"jsonrpc":"2.0"}"#,
            r#" { "id" : 1000000007 , "jsonrpc" : "2.0" , "result" : { } } "#,
            "{\"jsonrpc\":\"2.0\",\"id\":1000000007,\"result\":{}}\r",
            r#"{"jsonrpc":"2.0","id":1000000007,"result":{"content":[{"type":"text","text":"\"id\":5,\\\"id\":6"}]}}"#,
            r#"{"x":{"id":3},"jsonrpc":"2.0","result":{"id":4,"error":1,"isError":false,"a":[{"isError":true}]},"id":1000000007}"#,
            r#"{"jsonrpc":"2.0","id":1000000007,"result":{"resultType":"complete","n":[-0.5e+3,0,1E400,true,null]}}"#,
            r#"{"jsonrpc":"2.0","id":1000000007,"result":{"text":"h\u00e9, é"}}"#,
        ] {
            assert_eq!(plain_answer_id(line.as_bytes()), Some(1_000_000_007), "{line}");
        }
    }

    #[test]
    fn whatever_is_not_plain_is_left_to_the_usual_reading() {
        for line in [
            r#"{"jsonrpc":"2.0","id":7.0,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7e0,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":07,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{},"error":null}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"isError":true}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"isError":false,"isError":true}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"is\u0045rror":true}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":[]}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}"#,
            r#"{"jsonrpc":"1.0","id":7,"result":{}}"#,
            r#"{"id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}} {"jsonrpc":"2.0","id":8,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"x":"\ud800"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"x":"\q"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"x":1,}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"x":1.}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"x":"#,
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"\t\"}}",
            "listening on 3000",
            "",
        ] {
            assert_eq!(plain_answer_id(line.as_bytes()), None, "{line}");
        }
        assert_eq!(
            plain_answer_id(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"\xff\"}}"),
            None
        );
        let deep = "[".repeat(200) + &"]".repeat(200);
        let line = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"x":{deep}}}}}"#);
        assert_eq!(plain_answer_id(line.as_bytes()), None);
    }

    #[test]
    fn a_whole_answer_is_judged_as_in_an_ordinary_call() {
        let read = |answer: Value| read_result(read_outcome(answer.to_string().as_bytes()));
        let of = |key: &str, value: Value| json!({ "jsonrpc": "2.0", "id": 7, key: value });
        let text = |text: &str| json!([{ "type": "text", "text": text }]);
        assert!(read(of("result", json!({ "content": text("hi") }))).unwrap().success);
        let no = read(of("result", json!({ "content": text("disk full"), "isError": true })));
        assert_eq!(no.unwrap().error.unwrap().message(), "disk full");
        for (answer, kind, expected) in [
            (of("error", json!({ "code": -1, "message": "boom" })), ErrorKind::Tool, "boom"),
            (of("error", json!("boom")), ErrorKind::Protocol, "malformed"),
            (of("result", json!({ "content": 5 })), ErrorKind::Protocol, "not an array"),
            (of("result", json!({ "resultType": "task" })), ErrorKind::Tool, "task"),
            (of("result", json!({ "resultType": "input_required" })), ErrorKind::Denied, "input"),
            (of("result", json!({ "resultType": "x" })), ErrorKind::Protocol, "unknown"),
            (of("result", json!([])), ErrorKind::Protocol, "not an object"),
        ] {
            let error = read(answer).unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.message().contains(expected), "{}", error.message());
        }
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
            r#"[\\"{}:,id0-9]{0,12}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::vec((key(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn key() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("id".to_owned()),
            Just("result".to_owned()),
            Just("error".to_owned()),
            Just("isError".to_owned()),
            Just("content".to_owned()),
            ".{0,6}",
        ]
    }

    /// What the usual reading finds, when that is one answer without any warning.
    fn usual(line: &[u8]) -> Option<(Value, RawJson)> {
        match message::read(&Bytes::copy_from_slice(line)) {
            ParsedInput::Messages(messages, warnings)
                if warnings.is_empty() && messages.len() == 1 =>
            {
                match messages.into_iter().next() {
                    Some(RpcMessage::Response { id, outcome: Ok(raw) }) => Some((id, raw)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn agrees(line: &[u8]) {
        let Some(id) = plain_answer_id(line) else { return };
        let shown = String::from_utf8_lossy(line);
        let (usual, raw) = usual(line).unwrap_or_else(|| panic!("only plain to us: {shown}"));
        assert_eq!(usual.as_i64(), Some(id), "{shown}");
        let result = raw.parse().unwrap();
        assert!(result.is_object(), "{shown}");
        assert!(matches!(result.get("isError"), None | Some(Value::Bool(false))), "{shown}");
        let kind = result.get("resultType");
        assert!(kind.is_none_or(|kind| kind == "complete"), "{shown}");
    }

    proptest! {
        #[test]
        fn any_answer_of_valid_json_is_what_serde_says_it_is(
            id in 0..10_i64.pow(17),
            result in proptest::collection::vec((key(), json_value()), 0..5),
            beside in proptest::collection::vec((".{0,6}", json_value()), 0..3),
            first in any::<bool>(),
            pretty in any::<bool>(),
        ) {
            let result = Value::Object(result.into_iter().collect());
            let mut answer = json!({});
            if first {
                answer["id"] = id.into();
            }
            for (key, value) in beside {
                answer[key] = value;
            }
            answer["result"] = result.clone();
            answer["jsonrpc"] = "2.0".into();
            answer["id"] = id.into();
            let mut line = answer.to_string();
            if pretty {
                line = serde_json::to_string_pretty(&answer).unwrap().replace('\n', " ");
            }
            agrees(line.as_bytes());
            let is_plain = answer.get("error").is_none()
                && answer.get("method").is_none()
                && matches!(result.get("isError"), None | Some(Value::Bool(false)))
                && !line.contains('\\')
                && !line.chars().any(|c| c < ' ');
            if is_plain {
                prop_assert_eq!(plain_answer_id(line.as_bytes()), Some(id), "{}", line);
            }
        }

        #[test]
        fn a_damaged_answer_is_never_plain_to_us_alone(
            result in json_value(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<bool>(),
        ) {
            let answer = json!({ "jsonrpc": "2.0", "id": 7, "result": { "content": result } });
            let mut line = answer.to_string().into_bytes();
            let at = at.index(line.len());
            if cut {
                line.truncate(at);
            } else {
                line[at] = byte;
            }
            agrees(&line);
        }
    }
}
