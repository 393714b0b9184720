//! Tests of key actions in forms.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::tui::keys::{KeyPress, Keymap};

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "type": "string" },
            "size": { "type": "integer" },
            "mode": { "enum": ["exact", "float"] },
            "force": { "type": "boolean" },
            "at": { "type": "object", "required": ["x"],
                    "properties": { "x": { "type": "number" }, "note": { "type": "string" } } },
            "tags": { "type": "array", "items": { "type": "string" } },
            "days": { "type": "array", "items": { "enum": ["mo", "tu"] } },
            "shape": { "oneOf": [
                { "title": "circle", "properties": { "r": { "type": "number" } }, "required": ["r"] },
                { "type": "string", "title": "by name" } ] },
        },
    })
}

fn form() -> SchemaForm {
    SchemaForm::of_schema("t", &Arc::new(schema()), None)
}

fn go(form: &mut SchemaForm, path: &str) {
    let at = form.fields.iter().position(|row| row.place.path.to_string() == path).unwrap();
    form.go_to(at);
}

fn press(form: &mut SchemaForm, keys: &[KeyPress]) {
    let map = Keymap::default();
    for key in keys {
        if let Some(action) = map.action(*key, &form.key_contexts()) {
            form.act(action);
        } else if let KeyPress::Char(c) = key
            && let Some(line) = form.line()
        {
            line.insert(c.encode_utf8(&mut [0; 4]));
            form.on_text_changed();
        }
    }
}

fn typed(form: &mut SchemaForm, path: &str, text: &str) {
    go(form, path);
    let keys: Vec<KeyPress> = text.chars().map(KeyPress::Char).collect();
    press(form, &keys);
}

fn sends(form: &SchemaForm) -> String {
    Value::Object(form.arguments()).to_string()
}

#[test]
fn every_kind_of_field_is_filled_in_with_few_keys() {
    let mut form = form();
    typed(&mut form, "name", "Ada");
    typed(&mut form, "size", "-7");
    go(&mut form, "mode");
    press(&mut form, &[KeyPress::Right, KeyPress::Right]);
    go(&mut form, "force");
    press(&mut form, &[KeyPress::Left]);
    go(&mut form, "at");
    press(&mut form, &[KeyPress::Right]);
    typed(&mut form, "at.x", "1.5");
    go(&mut form, "tags");
    press(
        &mut form,
        &[KeyPress::Char('+'), KeyPress::Char('a'), KeyPress::Alt('+'), KeyPress::Char('+')],
    );
    go(&mut form, "days");
    press(&mut form, &[KeyPress::Right, KeyPress::Down, KeyPress::Down, KeyPress::Char(' ')]);
    go(&mut form, "shape");
    press(&mut form, &[KeyPress::Right]);
    typed(&mut form, "shape.r", "2");
    let expected = json!({ "name": "Ada", "size": -7, "mode": "float", "force": true,
        "at": { "x": 1.5 }, "tags": ["a", "+"], "days": ["tu"], "shape": { "r": 2 } });
    assert_eq!(Value::Object(form.arguments()), expected);
    assert_eq!((form.summary.filled, form.summary.required), (5, 5));
    go(&mut form, "tags");
    press(&mut form, &[KeyPress::Char('-')]);
    go(&mut form, "shape");
    press(&mut form, &[KeyPress::Delete]);
    go(&mut form, "at");
    press(&mut form, &[KeyPress::Ctrl('n')]);
    go(&mut form, "days");
    press(&mut form, &[KeyPress::Delete]);
    assert_eq!(
        sends(&form),
        r#"{"name":"Ada","size":-7,"mode":"float","force":true,"at":null,"tags":["a"]}"#
    );
}

#[test]
fn what_is_missing_is_gone_to() {
    let mut form = form();
    assert_eq!(form.missing(), Some(0));
    typed(&mut form, "name", "x");
    go(&mut form, "at");
    press(&mut form, &[KeyPress::Right]);
    typed(&mut form, "at.note", "n");
    go(&mut form, "at");
    press(&mut form, &[KeyPress::Left]);
    assert!(!form.is_ready());
    // It is folded, so the way to it is shown.
    assert_eq!(form.fields[form.at].key, "at");
    press(&mut form, &[KeyPress::Right]);
    assert!(!form.is_ready());
    assert_eq!(form.problem.as_deref(), Some("at.x is required"));
}

#[test]
fn json_and_fields_are_two_ways_to_the_same() {
    let mut form = form();
    typed(&mut form, "name", "Ada");
    press(&mut form, &[KeyPress::Ctrl('t')]);
    assert_eq!(form.json.as_ref().unwrap().text(), "{\n  \"name\": \"Ada\"\n}");
    form.text().unwrap().step(1);
    form.text().unwrap().end();
    form.text().unwrap().paste(",\n\"text\": \"two\\nlines\", \"size\": 3");
    form.on_text_changed();
    let expected = r#"{"name":"Ada","text":"two\nlines","size":3}"#;
    assert_eq!(sends(&form), expected);
    press(&mut form, &[KeyPress::Ctrl('t')]);
    let back: Value = serde_json::from_str(&sends(&form)).unwrap();
    assert_eq!(back, serde_json::from_str::<Value>(expected).unwrap());
    // What the schema does not know is not lost.
    assert!(form.fields.iter().any(|row| row.key == "text"));
}

#[test]
fn what_is_no_json_says_where_and_is_not_left() {
    let mut form = form();
    press(&mut form, &[KeyPress::Ctrl('t')]);
    form.text().unwrap().right();
    form.text().unwrap().paste("\"a\": ");
    form.on_text_changed();
    press(&mut form, &[KeyPress::Ctrl('t')]);
    assert!(form.json.is_some());
    assert!(
        form.problem.as_deref().unwrap().starts_with("1:7: not JSON: expected value"),
        "{:?}",
        form.problem
    );
    assert!(!form.is_ready());
    assert_eq!(form.missing(), Some(0));
}

#[test]
fn problems_stand_beside_their_fields_until_those_change() {
    let mut form = form();
    typed(&mut form, "name", "Ada");
    typed(&mut form, "size", "7");
    let AppEffect::ValidateArguments { schema, arguments } = form.check() else { panic!() };
    let found = [
        Violation::new(
            crate::host::validate::ValuePath::default().key("size"),
            "must be at most 5",
        ),
        Violation::new(
            crate::host::validate::ValuePath::default().key("at").key("x"),
            "is required",
        ),
    ];
    assert!(form.checked(&schema, &arguments, &found));
    let beside = |form: &SchemaForm, key: &str| {
        form.fields.iter().find(|row| row.key == key).unwrap().problems.clone()
    };
    assert_eq!(beside(&form, "size"), ["must be at most 5"]);
    assert_eq!(beside(&form, "at"), ["at.x: is required"]);
    assert_eq!(form.fields[form.at].key, "size");
    press(&mut form, &[KeyPress::Delete]);
    assert_eq!(beside(&form, "size"), [""; 0]);
    assert_eq!(beside(&form, "at").len(), 1);
    // What was found about something else is not taken in.
    assert!(!form.checked(&schema, &arguments, &[]));
}

#[test]
fn a_number_that_is_none_is_not_sent() {
    let mut form = form();
    typed(&mut form, "name", "Ada");
    typed(&mut form, "size", "many");
    assert!(!form.is_ready());
    assert_eq!(form.problem.as_deref(), Some("size is not a number"));
}

#[test]
fn a_secret_is_sent_and_never_shown() {
    let schema = Arc::new(json!({ "properties": { "password": { "type": "string" } } }));
    let mut form = SchemaForm::of_schema("srv", &schema, None);
    typed(&mut form, "password", "hunter2");
    assert_eq!(sends(&form), r#"{"password":"hunter2"}"#);
    assert_eq!(form.summary.preview, r#"{"password":"‹secret›"}"#);
    press(&mut form, &[KeyPress::Ctrl('t')]);
    assert!(form.json.is_none());
    assert_eq!(form.action_effect(Action::Editor), None);
    assert!(form.problem.as_deref().unwrap().contains("secret"));
}

#[test]
fn what_comes_from_an_editor_is_taken_in_or_said() {
    let mut form = form();
    let Some(AppEffect::OpenEditor(draft)) = form.action_effect(Action::Editor) else { panic!() };
    assert_eq!((draft.name, draft.text.as_str()), ("arguments.json", "{}"));
    form.apply_editor_result(Ok(r#"{ "name": "x", "tags": ["a"] }"#.to_owned()));
    assert_eq!(sends(&form), r#"{"name":"x","tags":["a"]}"#);
    form.apply_editor_result(Err(Error::usage("no editor configured: set VISUAL or EDITOR")));
    assert_eq!(form.problem.as_deref(), Some("no editor configured: set VISUAL or EDITOR"));
    form.apply_editor_result(Ok("[1".to_owned()));
    assert!(form.json.is_some() && form.problem.as_deref().unwrap().contains("1:2"));
}

#[test]
fn the_command_line_is_the_same_call() {
    let mut definition = crate::tui::tests::tool("srv-t", schema());
    definition.description = None;
    let known = json!({ "name": "it's", "size": 3, "tags": ["a"] });
    let form = SchemaForm::of(&definition, known.as_object());
    let line = r#"toolhost call srv-t 'name=it'\''s' size=3 'tags:=["a"]'"#;
    assert_eq!(form.summary.command.as_deref(), Some(line));
}

fn any_key() -> impl Strategy<Value = KeyPress> {
    let named = [
        KeyPress::Enter,
        KeyPress::Tab,
        KeyPress::BackTab,
        KeyPress::Up,
        KeyPress::Down,
        KeyPress::Left,
        KeyPress::Right,
        KeyPress::Backspace,
        KeyPress::Delete,
        KeyPress::Char('+'),
        KeyPress::Char('-'),
        KeyPress::Char(' '),
        KeyPress::Char('{'),
        KeyPress::Alt('+'),
        KeyPress::Alt('-'),
        KeyPress::Ctrl('n'),
        KeyPress::Ctrl('t'),
    ];
    prop_oneof![4 => prop::sample::select(named.to_vec()), 1 => any::<char>().prop_map(KeyPress::Char)]
}

proptest! {
    #[test]
    fn no_keys_break_it_and_what_is_shown_is_what_is_sent(keys in prop::collection::vec(any_key(), 0..120)) {
        let mut form = form();
        for key in keys {
            press(&mut form, &[key]);
            prop_assert!(form.at < form.fields.len());
            if form.json.is_none() {
                prop_assert_eq!(&cut(sends(&form)), &form.summary.preview);
            }
            // A form that is ready has all that is required.
            if form.clone().is_ready() && form.json.is_none() {
                prop_assert!(form.arguments().contains_key("name"));
            }
        }
    }
}

#[test]
fn a_text_field_keeps_lines_and_the_cursor_moves_in_them() {
    let mut form = form();
    go(&mut form, "name");
    form.text().unwrap().paste("def f():\n\treturn 1\n");
    form.on_text_changed();
    assert_eq!(form.arguments()["name"], json!("def f():\n\treturn 1\n"));
    press(&mut form, &[KeyPress::Up, KeyPress::Up, KeyPress::Char('#')]);
    assert_eq!(form.arguments()["name"], json!("#def f():\n\treturn 1\n"));
    press(&mut form, &[KeyPress::Ctrl('g')]);
    assert_eq!(form.arguments()["name"], json!("#\ndef f():\n\treturn 1\n"));
    // From the last line the next field is reached, and what was written is there again.
    press(&mut form, &[KeyPress::Down, KeyPress::Down]);
    assert_eq!(form.fields[form.at].place.path.to_string(), "name");
    press(&mut form, &[KeyPress::Down]);
    assert_eq!(form.fields[form.at].place.path.to_string(), "size");
    assert_eq!(form.arguments()["name"], json!("#\ndef f():\n\treturn 1\n"));
    assert!(form.text().is_none(), "a number is one line");
    press(&mut form, &[KeyPress::Ctrl('g')]);
    assert_eq!(form.arguments().get("size"), None);
}

#[test]
fn what_is_typed_is_checked_while_it_is() {
    let schema = json!({ "properties": {
        "n": { "type": "integer", "minimum": 10 },
        "s": { "type": "string", "maxLength": 3 },
        "day": { "type": "string", "format": "date" },
        "mode": { "enum": ["exact", "float"] },
    } });
    let mut form = SchemaForm::of_schema("t", &Arc::new(schema), None);
    let problem = |form: &mut SchemaForm, path: &str, text: &str| {
        go(form, path);
        form.written = None;
        typed(form, path, text);
        form.draft_problem().map(str::to_owned)
    };
    assert_eq!(problem(&mut form, "n", "1").as_deref(), Some("must be at least 10"));
    assert_eq!(problem(&mut form, "n", "2"), None);
    assert_eq!(problem(&mut form, "n", "x").as_deref(), Some("is not a number"));
    assert!(problem(&mut form, "s", "long").is_some());
    assert!(problem(&mut form, "day", "2026-0").unwrap().contains("a date"));
    assert_eq!(problem(&mut form, "day", "7-28"), None);
    assert_eq!(problem(&mut form, "mode", "fl"), None);
    press(&mut form, &[KeyPress::Tab]);
    assert_eq!(form.arguments()["mode"], json!("float"), "the only one that begins so");
    for path in ["n", "mode"] {
        go(&mut form, path);
        press(&mut form, &[KeyPress::Delete]);
    }
    typed(&mut form, "mode", "ex");
    assert!(form.is_ready());
    assert_eq!(form.arguments()["mode"], json!("exact"), "it is sent whole");
    assert_eq!(problem(&mut form, "mode", "x").as_deref(), Some("is not one of the choices"));
}

#[test]
fn typing_replaces_what_was_chosen() {
    let schema = json!({ "properties": {
        "day": { "type": "string", "format": "date" },
        "mode": { "enum": ["exact", "float"] },
        "force": { "type": "boolean" },
        "shape": { "oneOf": [{ "title": "circle", "properties": { "r": { "type": "number" } } },
                             { "title": "name", "type": "string" }] },
    } });
    let known = json!({ "day": "2026-11-23", "mode": "exact", "force": true });
    let mut form = SchemaForm::of_schema("t", &Arc::new(schema), known.as_object());
    typed(&mut form, "day", "2027-01-01");
    typed(&mut form, "mode", "fl");
    press(&mut form, &[KeyPress::Enter]);
    typed(&mut form, "force", "f");
    let sent = |form: &SchemaForm| Value::Object(form.arguments());
    assert_eq!(sent(&form), json!({ "day": "2027-01-01", "mode": "float", "force": false }));

    // The first letter of another choice takes that one, and a letter of none changes nothing.
    typed(&mut form, "force", "y");
    assert_eq!(sent(&form)["force"], json!(true));
    typed(&mut form, "force", "x");
    assert_eq!(sent(&form)["force"], json!(true));
    typed(&mut form, "shape", "na");
    go(&mut form, "shape");
    assert_eq!(form.node().unwrap().input, FieldInput::Choice(1));
    typed(&mut form, "shape", "c");
    assert_eq!(form.node().unwrap().input, FieldInput::Choice(0));

    // Moving the cursor first keeps the date, and what is emptied is left out.
    go(&mut form, "day");
    form.line().unwrap().end();
    form.line().unwrap().backspace();
    form.line().unwrap().insert("2");
    form.on_text_changed();
    assert_eq!(sent(&form)["day"], json!("2027-01-02"));
    go(&mut form, "mode");
    form.written = None;
    form.line().unwrap().backspace();
    form.on_text_changed();
    assert_eq!(sent(&form).get("mode"), None);
}

#[test]
fn typing_replaces_what_an_earlier_call_left_and_edits_what_was_put_there_to_be_edited() {
    let earlier = json!({ "name": "old", "size": 22 });
    let form = || SchemaForm::of_schema("t", &Arc::new(schema()), earlier.as_object());
    let mut remembered = SchemaForm { is_remembered: true, ..form() };
    typed(&mut remembered, "size", "5");
    assert_eq!(sends(&remembered), r#"{"name":"old","size":5}"#);
    typed(&mut remembered, "size", "6");
    assert_eq!(sends(&remembered), r#"{"name":"old","size":56}"#);
    let mut edited = form();
    typed(&mut edited, "size", "5");
    assert_eq!(sends(&edited), r#"{"name":"old","size":225}"#);
    // A new line is added to what is there.
    let mut broken = SchemaForm { is_remembered: true, ..form() };
    go(&mut broken, "name");
    assert!(broken.text().unwrap().act(Action::Add));
    broken.on_text_changed();
    assert_eq!(sends(&broken), r#"{"name":"old\n","size":22}"#);
}
