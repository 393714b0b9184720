//! Tests of the console's state, without a terminal.

pub mod craft;
pub mod drawing;
pub mod pictures;
pub mod stumbles;

use std::borrow::Cow;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use strum::VariantArray as _;

use crate::catalogue::Catalogue;
use crate::host::policy::{Approval, ApprovalRequest};
use crate::model::{CallId, Origin, ToolDefinition, ToolName, ToolSource};
use crate::provider::Preview;
use crate::tui::app::*;
use crate::tui::context::Overlay;
use crate::tui::event::{AppEffect, AppEvent, ApprovalPrompt, AskId, ConsoleCallId, UserInput};
use crate::tui::keys::KeyPress;
use crate::tui::layout::{Pane, ViewId};
use crate::tui::tests::drawing::picture;
use crate::tui::theme::Theme;
use crate::tui::views::servers;
use crate::tui::views::tools::list::ToolLine;

pub fn tool(name: &str, schema: Value) -> ToolDefinition {
    let name = match name.split_once('-') {
        Some((component, tool)) => ToolName::of(component, tool),
        None => ToolName::plain(name),
    };
    let (source, origin) = match name.component() {
        Some(server) => (ToolSource::Mcp, Origin::Server(server.to_owned())),
        None => (ToolSource::Internal, Origin::Program),
    };
    let kind = if source == ToolSource::Mcp { "mcp" } else { "builtin" };
    let mut tool = ToolDefinition::new(name, source, kind, origin);
    tool.input_schema = schema.into();
    tool
}

pub fn listed(tools: Vec<ToolDefinition>) -> AppEvent {
    let tools = tools.into_iter().map(Into::into).collect();
    let catalogue = Box::new(Catalogue { tools, ..Catalogue::default() });
    AppEvent::ToolsListed { servers: Vec::new(), catalogue }
}

pub fn sample() -> AppState {
    let mut state = AppState::new((120, 40));
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
    assert!(state.update(listed(tools)).contains(&AppEffect::RefreshServers));
    state.tools.choose("calculator");
    state
}

/// Gives the state what a task came to.
pub fn tell(
    state: &mut AppState,
    change: impl FnOnce(&mut AppState) + Send + 'static,
) -> Vec<AppEffect> {
    state.update(AppEvent::outcome(change))
}

/// A call that waits for approval.
pub fn prompt(tool: &ToolDefinition, arguments: &Value, identity: &str) -> ApprovalPrompt {
    ApprovalPrompt::of(&ApprovalRequest {
        definition: Cow::Borrowed(tool),
        arguments: Cow::Borrowed(arguments.as_object().unwrap()),
        reason: "its entry requires approval".to_owned(),
        preview: Ok(Preview {
            summary: format!("calls {}", tool.name.full()),
            request: json!({ "params": arguments }),
        }),
        identity: identity.to_owned(),
        call: Some(CallId("01J".into())),
    })
}

/// Presses keys: a word is typed, a name in angle brackets is that key.
pub fn press(state: &mut AppState, keys: &[&str]) -> Vec<AppEffect> {
    let mut effects = Vec::new();
    for word in keys {
        let named = match *word {
            "<enter>" => Some(KeyPress::Enter),
            "<esc>" => Some(KeyPress::Esc),
            "<down>" => Some(KeyPress::Down),
            "<left>" => Some(KeyPress::Left),
            "<right>" => Some(KeyPress::Right),
            "<tab>" => Some(KeyPress::Tab),
            "<del>" => Some(KeyPress::Delete),
            "<f5>" => Some(KeyPress::F(5)),
            "<f6>" => Some(KeyPress::F(6)),
            "^p" => Some(KeyPress::Ctrl('p')),
            "^x" => Some(KeyPress::Ctrl('x')),
            "^n" => Some(KeyPress::Ctrl('n')),
            "^c" => Some(KeyPress::Ctrl('c')),
            "^u" => Some(KeyPress::Ctrl('u')),
            _ => None,
        };
        let typed = word.chars().filter(|_| named.is_none()).map(KeyPress::Char);
        for key in named.into_iter().chain(typed) {
            effects.extend(state.update(AppEvent::Input(UserInput::Key(key))));
        }
    }
    effects
}

#[test]
fn three_letters_find_a_tool_and_a_filled_form_calls_it() {
    let mut state = sample();
    press(&mut state, &["/", "ccl", "<enter>"]);
    assert_eq!(state.tools.catalogue.chosen().unwrap().name, "calculator");
    let effects = press(&mut state, &["2 + 2", "<f5>"]);
    let arguments = json!({ "expression": "2 + 2" }).as_object().cloned().unwrap();
    let call = AppEffect::Call { run: ConsoleCallId(0), tool: "calculator".into(), arguments };
    assert_eq!(effects, [call]);
    assert!(state.is_moving());
}

#[test]
fn letters_are_letters_while_something_is_written() {
    let mut state = sample();
    assert_eq!(press(&mut state, &["/", "q?1"]), []);
    assert_eq!(state.tools.catalogue.filter.text(), "q?1");
    assert_eq!(state.context.overlay, None);
}

#[test]
fn a_field_is_left_out_null_or_what_was_written() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1", "<down>", "7", "<down>", "<right>"]);
    let arguments =
        |state: &AppState| Value::Object(state.tools.form.as_ref().unwrap().arguments());
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
    let effects = press(&mut state, &["<enter>", "<down>", "<f5>"]);
    // Nothing is called; what else is wrong is looked for.
    assert!(matches!(&effects[..], [AppEffect::ValidateArguments { .. }]), "{effects:?}");
    let form = state.tools.form.as_ref().unwrap();
    assert_eq!((form.at, form.problem.as_deref()), (0, Some("expression is required")));
}

#[test]
fn a_server_that_tells_its_tools_replaces_what_was_declared_of_it() {
    let mut state = sample();
    let schema = json!({ "type": "object" });
    let tools = vec![tool("web-search", schema.clone()).into(), tool("web-open", schema).into()];
    let catalogue = Box::new(Catalogue { tools, ..Catalogue::default() });
    state.update(AppEvent::ToolsListed { servers: vec!["web".into()], catalogue });
    let names: Vec<&str> =
        state.tools.catalogue.found.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["files-read_file", "web-search", "web-open", "calculator", "clock"]);
}

#[test]
fn the_query_narrows_by_source_and_by_what_is_unwanted() {
    let found = |query: &str| {
        let mut state = sample();
        press(&mut state, &["/", query]);
        state.tools.catalogue.found.iter().map(|row| row.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(found("src:web"), ["web-search"]);
    assert_eq!(found("!builtin"), ["files-read_file", "web-search"]);
    assert_eq!(found("approval:yes"), [""; 0]);
    assert_eq!(found("rdfl"), ["files-read_file"]);
}

#[test]
fn an_approval_is_denied_by_enter_and_not_answered_by_what_was_typed_ahead() {
    let mut state = sample();
    let ask = |state: &mut AppState, id| {
        let asked = prompt(&tool("clock", json!({})), &json!({}), &format!("call {id}"));
        state.update(AppEvent::Approval { id: AskId(id), prompt: Box::new(asked) });
    };
    ask(&mut state, 1);
    picture(&state, Theme::default());
    state.update(AppEvent::Tick(Duration::from_secs(1)));
    assert_eq!(press(&mut state, &["y"]), []);
    state.update(AppEvent::Tick(Duration::from_millis(1_300)));
    assert_eq!(press(&mut state, &["y"]), [AppEffect::AnswerApproval(AskId(1), Approval::Granted)]);
    ask(&mut state, 2);
    state.update(AppEvent::Tick(Duration::from_secs(2)));
    state.update(AppEvent::Tick(Duration::from_secs(3)));
    assert_eq!(
        press(&mut state, &["<enter>"]),
        [AppEffect::AnswerApproval(AskId(2), Approval::Refused)]
    );
    ask(&mut state, 3);
    state.update(AppEvent::QuestionWithdrawn(AskId(3)));
    assert!(state.inbox.approvals.is_empty());
}

#[test]
fn control_c_stops_a_call_and_then_leaves() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1", "<f5>"]);
    assert_eq!(press(&mut state, &["^c"]), [AppEffect::Cancel(ConsoleCallId(0))]);
    let ended = Box::new(Err(crate::model::Error::tool("stopped")));
    state.update(AppEvent::CallFinished { run: ConsoleCallId(0), outcome: ended });
    // With nothing running it asks; what is being filled in is not lost by pressing it again.
    for _ in 0..3 {
        assert_eq!(press(&mut state, &["^c"]), []);
        assert_eq!(state.context.overlay, Some(Overlay::ConfirmQuit));
    }
    press(&mut state, &["<esc>"]);
    assert_eq!(state.tools.form.as_ref().unwrap().arguments()["expression"], "1");
    press(&mut state, &["<esc>", "^c"]);
    assert_eq!(press(&mut state, &["^c"]), [AppEffect::Quit(None)]);
}

#[test]
fn a_slash_looks_for_a_row_in_every_list_and_presses_no_other_key() {
    for &view in ViewId::VARIANTS {
        let mut state = sample();
        state.show(view);
        state.context.effects.clear();
        let effects = press(&mut state, &["/", "dxR"]);
        let changes = |effect: &AppEffect| format!("{effect:?}").contains("server");
        assert!(!effects.iter().any(changes), "{view:?}: {effects:?}");
        if !matches!(view, ViewId::Bench | ViewId::Inbox) {
            assert!(state.is_filtering(), "{view:?}");
            press(&mut state, &["<esc>"]);
            assert!(!state.is_filtering() && state.context.view == view, "{view:?}");
        }
    }
}

#[test]
fn a_filter_without_matches_opens_nothing_and_esc_clears_it() {
    for view in [ViewId::Trace, ViewId::History] {
        let mut state = sample();
        state.show(view);
        press(&mut state, &["/", "nope", "<enter>"]);
        assert_eq!(state.context.focus, view.panes()[0], "{view:?}");
        press(&mut state, &["<esc>"]);
        assert_eq!(state.view_state(view).filter().unwrap().text(), "", "{view:?}");
    }
}

#[test]
fn how_a_result_is_shown_belongs_to_its_tool() {
    let mut state = sample();
    press(&mut state, &["<esc>", "v"]);
    let tree = state.tools.viewer.format;
    press(&mut state, &["<down>"]);
    assert_ne!(state.tools.viewer.format, tree);
    state.tools.choose("calculator");
    press(&mut state, &["<esc>"]);
    assert_eq!(state.tools.viewer.format, tree);
}

#[test]
fn help_lies_over_everything_and_no_key_acts_behind_it() {
    let mut state = sample();
    press(&mut state, &["?", "2", "u", "z", "R"]);
    assert!(matches!(state.context.overlay, Some(Overlay::Help(_))));
    assert_eq!((state.context.view, state.context.is_zoomed), (ViewId::Tools, false));
    press(&mut state, &["<esc>"]);
    assert_eq!(state.context.overlay, None);
}

#[test]
fn the_palette_finds_tools_and_opens_their_forms() {
    let mut state = with_sum();
    press(&mut state, &[":", "getsum", "<enter>"]);
    assert_eq!(state.tools.form.as_ref().unwrap().tool, "everything-get-sum");
}

#[test]
fn tools_stand_under_their_servers_and_fold() {
    let mut state = sample();
    let shown = |state: &AppState| -> Vec<String> {
        let catalogue = &state.tools.catalogue;
        let line = |line: &ToolLine| match line {
            ToolLine::Group(group) => format!("[{}]", group.name),
            ToolLine::Tool(row) => row.short_name().to_owned(),
        };
        catalogue.lines.iter().map(line).collect()
    };
    let all = ["[files]", "read_file", "[web]", "search", "[built-in]", "calculator", "clock"];
    assert_eq!(shown(&state), all);
    // Folded from the tool in it; the group is chosen then, and Enter unfolds it.
    press(&mut state, &["<left>"]);
    assert_eq!(shown(&state), all[..5]);
    assert_eq!(state.tools.catalogue.chosen_group().unwrap().name, "built-in");
    press(&mut state, &["<enter>"]);
    assert_eq!(shown(&state), all);
    assert!(state.tools.form.is_none());
    // By category, then without groups; a search is one list, the best first.
    press(&mut state, &["g"]);
    assert_eq!(shown(&state)[0], "read_file", "all of one category need no heading");
    press(&mut state, &["g", "g", "/", "sear"]);
    assert_eq!(shown(&state), ["search"]);
}

#[test]
fn a_server_that_fails_is_named_in_the_header_and_says_why_in_its_row() {
    use crate::model::{Error, ServerState};
    let mut state = sample();
    let mut status = servers::tests::ready("web");
    status.state = ServerState::Failed(Error::tool("exited with 1: no database"));
    state.update(AppEvent::ServerStatuses(vec![status]));
    let seen = picture(&state, Theme::default());
    assert!(seen.contains("✗ 1 failed: web"), "{seen}");
    assert!(seen.contains("✗ web  exited with 1"), "{seen}");
    let mut status = servers::tests::ready("web");
    status.state = ServerState::Failed(Error::tool("cannot start: 'nosuchprogram' is not there"));
    state.update(AppEvent::ServerStatuses(vec![status]));
    let seen = picture(&state, Theme::default());
    let row = seen.lines().find(|row| row.contains("✗ web  cannot start")).unwrap();
    assert!(row.contains('…'), "{row}");
}

/// A tool with two numbers, as `everything-get-sum` of the reference server has them.
fn with_sum() -> AppState {
    let mut state = AppState::new((120, 40));
    let number = || json!({ "type": "number" });
    let sum = json!({ "type": "object", "properties": { "a": number(), "b": number() },
                      "required": ["a", "b"] });
    let names = ["echo", "get-env", "get-structured-content", "simulate-research-query"];
    let other = names.map(|name| tool(&format!("everything-{name}"), json!({ "type": "object" })));
    let tools = other.into_iter().chain([tool("everything-get-sum", sum)]).collect();
    state.update(listed(tools));
    state
}

#[test]
fn find_fill_and_run_take_eight_keys() {
    let mut state = with_sum();
    let keys = ["/", "s", "u", "<enter>", "1", "<enter>", "2", "<enter>"];
    let effects = press(&mut state, &keys);
    let arguments = json!({ "a": 1, "b": 2 }).as_object().cloned().unwrap();
    let tool = "everything-get-sum".to_owned();
    assert_eq!(effects, [AppEffect::Call { run: ConsoleCallId(0), tool, arguments }]);
    assert!(keys.len() <= 8);
}

#[test]
fn enter_runs_a_tool_without_arguments_and_in_a_text_a_new_line_has_its_own_key() {
    let mut state = sample();
    press(&mut state, &["/", "clock", "<enter>"]);
    let effects = press(&mut state, &["<enter>"]);
    assert!(matches!(&effects[..], [AppEffect::Call { tool, .. }] if tool == "clock"));
    let mut state = sample();
    press(&mut state, &["<enter>", "a"]);
    state.update(AppEvent::Input(UserInput::Key(KeyPress::Ctrl('g'))));
    press(&mut state, &["b"]);
    let form = state.tools.form.as_ref().unwrap();
    assert_eq!(form.arguments()["expression"], "a\nb");
}

#[test]
fn esc_leaves_one_level_at_a_time_and_never_quits() {
    let mut state = sample();
    // A filter: its text is gone, and what was chosen stays chosen.
    press(&mut state, &["/", "web", "<esc>"]);
    let name = |state: &AppState| state.tools.catalogue.chosen().unwrap().name.clone();
    assert_eq!((state.tools.catalogue.filter.text(), name(&state).as_str()), ("", "web-search"));
    // What is typed replaces the text of before; the form, then the filter.
    press(&mut state, &["/", "web", "<enter>", "<esc>", "/", "clo"]);
    assert_eq!((state.tools.catalogue.filter.text(), name(&state).as_str()), ("clo", "clock"));
    // The zoom of a pane, then its form.
    press(&mut state, &["<esc>", "z", "<enter>"]);
    assert!(state.context.is_zoomed && state.tools.form.is_some());
    press(&mut state, &["<esc>"]);
    assert!(!state.context.is_zoomed && state.tools.form.is_some());
    press(&mut state, &["<esc>"]);
    assert!(state.tools.form.is_none());
    for _ in 0..5 {
        assert_eq!(press(&mut state, &["<esc>"]), []);
    }
    assert_eq!(name(&state), "clock");
}

#[test]
fn a_footer_never_has_more_than_seven_keys() {
    use ratatui::{Terminal, backend::TestBackend};
    for &view in ViewId::VARIANTS {
        for keys in [&[][..], &["<enter>"], &["z"], &["/"], &["?"]] {
            let mut state = sample();
            state.update(AppEvent::Input(UserInput::Resize { width: 300, height: 50 }));
            state.show(view);
            press(&mut state, keys);
            let mut terminal = Terminal::new(TestBackend::new(300, 50)).unwrap();
            let draw = |frame: &mut ratatui::Frame<'_>| {
                crate::tui::draw::console(frame.buffer_mut(), &state, Theme::default());
            };
            terminal.draw(draw).unwrap();
            let buffer = terminal.backend().buffer();
            let is_key = |x: u16| {
                let at = |x: u16| buffer[(x, 49)].modifier.contains(ratatui::style::Modifier::BOLD);
                at(x) && (x == 0 || !at(x - 1))
            };
            let shown = (0..300).filter(|x| is_key(*x)).count();
            assert!((1..=7).contains(&shown), "{view:?} {keys:?}: {shown}");
        }
    }
}

/// What is to be checked.
pub fn check_of(effects: &[AppEffect]) -> (std::sync::Arc<Value>, crate::model::JsonObject) {
    let check = effects.iter().find_map(|effect| match effect {
        AppEffect::ValidateArguments { schema, arguments } => {
            Some((schema.clone(), arguments.clone()))
        }
        _ => None,
    });
    check.unwrap_or_else(|| panic!("{effects:?}"))
}

#[test]
fn arguments_that_do_not_fit_are_marked_in_the_form_and_are_no_result() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1", "<tab>", "7", "<f5>"]);
    let refused = Box::new(Err(crate::model::Error::usage("1 problem with the arguments")));
    let effects = state.update(AppEvent::CallFinished { run: ConsoleCallId(0), outcome: refused });
    let (schema, arguments) = check_of(&effects);
    let path = crate::host::validate::ValuePath(Vec::new()).key("precision");
    let problem = crate::host::validate::Violation::new(path, "must be at most 5");
    let problems = vec![problem];
    state.update(AppEvent::ArgumentsChecked { schema, arguments, problems });
    assert!(state.context.calls.newest_of("calculator").is_none());
    let form = state.tools.form.as_ref().unwrap();
    assert_eq!(form.fields[form.at].key, "precision");
    // The mark stays when another field is chosen.
    press(&mut state, &["<tab>"]);
    assert!(picture(&state, Theme::default()).contains("! must be at most 5"));
}

#[test]
fn arguments_that_fit_and_are_refused_by_the_tool_are_its_result() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1", "<f5>"]);
    let refused = Box::new(Err(crate::model::Error::usage("one of the two is needed")));
    let effects = state.update(AppEvent::CallFinished { run: ConsoleCallId(0), outcome: refused });
    let (schema, arguments) = check_of(&effects);
    let problems = Vec::new();
    state.update(AppEvent::ArgumentsChecked { schema, arguments, problems });
    assert!(picture(&state, Theme::default()).contains("one of the two is needed"));
}

#[test]
fn where_one_pane_has_room_a_call_shows_its_result_and_esc_leads_back_to_the_form() {
    let mut state = sample();
    for (width, height, after) in [(120, 40, Pane::Detail), (60, 20, Pane::Result)] {
        state.update(AppEvent::Input(UserInput::Resize { width, height }));
        press(&mut state, &["<enter>", "1"]);
        for key in ["<f5>", "<f6>"] {
            press(&mut state, &[key]);
            assert_eq!(state.context.focus, after, "{width} columns, {key}");
            if after == Pane::Result {
                press(&mut state, &["<esc>"]);
                assert_eq!(state.context.focus, Pane::Detail);
            }
            assert!(state.tools.form.is_some());
        }
        press(&mut state, &["<esc>"]);
        assert!(state.tools.form.is_none() && state.context.focus == Pane::Catalogue);
    }
}

#[test]
fn leaving_asks_while_calls_run() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1", "<f5>", "<esc>", "q"]);
    assert_eq!(state.context.overlay, Some(Overlay::ConfirmQuit));
    assert_eq!(press(&mut state, &["y"]), [AppEffect::Quit(None)]);
}

fn any_key() -> impl Strategy<Value = KeyPress> {
    let named = [
        KeyPress::Enter,
        KeyPress::Esc,
        KeyPress::Tab,
        KeyPress::BackTab,
        KeyPress::Up,
        KeyPress::Down,
        KeyPress::Left,
        KeyPress::Right,
        KeyPress::PageDown,
        KeyPress::PageUp,
        KeyPress::Home,
        KeyPress::End,
        KeyPress::Backspace,
        KeyPress::Delete,
        KeyPress::F(5),
        KeyPress::Ctrl('p'),
        KeyPress::Ctrl('o'),
        KeyPress::Ctrl('x'),
        KeyPress::Ctrl('n'),
        KeyPress::Ctrl('w'),
        KeyPress::Ctrl('u'),
    ];
    prop_oneof![prop::sample::select(named.to_vec()), any::<char>().prop_map(KeyPress::Char)]
}

proptest! {
    #[test]
    fn no_keys_break_it_at_any_size(keys in prop::collection::vec(any_key(), 0..80), width in 1..200_u16, height in 1..80_u16) {
        let mut state = sample();
        state.update(AppEvent::Input(UserInput::Resize { width, height }));
        let backend = ratatui::backend::TestBackend::new(width, height);
        let mut terminal = ratatui::Terminal::new(backend).unwrap();
        for key in keys {
            state.update(AppEvent::Input(UserInput::Key(key)));
            prop_assert!(state.context.view.panes().contains(&state.context.focus));
        }
        terminal.draw(|frame| { crate::tui::draw::console(frame.buffer_mut(), &state, crate::tui::theme::Theme::default()); }).unwrap();
    }
}
