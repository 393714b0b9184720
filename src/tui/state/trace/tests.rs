//! The trace without a terminal: what is kept, what belongs together, what is shown.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::CallId;
use crate::model::traffic::{Direction, Glance, Passed};
use crate::tui::event::{Errand, Event, Input, wire};
use crate::tui::keys::Key;
use crate::tui::state::{State, View};

/// When everything happens here.
pub(in crate::tui) const AT: Duration = Duration::from_millis(1_795_304_776_118);

pub(in crate::tui) fn crossed(server: &str, what: Passed) -> Event {
    let call = Some(CallId("c1".to_owned()));
    let traffic = Traffic { server: server.to_owned(), sequence: 1, at: AT, call, what };
    Event::Traffic(Box::new(Seen::of(traffic)))
}

fn message(direction: Direction, text: &str, glance: Glance, took: Option<Duration>) -> Passed {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    Passed::Message { direction, bytes, glance, latency: took }
}

pub(in crate::tui) fn asked(id: u64, method: &str, params: &Value) -> Passed {
    let text = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let glance = Glance::Request { id: id.into(), method: method.to_owned() };
    message(Direction::Sent, &text.to_string(), glance, None)
}

pub(in crate::tui) fn answered(id: u64, method: &str, result: &Value) -> Passed {
    let text = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let glance = Glance::Answer { id: id.into(), method: Some(method.to_owned()), error: false };
    message(Direction::Received, &text.to_string(), glance, Some(Duration::from_micros(2_040)))
}

pub(in crate::tui) fn refused(id: u64, said: &str) -> Passed {
    let error = json!({ "code": -32602, "message": said });
    let text = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let glance = Glance::Answer { id: id.into(), method: Some("tools/call".into()), error: true };
    message(Direction::Received, &text.to_string(), glance, Some(Duration::from_millis(15)))
}

/// A call of `files` that works, one of `web` that does not, and what else a wire shows.
pub(in crate::tui) fn sample() -> State {
    let mut state = State::new((120, 40));
    let arguments = json!({ "name": "read_file", "arguments": { "path": "notes.md" } });
    let content = json!({ "content": [{ "type": "text", "text": "# notes" }] });
    for (server, what) in [
        ("files", Passed::Opened("mcp-files --stdio".into())),
        ("files", asked(41, "tools/call", &arguments)),
        ("web", asked(41, "tools/call", &json!({ "name": "search" }))),
        ("files", answered(41, "tools/call", &content)),
        ("web", Passed::Stderr("WARN upstream 429\nretry in 2s".into())),
        ("web", refused(41, "path escapes root")),
        ("web", Passed::Noise("{half".into())),
        ("web", message(Direction::Received, "{\"a\":", Glance::Unknown, None)),
    ] {
        state.update(crossed(server, what));
    }
    state.update(Event::Input(Input::Key(Key::Char('3'))));
    state.update(Event::Tick(AT));
    state
}

fn press(state: &mut State, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for c in keys.chars() {
        let key = match c {
            '\r' => Key::Enter,
            '\u{1b}' => Key::Esc,
            other => Key::Char(other),
        };
        effects.extend(state.update(Event::Input(Input::Key(key))));
    }
    effects
}

/// What the lines that are shown say, in short.
fn shown(state: &State) -> Vec<String> {
    let (items, _) = state.trace.window(usize::MAX);
    items.map(|(_, item)| format!("{} {}", item.server, item.about)).collect()
}

fn frame(state: &State) -> String {
    state.trace.frame.lines.iter().flat_map(|(_, said)| [said.as_str(), "\n"]).collect()
}

#[test]
fn an_answer_knows_its_request_even_where_servers_share_a_number() {
    let mut state = sample();
    assert!(state.is_moving());
    press(&mut state, "gj\r");
    assert_eq!(state.shell.focus, Pane::Frame);
    let both = frame(&state);
    assert!(both.contains("\"path\": \"notes.md\"") && both.contains("# notes"), "{both}");
    assert!(!both.contains("escapes root"), "{both}");
    press(&mut state, "t");
    assert!(!frame(&state).contains("# notes"));
    press(&mut state, "t");
    assert!(frame(&state).contains("# notes") && !frame(&state).contains("notes.md"));
    // Back in the list the next line is shown alone.
    press(&mut state, "\u{1b}j");
    assert!(frame(&state).contains("search"), "{}", frame(&state));
}

#[test]
fn what_is_no_json_is_shown_as_what_it_is() {
    let mut state = sample();
    press(&mut state, "G");
    assert!(frame(&state).contains("not JSON: EOF while parsing"), "{}", frame(&state));
    press(&mut state, "k");
    assert!(frame(&state).ends_with("{half\n"), "{}", frame(&state));
    press(&mut state, "kk");
    assert!(frame(&state).contains("retry in 2s"), "{}", frame(&state));
}

#[test]
fn a_filter_narrows_while_it_is_written() {
    let lines = |query: &str| {
        let mut state = sample();
        press(&mut state, &format!("/{query}"));
        shown(&state).len()
    };
    assert_eq!((lines(""), lines("srv:files"), lines("srv:=file")), (8, 3, 0));
    assert_eq!((lines("method:tools/"), lines("method:tools/call way:sent")), (5, 3));
    assert_eq!((lines("error:yes"), lines("error:no"), lines("way:")), (2, 6, 8));
    assert_eq!((lines("NOTES.MD"), lines("!web"), lines("call:c2"), lines("call:c")), (1, 3, 0, 8));
    let mut state = sample();
    press(&mut state, "/srv:web\r");
    assert!(!state.trace.is_filtering);
    press(&mut state, "\u{1b}");
    assert_eq!(state.trace.counts(), (8, 8));
}

#[test]
fn while_it_is_paused_what_comes_is_kept_and_counted() {
    let mut state = sample();
    press(&mut state, " ");
    for id in 50..53 {
        state.update(crossed("files", asked(id, "ping", &json!({}))));
    }
    assert_eq!((state.trace.waiting(), state.trace.counts().0), (Some(3), 8));
    press(&mut state, " ");
    assert_eq!((state.trace.waiting(), state.trace.counts()), (None, (11, 11)));
    assert_eq!(state.shell.message.as_ref().unwrap().text, "3 came meanwhile");
    // What was kept belongs together as if it had come now.
    state.update(crossed("files", answered(52, "ping", &json!({}))));
    assert_eq!(state.trace.chosen().unwrap().pair, Some(10));
}

#[test]
fn the_newest_line_is_followed_until_somebody_looks_at_another() {
    let mut state = sample();
    state.update(crossed("files", asked(60, "ping", &json!({}))));
    assert!(state.trace.chosen().unwrap().is_request());
    press(&mut state, "k");
    assert!(!state.trace.follows);
    let before = format!("{:?}", state.trace.chosen());
    state.update(crossed("files", asked(61, "ping", &json!({}))));
    assert_eq!(format!("{:?}", state.trace.chosen()), before);
    press(&mut state, "G");
    assert!(state.trace.follows);
    press(&mut state, "C");
    assert_eq!(state.trace.counts(), (0, 0));
    assert!(state.trace.chosen().is_none());
}

#[test]
fn frames_are_copied_alone_or_with_what_belongs_to_them() {
    let mut state = sample();
    let copied = |effects: Vec<Effect>| match effects.as_slice() {
        [Effect::Copy(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    press(&mut state, "gj");
    let alone = copied(press(&mut state, "y"));
    assert!(alone.contains("notes.md") && !alone.contains('\n'), "{alone}");
    let both = copied(press(&mut state, "Y"));
    assert_eq!(both.lines().count(), 2);
    assert!(both.starts_with(&alone) && both.contains("# notes"), "{both}");
}

#[test]
fn what_is_shown_is_exported_without_what_is_not_whole() {
    let mut state = sample();
    let large = Passed::Stderr("x".repeat(2 * wire::KEPT));
    state.update(crossed("files", large));
    state.update(Event::Host(crate::model::Event::Log {
        origin: "files".into(),
        level: crate::model::LogLevel("info".into()),
        text: "no part of the wire".into(),
    }));
    press(&mut state, "/srv:files\r");
    assert_eq!(state.trace.counts(), (10, 5));
    let effects = press(&mut state, "E");
    let [Effect::Trace(Wish::Export { path, tape })] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert!(path.to_str().unwrap().starts_with("trace-"), "{path:?}");
    assert_eq!(path.extension().unwrap(), "jsonl");
    assert_eq!((tape.items.len(), tape.cut), (3, 1));
}

#[test]
fn the_wire_of_a_server_and_of_a_call_are_shown_on_demand() {
    let mut state = sample();
    press(&mut state, "2");
    let wanted = vec![Effect::Go(Errand::ShowTrace("files".into()))];
    assert_eq!(state.settle(wanted), []);
    assert_eq!((state.shell.view, state.trace.counts()), (View::Trace, (8, 3)));
    state.settle(vec![Effect::Go(Errand::ShowCall(CallId("c1".into())))]);
    assert_eq!(state.trace.counts(), (8, 8));
    // From the tools: the wire of the server, and of the newest call once there is one.
    let schema = json!({ "type": "object" });
    let tool = crate::tui::state::tests::tool;
    let tools = vec![tool("clock", schema.clone()), tool("web-search", schema)];
    state.update(crate::tui::state::tests::listed(tools));
    press(&mut state, "1T");
    assert_eq!(state.shell.message.as_ref().unwrap().text, "clock has no wire: it runs here");
    press(&mut state, "jT");
    assert_eq!((state.shell.view, state.trace.filter.text()), (View::Trace, "srv:=web "));
    let run = state.shell.calls.begin("web-search".into(), crate::model::JsonObject::new());
    state.update(Event::Began { run, call: CallId("c9".into()) });
    press(&mut state, "1T");
    assert_eq!(state.trace.filter.text(), "call:c9 ");
}

#[test]
fn of_a_flood_the_newest_is_kept_within_bounds() {
    let mut trace = Trace::default();
    let mut numbers = 0;
    for id in 0..25_000_u64 {
        let what = if id % 2 == 0 {
            asked(id / 2, "tools/call", &json!({ "name": "x".repeat(100) }))
        } else {
            answered(id / 2, "tools/call", &json!({}))
        };
        let Event::Traffic(seen) = crossed("files", what) else { unreachable!() };
        trace.take(*seen);
        numbers += 1;
    }
    assert_eq!((numbers, trace.counts()), (25_000, (ring::ITEMS, ring::ITEMS)));
    assert!(trace.ring.bytes() <= ring::BYTES);
    assert_eq!(trace.chosen().unwrap().pair, Some(24_998));
    // Large frames go by bytes, long before they are many.
    for _ in 0..400 {
        let Event::Traffic(seen) = crossed("files", Passed::Noise("y".repeat(1 << 20))) else {
            unreachable!()
        };
        trace.take(*seen);
    }
    assert!(trace.counts().0 < 200 && trace.ring.bytes() <= ring::BYTES);
    assert_eq!(trace.chosen().unwrap().size, 1 << 20);
    trace.lay_out();
    assert!(trace.frame.lines.len() < 6_000);
}

fn any_passed() -> impl Strategy<Value = Passed> {
    let way = prop_oneof![Just(Direction::Sent), Just(Direction::Received)];
    let id = prop_oneof![
        (0..4_u64).prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
        Just(Value::Null),
        Just(json!({ "deep": [1] })),
    ];
    let glance = prop_oneof![
        (id.clone(), ".{0,20}").prop_map(|(id, method)| Glance::Request { id, method }),
        (id, any::<bool>()).prop_map(|(id, error)| Glance::Answer { id, method: None, error }),
        ".{0,20}".prop_map(|method| Glance::Notification { method }),
        Just(Glance::Unknown),
    ];
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        ".{0,80}".prop_map(|text: String| json!({ "params": { "name": text } }).to_string().into()),
        Just(vec![b'['; 5_000]),
    ];
    prop_oneof![
        (way.clone(), bytes, glance).prop_map(|(direction, bytes, glance)| Passed::Message {
            direction,
            bytes: bytes.into(),
            glance,
            latency: Some(Duration::MAX),
        }),
        (way, ".{0,40}").prop_map(|(direction, line)| Passed::Head {
            direction,
            headers: vec![(line.clone(), line.clone())],
            line,
            latency: None,
        }),
        ".{0,80}".prop_map(Passed::Stderr),
        ".{0,80}".prop_map(Passed::Noise),
        ".{0,40}".prop_map(Passed::Opened),
        ".{0,40}".prop_map(Passed::Closed),
    ]
}

proptest! {
    #[test]
    fn whatever_crosses_a_wire_nothing_breaks_and_everything_belongs_to_one(
        all in prop::collection::vec((0..3_usize, any_passed()), 0..60),
        keys in "[ jkgGftCYE/a:\r\u{1b}]{0,20}",
        width in 20..140_u16,
        height in 5..50_u16,
    ) {
        let mut state = State::new((width, height));
        state.update(Event::Input(Input::Key(Key::Char('3'))));
        let backend = ratatui::backend::TestBackend::new(width, height);
        let mut terminal = ratatui::Terminal::new(backend).unwrap();
        let theme = crate::tui::theme::Theme::default();
        let mut keys = keys.chars();
        for (server, what) in all {
            state.update(crossed(["a", "b", "\u{202e}"][server], what));
            press(&mut state, &keys.next().into_iter().collect::<String>());
        }
        press(&mut state, keys.as_str());
        state.update(Event::Tick(AT));
        terminal.draw(|frame| crate::tui::draw::console(frame, &state, &theme)).unwrap();
        for (number, item) in state.trace.ring.iter() {
            if let Some(other) = item.pair.and_then(|pair| state.trace.ring.get(pair)) {
                prop_assert_eq!(other.pair, Some(number));
                prop_assert!(item.is_request() != other.is_request());
                prop_assert_eq!(&item.server, &other.server);
            }
        }
    }
}
