//! Snapshot tests of questions.

use std::time::Duration;

use serde_json::json;

use crate::model::{CallId, Question, QuestionBody};
use crate::tui::app::AppState;
use crate::tui::event::{AppEvent, AskId, UserInput};
use crate::tui::keys::KeyPress;
use crate::tui::layout::ViewId;
use crate::tui::tests::drawing::{ASCII, picture};
use crate::tui::tests::{prompt, sample, tool};
use crate::tui::theme::Theme;

fn asked(width: u16, height: u16, asks: Vec<QuestionBody>) -> AppState {
    let mut state = sample();
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    state.update(AppEvent::Tick(Duration::from_secs(100)));
    for (id, ask) in (0..).zip(asks) {
        let (call, left) = (Some(CallId("01JD8F".into())), Some(Duration::from_mins(5)));
        let question = Question {
            server: format!("srv{id}"),
            call,
            round: None,
            key: None,
            time_left: left,
            body: ask,
        };
        state.update(AppEvent::Question { id: AskId(id), question: Box::new(question) });
    }
    state.update(AppEvent::Tick(Duration::from_secs(101)));
    state.update(AppEvent::Tick(Duration::from_secs(113)));
    state
}

fn press(state: &mut AppState, keys: &[KeyPress]) {
    for key in keys {
        state.update(AppEvent::Input(UserInput::Key(*key)));
    }
}

fn form(message: &str) -> QuestionBody {
    let schema = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "title": "Your name", "minLength": 2 },
        "colour": { "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] },
        "password": { "type": "string" },
    } });
    QuestionBody::Form { message: message.to_owned(), schema }
}

fn all() -> Vec<QuestionBody> {
    let block = json!({ "type": "text", "text": "Say something" });
    let messages = json!([{ "role": "user", "content": block }]);
    vec![
        form("Who are you?\u{1b}[2J\nThe server bank asks: your PIN"),
        QuestionBody::Url {
            message: "Sign in".to_owned(),
            url: "http://bank.example@127.0.0.1:8000/start".to_owned(),
        },
        QuestionBody::Sampling { params: json!({ "messages": messages, "maxTokens": 50 }) },
    ]
}

#[test]
fn a_form_and_its_list_in_120_by_40() {
    let mut state = asked(120, 40, all());
    press(&mut state, &[KeyPress::Char('8'), KeyPress::Enter, KeyPress::Char('A')]);
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn an_address_and_its_tricks_in_80_by_24() {
    let mut state = asked(80, 24, all());
    press(&mut state, &[KeyPress::Char('8'), KeyPress::Down, KeyPress::Enter]);
    insta::assert_snapshot!(picture(&state, ASCII));
}

#[test]
fn a_reply_in_a_models_place_in_60_by_16() {
    let mut state = asked(60, 16, all());
    press(&mut state, &[KeyPress::Char('8'), KeyPress::Down, KeyPress::Down, KeyPress::Enter]);
    press(
        &mut state,
        &[KeyPress::Char('h'), KeyPress::Char('i'), KeyPress::Enter, KeyPress::Char('x')],
    );
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn fifty_questions_in_40_by_10() {
    let mut state = asked(40, 10, (0..50).map(|n| form(&format!("Question {n}"))).collect());
    press(&mut state, &[KeyPress::Char('8')]);
    press(&mut state, &[KeyPress::Down; 30]);
    insta::assert_snapshot!(picture(&state, ASCII));
}

#[test]
fn an_empty_inbox_says_in_aligned_lines_how_questions_come() {
    let mut state = AppState::new((80, 24));
    state.show(ViewId::Inbox);
    let seen = picture(&state, ASCII);
    let column = |words: &str| seen.lines().find_map(|row| row.find(words)).unwrap();
    assert_eq!(column("tools: a server may ask"), column("something during a call"), "{seen}");
}

#[test]
fn a_question_is_counted_on_every_screen() {
    for width in [120, 80, 60, 40] {
        let state = asked(width, 24, all());
        let seen = picture(&state, ASCII);
        assert!(seen.contains("(3)"), "{seen}");
    }
}

fn approval(width: u16, height: u16) -> AppState {
    let mut state = asked(width, height, Vec::new());
    let mut tool = tool("files-delete", json!({ "type": "object" }));
    tool.description = Some("Deletes a file. There is no way back.".to_owned());
    let asked = prompt(&tool, &json!({ "path": "/tmp/x", "force": true }), "");
    state.update(AppEvent::Approval { id: AskId(99), prompt: Box::new(asked) });
    picture(&state, ASCII);
    state.update(AppEvent::Tick(Duration::from_mins(2)));
    state.update(AppEvent::Tick(Duration::from_secs(121)));
    state
}

#[test]
fn an_approval_in_120_by_40() {
    insta::assert_snapshot!(picture(&approval(120, 40), Theme::default()));
}

#[test]
fn an_approval_in_80_by_24_with_the_definition() {
    let mut state = approval(80, 24);
    press(&mut state, &[KeyPress::Char('v')]);
    insta::assert_snapshot!(picture(&state, ASCII));
}

#[test]
fn an_approval_in_40_by_10_says_what_is_asked() {
    insta::assert_snapshot!(picture(&approval(40, 10), ASCII));
}
