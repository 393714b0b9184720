//! Tests of the history view, without a file.

use std::time::Duration;

use serde_json::{Value, json};

use crate::audit::mask::MASK;
use crate::history::HistoryEntry;
use crate::model::{Error, ToolResult};
use crate::tui::app::AppState;
use crate::tui::event::{AppEffect, AppEvent, ConsoleCallId, Navigation};
use crate::tui::layout::{Pane, ViewId};
use crate::tui::tests::craft::{begun, ended_unrecorded};
use crate::tui::tests::drawing::{ASCII, picture};
use crate::tui::tests::{press, sample, tell};
use crate::tui::views::history::tasks::{self, HistoryReadFilter, PastCall, PastCalls};

pub fn past(id: &str, tool: &str, error: Option<&str>, arguments: &str) -> PastCall {
    PastCall {
        id: id.to_owned(),
        time: "2026-11-22 14:03:22".to_owned(),
        tool: tool.to_owned(),
        source: "internal".to_owned(),
        error: error.map(str::to_owned),
        duration: Duration::from_micros(1_500),
        arguments: arguments.to_owned(),
        client: None,
    }
}

pub fn entry(id: &str, tool: &str, arguments: &Value, output: &Value) -> HistoryEntry {
    let line = json!({
        "id": id, "unix": 1_795_304_776.5, "tool": tool, "session": "s-1", "decision": "allowed",
        "fingerprint": "sha256:00", "duration_us": 1_500, "attempts": 1, "arguments": arguments,
        "result": { "success": true, "bytes": 12, "kinds": ["text"], "output": output },
    });
    HistoryEntry::parse(line.to_string().as_bytes()).unwrap()
}

fn read(state: &mut AppState, calls: Vec<PastCall>, has_more: bool) -> Vec<AppEffect> {
    let calls = Ok(PastCalls { calls, damaged: 2, has_more, is_recording: true });
    tell(state, |state| state.history.read(calls, &mut state.context))
}

pub fn shown() -> AppState {
    let mut state = sample();
    let first = tasks::read(HistoryReadFilter::default(), 500);
    assert_eq!(press(&mut state, &["6"]), [first.into()]);
    let calls = vec![
        past("c-3", "calculator", Some("tool"), "expression=1/0"),
        past("c-2", "web-search", None, r#"query="milk and honey""#),
        past("c-1", "calculator", None, "expression=6*7"),
    ];
    let opens = read(&mut state, calls, false);
    assert_eq!(opens, [tasks::open("c-3".to_owned()).into()]);
    state
}

pub fn opened(state: &mut AppState, entry: HistoryEntry) -> Vec<AppEffect> {
    tell(state, |state| state.history.opened(entry, &mut state.context))
}

fn ids(state: &AppState) -> Vec<&str> {
    state.history.found().map(|call| &*call.id).collect()
}

#[test]
fn one_call_is_read_at_a_time_and_only_the_last_one_chosen() {
    let mut state = shown();
    assert_eq!(press(&mut state, &["jj"]), [], "one is being read");
    let next = opened(&mut state, entry("c-3", "calculator", &json!({}), &json!("x")));
    assert_eq!(next, [tasks::open("c-1".to_owned()).into()]);
}

#[test]
fn a_call_is_made_again_as_it_was() {
    let mut state = shown();
    let arguments = json!({ "expression": "6*7" });
    opened(&mut state, entry("c-3", "calculator", &arguments, &json!("42")));
    let effects = press(&mut state, &["r"]);
    let arguments = arguments.as_object().cloned().unwrap();
    assert_eq!(
        effects,
        [AppEffect::Call { run: ConsoleCallId(0), tool: "calculator".into(), arguments }]
    );
    assert_eq!(state.context.view, ViewId::Tools);
}

#[test]
fn a_call_of_a_tool_that_is_gone_is_not_made_and_shows_no_other_tool() {
    for key in ["r", "R"] {
        let mut state = shown();
        let arguments = json!({ "expression": "6*7" });
        opened(&mut state, entry("c-3", "gone-tool", &arguments, &json!("42")));
        let chosen = state.tools.catalogue.chosen().map(|row| row.name.clone());
        assert_eq!(press(&mut state, &[key]), []);
        assert_eq!(state.context.view, ViewId::History);
        assert_eq!(state.tools.catalogue.chosen().map(|row| row.name.clone()), chosen);
        let message = state.context.message.clone().unwrap();
        assert!(
            message.is_error && message.text.starts_with("no tool named gone-tool"),
            "{}",
            message.text
        );
        assert_eq!(state.context.calls.running().count(), 0);
    }
}

#[test]
fn a_key_that_comes_before_the_call_was_read_is_not_lost() {
    let mut state = shown();
    assert_eq!(press(&mut state, &["R"]), []);
    let call = entry("c-3", "calculator", &json!({ "expression": "6*7" }), &json!("42"));
    assert_eq!(opened(&mut state, call), []);
    let form = state.tools.form.as_ref().unwrap();
    assert_eq!(Value::Object(form.arguments()), json!({ "expression": "6*7" }));
}

#[test]
fn what_was_secret_is_never_sent_and_has_to_be_filled_in() {
    let mut state = shown();
    let arguments = json!({ "expression": MASK, "precision": 3 });
    opened(&mut state, entry("c-3", "calculator", &arguments, &json!("42")));
    assert_eq!(
        press(&mut state, &["Y"]),
        [AppEffect::Copy("toolhost history rerun c-3".to_owned())]
    );
    assert_eq!(press(&mut state, &["r"]), []);
    let form = state.tools.form.as_ref().unwrap();
    assert_eq!(Value::Object(form.arguments()), json!({ "precision": 3 }));
    let text = &state.context.message.as_ref().unwrap().text;
    assert!(text.contains("secret") && text.contains("expression"), "{text}");
    let effects = press(&mut state, &["<f5>"]);
    assert!(matches!(&effects[..], [AppEffect::ValidateArguments { .. }]), "it is required");
}

#[test]
fn a_call_is_copied_as_a_command_that_a_shell_reads_back() {
    let mut state = shown();
    let arguments = json!({ "text": "it's", "n": 1 });
    opened(&mut state, entry("c-3", "notes-add", &arguments, &json!("x")));
    let line = r"toolhost call notes-add 'text=it'\''s' n:=1";
    assert_eq!(press(&mut state, &["Y"]), [AppEffect::Copy(line.to_owned())]);
    assert_eq!(press(&mut state, &["y"]), [AppEffect::Copy("c-3".to_owned())]);
    assert_eq!(press(&mut state, &["<enter>", "y"]), [AppEffect::Copy("x".to_owned())]);
}

#[test]
fn where_no_call_is_left_none_is_shown_and_none_that_comes_late() {
    let call = || entry("c-3", "calculator", &json!({}), &json!("the result"));
    let is_shown = |state: &AppState| picture(state, ASCII).contains("the result");
    let mut state = shown();
    opened(&mut state, call());
    assert!(is_shown(&state));
    press(&mut state, &["/", "nothing"]);
    assert!(!is_shown(&state));
    press(&mut state, &["<esc>"]);
    opened(&mut state, call());
    assert!(is_shown(&state));
    // It is being read when the list empties.
    let mut state = shown();
    press(&mut state, &["/", "nothing"]);
    opened(&mut state, call());
    assert!(!is_shown(&state));
}

#[test]
fn arguments_of_the_past_leave_what_was_typed_for_the_same_tool() {
    let mut state = sample();
    press(&mut state, &["<enter>", "1+1", "<esc>"]);
    let arguments = json!({ "expression": "6*7" });
    for is_open in [false, true] {
        if is_open {
            press(&mut state, &["<enter>"]);
        }
        let (tool, past) = ("calculator".to_owned(), arguments.as_object().cloned());
        tell(&mut state, |state| {
            state.context.emit(Navigation::FillArguments { tool, arguments: past });
        });
        let filled = |state: &AppState| state.tools.form.as_ref().unwrap().arguments();
        assert_eq!(Value::Object(filled(&state)), arguments);
        press(&mut state, &["<esc>", "<enter>"]);
        assert_eq!(filled(&state)["expression"], "1+1");
        press(&mut state, &["<esc>"]);
    }
}

#[test]
fn fields_are_asked_of_the_file_and_words_of_what_was_read() {
    let mut state = shown();
    assert_eq!(press(&mut state, &["/", "ccl"]), []);
    assert_eq!(ids(&state), ["c-3", "c-1"]);
    press(&mut state, &["<esc>", "<esc>", "/", "honey"]);
    assert_eq!(ids(&state), ["c-2"]);
    press(&mut state, &["<esc>", "<esc>"]);
    let effects = press(&mut state, &["/", "failed:y"]);
    let wanted = HistoryReadFilter { failed: Some(true), ..HistoryReadFilter::default() };
    assert_eq!(effects, [tasks::read(wanted, 500).into()]);
    // Until it was read nothing else is asked, and then what is wanted by now.
    assert_eq!(press(&mut state, &[" session:this"]), []);
    let next = read(&mut state, Vec::new(), false);
    let wanted = HistoryReadFilter {
        failed: Some(true),
        session: Some("this".to_owned()),
        ..HistoryReadFilter::default()
    };
    assert_eq!(next, [tasks::read(wanted, 500).into()]);
}

#[test]
fn the_history_of_a_tool_is_shown_from_the_list_of_tools() {
    let mut state = sample();
    let effects = press(&mut state, &["h"]);
    let wanted =
        HistoryReadFilter { tool: Some("calculator".to_owned()), ..HistoryReadFilter::default() };
    assert_eq!(effects, [tasks::read(wanted, 500).into()]);
    assert_eq!(state.context.view, ViewId::History);
    assert_eq!(state.history.list.filter.text(), "tool:calculator ");
}

#[test]
fn older_calls_are_read_at_the_end_of_the_list() {
    let mut state = sample();
    press(&mut state, &["6"]);
    let calls: Vec<PastCall> =
        (0..500).map(|n| past(&format!("c-{n}"), "clock", None, "")).collect();
    read(&mut state, calls, true);
    assert_eq!(press(&mut state, &["<down>"]), []);
    let effects = press(&mut state, &["G"]);
    let effect = AppEffect::from(tasks::read(HistoryReadFilter::default(), 1_000));
    assert_eq!(effects, [effect]);
    assert_eq!(state.history.chosen().unwrap().id, "c-499");
}

#[test]
fn a_call_that_ended_here_is_read_and_what_was_chosen_stays() {
    let mut state = shown();
    press(&mut state, &["j"]);
    let ended = Box::new(Err(Error::tool("stopped")));
    let effects = state.update(AppEvent::CallFinished { run: ConsoleCallId(0), outcome: ended });
    let is_read = |effect: &AppEffect| format!("{effect:?}").contains("read history");
    assert!(effects.iter().any(is_read), "{effects:?}");
    let calls = vec![
        past("c-4", "clock", None, ""),
        past("c-3", "calculator", None, ""),
        past("c-2", "web-search", None, ""),
    ];
    read(&mut state, calls, false);
    assert_eq!(state.history.chosen().unwrap().id, "c-2");
}

#[test]
fn the_marked_call_is_compared_or_the_one_before_of_the_same_tool() {
    let mut state = shown();
    let effect = |a: &str, b: &str| [AppEffect::from(tasks::compare(a.to_owned(), b.to_owned()))];
    assert_eq!(press(&mut state, &["d"]), effect("c-3", "c-1"));
    press(&mut state, &["j", "m", "k"]);
    assert_eq!(press(&mut state, &["d"]), effect("c-3", "c-2"));
    let (a, b) = (
        entry("c-2", "x", &json!({ "n": 1 }), &json!("same")),
        entry("c-3", "x", &json!({ "n": 2 }), &json!("same")),
    );
    let compared = crate::history::compare::CallComparison::of(&a, &b);
    tell(&mut state, |state| state.history.compared(Ok(compared), &mut state.context));
    assert_eq!(state.context.focus, Pane::Entry);
    let text = state.history.details.to_text();
    for said in ["-  \"n\": 1", "+  \"n\": 2", "results  the same", "same definition"] {
        assert!(text.contains(said), "{said:?} is missing in\n{text}");
    }
    press(&mut state, &["<esc>"]);
    assert!(state.history.comparison.is_none());
    press(&mut state, &["<esc>", "j", "m", "j"]);
    press(&mut state, &["d"]);
    assert!(state.context.message.as_ref().unwrap().text.contains("mark a call with m"));
}

#[test]
fn what_is_listed_is_exported() {
    let mut state = shown();
    press(&mut state, &["/", "!web", "<enter>"]);
    let ids = vec!["c-3".to_owned(), "c-1".to_owned()];
    assert_eq!(press(&mut state, &["E"]), [tasks::export(ids).into()]);
}

#[test]
fn a_history_that_cannot_be_read_says_why() {
    let mut state = sample();
    press(&mut state, &["6"]);
    let lost = Err(Error::internal("there is no home directory"));
    tell(&mut state, |state| state.history.read(lost, &mut state.context));
    assert!(matches!(&state.history.file, Some(Err(_))));
    assert_eq!(press(&mut state, &["r", "R", "Y", "y", "m", "d"]), []);
}

#[test]
fn whether_the_tool_changed_is_said() {
    let mut state = shown();
    opened(&mut state, entry("c-3", "calculator", &json!({}), &json!({ "a": 1 })));
    assert!(state.history.details.to_text().contains("definition: comparing…"));
    state.history.definition_checked("c-9", Ok(Some(true)));
    state.history.definition_checked("c-3", Ok(Some(true)));
    assert!(state.history.details.to_text().contains("changed since this call"));
    press(&mut state, &["t"]);
    assert!(state.history.details.to_text().contains("\"duration_ms\": 1.5"));
    press(&mut state, &["t"]);
    let shown = state.history.details.to_text();
    assert!(shown.ends_with("\n{\"a\":1}"), "{shown}");
}

#[test]
fn where_nothing_is_recorded_that_is_said_in_place_of_no_calls() {
    let mut state = sample();
    press(&mut state, &["6"]);
    let none = |is_recording| Ok(PastCalls { is_recording, ..PastCalls::default() });
    tell(&mut state, move |state| state.history.read(none(false), &mut state.context));
    let shown = picture(&state, ASCII);
    assert!(shown.contains("Recording is off.") && !shown.contains("No calls"), "{shown}");
    // It is on, and there is no room for it.
    tell(&mut state, move |state| state.history.read(none(true), &mut state.context));
    assert!(picture(&state, ASCII).contains("No calls yet."));
    let run = begun(&mut state, "1");
    let why = "not recorded: history: there is no room".to_owned();
    ended_unrecorded(&mut state, run, ToolResult::json(json!(1)), Some(why));
    let shown = picture(&state, ASCII);
    assert!(shown.contains("not recorded: history: there is no room"), "{shown}");
    assert!(!shown.contains("No calls"), "{shown}");
}

#[test]
fn the_kind_of_a_failure_is_whole() {
    let mut state = shown();
    read(&mut state, vec![past("c-1", "calculator", Some("unreachable"), "")], false);
    assert!(picture(&state, ASCII).contains("unreachable "));
}
