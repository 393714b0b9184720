//! `builtin.json_diff`: compares two JSON values and lists the JSON Patch operations.

use serde_json::{Map, Value, json};

use super::{BuiltinFunction, FunctionBody, FunctionResult, input};
use crate::model::{Error, ToolResult};
use crate::providers::arguments::{Arguments, text};
use crate::util::clock::Clock;

const MAX_OPERATIONS: usize = 10_000;

pub(super) const DIFF: BuiltinFunction = BuiltinFunction {
    module: "builtin.json_diff",
    name: "diff",
    aliases: &[],
    title: "Compare JSON",
    description: "Compares two JSON values and lists the operations (add, remove, replace) that \
                  turn the first into the second, as in JSON Patch: each has a JSON Pointer and \
                  the old value, if any. Numbers are compared by value, objects regardless of the \
                  order of their keys.",
    input: || {
        let properties = [
            ("before", json!({ "description": "The first value" })),
            ("after", json!({ "description": "The second value" })),
            ("before_json", text("The first value as JSON text instead")),
            ("after_json", text("The second value as JSON text instead")),
        ];
        let mut schema = input(&properties, &[]);
        schema["examples"] = json!([{ "before": { "a": 1 }, "after": { "a": 2 } }]);
        schema
    },
    output: Some(|| {
        let operation = json!({ "op": { "enum": ["add", "remove", "replace"] },
            "path": { "type": "string" } });
        let items =
            json!({ "type": "object", "properties": operation, "required": ["op", "path"] });
        let operations = json!({ "type": "array", "items": items });
        let properties = json!({ "equal": { "type": "boolean" }, "operations": operations });
        let required = ["equal", "operations"];
        json!({ "type": "object", "properties": properties, "required": required })
    }),
    idempotent: true,
    run: FunctionBody::Sync(diff),
};

fn diff(_clock: &dyn Clock, arguments: Arguments<'_>) -> FunctionResult {
    let (before, after) = (value(arguments, "before")?, value(arguments, "after")?);
    let mut operations = Operations::default();
    operations.compare(&mut String::new(), &before, &after);
    let equal = operations.list.is_empty();
    let mut result = ToolResult::json(json!({ "equal": equal, "operations": operations.list }));
    if operations.is_cut {
        let warning = format!("only the first {MAX_OPERATIONS} operations are listed");
        result.warnings.push(warning);
    }
    Ok(result)
}

fn value(arguments: Arguments<'_>, name: &str) -> Result<Value, Error> {
    let value = arguments.json(name, &format!("{name}_json"))?;
    value.ok_or_else(|| Error::usage(format!("'{name}' is missing")))
}

/// Operations that, done one after the other, make the one value of the other.
#[derive(Default)]
struct Operations {
    list: Vec<Value>,
    is_cut: bool,
}

impl Operations {
    fn push(&mut self, op: &str, path: &str, before: Option<&Value>, after: Option<&Value>) {
        if self.list.len() == MAX_OPERATIONS {
            self.is_cut = true;
            return;
        }
        let mut operation = Map::new();
        operation.insert("op".to_owned(), op.into());
        operation.insert("path".to_owned(), path.into());
        if let Some(after) = after {
            operation.insert("value".to_owned(), after.clone());
        }
        // JSON Patch ignores members that it does not know.
        if let Some(before) = before {
            operation.insert("old".to_owned(), before.clone());
        }
        self.list.push(Value::Object(operation));
    }

    fn compare(&mut self, path: &mut String, before: &Value, after: &Value) {
        if self.is_cut || is_equal(before, after) {
            return;
        }
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => self.objects(path, before, after),
            (Value::Array(before), Value::Array(after)) => self.arrays(path, before, after),
            _ => self.push("replace", path, Some(before), Some(after)),
        }
    }

    fn objects(
        &mut self,
        path: &mut String,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) {
        for (key, old) in before {
            below(path, &escape(key), |path| match after.get(key) {
                Some(new) => self.compare(path, old, new),
                None => self.push("remove", path, Some(old), None),
            });
        }
        for (key, new) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
            below(path, &escape(key), |path| self.push("add", path, None, Some(new)));
        }
    }

    /// Equal items at the start and the end are skipped; those between them are compared one by
    /// one, and the rest are added or removed.
    fn arrays(&mut self, path: &mut String, before: &[Value], after: &[Value]) {
        let pairs = || before.iter().zip(after);
        let start = pairs().take_while(|(old, new)| is_equal(old, new)).count();
        let (before, after) =
            (before.get(start..).unwrap_or_default(), after.get(start..).unwrap_or_default());
        let ends = before.iter().rev().zip(after.iter().rev());
        let end = ends.take_while(|(old, new)| is_equal(old, new)).count();
        let middle = |items: &[Value]| items.len().saturating_sub(end);
        let before = before.get(..middle(before)).unwrap_or_default();
        let after = after.get(..middle(after)).unwrap_or_default();
        for (index, (old, new)) in before.iter().zip(after).enumerate() {
            let step = (start + index).to_string();
            below(path, &step, |path| self.compare(path, old, new));
        }
        let common = before.len().min(after.len());
        // From the end, so that the places of the others stay.
        for (index, old) in before.iter().enumerate().skip(common).rev() {
            let step = (start + index).to_string();
            below(path, &step, |path| self.push("remove", path, Some(old), None));
        }
        for (index, new) in after.iter().enumerate().skip(common) {
            let step = (start + index).to_string();
            below(path, &step, |path| self.push("add", path, None, Some(new)));
        }
    }
}

fn below(path: &mut String, step: &str, act: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(step);
    act(path);
    path.truncate(length);
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            let whole = |n: &serde_json::Number| n.as_i128();
            a == b
                || match (whole(a), whole(b)) {
                    (Some(a), Some(b)) => a == b,
                    // 1 and 1.0 are one value.
                    _ => a.as_f64().is_some_and(|a| b.as_f64() == Some(a)),
                }
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_equal(a, b)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::util::clock::SystemClock;

    fn run(arguments: Value) -> ToolResult {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        crate::providers::local::answered(diff(&SystemClock, Arguments(&arguments))).unwrap()
    }

    fn operations(before: &Value, after: &Value) -> Vec<Value> {
        let result = run(json!({ "before": before, "after": after })).output;
        let list = result["operations"].as_array().unwrap().clone();
        assert_eq!(result["equal"], json!(list.is_empty()));
        list
    }

    #[test]
    fn each_difference_is_one_operation_with_its_place() {
        assert_eq!(
            operations(
                &json!({ "a": 1, "b/c": { "~": [1, 2, 3] }, "gone": null }),
                &json!({ "b/c": { "~": [1, 3] }, "a": "x", "new": [] })
            ),
            [
                json!({ "op": "replace", "path": "/a", "value": "x", "old": 1 }),
                json!({ "op": "remove", "path": "/b~1c/~0/1", "old": 2 }),
                json!({ "op": "remove", "path": "/gone", "old": null }),
                json!({ "op": "add", "path": "/new", "value": [] }),
            ]
        );
        assert_eq!(
            operations(&json!(1), &json!([1])),
            [json!({ "op": "replace", "path": "", "value": [1], "old": 1 })]
        );
    }

    #[test]
    fn numbers_are_values_and_the_order_of_keys_is_none() {
        let before = serde_json::from_str(r#"{"a":1.0,"b":[{"x":1,"y":2}]}"#).unwrap();
        let after = serde_json::from_str(r#"{"b":[{"y":2e0,"x":1}],"a":1}"#).unwrap();
        assert!(operations(&before, &after).is_empty());
        let near = |text| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(operations(&near("9007199254740993"), &near("9007199254740992")).len(), 1);
    }

    #[test]
    fn values_may_be_given_as_text() {
        let result = run(json!({ "before_json": "[1]", "after": [1] }));
        assert_eq!(result.output["equal"], true);
        let broken = run(json!({ "before_json": "[1", "after": [1] }));
        assert!(!broken.success && broken.output.as_str().unwrap().starts_with("'before_json'"));
        let none = json!({ "before": 1 });
        let error = diff(&SystemClock, Arguments(none.as_object().unwrap())).unwrap_err();
        assert_eq!(error.message(), "'after' is missing");
    }

    #[test]
    fn a_flood_of_differences_is_cut_and_that_is_said() {
        let result = run(json!({ "before": [], "after": vec![0; MAX_OPERATIONS + 1] }));
        assert_eq!(result.output["operations"].as_array().unwrap().len(), MAX_OPERATIONS);
        assert_eq!(result.warnings.len(), 1);
    }

    fn apply(mut value: Value, operations: &[Value]) -> Value {
        for operation in operations {
            let path = operation["path"].as_str().unwrap();
            let Some((parent, last)) = path.rsplit_once('/') else {
                value = operation["value"].clone();
                continue;
            };
            let last = last.replace("~1", "/").replace("~0", "~");
            let new = operation.get("value").cloned();
            match (value.pointer_mut(parent).unwrap(), operation["op"].as_str().unwrap()) {
                (Value::Object(map), "remove") => drop(map.remove(&last).unwrap()),
                (Value::Object(map), _) => drop(map.insert(last, new.unwrap())),
                (Value::Array(list), "remove") => drop(list.remove(last.parse().unwrap())),
                (Value::Array(list), "add") => list.insert(last.parse().unwrap(), new.unwrap()),
                (Value::Array(list), _) => list[last.parse::<usize>().unwrap()] = new.unwrap(),
                (other, _) => panic!("{other}"),
            }
        }
        value
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            (0..3).prop_map(Value::from),
            "[a/~]{0,2}".prop_map(Value::String),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::btree_map("[ab/~]{0,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_operations_make_the_one_of_the_other(before in any_json(), after in any_json()) {
            let list = operations(&before, &after);
            prop_assert_eq!(apply(before, &list), after);
        }
    }
}
