//! Tests of the trace view, without a terminal.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::traffic::{Direction, MessageInfo};
use crate::model::{CallId, captured_traffic};
use crate::tui::event::UserInput;
use crate::tui::keys::KeyPress;
use crate::tui::tests::drawing::{ASCII, picture};
use crate::tui::theme::Theme;
use crate::tui::views::trace::{self};

/// When everything happens here.
pub const AT: Duration = Duration::from_millis(1_795_304_776_118);

pub fn crossed(server: &str, what: TrafficKind) -> AppEvent {
    let call = Some(CallId("c1".into()));
    let traffic = Traffic { server: server.to_owned(), sequence: 1, at: AT, call, kind: what };
    AppEvent::Traffic(Box::new(CapturedTraffic::capture(traffic)))
}

fn message(
    direction: Direction,
    text: &str,
    glance: MessageInfo,
    took: Option<Duration>,
) -> TrafficKind {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    TrafficKind::Message { direction, bytes, info: glance, latency: took }
}

pub fn asked(id: u64, method: &str, params: &Value) -> TrafficKind {
    let text = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let glance = MessageInfo::Request { id: id.into(), method: method.to_owned() };
    message(Direction::Sent, &text.to_string(), glance, None)
}

pub fn answered(id: u64, method: &str, result: &Value) -> TrafficKind {
    let text = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let glance =
        MessageInfo::Response { id: id.into(), method: Some(method.to_owned()), is_error: false };
    message(Direction::Received, &text.to_string(), glance, Some(Duration::from_micros(2_040)))
}

pub fn refused(id: u64, text: &str) -> TrafficKind {
    let error = json!({ "code": -32602, "message": text });
    let text = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let glance =
        MessageInfo::Response { id: id.into(), method: Some("tools/call".into()), is_error: true };
    message(Direction::Received, &text.to_string(), glance, Some(Duration::from_millis(15)))
}

/// A call of `files` that works, one of `web` that does not, and what else a wire shows.
pub fn sample() -> AppState {
    let mut state = AppState::new((120, 40));
    let arguments = json!({ "name": "read_file", "arguments": { "path": "notes.md" } });
    let content = json!({ "content": [{ "type": "text", "text": "# notes" }] });
    for (server, what) in [
        ("files", TrafficKind::Opened("mcp-files --stdio".into())),
        ("files", asked(41, "tools/call", &arguments)),
        ("web", asked(41, "tools/call", &json!({ "name": "search" }))),
        ("files", answered(41, "tools/call", &content)),
        ("web", TrafficKind::Stderr("WARN upstream 429\nretry in 2s".into())),
        ("web", refused(41, "path escapes root")),
        ("web", TrafficKind::NonJsonLine("{half".into())),
        ("web", message(Direction::Received, "{\"a\":", MessageInfo::Unknown, None)),
    ] {
        state.update(crossed(server, what));
    }
    state.update(AppEvent::Input(UserInput::Key(KeyPress::Char('3'))));
    state.update(AppEvent::Tick(AT));
    state
}

fn press(state: &mut AppState, keys: &str) -> Vec<AppEffect> {
    let mut effects = Vec::new();
    for c in keys.chars() {
        let key = match c {
            '\r' => KeyPress::Enter,
            '\u{1b}' => KeyPress::Esc,
            other => KeyPress::Char(other),
        };
        effects.extend(state.update(AppEvent::Input(UserInput::Key(key))));
    }
    effects
}

/// What the lines that are shown say, in short.
fn shown(state: &AppState) -> Vec<String> {
    let items = state.trace.window(usize::MAX);
    items.map(|(_, item)| format!("{} {}", item.traffic.server, item.about)).collect()
}

fn frame(state: &AppState) -> String {
    state.trace.frame.to_text() + "\n"
}

#[test]
fn an_answer_knows_its_request_even_where_servers_share_a_number() {
    let mut state = sample();
    assert!(state.is_moving());
    press(&mut state, "gj\r");
    assert_eq!(state.context.focus, Pane::Frame);
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
    assert!(!state.trace.filter.is_typed && state.context.focus == Pane::Frame);
    press(&mut state, "\u{1b}\u{1b}");
    assert_eq!(state.trace.counts(), (8, 8));
}

#[test]
fn while_it_is_paused_what_comes_is_kept_and_counted() {
    let mut state = sample();
    press(&mut state, " ");
    for id in 50..53 {
        state.update(crossed("files", asked(id, "ping", &json!({}))));
    }
    assert_eq!((state.trace.paused_count(), state.trace.counts().0), (Some(3), 8));
    press(&mut state, " ");
    assert_eq!((state.trace.paused_count(), state.trace.counts()), (None, (11, 11)));
    assert_eq!(state.context.message.as_ref().unwrap().text, "3 new lines");
    // What was kept belongs together as if it had come now.
    state.update(crossed("files", answered(52, "ping", &json!({}))));
    assert_eq!(state.trace.chosen().unwrap().pair, Some(10));
}

#[test]
fn the_newest_line_is_followed_until_another_is_selected() {
    let mut state = sample();
    state.update(crossed("files", asked(60, "ping", &json!({}))));
    assert!(state.trace.chosen().unwrap().is_request());
    press(&mut state, "k");
    assert!(state.trace.is_still);
    let before = format!("{:?}", state.trace.chosen());
    state.update(crossed("files", asked(61, "ping", &json!({}))));
    assert_eq!(format!("{:?}", state.trace.chosen()), before);
    press(&mut state, "G");
    assert!(!state.trace.is_still);
    press(&mut state, "C");
    assert_eq!(state.trace.counts(), (0, 0));
    assert!(state.trace.chosen().is_none());
}

#[test]
fn other_views_show_the_newest_message_also_while_another_is_chosen() {
    let mut state = sample();
    press(&mut state, "g");
    state.update(crossed("files", asked(61, "ping", &json!({}))));
    press(&mut state, "1");
    let seen = picture(&state, ASCII);
    assert!(seen.contains("#61 ping"), "{seen}");
}

#[test]
fn frames_are_copied_alone_or_with_what_belongs_to_them() {
    let mut state = sample();
    let copied = |effects: Vec<AppEffect>| match effects.as_slice() {
        [AppEffect::Copy(text)] => text.clone(),
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
    let large = TrafficKind::Stderr("x".repeat(2 * captured_traffic::MAX_CAPTURED_BYTES));
    state.update(crossed("files", large));
    state.update(AppEvent::Host(crate::model::HostEvent::Log {
        origin: "files".into(),
        call_id: None,
        level: crate::model::LogLevel("info".into()),
        text: "no part of the wire".into(),
    }));
    press(&mut state, "/srv:files\r");
    assert_eq!(state.trace.counts(), (10, 5));
    let effects = press(&mut state, "E");
    let [AppEffect::Task(export)] = effects.as_slice() else { panic!("{effects:?}") };
    let export = format!("{export:?}");
    assert!(export.starts_with("(\"export trace\", \"trace-"), "{export}");
    assert!(export.ends_with(".jsonl\", 3, 1)"), "{export}");
}

#[test]
fn the_wire_of_a_server_and_of_a_call_are_shown_on_demand() {
    let mut state = sample();
    press(&mut state, "2");
    let wanted = vec![AppEffect::Navigate(Navigation::ShowTrace("files".into()))];
    assert_eq!(state.resolve_navigation(wanted), []);
    assert_eq!((state.context.view, state.trace.counts()), (ViewId::Trace, (8, 3)));
    state.resolve_navigation(vec![AppEffect::Navigate(Navigation::ShowCall(CallId("c1".into())))]);
    assert_eq!(state.trace.counts(), (8, 8));
    // From the tools: the wire of the server, and of the newest call once there is one.
    let schema = json!({ "type": "object" });
    let tool = crate::tui::tests::tool;
    let tools = vec![tool("clock", schema.clone()), tool("web-search", schema)];
    state.update(crate::tui::tests::listed(tools));
    state.tools.choose("clock");
    press(&mut state, "1T");
    assert_eq!(
        state.context.message.as_ref().unwrap().text,
        "clock has no trace yet: call it first"
    );
    let call_id = CallId("c8".into());
    let (tool, duration) = ("clock".to_owned(), Duration::from_millis(2));
    let run = state.context.calls.begin(tool.clone(), crate::model::JsonObject::new());
    state.update(AppEvent::CallStarted { run, call: call_id.clone() });
    let started = HostEvent::CallStarted {
        call_id: call_id.clone(),
        tool: tool.clone(),
        parent: None,
        client: None,
    };
    let finished =
        HostEvent::CallFinished { call_id, tool, success: false, is_cancelled: true, duration };
    for event in [started, finished] {
        state.update(AppEvent::Host(event));
    }
    press(&mut state, "T");
    assert_eq!((state.context.view, state.trace.filter.text()), (ViewId::Trace, "call:c8 "));
    let lines: Vec<String> = state.trace.window(10).map(|(_, item)| item.about.clone()).collect();
    assert_eq!(lines, ["builtin clock started", "builtin clock cancelled 2 ms"]);
    state.tools.choose("web-search");
    press(&mut state, "1T");
    assert_eq!((state.context.view, state.trace.filter.text()), (ViewId::Trace, "srv:=web "));
    let run = state.context.calls.begin("web-search".into(), crate::model::JsonObject::new());
    state.update(AppEvent::CallStarted { run, call: CallId("c9".into()) });
    press(&mut state, "1T");
    assert_eq!(state.trace.filter.text(), "call:c9 ");
}

#[test]
fn of_a_flood_the_newest_is_kept_within_bounds() {
    let mut trace = TraceView::default();
    let mut numbers = 0;
    for id in 0..25_000_u64 {
        let what = if id % 2 == 0 {
            asked(id / 2, "tools/call", &json!({ "name": "x".repeat(100) }))
        } else {
            answered(id / 2, "tools/call", &json!({}))
        };
        let AppEvent::Traffic(seen) = crossed("files", what) else { unreachable!() };
        trace.push_traffic(*seen, None);
        numbers += 1;
    }
    assert_eq!(
        (numbers, trace.counts()),
        (25_000, (trace::item::MAX_ITEMS, trace::item::MAX_ITEMS))
    );
    assert!(trace.ring.bytes() <= trace::item::BYTES);
    assert_eq!(trace.chosen().unwrap().pair, Some(24_998));
    // Large frames go by bytes, long before they are many.
    for _ in 0..400 {
        let AppEvent::Traffic(seen) =
            crossed("files", TrafficKind::NonJsonLine("y".repeat(1 << 20)))
        else {
            unreachable!()
        };
        trace.push_traffic(*seen, None);
    }
    assert!(trace.counts().0 < 200 && trace.ring.bytes() <= trace::item::BYTES);
    assert_eq!(trace.chosen().unwrap().size, 1 << 20);
    trace.lay_out();
    assert!(trace.frame.len() < 6_000);
}

fn any_passed() -> impl Strategy<Value = TrafficKind> {
    let way = prop_oneof![Just(Direction::Sent), Just(Direction::Received)];
    let id = prop_oneof![
        (0..4_u64).prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
        Just(Value::Null),
        Just(json!({ "deep": [1] })),
    ];
    let glance = prop_oneof![
        (id.clone(), ".{0,20}").prop_map(|(id, method)| MessageInfo::Request { id, method }),
        (id, any::<bool>()).prop_map(|(id, error)| MessageInfo::Response {
            id,
            method: None,
            is_error: error
        }),
        ".{0,20}".prop_map(|method| MessageInfo::Notification { method }),
        Just(MessageInfo::Unknown),
    ];
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        ".{0,80}".prop_map(|text: String| json!({ "params": { "name": text } }).to_string().into()),
        Just(vec![b'['; 5_000]),
    ];
    prop_oneof![
        (way.clone(), bytes, glance).prop_map(|(direction, bytes, glance)| TrafficKind::Message {
            direction,
            bytes: bytes.into(),
            info: glance,
            latency: Some(Duration::MAX),
        }),
        (way, ".{0,40}").prop_map(|(direction, line)| TrafficKind::HttpHead {
            direction,
            headers: vec![(line.clone(), line.clone())],
            line,
            latency: None,
        }),
        ".{0,80}".prop_map(TrafficKind::Stderr),
        ".{0,80}".prop_map(TrafficKind::NonJsonLine),
        ".{0,40}".prop_map(TrafficKind::Opened),
        ".{0,40}".prop_map(TrafficKind::Closed),
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
        let mut state = AppState::new((width, height));
        state.update(AppEvent::Input(UserInput::Key(KeyPress::Char('3'))));
        let backend = ratatui::backend::TestBackend::new(width, height);
        let mut terminal = ratatui::Terminal::new(backend).unwrap();
        let theme = crate::tui::theme::Theme::default();
        let mut keys = keys.chars();
        for (server, what) in all {
            state.update(crossed(["a", "b", "\u{202e}"][server], what));
            press(&mut state, &keys.next().into_iter().collect::<String>());
        }
        press(&mut state, keys.as_str());
        state.update(AppEvent::Tick(AT));
        terminal.draw(|frame| { crate::tui::draw::console(frame.buffer_mut(), &state, theme); }).unwrap();
        for (number, item) in state.trace.ring.iter() {
            if let Some(other) = item.pair.and_then(|pair| state.trace.ring.get(pair)) {
                prop_assert_eq!(other.pair, Some(number));
                prop_assert!(item.is_request() != other.is_request());
                prop_assert_eq!(&item.traffic.server, &other.traffic.server);
            }
        }
    }
}

fn sized(width: u16, height: u16, keys: &str) -> AppState {
    let mut state = sample();
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    for c in keys.chars() {
        let key = if c == '\r' { KeyPress::Enter } else { KeyPress::Char(c) };
        state.update(AppEvent::Input(UserInput::Key(key)));
    }
    state
}

/// A picture in which it is the same time everywhere.
fn timed(state: &AppState, theme: Theme) -> String {
    let seen = picture(state, theme).replace(&timestamp::time_of_day_millis(AT), "14:03:21.118");
    seen.replace(&timestamp::time_of_day(AT), "14:03:21")
}

#[test]
fn the_trace_in_120_by_40() {
    insta::assert_snapshot!(timed(&sized(120, 40, "gj\r"), ASCII));
}

#[test]
fn the_trace_in_80_by_24() {
    insta::assert_snapshot!(timed(&sized(80, 24, "/srv:web"), Theme::default()));
}

#[test]
fn the_trace_in_60_by_16() {
    insta::assert_snapshot!(timed(&sized(60, 16, ""), ASCII));
}

#[test]
fn the_trace_in_40_by_10() {
    insta::assert_snapshot!(timed(&sized(40, 10, " "), Theme::default()));
}

#[test]
fn what_crosses_a_wire_steers_nothing() {
    let evil = "\u{1b}[2J\u{9b}31m\u{202e}evil\u{1b}]0;title\u{7}";
    let mut state = sized(120, 40, "");
    let glance = MessageInfo::Request { id: evil.into(), method: evil.to_owned() };
    for what in [
        TrafficKind::Stderr(evil.to_owned()),
        TrafficKind::HttpHead {
            direction: Direction::Received,
            line: evil.to_owned(),
            headers: vec![(evil.to_owned(), evil.to_owned())],
            latency: None,
        },
        TrafficKind::Message {
            direction: Direction::Received,
            bytes: Bytes::copy_from_slice(evil.as_bytes()),
            info: glance,
            latency: None,
        },
    ] {
        state.update(crossed(evil, what));
        state.update(AppEvent::Tick(AT));
        let seen = picture(&state, Theme::default());
        assert!(seen.contains("␛[2J⟨U+009B⟩31m⟨U+202E⟩evil"), "{seen}");
        assert!(!seen.chars().any(|c| c.is_control() && c != '\n'), "{seen}");
        assert!(!seen.contains('\u{202e}'));
    }
}
