//! The JSON Schema of `console.yaml`, for editors.

use serde_json::{Map, Value, json};

use super::keys::KEY_TABLES;
use super::settings::IMAGES;
use super::theme::ColourScheme;

/// The schema of `console.yaml`.
pub fn schema() -> Value {
    let context = |table: &super::keys::KeyTable| {
        let about = format!("Keys of '{}'", table.title);
        let bindings = json!({ "$ref": "#/$defs/bindings", "description": about });
        (table.context.name().to_owned(), bindings)
    };
    let contexts: Map<String, Value> = KEY_TABLES.iter().map(context).collect();
    let bindings = KEY_TABLES.iter().flat_map(|table| table.bindings);
    let mut actions: Vec<String> = bindings.map(|binding| binding.action.name()).collect();
    actions.sort_unstable();
    actions.dedup();
    actions.insert(0, "none".to_owned());
    let switch = |about: &str, default: bool| json!({ "type": "boolean", "default": default, "description": about });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "toolhost: the console (console.yaml)",
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": {
            "theme": {
                "enum": ColourScheme::ALL.map(ColourScheme::name),
                "default": ColourScheme::default().name(),
                "description": "Colours; the palette in the console tries others for as long as it runs",
            },
            "ascii": switch("Draw with ASCII characters only", false),
            "reduced_motion": switch("Disable spinners and other motion", false),
            "mouse": switch("Use the mouse: click rows and views, scroll", false),
            "clock": switch("Show the time of day in the top bar", true),
            "image": { "$ref": "#/$defs/image", "description": "Pictures in results" },
            "keys": {
                "$ref": "#/$defs/keys",
                "description": "Custom key bindings, by context",
            },
        },
        "$defs": {
            "image": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "inline": {
                        "enum": IMAGES,
                        "default": "auto",
                        "description": "auto shows them as coloured half blocks; never decodes none",
                    },
                },
            },
            "keys": {
                "type": "object",
                "properties": contexts,
                "additionalProperties": false,
            },
            "bindings": {
                "type": "object",
                "description": "Maps a key such as x, X, ctrl-x, alt-x, f5, enter, space or page-up to its action",
                "additionalProperties": { "$ref": "#/$defs/action" },
            },
            "action": { "enum": actions },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::tui::settings;

    fn problems(text: &str) -> Vec<String> {
        let (_, problems) = settings::read(&SourceText::new("console.yaml", text), text);
        problems.into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn every_key_of_the_schema_is_read_and_every_other_one_refused() {
        let schema = schema();
        let properties = schema["properties"].as_object().unwrap();
        for (key, shape) in properties {
            let value = match shape.get("default") {
                Some(default) => default.to_string(),
                None => "{}".to_owned(),
            };
            assert_eq!(problems(&format!("{key}: {value}\n")), [""; 0], "{key}");
        }
        let diagnostics = settings::read(&SourceText::new("console.yaml", "x: 1"), "x: 1").1;
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        assert!(
            diagnostics[0].hint.as_ref().unwrap().ends_with(&names.join(", ")),
            "{:?}",
            diagnostics[0].hint
        );
        let contexts = schema["$defs"]["keys"]["properties"].as_object().unwrap();
        for context in contexts.keys() {
            assert_eq!(problems(&format!("keys: {{ {context}: {{}} }}")), [""; 0], "{context}");
        }
        for action in schema["$defs"]["action"]["enum"].as_array().unwrap() {
            let problems = problems(&format!("keys: {{ stats: {{ f12: {action} }} }}"));
            assert_eq!(problems, [""; 0], "{action}");
        }
    }
}
