//! Tests of forms built from many kinds of schema.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn form(schema: &Value, values: &Value) -> FormNode {
    FormNode::of_object(ResolvedSchema::of(&Arc::new(schema.clone())), values.as_object())
}

fn kind(property: &Value) -> FieldKind {
    let form = form(&json!({ "properties": { "x": property } }), &Value::Null);
    form.children[0].field.kind.clone()
}

fn titles(kind: &FieldKind) -> Vec<&str> {
    match kind {
        FieldKind::Choice(choices) | FieldKind::MultiChoice(choices) => {
            choices.iter().map(|choice| choice.title.as_str()).collect()
        }
        FieldKind::Variants(titles) => titles.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn each_property_is_a_field_of_its_kind() {
    assert_eq!(kind(&json!({ "type": "string" })), FieldKind::Text);
    assert_eq!(kind(&json!({ "type": ["integer", "null"] })), FieldKind::Number { whole: true });
    assert_eq!(
        kind(&json!({ "anyOf": [{ "type": "boolean" }, { "type": "null" }] })),
        FieldKind::Boolean
    );
    assert_eq!(kind(&json!({ "const": 3 })), FieldKind::Constant(json!(3)));
    assert_eq!(kind(&json!({ "type": "object" })), FieldKind::Json);
    assert_eq!(kind(&json!({ "properties": { "a": {} } })), FieldKind::Object);
    assert_eq!(kind(&json!({ "items": { "type": "string" } })), FieldKind::List);
    assert_eq!(kind(&json!({ "type": ["string", "integer"] })), FieldKind::Any);
    assert_eq!(kind(&json!(true)), FieldKind::Any);
    let named = kind(&json!({ "enum": ["a", "b"], "enumNames": ["A", "B"] }));
    assert_eq!(titles(&named), ["A", "B"]);
    let many =
        kind(&json!({ "type": "array", "items": { "oneOf": [{ "const": "a", "title": "A" }] } }));
    assert!(matches!(many, FieldKind::MultiChoice(_)));
    assert_eq!(titles(&many), ["A"]);
}

#[test]
fn a_form_of_several_is_known_by_what_tells_it_apart() {
    let schema = json!({
        "properties": { "shape": { "oneOf": [
            { "$ref": "#/$defs/Circle" },
            { "properties": { "kind": { "const": "square" }, "side": { "type": "number" } },
              "required": ["kind", "side"] },
            { "type": "string", "title": "By name" },
        ] } },
        "$defs": { "Circle": { "properties": { "radius": { "type": "number" } } } },
    });
    let mut form = form(&schema, &Value::Null);
    assert_eq!(titles(&form.children[0].field.kind), ["Circle", "square", "By name"]);
    let shape = form.at_mut(&[0]).unwrap();
    assert!(shape.cycle_choice(1) && shape.cycle_choice(1));
    // What can only be one thing is that without being asked.
    assert_eq!(form.value(), Some(json!({ "shape": { "kind": "square" } })));
    assert_eq!(form.required_fields(), RequiredFields { total: 2, missing: vec![vec![0, 0, 1]] });
    form.at_mut(&[0, 0, 1]).unwrap().set_text("2.5");
    assert_eq!(form.value(), Some(json!({ "shape": { "kind": "square", "side": 2.5 } })));
    let paths: Vec<String> = form.rows().iter().map(|row| row.path.to_string()).collect();
    assert_eq!(paths, ["shape", "shape.kind", "shape.side"]);
}

#[test]
fn objects_and_lists_are_left_out_until_something_is_in_them() {
    let schema = json!({ "properties": {
        "at": { "properties": { "x": { "type": "integer" }, "y": { "type": "integer" } },
                "required": ["x"] },
        "tags": { "type": "array", "items": { "type": "string" } },
    } });
    let mut form = form(&schema, &Value::Null);
    form.at_mut(&[0]).unwrap().open();
    assert_eq!(form.value(), Some(json!({})));
    assert_eq!(form.required_fields(), RequiredFields::default());
    form.at_mut(&[0, 1]).unwrap().set_text("7");
    assert_eq!(form.required_fields(), RequiredFields { total: 1, missing: vec![vec![0, 0]] });
    let tags = form.at_mut(&[1]).unwrap();
    assert!(tags.add(0) && tags.add(1));
    form.at_mut(&[1, 1]).unwrap().set_text("b");
    assert_eq!(form.value(), Some(json!({ "at": { "y": 7 }, "tags": ["b"] })));
    form.at_mut(&[1]).unwrap().remove(0);
    assert_eq!(form.at(&[1, 0]).unwrap().field.key, "1");
    form.at_mut(&[0]).unwrap().clear();
    assert_eq!(form.value(), Some(json!({ "tags": ["b"] })));
}

#[test]
fn what_no_field_can_hold_is_held_as_json() {
    let schema = json!({ "properties": { "n": { "type": "integer" }, "any": {} } });
    let values = json!({ "n": { "odd": 1 }, "any": 12, "more": [true] });
    let mut form = form(&schema, &values);
    assert_eq!(form.value(), Some(values));
    assert_eq!(form.at(&[0]).unwrap().text(), Some(r#"{"odd":1}"#));
    form.at_mut(&[0]).unwrap().set_text("{");
    assert!(form.at(&[0]).unwrap().syntax_error().unwrap().contains("line 1 column 1"));
    form.at_mut(&[0]).unwrap().clear();
    form.at_mut(&[0]).unwrap().set_text("12");
    assert_eq!(form.value(), Some(json!({ "n": 12, "any": 12, "more": [true] })));
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    let schema = json!({
        "$ref": "#/$defs/Tree",
        "$defs": { "Tree": { "properties": {
            "left": { "$ref": "#/$defs/Tree" }, "right": { "$ref": "#/$defs/Tree" } },
            "required": ["left", "right"] } },
    });
    let mut form = form(&schema, &Value::Null);
    let mut index_path = Vec::new();
    for _ in 0..MAX_DEPTH - 1 {
        index_path.push(0);
        form.at_mut(&index_path).unwrap().open();
    }
    index_path.push(0);
    assert_eq!(form.at(&index_path).unwrap().field.kind, FieldKind::Json);
    let circle = json!({ "$ref": "#/a", "a": { "$ref": "#/b" }, "b": { "$ref": "#/a" } });
    assert!(self::form(&circle, &Value::Null).rows().is_empty());
}

#[test]
fn what_all_of_says_holds_too() {
    let schema = json!({
        "allOf": [{ "$ref": "#/$defs/Named" }],
        "properties": { "age": { "$ref": "#/$defs/Age", "description": "In years" } },
        "$defs": { "Named": { "properties": { "name": { "type": "string" } }, "required": ["name"] },
                   "Age": { "type": "integer", "description": "of anything" } },
    });
    let form = form(&schema, &Value::Null);
    let fields: Vec<(&str, bool)> =
        form.children.iter().map(|node| (node.field.key.as_str(), node.field.required)).collect();
    assert_eq!(fields, [("name", true), ("age", false)]);
    assert_eq!(form.children[1].field.description.as_deref(), Some("In years"));
}

#[test]
fn a_secret_is_covered_where_it_stands() {
    let schema = json!({ "properties": { "logins": { "items": { "properties": {
        "user": { "type": "string" }, "password": { "type": "string" } } } } } });
    let form = form(&schema, &json!({ "logins": [{ "user": "ada", "password": "hunter2" }] }));
    assert!(form.holds_secret() && form.asks_for_secret());
    let shown = form.masked_value().unwrap().to_string();
    assert_eq!(shown, r#"{"logins":[{"user":"ada","password":"‹secret›"}]}"#);
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": "integer", "minimum": 0 })),
        Just(json!({ "type": ["number", "null"] })),
        Just(json!({ "type": "boolean" })),
        Just(json!({ "enum": ["a", 1, null, "1"] })),
        Just(json!({ "const": "x" })),
        Just(json!({ "type": "array", "items": { "enum": ["p", "q"] } })),
        Just(json!({ "$ref": "#" })),
        Just(json!({ "$ref": "#/properties/a" })),
        Just(json!({ "type": 5, "properties": [], "items": "y", "enum": 7, "anyOf": {} })),
        Just(json!({})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[a-c]", inner.clone(), 0..4).prop_map(|properties| {
                let first = properties.keys().next().cloned();
                json!({ "type": "object", "properties": properties, "required": [first] })
            }),
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|forms| json!({ "oneOf": forms })),
            prop::collection::vec(inner, 1..3).prop_map(|all| json!({ "allOf": all })),
        ]
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-c1x]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_held_is_what_is_sent(schema in any_schema(), value in any_value()) {
        let values = json!({ "a": value, "z": 1 });
        prop_assert_eq!(form(&schema, &values).value(), Some(values));
    }

    #[test]
    fn nothing_done_to_a_form_breaks_it(
        schema in any_schema(),
        acts in prop::collection::vec((0..9_u8, any::<prop::sample::Index>(), "[a-c1{]{0,2}"), 0..40),
    ) {
        let schema = json!({ "properties": { "a": schema, "b": { "type": "array", "items": schema } } });
        let mut form = form(&schema, &Value::Null);
        for (act, which, text) in acts {
            let rows = form.rows();
            if rows.is_empty() {
                break;
            }
            let row = rows[which.index(rows.len())].clone();
            let node = form.at_mut(&row.index_path).unwrap();
            match (act, row.part) {
                (_, RowPart::Choice(at)) => node.toggle_choice(at),
                (0, _) => node.open(),
                (1, _) => node.is_open = false,
                (2, _) => drop(node.cycle_choice(1)),
                (3, _) => drop(node.cycle_choice(-1)),
                (4, _) => drop(node.add(0)),
                (5, _) => drop(node.remove(0)),
                (6, _) => node.clear(),
                (7, _) => node.input = FieldInput::Null,
                _ => node.set_text(&text),
            }
            let value = form.value().unwrap();
            prop_assert!(value.is_object());
            // Each line that is shown with a value has it at its place.
            let lists = |row: &FieldRow| (1..row.index_path.len()).any(|end| {
                form.at(&row.index_path[..end]).is_some_and(|node| node.field.kind == FieldKind::List)
            });
            for row in form.rows().iter().filter(|row| !lists(row)) {
                let node = form.at(&row.index_path).unwrap();
                prop_assert_eq!(node.value(), row.path.of(&value).cloned());
            }
            form.required_fields();
            form.masked_value();
        }
    }
}
