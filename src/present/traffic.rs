//! Traffic of a server as text: one block for each item.
//!
//! A block starts with time, direction and label, and shows a message's JSON below, truncated to
//! what a person can scan and without the parts that every message repeats; in full when more was
//! requested.

use std::time::Duration;

use serde_json::Value;

use crate::model::Traffic;
use crate::model::traffic::{Direction, MessageInfo, TrafficKind};
use crate::present::{Line, Page, Role, plural};
use crate::util::units::{show_duration, show_size};
use crate::util::{json, text};

const LINES: usize = 16;
/// Maximum number of characters per line when there is no terminal width.
const LONG: usize = 300;
/// JSON larger than this is not pretty-printed: that would take many times its size.
const LAID_OUT: usize = 1 << 20;

/// The largest message that is looked into for its summary, in bytes.
pub const MAX_PARSED_BYTES: usize = 16 * 1024;
pub const MAX_SUMMARY: usize = 160;

#[derive(Debug, Clone, Copy)]
pub struct TrafficLayout {
    /// A line for each item, with its summary.
    pub is_one_line: bool,
    /// Everything: all lines, all headers, the call.
    pub verbose: bool,
    pub width: Option<usize>,
}

/// The block of an item that passed `since` the start.
pub fn page(traffic: &Traffic, since: Duration, look: TrafficLayout) -> Page {
    let mut page = Page::default();
    let mut headline = headline(traffic, since, look);
    if look.is_one_line {
        if let TrafficKind::Message { .. } = &traffic.kind {
            headline.push(Role::Plain, format!("  {}", summary(&traffic.kind).0).trim_end());
        }
        return headline.truncate(look.width.unwrap_or(usize::MAX)).into();
    }
    page.push(headline);
    let body = match &traffic.kind {
        TrafficKind::Message { bytes, .. } => body(bytes, look.verbose),
        TrafficKind::HttpHead { headers, .. } if look.verbose => {
            headers.iter().map(|(name, value)| format!("{name}: {value}")).collect()
        }
        TrafficKind::NonJsonLine(text) | TrafficKind::Stderr(text) => {
            text.split('\n').skip(1).map(str::to_owned).collect()
        }
        TrafficKind::HttpHead { .. } | TrafficKind::Opened(_) | TrafficKind::Closed(_) => {
            Vec::new()
        }
    };
    let shown = if look.verbose { body.len() } else { LINES };
    for line in body.iter().take(shown) {
        let line = if look.verbose { line.into() } else { text::shorten(line, LONG) };
        page.push(Line::plain(line).indented(4));
    }
    if let Some(hidden @ 1..) = body.len().checked_sub(shown) {
        let more = plural(hidden, "more line", "more lines");
        page.push(Line::styled(Role::Dim, format!("… {more}, -v shows all")).indented(4));
    }
    // Plain text is evidence, and its end may matter as much as its start.
    let is_text =
        !matches!(traffic.kind, TrafficKind::Message { .. } | TrafficKind::HttpHead { .. });
    match look.width {
        Some(width) if look.verbose || is_text => page.wrap(width),
        Some(width) => page.truncate(width),
        None => page,
    }
}

fn headline(traffic: &Traffic, since: Duration, look: TrafficLayout) -> Line {
    let millis = since.as_secs_f64() * 1000.0;
    let line = Line::styled(Role::Dim, format!("{millis:>9.1} ms "))
        .then(Role::Name, &traffic.server)
        .then(Role::Plain, " ");
    let mut line = match &traffic.kind {
        TrafficKind::Message { direction, bytes, info: glance, latency } => {
            let (label, what) = named(glance, look);
            let line = line.then(Role::Plain, arrow(*direction)).then(label, what);
            let line = timed(line, *latency);
            let line = line.then(Role::Dim, format!("  {}", show_size(bytes.len() as u64)));
            match glance {
                MessageInfo::Response { method: Some(method), .. } => {
                    line.then(Role::Dim, format!("  of {method}"))
                }
                _ => line,
            }
        }
        TrafficKind::HttpHead { direction, line: head, headers, latency } => {
            let failed = *direction == Direction::Received && head.starts_with(['4', '5']);
            let label = if failed { Role::Error } else { Role::Plain };
            let line = line.then(Role::Plain, arrow(*direction)).then(label, head);
            let line = timed(line, *latency);
            match headers.iter().find(|(name, _)| name == "content-type") {
                Some((_, kind)) if *direction == Direction::Received => {
                    line.then(Role::Dim, format!("  {kind}"))
                }
                _ => line,
            }
        }
        TrafficKind::Stderr(text) => {
            line.then(Role::Warning, "!! stderr: ").then(Role::Plain, first(text, look))
        }
        TrafficKind::NonJsonLine(text) => {
            line.then(Role::Warning, ".. ").then(Role::Plain, first(text, look))
        }
        TrafficKind::Opened(to) => line.then(Role::Success, "** opened: ").then(Role::Plain, to),
        TrafficKind::Closed(why) => line.then(Role::Title, "** closed: ").then(Role::Plain, why),
    };
    if let (Some(call), true) = (&traffic.call, look.verbose) {
        line.push(Role::Dim, format!("  call {call}"));
    }
    line
}

fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Sent => "→ ",
        Direction::Received => "← ",
    }
}

fn timed(line: Line, latency: Option<Duration>) -> Line {
    match latency {
        Some(latency) => line.then(Role::Plain, format!("  {}", show_duration(latency))),
        None => line,
    }
}

fn first(text: &str, look: TrafficLayout) -> String {
    let line = text.split('\n').next().unwrap_or_default();
    if look.verbose { line.to_owned() } else { text::shorten(line, LONG).into_owned() }
}

fn named(message: &MessageInfo, look: TrafficLayout) -> (Role, String) {
    let label = match message {
        MessageInfo::Request { .. } | MessageInfo::Notification { .. } => Role::Title,
        MessageInfo::Response { is_error: false, .. } => Role::Success,
        MessageInfo::Response { is_error: true, .. } | MessageInfo::Unknown => Role::Error,
    };
    let number = if look.is_one_line { shown_id(message) } else { message.id_text() };
    let what = match number {
        Some(number) => format!("{} #{number}", message.label()),
        None => message.label().to_owned(),
    };
    (label, what)
}

/// Requests that toolhost makes of its own accord are numbered from here on.
const FIRST_OWN_ID: u64 = 2_147_483_000;

/// The number of a message in its line; one of toolhost's own says nothing.
pub fn shown_id(message: &MessageInfo) -> Option<String> {
    let is_own = |id: &String| id.parse::<u64>().is_ok_and(|id| id >= FIRST_OWN_ID);
    message.id_text().filter(|id| !is_own(id))
}

/// The lines of a message: pretty-printed if it is JSON of reasonable size, otherwise unchanged.
fn body(bytes: &[u8], verbose: bool) -> Vec<String> {
    let parsed =
        (bytes.len() <= LAID_OUT).then(|| serde_json::from_slice::<Value>(bytes).ok()).flatten();
    match parsed {
        Some(value) if verbose => json::pretty(&value).lines().map(str::to_owned).collect(),
        Some(value) => json::pretty(&abridged(value)).lines().map(str::to_owned).collect(),
        None => String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect(),
    }
}

/// A message without the parts that every message repeats: `jsonrpc` is omitted, and `_meta`, where
/// the modern era has the client introduce itself in each request, becomes `…`.
fn abridged(mut message: Value) -> Value {
    if let Some(members) = message.as_object_mut() {
        members.shift_remove("jsonrpc");
        for part in ["params", "result"] {
            let meta = members.get_mut(part).and_then(|part| part.get_mut("_meta"));
            if let Some(meta) = meta.filter(|meta| meta.is_object()) {
                *meta = "…".into();
            }
        }
    }
    message
}

/// What an item is about, in a line, and whether it reports an error: the tool and its arguments, or
/// the error.
pub fn summary(kind: &TrafficKind) -> (String, bool) {
    let (summary, is_error) = match kind {
        TrafficKind::Message { bytes, info, .. } => message(bytes, info),
        TrafficKind::HttpHead { direction, line, .. } => {
            let failed = *direction == Direction::Received && line.starts_with(['4', '5']);
            (line.clone(), failed)
        }
        TrafficKind::Stderr(text) | TrafficKind::NonJsonLine(text) => (first_line(text), false),
        TrafficKind::Opened(to) => (format!("opened: {}", first_line(to)), false),
        TrafficKind::Closed(why) => (format!("closed: {}", first_line(why)), false),
    };
    (text::shorten(&summary, MAX_SUMMARY).into_owned(), is_error)
}

fn first_line(text: &str) -> String {
    text::shorten(text.lines().next().unwrap_or_default(), MAX_SUMMARY).into_owned()
}

fn message(bytes: &[u8], info: &MessageInfo) -> (String, bool) {
    if *info == MessageInfo::Unknown {
        let beginning = bytes.get(..MAX_SUMMARY * 4).unwrap_or(bytes);
        return (String::from_utf8_lossy(beginning).into_owned(), true);
    }
    let error = matches!(info, MessageInfo::Response { is_error: true, .. });
    let looked_into = bytes.len() <= MAX_PARSED_BYTES;
    let parsed = looked_into.then(|| serde_json::from_slice::<Value>(bytes).ok()).flatten();
    let Some(parsed) = parsed else { return (String::new(), error) };
    match info {
        MessageInfo::Response { is_error: true, .. } => {
            let error = &parsed["error"];
            let text = error["message"].as_str().unwrap_or_default();
            (format!("{} {text}", error["code"]), true)
        }
        MessageInfo::Response { .. } => result(&parsed["result"]),
        MessageInfo::Request { .. } | MessageInfo::Notification { .. } | MessageInfo::Unknown => {
            (parameters(&parsed["params"]), false)
        }
    }
}

fn result(result: &Value) -> (String, bool) {
    for list in ["tools", "resources", "prompts", "content", "contents", "messages"] {
        let Some(items) = result[list].as_array() else { continue };
        let failed = result["isError"] == true;
        let first = items.first().and_then(|item| item["text"].as_str()).unwrap_or_default();
        return match (failed, list) {
            (true, _) => (format!("isError {first}"), true),
            (false, "content" | "contents") => (format!("{list}[{}] {first}", items.len()), false),
            (false, _) => (format!("{list}[{}]", items.len()), false),
        };
    }
    (String::new(), false)
}

/// The summary of a request or notification: its name or address and its parameters.
fn parameters(params: &Value) -> String {
    let named = ["name", "uri", "level", "progress", "requestId"];
    let name = named.iter().find_map(|key| params.get(key));
    let rest = ["arguments", "data", "message", "reason"];
    let rest = rest.iter().find_map(|key| params.get(key));
    let parts = [name, rest].into_iter().flatten();
    let parts = parts.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use insta::assert_snapshot;

    use super::*;
    use crate::model::CallId;
    use crate::present::page::LineRenderer;

    fn show(what: TrafficKind, verbose: bool, width: Option<usize>) -> String {
        show_as(what, TrafficLayout { verbose, width, is_one_line: false })
    }

    fn show_as(what: TrafficKind, look: TrafficLayout) -> String {
        let traffic = Traffic {
            server: "notes".to_owned(),
            sequence: 1,
            at: Duration::ZERO,
            call: Some(CallId("c1".into())),
            kind: what,
        };
        let since = Duration::from_micros(12_340);
        LineRenderer::default().page(&page(&traffic, since, look))
    }

    fn message(direction: Direction, text: &str, glance: MessageInfo) -> TrafficKind {
        let latency =
            matches!(glance, MessageInfo::Response { .. }).then_some(Duration::from_millis(12));
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        TrafficKind::Message { direction, bytes, info: glance, latency }
    }

    fn head(direction: Direction, line: &str) -> TrafficKind {
        let headers = vec![
            ("content-type".to_owned(), "text/event-stream".to_owned()),
            ("authorization".to_owned(), "***".to_owned()),
        ];
        let latency = (direction == Direction::Received).then_some(Duration::from_micros(850));
        TrafficKind::HttpHead { direction, line: line.to_owned(), headers, latency }
    }

    #[test]
    fn each_kind_has_its_block() {
        use Direction::{Received, Sent};
        let id = || serde_json::Value::from(3);
        let mut text = String::new();
        for what in [
            TrafficKind::Opened("sh -c true".to_owned()),
            head(Sent, "POST http://127.0.0.1:1/mcp"),
            message(
                Sent,
                r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{},"name":"add"}}"#,
                MessageInfo::Request { id: id(), method: "tools/call".to_owned() },
            ),
            head(Received, "500 Internal Server Error"),
            message(
                Received,
                r#"{"id":3,"result":{}}"#,
                MessageInfo::Response {
                    id: id(),
                    method: Some("tools/call".to_owned()),
                    is_error: false,
                },
            ),
            message(Received, "{half", MessageInfo::Unknown),
            TrafficKind::Stderr("warming up".to_owned()),
            TrafficKind::NonJsonLine("two\nlines".to_owned()),
            TrafficKind::Closed("the process exited with 1".to_owned()),
        ] {
            text.push_str(&show(what, false, None));
        }
        assert_snapshot!(text, @r#"
             12.3 ms notes ** opened: sh -c true
             12.3 ms notes → POST http://127.0.0.1:1/mcp
             12.3 ms notes → tools/call #3  81 B
            {
              "id": 3,
              "method": "tools/call",
              "params": {
                "_meta": "…",
                "name": "add"
              }
            }
             12.3 ms notes ← 500 Internal Server Error  850 µs  text/event-stream
             12.3 ms notes ← result #3  12 ms  20 B  of tools/call
            {
              "id": 3,
              "result": {}
            }
             12.3 ms notes ← not a message  5 B
            {half
             12.3 ms notes !! stderr: warming up
             12.3 ms notes .. two
            lines
             12.3 ms notes ** closed: the process exited with 1
        "#);
    }

    #[test]
    fn an_item_is_one_line_with_what_it_is_about_where_that_is_wanted() {
        use Direction::{Received, Sent};
        let request = |id: u64, method: &str| MessageInfo::Request {
            id: id.into(),
            method: method.to_owned(),
        };
        let call = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}"#;
        let error = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no path"}}"#;
        let failed = MessageInfo::Response { id: 3.into(), method: None, is_error: true };
        let mut text = String::new();
        for kind in [
            TrafficKind::Opened("sh -c true".to_owned()),
            message(Sent, "{}", request(2_147_483_001, "server/discover")),
            message(Sent, call, request(3, "tools/call")),
            message(Received, error, failed),
            TrafficKind::Stderr("two\nlines".to_owned()),
        ] {
            text.push_str(&show_as(
                kind,
                TrafficLayout { verbose: false, width: Some(60), is_one_line: true },
            ));
        }
        assert_snapshot!(text, @r#"
             12.3 ms notes ** opened: sh -c true
             12.3 ms notes → server/discover  2 B
             12.3 ms notes → tools/call #3  90 B  add {"a":1}
             12.3 ms notes ← error #3  12 ms  68 B  -32602 no path
             12.3 ms notes !! stderr: two
        "#);
    }

    #[test]
    fn more_is_shown_to_who_asks_for_it() {
        let shown = show(head(Direction::Sent, "GET http://x/"), true, None);
        assert!(shown.contains("    authorization: ***\n") && shown.contains("call c1"), "{shown}");
        let list = serde_json::json!({ "n": (0..40).collect::<Vec<_>>() }).to_string();
        let many = |verbose| {
            let glance = MessageInfo::Notification { method: "x".to_owned() };
            show(message(Direction::Received, &list, glance), verbose, None)
        };
        assert!(many(false).contains("… 28 more lines, -v shows all"), "{}", many(false));
        assert_eq!(many(true).lines().count(), 45);
    }

    #[test]
    fn nothing_is_wider_than_the_terminal_and_nothing_dangerous_gets_through() {
        let evil = "{\"a\":\"\u{1b}[2J\u{9b}31m\u{202e}and a text that is longer than a row\"}";
        for verbose in [false, true] {
            for what in [
                message(Direction::Sent, evil, MessageInfo::Unknown),
                TrafficKind::Stderr(evil.repeat(3)),
                head(Direction::Sent, evil),
                message(
                    Direction::Received,
                    evil,
                    MessageInfo::Request { id: evil.into(), method: evil.to_owned() },
                ),
            ] {
                let shown = show(what, verbose, Some(30));
                assert!(shown.lines().all(|line| text::width(line) <= 30), "{shown}");
                assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{shown:?}");
            }
        }
    }
}
