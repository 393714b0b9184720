//! What the console does when things happen, without a terminal.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::catalogue::Catalogue as Listed;
use crate::host::approval::Approval;
use crate::model::{Origin, Source, ToolDefinition, ToolName};
use crate::tui::event::{AskId, AskedApproval, Event, Input, RunId};
use crate::tui::keys::Key;

pub(in crate::tui) fn tool(name: &str, schema: Value) -> ToolDefinition {
    let name = match name.split_once('-') {
        Some((component, tool)) => ToolName::of(component, tool),
        None => ToolName::plain(name),
    };
    let (source, origin) = match name.component() {
        Some(server) => (Source::Mcp, Origin::Server(server.to_owned())),
        None => (Source::Internal, Origin::Program),
    };
    let kind = if source == Source::Mcp { "mcp" } else { "builtin" };
    let mut tool = ToolDefinition::new(name, source, kind, origin);
    tool.input_schema = schema.into();
    tool
}

pub(in crate::tui) fn listed(tools: Vec<ToolDefinition>) -> Event {
    let tools = tools.into_iter().map(Into::into).collect();
    let catalogue = Box::new(Listed { tools, ..Listed::default() });
    Event::Listed { servers: Vec::new(), catalogue }
}

pub(in crate::tui) fn sample() -> State {
    let mut state = State::new((120, 40));
    let expression = json!({
        "type": "object",
        "properties": {
            "precision": { "type": "integer", "default": 12 },
            "expression": { "type": "string", "description": "What to calculate" },
            "mode": { "enum": ["exact", "float"] },
        },
        "required": ["expression"],
    });
    let none = json!({ "type": "object" });
    let tools = vec![
        tool("calculator", expression),
        tool("clock", none.clone()),
        tool("files-read_file", none.clone()),
        tool("web-search", none),
    ];
    assert!(state.update(listed(tools)).contains(&Effect::LookAtServers));
    state
}

/// Presses keys: a word is typed, a name in angle brackets is that key.
pub(in crate::tui) fn press(state: &mut State, keys: &[&str]) -> Vec<Effect> {
    let mut effects = Vec::new();
    for word in keys {
        let named = match *word {
            "<enter>" => Some(Key::Enter),
            "<esc>" => Some(Key::Esc),
            "<down>" => Some(Key::Down),
            "<left>" => Some(Key::Left),
            "<right>" => Some(Key::Right),
            "<tab>" => Some(Key::Tab),
            "<del>" => Some(Key::Delete),
            "<f5>" => Some(Key::F(5)),
            "<f6>" => Some(Key::F(6)),
            "^p" => Some(Key::Ctrl('p')),
            "^x" => Some(Key::Ctrl('x')),
            "^n" => Some(Key::Ctrl('n')),
            "^c" => Some(Key::Ctrl('c')),
            "^u" => Some(Key::Ctrl('u')),
            _ => None,
        };
        let typed = word.chars().filter(|_| named.is_none()).map(Key::Char);
        for key in named.into_iter().chain(typed) {
            effects.extend(state.update(Event::Input(Input::Key(key))));
        }
    }
    effects
}

#[test]
fn three_letters_find_a_tool_and_a_filled_form_calls_it() {
    let mut state = sample();
    press(&mut state, &["/", "ccl", "<enter>"]);
    assert_eq!(state.tools.catalogue.chosen().unwrap().name, "calculator");
    let effects = press(&mut state, &["<enter>", "2 + 2", "<f5>"]);
    let arguments = json!({ "expression": "2 + 2" }).as_object().cloned().unwrap();
    let call = Effect::Call { run: RunId(0), tool: "calculator".into(), arguments };
    assert_eq!(effects, [call]);
    assert!(state.is_moving());
}

#[test]
fn letters_are_letters_while_something_is_written() {
    let mut state = sample();
    assert_eq!(press(&mut state, &["/", "q?1"]), []);
    assert_eq!(state.tools.catalogue.filter.text(), "q?1");
    assert_eq!(state.shell.overlay, None);
}

#[test]
fn a_field_is_left_out_null_or_what_was_written() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1", "<down>", "7", "<down>", "<right>"]);
    let arguments = |state: &State| Value::Object(state.tools.form.as_ref().unwrap().arguments());
    // A text stays a text and a number becomes one, as the schema says.
    let all = json!({ "expression": "1", "precision": 7, "mode": "exact" });
    assert_eq!(arguments(&state), all);
    press(&mut state, &["<left>", "<tab>", "<tab>", "^n"]);
    let mixed = json!({ "expression": "1", "precision": null, "mode": "float" });
    assert_eq!(arguments(&state), mixed);
    press(&mut state, &["<del>"]);
    assert_eq!(arguments(&state), json!({ "expression": "1", "mode": "float" }));
}

#[test]
fn what_a_tool_requires_is_asked_for_before_it_is_called() {
    let mut state = sample();
    assert_eq!(press(&mut state, &["<enter>", "<down>", "<f5>"]), []);
    let form = state.tools.form.as_ref().unwrap();
    assert_eq!((form.at, form.problem.as_deref()), (0, Some("expression is required")));
}

#[test]
fn a_server_that_tells_its_tools_replaces_what_was_declared_of_it() {
    let mut state = sample();
    let schema = json!({ "type": "object" });
    let tools = vec![tool("web-search", schema.clone()).into(), tool("web-open", schema).into()];
    let catalogue = Box::new(Listed { tools, ..Listed::default() });
    state.update(Event::Listed { servers: vec!["web".into()], catalogue });
    let names: Vec<&str> = state.tools.catalogue.found().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["calculator", "clock", "files-read_file", "web-search", "web-open"]);
}

#[test]
fn the_query_narrows_by_source_and_by_what_is_unwanted() {
    let found = |query: &str| {
        let mut state = sample();
        press(&mut state, &["/", query]);
        state.tools.catalogue.found().map(|row| row.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(found("src:web"), ["web-search"]);
    assert_eq!(found("!builtin"), ["files-read_file", "web-search"]);
    assert_eq!(found("approval:yes"), [""; 0]);
    assert_eq!(found("rdfl"), ["files-read_file"]);
}

#[test]
fn an_approval_is_denied_by_enter_and_not_answered_by_what_was_typed_ahead() {
    let mut state = sample();
    let ask = |state: &mut State, id| {
        let asked = AskedApproval {
            tool: tool("clock", json!({})),
            arguments: crate::model::JsonObject::new(),
            reason: "its entry requires approval".into(),
            preview: Ok(String::new()),
            identity: format!("call {id}"),
            call: None,
        };
        state.update(Event::Approval { id: AskId(id), asked: Box::new(asked) });
    };
    ask(&mut state, 1);
    state.update(Event::Tick(Duration::from_secs(1)));
    assert_eq!(press(&mut state, &["y"]), []);
    state.update(Event::Tick(Duration::from_millis(1_300)));
    assert_eq!(press(&mut state, &["y"]), [Effect::Approve(AskId(1), Approval::Granted)]);
    ask(&mut state, 2);
    state.update(Event::Tick(Duration::from_secs(2)));
    state.update(Event::Tick(Duration::from_secs(3)));
    assert_eq!(press(&mut state, &["<enter>"]), [Effect::Approve(AskId(2), Approval::Refused)]);
    ask(&mut state, 3);
    state.update(Event::Withdrawn(AskId(3)));
    assert!(state.inbox.approvals.is_empty());
}

#[test]
fn control_c_stops_a_call_and_then_leaves() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1", "<f5>"]);
    assert_eq!(press(&mut state, &["^c"]), [Effect::Cancel(RunId(0))]);
    let ended = Box::new(Err(crate::model::Fault::tool("stopped")));
    state.update(Event::Ended { run: RunId(0), outcome: ended });
    assert_eq!(press(&mut state, &["^c"]), [Effect::Quit(None)]);
}

#[test]
fn leaving_asks_while_calls_run() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1", "<f5>", "<esc>", "q"]);
    assert_eq!(state.shell.overlay, Some(Overlay::Leave));
    assert_eq!(press(&mut state, &["y"]), [Effect::Quit(None)]);
}

fn any_key() -> impl Strategy<Value = Key> {
    let named = [
        Key::Enter,
        Key::Esc,
        Key::Tab,
        Key::BackTab,
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::PageDown,
        Key::PageUp,
        Key::Home,
        Key::End,
        Key::Backspace,
        Key::Delete,
        Key::F(5),
        Key::Ctrl('p'),
        Key::Ctrl('o'),
        Key::Ctrl('x'),
        Key::Ctrl('n'),
        Key::Ctrl('w'),
        Key::Ctrl('u'),
    ];
    prop_oneof![prop::sample::select(named.to_vec()), any::<char>().prop_map(Key::Char)]
}

proptest! {
    #[test]
    fn no_keys_break_it_at_any_size(keys in prop::collection::vec(any_key(), 0..80), width in 1..200_u16, height in 1..80_u16) {
        let mut state = sample();
        state.update(Event::Input(Input::Resize { width, height }));
        let backend = ratatui::backend::TestBackend::new(width, height);
        let mut terminal = ratatui::Terminal::new(backend).unwrap();
        for key in keys {
            state.update(Event::Input(Input::Key(key)));
            prop_assert!(state.shell.view.panes().contains(&state.shell.focus));
        }
        terminal.draw(|frame| crate::tui::draw::console(frame, &state, &crate::tui::theme::Theme::default())).unwrap();
    }
}
