//! Tests of which forms of a secret are found, and what replaces them.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::util::base64;
use crate::util::tail::LineTail;

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap()
}

fn definition() -> ToolDefinition {
    use crate::model::{Origin, ToolName, ToolSource};
    let name = ToolName::plain("t");
    ToolDefinition::new(name, ToolSource::Internal, "openapi", Origin::Program)
}

#[test]
fn a_definition_is_masked_wherever_a_value_stands_and_else_not_even_copied() {
    let masker = Masker::new([("TOKEN", "hunter2")]);
    let after = |change: fn(&mut ToolDefinition)| {
        let mut tool = definition();
        change(&mut tool);
        let before = Arc::new(tool);
        let mut after = Arc::clone(&before);
        masker.definition(&mut after);
        (Arc::ptr_eq(&before, &after), format!("{after:?}"))
    };
    assert!(after(|_| ()).0);
    let places: [fn(&mut ToolDefinition); 5] = [
        |tool| tool.description = Some("hunter2".to_owned()),
        |tool| tool.annotations.title = Some("hunter2".to_owned()),
        |tool| tool.touches = vec!["hunter2".to_owned()],
        |tool| tool.input_schema = ToolSchema::from(json!({ "default": "hunter2" })),
        |tool| tool.mark_unavailable(Error::unreachable("hunter2")),
    ];
    for (at, place) in places.into_iter().enumerate() {
        let (_, shown) = after(place);
        assert!(shown.contains("‹secret:TOKEN›") && !shown.contains("hunter2"), "{at}: {shown}");
    }
}

#[test]
fn nothing_is_searched_while_no_value_is_known() {
    let masker = Masker::new([("TINY", "ab")]);
    assert!(masker.is_empty() && masker.search().is_none());
    masker.add_secret("TOKEN", "hunter2");
    assert!(!masker.is_empty() && masker.search().is_some());
}

#[test]
fn a_schema_that_is_put_together_later_is_masked_then() {
    let mut tool = definition();
    tool.input_schema = ToolSchema::lazy(json!({ "type": "object" }), |mut schema| {
        schema["$defs"] = json!({ "a": { "default": "hunter2" } });
        schema
    });
    let mut tool = Arc::new(tool);
    Masker::new([("TOKEN", "hunter2")]).definition(&mut tool);
    assert!(!tool.input_schema.is_looked_at());
    assert_eq!(tool.input_schema["$defs"]["a"]["default"], "‹secret:TOKEN›");
}

#[test]
fn traffic_is_masked_and_otherwise_exact() {
    use std::sync::{Arc, Mutex};
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let kinds = Arc::clone(&kinds);
        TrafficSink::new(move |traffic: Traffic| kinds.lock().unwrap().push(traffic.kind))
    };
    let masked = Masker::new([("TOKEN", "hunter2")]).traffic(sink);
    let message = |bytes: &'static [u8]| TrafficKind::Message {
        direction: crate::model::traffic::Direction::Sent,
        bytes: Bytes::from_static(bytes),
        info: MessageInfo::Request { id: "hunter2".into(), method: "hunter2".to_owned() },
        latency: None,
    };
    let head = TrafficKind::HttpHead {
        direction: crate::model::traffic::Direction::Sent,
        line: "GET http://x/?k=hunter2".to_owned(),
        headers: vec![("x".to_owned(), "hunter2".to_owned())],
        latency: None,
    };
    let text = || "hunter2".to_owned();
    for what in [
        message(b"\xff hunter2 and hunter2!"),
        message(b"\xff exact \xfe"),
        head,
        TrafficKind::Stderr(text()),
        TrafficKind::NonJsonLine(text()),
        TrafficKind::Opened(text()),
        TrafficKind::Closed(text()),
    ] {
        let (at, call, server) = (std::time::Duration::ZERO, None, "a".to_owned());
        masked.emit(Traffic { server, sequence: 1, at, call, kind: what });
    }
    let kinds = kinds.lock().unwrap();
    let all = format!("{kinds:?}");
    assert!(!all.contains("hunter2"), "{all}");
    let exact = |index: usize| match &kinds[index] {
        TrafficKind::Message { bytes, .. } => bytes.clone(),
        other => panic!("{other:?}"),
    };
    let mark = "‹secret:TOKEN›";
    let expected = [&b"\xff "[..], mark.as_bytes(), b" and ", mark.as_bytes(), b"!"].concat();
    assert_eq!(exact(0), expected);
    assert_eq!(exact(1), &b"\xff exact \xfe"[..]);
    assert!(!Masker::new([("TOKEN", "hunter2")]).traffic(TrafficSink::disabled()).is_enabled());
}

#[test]
fn properties_marked_by_the_schema_are_masked() {
    let schema = json!({
        "properties": {
            "a": {"type": "string", "writeOnly": true},
            "b": {"type": "string", "format": "password"},
            "c": {"x-secret": true},
            "d": {"$ref": "#/$defs/Key"},
            "e": {"properties": {"inner": {"x-secret": true}}},
            "f": {"items": {"writeOnly": true}},
            "g": {"$ref": "#/properties/g"}
        },
        "$defs": {"Key": {"type": "string", "writeOnly": true}}
    });
    let masked = Masker::default().arguments(
        &object(&json!({
            "a": "1", "b": "2", "c": {"x": 3}, "d": "4",
            "e": {"inner": "5", "outer": "6"}, "f": ["7"], "g": "8"
        })),
        &schema,
    );
    assert_eq!(
        Value::Object(masked),
        json!({"a": MASK, "b": MASK, "c": MASK, "d": MASK,
               "e": {"inner": MASK, "outer": "6"}, "f": MASK, "g": "8"})
    );
}

#[test]
fn telling_names_are_masked_and_counts_are_not() {
    for key in [
        "password",
        "apiKey",
        "API_KEY",
        "auth-token",
        "githubToken",
        "client_secret",
        "access_key",
        "privateKey",
    ] {
        assert!(is_secret_argument(key), "{key}");
    }
    for key in
        ["max_tokens", "key", "tokenizer", "author", "secretary", "monkey", "sort_key", "api_url"]
    {
        assert!(!is_secret_argument(key), "{key}");
    }
    let masked = Masker::default().arguments(
        &object(&json!({"token": "x", "n": {"password": "y"}, "secret": 5})),
        &json!({}),
    );
    assert_eq!(Value::Object(masked), json!({"token": MASK, "n": {"password": MASK}, "secret": 5}));
}

#[test]
fn known_values_go_in_every_form() {
    let masker = Masker::new([("KEY", "pä/ss w\"rd"), ("TINY", "ab")]);
    for text in [
        "x pä/ss w\"rd y",
        "x PÄ/SS W\"RD y",
        r#"{"a":"pä/ss w\"rd"}"#,
        r#"{"a":"p\u00e4\/ss w\"rd"}"#,
        "q=p%C3%A4%2Fss%20w%22rd&x",
        "q=p%c3%a4%2fss%20w%22rd&x",
        "q=p%C3%A4%2Fss+w%22rd&x",
    ] {
        assert!(masker.text(text).contains("‹secret:KEY›"), "{text}");
    }
    assert_eq!(masker.text("ab is too short to be hidden"), "ab is too short to be hidden");
}

#[test]
fn a_value_inside_longer_base64_is_found() {
    // base64 of "ada:hunter22", as in an Authorization header.
    let masker = Masker::new([("PASS", "hunter22")]);
    let masked = masker.text("Basic YWRhOmh1bnRlcjIy");
    assert!(masked.contains("‹secret:PASS›"), "{masked}");
}

/// JSON text with everything beyond ASCII as `\u` escapes.
fn ascii_json(json: &str) -> String {
    json.encode_utf16()
        .map(|unit| match char::from_u32(u32::from(unit)) {
            Some(c) if c.is_ascii() => c.to_string(),
            _ => format!("\\u{unit:04x}"),
        })
        .collect()
}

fn percent(bytes: &[u8]) -> String {
    let escape = |byte: &u8| match char::from(*byte) {
        c if c.is_ascii_alphanumeric() => c.to_string(),
        _ => format!("%{byte:02X}"),
    };
    bytes.iter().map(escape).collect()
}

fn hex(bytes: &[u8]) -> String {
    let digit = |byte: u8| char::from_digit(u32::from(byte), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[test]
fn a_reference_comes_back_as_it_is_written() {
    let masker = Masker::default();
    masker.add_reference("${BASE}", "https://ada:hunter22@corp.example/tenant-0815");
    masker.add_reference("${BASE_NAME}", "BASE");
    masker.add_secret("BASE", "https://ada:hunter22@corp.example/tenant-0815");
    let once = masker.text("GET https://ada:hunter22@corp.example/tenant-0815/x base");
    assert_eq!(once, "GET ${BASE}/x ${BASE_NAME}");
    assert_eq!(masker.text(&once), once, "masking twice changes nothing");
    // What a library makes of an address has its parts.
    let parts = masker.text("cannot reach corp.example as ada: hunter22 (POST /tenant-0815)");
    assert_eq!(parts, "cannot reach ${BASE} as ada: ${BASE} (POST /tenant-0815)");
    masker.add_reference("${file:a\"b}", "of-a-file");
    assert_eq!(masker.text("of-a-file"), "${file:a_b}");
}

#[test]
fn a_value_in_a_mark_is_left_and_one_beside_it_is_not() {
    let masker = Masker::default();
    masker.add_reference("$TOKEN", "hunter22");
    for (name, value) in [("HEAD", "$TOK"), ("TAIL", "OKEN"), ("KEY", "s3cr3")] {
        masker.add_secret(name, value);
    }
    for (text, expected) in [
        ("hunter22", "$TOKEN"),
        ("$TOKEN", "$TOKEN"),
        ("$TOKEN s3cr3", "$TOKEN ‹secret:KEY›"),
        ("$TOK TOKEN", "‹secret:HEAD› T‹secret:TAIL›"),
    ] {
        assert_eq!(masker.text(text), expected, "{text}");
    }
    // A value that is written like a mark is one all the same.
    masker.add_secret("WHOLE", "$TOKEN");
    assert_eq!(masker.text("$TOKEN"), "‹secret:WHOLE›");
}

#[test]
fn what_only_begins_like_a_value_stays() {
    let value = "qxzjvkwqzxkjvwzqxj";
    let masker = Masker::new([("K", value)]);
    for other in ["qxzjvkwqzxkj", "qxzjvkwqzxkjvwzqxk"] {
        assert_eq!(masker.text(&format!("{other} ")), format!("{other} "));
    }
    // In base64 another case is another text.
    let encoded = base64::encode(value.as_bytes()).to_uppercase();
    assert_eq!(masker.text(&encoded), encoded);
}

#[test]
fn values_that_overlap_leave_nothing_of_either() {
    let masker = Masker::new([("A", "head-common"), ("B", "common-tail")]);
    assert_eq!(masker.text("<head-common-tail>"), "<‹secret:A›>");
    assert_eq!(masker.text("<head-commoncommon-tail>"), "<‹secret:A›‹secret:B›>");
}

#[test]
fn a_cut_leaves_no_part_of_a_value() {
    let value = "s3cr3t/va\"lue-of-24-bytes";
    let masker = Masker::new([("K", value)]);
    let json = serde_json::to_string(value).unwrap();
    for whole in [value.to_owned(), percent(value.as_bytes()), hex(value.as_bytes()), json] {
        for at in 0..whole.len() {
            let (head, tail) = whole.split_at(at);
            let head = masker.text(&format!("{head}…"));
            let tail = masker.text(&format!("…{tail}"));
            // Less than four letters, and what the cut left of an escape.
            for part in whole.as_bytes().windows(9).map(|part| std::str::from_utf8(part).unwrap()) {
                assert!(!head.contains(part) && !tail.contains(part), "{at}: {head} {tail}");
            }
        }
    }
    let plain = |at: usize| {
        let (head, tail) = value.split_at(at);
        (masker.text(&format!("a {head}…")), masker.text(&format!("…{tail} b")))
    };
    for at in 0..value.len() {
        let (head, tail) = plain(at);
        for part in
            value.as_bytes().windows(MIN_SECRET_LEN).map(|p| std::str::from_utf8(p).unwrap())
        {
            assert!(!head.contains(part) && !tail.contains(part), "{at}: {head} {tail}");
        }
    }
}

#[test]
fn a_value_over_the_edge_of_a_window_leaves_no_part() {
    let value = "qxzjvkwqzxkjvwzqxj";
    let masker = Masker::new([("K", value)]);
    let is_seen = |text: &str| {
        value.as_bytes().windows(4).any(|part| text.contains(std::str::from_utf8(part).unwrap()))
    };
    for before in (4096 - value.len() - 2)..=4097 {
        let line = format!("{}{value} and more", "-".repeat(before));
        let mut tail = LineTail::default();
        line.as_bytes().chunks(7).for_each(|chunk| tail.push(chunk));
        let unfinished = masker.text(&tail.last(1)[0]);
        tail.push(b"\n");
        let finished = masker.text(&tail.last(1)[0]);
        assert!(!is_seen(&unfinished) && !is_seen(&finished), "{before}");
    }
    let long = format!("{} {value} ", "-".repeat(290));
    for skipped in 0..20 {
        let cut = crate::net::response::truncate(long.get(skipped..).unwrap());
        assert!(!is_seen(&masker.text(&cut)), "{cut}");
        let short = crate::util::text::shorten(&long, 280 + skipped);
        assert!(!is_seen(&masker.text(&short)), "{short}");
    }
}

#[test]
fn a_large_value_is_found_whole_and_by_its_lines() {
    let line = |n: usize| format!("{n:04}-{}", "abcdefgh".repeat(7));
    let pem: Vec<String> = (0..400).map(line).collect();
    let masker = Masker::default();
    masker.add_reference("${file:key.pem}", &pem.join("\n"));
    assert_eq!(masker.text(&pem.join("\n")), "${file:key.pem}");
    assert_eq!(masker.text(&pem[7]), "${file:key.pem}");
    let encoded = masker.text(&base64::encode(pem.join("\n").as_bytes()));
    assert!(encoded.starts_with("${file:key.pem}") && encoded.len() < 20, "{encoded}");
}

proptest! {
    #[test]
    fn no_secret_is_left_in_any_form(
        secret in "[0-9]{2}[ -~äß€😀]{6,24}",
        before in "[g-z]{0,5}",
        after in "[a-z]{0,5}",
    ) {
        let masker = Masker::new([("NAME", secret.as_str())]);
        let all = format!("{before}{secret}{after}");
        let json = serde_json::to_string(&all).unwrap();
        prop_assert!(!masker.text(&all).contains(&secret));
        let bytes = all.as_bytes();
        let encoded = base64::encode(bytes);
        let twice = serde_json::to_string(&json).unwrap();
        for text in [
            all.to_ascii_uppercase(),
            all.to_uppercase(),
            all.to_lowercase(),
            json.clone(),
            ascii_json(&json),
            format!("{twice} {}", serde_json::to_string(&twice).unwrap()),
            percent(bytes),
            percent(bytes).to_lowercase(),
            percent(percent(bytes).as_bytes()),
            url::form_urlencoded::byte_serialize(bytes).collect(),
            percent(json.as_bytes()),
            hex(bytes),
            hex(bytes).to_uppercase(),
            encoded.trim_end_matches('=').to_owned(),
            encoded.replace('+', "-").replace('/', "_"),
            percent(encoded.as_bytes()),
        ] {
            let masked = masker.text(&text);
            prop_assert!(masked.contains("‹secret:NAME›"), "{} -> {}", text, masked);
        }
        let arguments = object(&json!({ "deep": [{ "x": all }], all.clone(): 1 }));
        let masked = Value::Object(masker.arguments(&arguments, &json!({}))).to_string();
        let escaped = serde_json::to_string(&secret).unwrap();
        prop_assert!(!masked.contains(escaped.trim_matches('"')));
    }
}
