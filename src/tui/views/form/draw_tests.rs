//! Snapshot tests of forms.

use serde_json::{Value, json};

use crate::tui::app::AppState;
use crate::tui::event::{AppEvent, UserInput};
use crate::tui::keys::KeyPress;
use crate::tui::tests::drawing::{ASCII, picture};
use crate::tui::tests::{listed, tool};
use crate::tui::theme::Theme;

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["path", "at"],
        "properties": {
            "path": { "type": "string", "description": "Where it goes" },
            "mode": { "enum": ["exact", "float"], "default": "exact" },
            "at": { "type": "object", "required": ["x"],
                    "properties": { "x": { "type": "number" }, "y": { "type": ["number", "null"] } } },
            "tags": { "type": "array", "items": { "type": "string" } },
            "days": { "type": "array", "items": { "oneOf": [
                { "const": "mo", "title": "Monday" }, { "const": "tu", "title": "Tuesday" }] } },
            "shape": { "anyOf": [
                { "title": "circle", "properties": { "r": { "type": "number" } } },
                { "title": "name", "type": "string" }] },
            "password": { "type": "string" },
        },
    })
}

fn filled(width: u16, height: u16) -> AppState {
    let mut state = AppState::new((width, height));
    state.update(listed(vec![tool("draw", schema())]));
    let arguments = json!({ "path": "a.svg", "at": { "y": null }, "tags": ["new", "old"],
                            "days": ["tu"], "shape": { "r": 2 }, "password": "hunter2" });
    let tool = "draw".to_owned();
    state.tools.fill_arguments(&tool, arguments.as_object(), &mut state.context);
    state
}

fn press(state: &mut AppState, keys: &[KeyPress]) {
    for key in keys {
        state.update(AppEvent::Input(UserInput::Key(*key)));
    }
}

#[test]
fn all_kinds_of_fields_in_120_by_40() {
    let mut state = filled(120, 40);
    press(&mut state, &[KeyPress::Char('!'), KeyPress::Down, KeyPress::Down, KeyPress::F(5)]);
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn all_kinds_of_fields_in_80_by_24() {
    let mut state = filled(80, 24);
    press(&mut state, &[KeyPress::Up; 3]);
    insta::assert_snapshot!(picture(&state, ASCII));
}

#[test]
fn a_narrow_form_shows_the_chosen_field_and_what_is_wrong() {
    let mut state = filled(40, 10);
    press(&mut state, &[KeyPress::F(5)]);
    insta::assert_snapshot!(picture(&state, ASCII));
}

#[test]
fn json_in_60_by_16_says_where_it_is_wrong() {
    let mut state = filled(60, 16);
    press(
        &mut state,
        &[
            KeyPress::Up,
            KeyPress::Delete,
            KeyPress::Ctrl('t'),
            KeyPress::Down,
            KeyPress::Char(','),
            KeyPress::F(5),
        ],
    );
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

fn row_of(state: &AppState, title: &str) -> usize {
    let seen = picture(state, ASCII);
    seen.lines().position(|row| row.contains(title)).unwrap_or_else(|| panic!("{seen}"))
}

#[test]
fn a_form_takes_the_rows_it_needs_and_the_result_gets_the_rest() {
    let one = json!({ "type": "object", "required": ["timezone"],
                      "properties": { "timezone": { "type": "string" } } });
    let mut state = AppState::new((120, 40));
    state.update(listed(vec![tool("clock", one)]));
    press(&mut state, &[KeyPress::Enter]);
    // The frame, the field and what it takes, a gap, what is sent, and the command.
    assert_eq!(row_of(&state, " Result ") - row_of(&state, " Arguments "), 7);
    assert!(picture(&state, ASCII).contains("$ toolhost call clock"));

    // Choosing another field moves nothing, whatever is said below it.
    let mut state = filled(120, 40);
    press(&mut state, &[KeyPress::Tab]);
    let begins = row_of(&state, " Result ");
    for _ in 0..state.tools.form.as_ref().unwrap().fields.len() {
        press(&mut state, &[KeyPress::Tab]);
        assert_eq!(row_of(&state, " Result "), begins);
    }

    // A form of many fields leaves the result its share, once there is one.
    let fields = (0..60).map(|number| (format!("f{number}"), json!({ "type": "string" })));
    let many = json!({ "type": "object", "properties": fields.collect::<serde_json::Map<_, _>>() });
    for (width, height, before, after) in [(120, 40, 30, 18), (80, 24, 14, 10)] {
        let mut state = AppState::new((width, height));
        state.update(listed(vec![tool("many", many.clone())]));
        press(&mut state, &[KeyPress::Enter]);
        assert_eq!(row_of(&state, " Result "), before);
        press(&mut state, &[KeyPress::F(5)]);
        assert_eq!(row_of(&state, " Result "), after);
    }
}

#[test]
fn a_secret_is_nowhere_on_the_screen() {
    let mut state = filled(120, 40);
    press(&mut state, &[KeyPress::Up]);
    for theme in [Theme::default(), ASCII] {
        let seen = picture(&state, theme);
        assert!(seen.contains("*******") && !seen.contains("hunter2"), "{seen}");
    }
}
