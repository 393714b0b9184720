//! Each dialect by the examples of its reference, and what is done with what it does not take.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::{Origin, ToolName, ToolSource};

fn answer(text: &str) -> CallAnswer {
    let content = vec![json!({ "type": "text", "text": text })];
    CallAnswer { content, structured: None, is_error: false }
}

/// One call of `get_weather`, as each dialect writes it.
fn weather_call(format: ModelFormat) -> Value {
    match format {
        ModelFormat::Openai => json!({ "choices": [{ "message": {
            "role": "assistant", "content": null, "tool_calls": [{
                "id": "call_1", "type": "function",
                "function": { "name": "get_weather", "arguments": "{\"city\":\"Oslo\"}" },
            }],
        } }] }),
        ModelFormat::OpenaiResponses => json!({ "output": [
            { "type": "reasoning", "id": "rs_1", "summary": [] },
            { "type": "function_call", "call_id": "call_1", "name": "get_weather",
              "arguments": "{\"city\":\"Oslo\"}" },
        ] }),
        ModelFormat::Anthropic => json!({ "role": "assistant", "content": [
            { "type": "text", "text": "I'll look." },
            { "type": "tool_use", "id": "call_1", "name": "get_weather",
              "input": { "city": "Oslo" } },
        ] }),
        ModelFormat::Gemini => json!({ "candidates": [{ "content": { "role": "model", "parts": [
            { "functionCall": { "id": "call_1", "name": "get_weather",
                                "args": { "city": "Oslo" } } },
        ] } }] }),
        ModelFormat::Mcp => Value::Null,
    }
}

const SPEAKING: [ModelFormat; 4] = [
    ModelFormat::Openai,
    ModelFormat::OpenaiResponses,
    ModelFormat::Anthropic,
    ModelFormat::Gemini,
];

#[test]
fn one_call_reads_the_same_in_every_dialect() {
    for format in SPEAKING {
        let calls = format.requested_calls(&weather_call(format)).unwrap();
        let arguments = json!({ "city": "Oslo" }).as_object().cloned().unwrap();
        let expected = RequestedCall {
            id: Some("call_1".into()),
            name: "get_weather".into(),
            arguments: Ok(arguments),
        };
        assert_eq!(calls, [expected], "{}", format.as_str());
    }
}

#[test]
fn answers_go_back_in_the_shape_of_the_dialect() {
    let answered = |format: ModelFormat| {
        let call = format.requested_calls(&weather_call(format)).unwrap().remove(0);
        format.answer_messages(&[(call, answer("rain"))])
    };
    assert_eq!(
        answered(ModelFormat::Openai),
        [json!({ "role": "tool", "tool_call_id": "call_1", "content": "rain" })]
    );
    assert_eq!(
        answered(ModelFormat::OpenaiResponses),
        [json!({ "type": "function_call_output", "call_id": "call_1", "output": "rain" })]
    );
    assert_eq!(
        answered(ModelFormat::Anthropic),
        [json!({ "role": "user", "content": [{
            "type": "tool_result", "tool_use_id": "call_1",
            "content": [{ "type": "text", "text": "rain" }],
        }] })]
    );
    assert_eq!(
        answered(ModelFormat::Gemini),
        [json!({ "role": "user", "parts": [{ "functionResponse": {
            "name": "get_weather", "response": { "output": "rain" }, "id": "call_1",
        } }] })]
    );
}

#[test]
fn arguments_that_do_not_parse_are_kept_as_they_were_written() {
    let response =
        json!([{ "id": "a", "function": { "name": "f", "arguments": "{\"city\": Oslo" } }]);
    let calls = ModelFormat::Openai.requested_calls(&response).unwrap();
    let raw = calls[0].arguments.clone().unwrap_err();
    assert_eq!(raw.text, "{\"city\": Oslo");
    assert_eq!(
        Value::Object(calls[0].arguments_or_raw()),
        json!({ "_raw_args": "{\"city\": Oslo" })
    );
    let response = json!([{ "id": "a", "function": { "name": "f", "arguments": "[1]" } }]);
    let calls = ModelFormat::Openai.requested_calls(&response).unwrap();
    assert_eq!(calls[0].arguments.clone().unwrap_err().reason, "it is another JSON type");
    let response = json!([{ "id": "a", "function": { "name": "f", "arguments": "" } }]);
    let calls = ModelFormat::Openai.requested_calls(&response).unwrap();
    assert_eq!(calls[0].arguments, Ok(Map::new()));
}

#[test]
fn a_response_of_another_dialect_is_refused_with_what_is_missing() {
    for (format, expected) in [
        (ModelFormat::Openai, "choices[0].message is missing"),
        (ModelFormat::OpenaiResponses, "output is missing"),
        (ModelFormat::Anthropic, "content is missing"),
        (ModelFormat::Gemini, "candidates[0].content.parts is missing"),
    ] {
        let error = format.requested_calls(&json!({ "error": "overloaded" })).unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    let unnamed = json!({ "content": [{ "type": "tool_use", "id": "a", "input": {} }] });
    let error = ModelFormat::Anthropic.requested_calls(&unnamed).unwrap_err();
    assert_eq!(error.to_string(), "call 1 of the response has no name");
}

#[test]
fn pictures_are_sent_where_they_are_taken_and_named_elsewhere() {
    let picture = CallAnswer {
        content: vec![json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0K" })],
        structured: None,
        is_error: false,
    };
    let call = RequestedCall { id: Some("a".into()), name: "f".into(), arguments: Ok(Map::new()) };
    let sent = |format: ModelFormat| format.answer_messages(&[(call.clone(), picture.clone())]);
    assert_eq!(
        sent(ModelFormat::Anthropic)[0]["content"][0]["content"][0]["source"]["data"],
        "iVBORw0K"
    );
    let url = "data:image/png;base64,iVBORw0K";
    assert_eq!(sent(ModelFormat::OpenaiResponses)[0]["output"][0]["image_url"], url);
    let placeholder = "[image of image/png, about 6 bytes, not shown to the model]";
    assert_eq!(sent(ModelFormat::Openai)[0]["content"], placeholder);
}

#[test]
fn what_a_dialect_does_not_take_is_left_out_and_said() {
    let schema = json!({
        "oneOf": [{ "required": ["a"] }, { "required": ["a"], "properties": { "b": true } }],
        "properties": {
            "a": { "type": "string", "pattern": "^x", "default": { "pattern": 1 } },
            "c": { "const": 1 },
        },
    });
    let subset = ModelFormat::Openai.schema_subset().apply(&schema);
    assert_eq!(subset.downgrades, ["'oneOf' at the top of the schema is left out"]);
    assert_eq!(subset.schema["properties"]["a"]["pattern"], "^x");
    assert_eq!(subset.schema["properties"]["b"], json!({}));
    assert_eq!(subset.schema["required"], json!(["a"]));
    let subset = ModelFormat::Gemini.schema_subset().apply(&schema);
    assert_eq!(
        subset.schema["properties"],
        json!({ "a": { "type": "string" }, "c": { "enum": [1] }, "b": {} })
    );
    assert_eq!(
        subset.downgrades,
        [
            "'oneOf' at the top of the schema is left out",
            "'/properties/a/pattern' is left out",
            "'/properties/a/default' is left out",
        ]
    );
}

#[test]
fn older_drafts_and_references_at_the_top_become_what_providers_check_against() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/Args",
        "definitions": {
            "Args": { "type": "object", "required": ["list"], "properties": {
                "list": { "$ref": "#/definitions/List", "description": "a list" },
                "pair": { "type": "array", "items": [{ "type": "string" }], "additionalItems": false },
                "above": { "type": "number", "minimum": 1, "exclusiveMinimum": true },
                "bare": { "type": ["array", "null"] },
                "far": { "$ref": "https://example.com/schema.json" },
                "default": { "$ref": "#/definitions/None" },
            } },
            "List": { "type": "object", "properties": { "next": { "$ref": "#/definitions/List" } } },
        },
    });
    let subset = ModelFormat::Anthropic.schema_subset().apply(&schema);
    let properties = &subset.schema["properties"];
    assert_eq!(properties["list"], json!({ "$ref": "#/$defs/List", "description": "a list" }));
    let pair = json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": false });
    assert_eq!(properties["pair"], pair);
    assert_eq!(properties["above"], json!({ "type": "number", "exclusiveMinimum": 1 }));
    assert_eq!(properties["bare"], json!({ "type": ["array", "null"], "items": {} }));
    assert_eq!(properties["far"], json!({}));
    assert_eq!(subset.schema["required"], json!(["list"]));
    assert_eq!(subset.schema["$defs"]["List"]["properties"]["next"]["$ref"], "#/$defs/List");
    for name in ["far", "default"] {
        let downgrade = format!("the reference '/properties/{name}/$ref' is left out");
        assert!(subset.downgrades.contains(&downgrade), "{:?}", subset.downgrades);
    }
    // Gemini takes nothing beside a reference.
    let subset = ModelFormat::Gemini.schema_subset().apply(&schema);
    assert_eq!(subset.schema["properties"]["list"], json!({ "$ref": "#/$defs/List" }));
    // One invalid schema would have the whole request refused.
    let subset = ModelFormat::Openai
        .schema_subset()
        .apply(&json!({ "properties": { "a": { "type": "any" } } }));
    assert_eq!(subset.schema, json!({ "type": "object", "properties": {} }));
    assert_eq!(subset.downgrades, ["its schema is invalid and is left out"]);
}

fn tool(name: &str, schema: Value) -> ToolDefinition {
    let name = ToolName::plain(name);
    let mut tool = ToolDefinition::new(name, ToolSource::Internal, "program", Origin::Program);
    tool.input_schema = schema.into();
    tool
}

#[test]
fn names_of_properties_are_changed_for_the_model_and_back_for_the_tool() {
    let nested = json!({ "properties": { "größe": { "type": "integer" } } });
    let tool = tool(
        "find",
        json!({ "properties": { "filter[id]": nested, "id": {} }, "required": ["filter[id]"] }),
    );
    let exported = ModelFormat::Anthropic.export([&tool]);
    let schema = &exported.tools[0].definition["input_schema"];
    let filter = schema["required"][0].as_str().unwrap();
    assert!(filter.starts_with("filter_id__"), "{schema}");
    let size = schema["properties"][filter]["properties"].as_object().unwrap().keys().next();
    let arguments = json!({ filter: { size.unwrap(): 3 }, "id": 1 });
    let call = RequestedCall {
        id: None,
        name: "find".into(),
        arguments: Ok(arguments.as_object().cloned().unwrap()),
    };
    assert!(call.has_changed_names());
    let own = exported.tool("find").unwrap().own_arguments(call.arguments.unwrap());
    assert_eq!(json!(own), json!({ "filter[id]": { "größe": 3 }, "id": 1 }));
}

#[test]
fn a_name_that_looks_like_a_shortened_one_keeps_it_and_the_other_gets_a_longer_digest() {
    let long = "a".repeat(70);
    let shortened = ModelFormat::Openai.export([&tool(&long, json!({}))]).tools.remove(0).name;
    let tools = [tool(&long, json!({})), tool(&shortened, json!({}))];
    let exported = ModelFormat::Openai.export(&tools);
    assert_eq!(exported.tool(&shortened).unwrap().full_name, shortened);
    let other = &exported.tools[0].name;
    assert!(other.len() <= 64 && *other != shortened, "{other}");
    assert_eq!(exported.tool(other).unwrap().full_name, long);
}

#[test]
fn answers_hold_nothing_that_a_provider_refuses() {
    let call = RequestedCall { id: Some("a".into()), name: "f".into(), arguments: Ok(Map::new()) };
    let sent = |content: Value, is_error: bool| {
        let content = content.as_array().cloned().unwrap();
        let answer = CallAnswer { content, structured: None, is_error };
        ModelFormat::Anthropic.answer_messages(&[(call.clone(), answer)]).remove(0)["content"][0]
            .clone()
    };
    // An empty text, and a picture in a failure.
    let empty = sent(json!([{ "type": "text", "text": "" }]), false);
    assert_eq!(empty, json!({ "type": "tool_result", "tool_use_id": "a" }));
    let picture = json!([{ "type": "image", "mimeType": "image/png", "data": "iVBORw0K" }]);
    assert_eq!(sent(picture, true)["content"][0]["type"], "text");
}

#[test]
fn responses_as_the_sdks_dump_them_are_read() {
    let dumped = json!({ "candidates": [{ "content": { "role": "model", "parts": [
        { "text": "hm", "function_call": null },
        { "text": null, "function_call": { "id": null, "name": "f", "args": { "a": 1 } } },
    ] } }] });
    let calls = ModelFormat::Gemini.requested_calls(&dumped).unwrap();
    assert_eq!((calls.len(), calls[0].name.as_str(), &calls[0].id), (1, "f", &None));
    let custom = json!({ "role": "assistant", "tool_calls": [
        { "id": "a", "type": "custom", "custom": { "name": "sql", "input": "select 1" } },
        { "id": "b", "type": "function", "function": { "name": "f", "arguments": "{}" } },
    ] });
    let calls = ModelFormat::Openai.requested_calls(&custom).unwrap();
    assert_eq!((calls.len(), calls[0].id.as_deref()), (1, Some("b")));
}

#[test]
fn models_are_known_by_their_family() {
    for (model, format) in [
        ("claude-opus-4-1", Some(ModelFormat::Anthropic)),
        ("anthropic/claude-sonnet-4", Some(ModelFormat::Anthropic)),
        ("gpt-5", Some(ModelFormat::Openai)),
        ("o3-mini", Some(ModelFormat::Openai)),
        ("models/gemini-2.5-pro", Some(ModelFormat::Gemini)),
        ("mistral-large", None),
    ] {
        assert_eq!(ModelFormat::of_model(model), format, "{model}");
    }
}

proptest! {
    #[test]
    fn names_are_always_allowed_and_never_become_one(a in "\\PC{1,200}", b in "\\PC{1,200}") {
        for format in ModelFormat::ALL {
            let Some(rule) = format.name_rule() else { continue };
            let name = rule.apply(&a);
            prop_assert!(name.len() <= rule.longest && !name.is_empty());
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || rule.extra.contains(c)));
            prop_assert!(name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
            prop_assert_eq!(name == rule.apply(&b), a == b);
            prop_assert_eq!(rule.apply(&name), name.clone());
        }
    }
}
