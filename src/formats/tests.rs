//! Each dialect by the examples of its reference, and what is done with what it does not take.

use proptest::prelude::*;
use serde_json::json;

use super::*;

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
        let wanted = RequestedCall {
            id: Some("call_1".into()),
            name: "get_weather".into(),
            arguments: Ok(arguments),
        };
        assert_eq!(calls, [wanted], "{}", format.as_str());
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
    let response = json!([{ "id": "a", "function": { "name": "f", "arguments": "[1]" } }]);
    let calls = ModelFormat::Openai.requested_calls(&response).unwrap();
    assert_eq!(calls[0].arguments.clone().unwrap_err().reason, "it is JSON of another type");
    let response = json!([{ "id": "a", "function": { "name": "f", "arguments": "" } }]);
    let calls = ModelFormat::Openai.requested_calls(&response).unwrap();
    assert_eq!(calls[0].arguments, Ok(Map::new()));
}

#[test]
fn a_response_of_another_dialect_is_refused_with_what_is_missing() {
    for (format, words) in [
        (ModelFormat::Openai, "choices[0].message is missing"),
        (ModelFormat::OpenaiResponses, "output is missing"),
        (ModelFormat::Anthropic, "content is missing"),
        (ModelFormat::Gemini, "candidates[0].content.parts is missing"),
    ] {
        let error = format.requested_calls(&json!({ "error": "overloaded" })).unwrap_err();
        assert!(error.to_string().ends_with(words), "{error}");
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
    let words = "[image of image/png, about 6 bytes, not shown to the model]";
    assert_eq!(sent(ModelFormat::Openai)[0]["content"], words);
}

#[test]
fn what_a_dialect_does_not_take_is_left_out_and_said() {
    let schema = json!({
        "oneOf": [{ "required": ["a"] }],
        "properties": { "a": { "type": "string", "pattern": "^x", "default": { "pattern": 1 } } },
    });
    let mut said = Vec::new();
    let kept = ModelFormat::Openai.schema_subset().apply(&schema, &mut said);
    assert_eq!(said, ["'oneOf' at the top of the schema is left out"]);
    assert_eq!(kept["properties"]["a"]["pattern"], "^x");
    let mut said = Vec::new();
    let kept = ModelFormat::Gemini.schema_subset().apply(&schema, &mut said);
    assert_eq!(kept["properties"], json!({ "a": { "type": "string" } }));
    assert_eq!(
        said,
        [
            "'oneOf' at the top of the schema is left out",
            "'/properties/a/pattern' is left out",
            "'/properties/a/default' is left out",
        ]
    );
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
            let rule = format.name_rule();
            let name = rule.apply(&a);
            prop_assert!(name.len() <= rule.longest && !name.is_empty());
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || rule.extra.contains(c)));
            prop_assert!(name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
            prop_assert_eq!(name == rule.apply(&b), a == b);
            prop_assert_eq!(rule.apply(&name), name.clone());
        }
    }
}
