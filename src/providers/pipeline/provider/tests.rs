//! Tests of pipelines with a fake caller.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::model::{
    Error, ErrorKind, NestedCall, ToolCall, ToolCaller, ToolContext, ToolName, ToolResult,
};
use crate::providers::harness::KindHarness;
use crate::providers::pipeline::kind;

/// Echoes the arguments, but for a few tools; writes down every call.
#[derive(Default)]
struct Script(Mutex<Vec<String>>);

#[async_trait]
impl ToolCaller for Script {
    async fn run(&self, _: &ToolContext, call: NestedCall) -> Result<ToolResult, Error> {
        let arguments = Value::Object(call.arguments);
        self.0.lock().unwrap().push(format!("{} {arguments}", call.name));
        match call.name.as_str() {
            "no" => Ok(ToolResult::failure("cannot")),
            "gone" => Err(Error::unreachable("connection refused").with_hint("start it")),
            "odd" if arguments["n"].as_i64().unwrap() % 2 == 0 => Err(Error::timeout("too late")),
            "late" => {
                // The first item takes the longest.
                let n = arguments["n"].as_u64().unwrap();
                tokio::time::sleep(Duration::from_secs(10 - n)).await;
                Ok(ToolResult::json(json!(n)))
            }
            "doubt" => {
                Ok(ToolResult { warnings: vec!["hm".to_owned()], ..ToolResult::text("well") })
            }
            _ => Ok(ToolResult::json(arguments)),
        }
    }
}

async fn call(
    steps: &str,
    arguments: Value,
) -> (Result<ToolResult, Error>, Vec<String>, KindHarness) {
    let yaml = format!(
        "tools:\n- name: p\n  parameters_schema:\n    type: object\n    properties:\n      topic: {{}}\n      \
         list: {{ default: [1, 2, 3] }}\n{steps}"
    );
    let harness = KindHarness::new(&kind(), &yaml);
    assert!(harness.diagnostics.iter().all(|p| !p.is_error()), "{:?}", harness.messages());
    let script = Arc::new(Script::default());
    let context = ToolContext { caller: Some(Arc::clone(&script) as _), ..harness.context() };
    let result = harness.call_in(&context, "p", arguments).await;
    let calls = script.0.lock().unwrap().clone();
    (result, calls, harness)
}

#[tokio::test]
async fn outputs_flow_from_step_to_step_with_their_types() {
    let (result, calls, harness) = call(
        "  steps:\n  - { id: a, tool: one, args: { x: '{topic}', s: '{context.session_id}' } }\n  \
         - { id: b, tool: two, args: { all: '{a.output}', text: 'n={a.output.x.n}' } }\n  \
         - { tool: three, args: '{b.output}' }\n",
        json!({ "topic": { "n": 3 } }),
    )
    .await;
    assert_eq!(
        calls,
        [
            r#"one {"x":{"n":3},"s":"session-1"}"#,
            r#"two {"all":{"x":{"n":3},"s":"session-1"},"text":"n=3"}"#,
            r#"three {"all":{"x":{"n":3},"s":"session-1"},"text":"n=3"}"#,
        ]
    );
    let result = result.unwrap();
    assert_eq!(result.output["text"], "n=3");
    let steps = &result.meta.unwrap()["steps"];
    assert_eq!(steps[2]["id"], "step3");
    assert!(steps.as_array().unwrap().iter().all(|step| step["success"] == true), "{steps}");
    let events = harness.events();
    assert_eq!(events.len(), 3);
    assert!(events[1].contains("progress: 1.0, total: Some(3.0), message: Some(\"b (two)\")"));
}

#[tokio::test]
async fn a_result_is_made_of_what_the_steps_gave() {
    let (result, _, _) = call(
        "  steps: [ { id: a, tool: one, args: { x: 1 } } ]\n  \
         result: { x: '{a.output.x}', of: '{topic}', none: '{args.none}' }\n"
            .replace("{args.none}", "{context.metadata.none}")
            .as_str(),
        json!({ "topic": "t" }),
    )
    .await;
    assert_eq!(result.unwrap().output, json!({ "x": 1, "of": "t" }));
}

#[tokio::test]
async fn the_failure_of_a_step_is_that_of_the_pipeline() {
    let (result, calls, _) = call(
        "  steps: [ { id: a, tool: one }, { id: save, tool: gone }, { id: c, tool: one } ]\n",
        json!({}),
    )
    .await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.message(), "step 'save' (gone): connection refused");
    assert_eq!(error.hint(), Some("start it"));
    assert_eq!(calls.len(), 2);
    let (result, _, _) = call("  steps: [ { tool: no } ]\n", json!({})).await;
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Tool, "step 'step1' (no): cannot"));
}

#[tokio::test]
async fn a_failure_can_be_lived_with() {
    let (result, _, harness) = call(
        "  steps:\n  - { id: a, tool: gone, on_error: continue }\n  \
         - { id: b, tool: no, on_error: { default: { x: '{topic}' } } }\n  \
         - { id: c, tool: one, when: '{a.success}' }\n  \
         - { id: d, tool: doubt, when: 'not {c.output}' }\n  \
         result: ['{a.error}', '{a.output}', '{b.output.x}', '{c.skipped}', '{d.output}']\n",
        json!({ "topic": 1 }),
    )
    .await;
    let result = result.unwrap();
    let why = "step 'a' (gone): connection refused";
    assert_eq!(result.output, json!([why, null, 1, true, "well"]));
    assert_eq!(result.warnings, ["step 'd' (doubt): hm"]);
    let steps = result.meta.unwrap();
    assert_eq!(steps["steps"][0]["error"], why);
    assert_eq!(steps["steps"][2], json!({ "id": "c", "tool": "one", "skipped": true }));
    assert!(harness.events().iter().any(|e| e.contains("connection refused; continuing")));
}

#[tokio::test(start_paused = true)]
async fn a_step_runs_for_each_item_and_results_keep_their_order() {
    let (result, calls, _) = call(
        "  steps: [ { id: a, tool: late, each: '{list}', parallel: 3, args: { n: '{item}', at: '{index}' } } ]\n",
        json!({}),
    )
    .await;
    assert_eq!(result.unwrap().output, json!([1, 2, 3]));
    assert_eq!(calls[2], r#"late {"n":3,"at":2}"#);
    let (result, _, _) = call(
        "  steps: [ { id: a, tool: odd, foreach: '{list}', on_error: continue, args: { n: '{item}' } } ]\n  \
         result: { got: '{a.output}', why: '{a.error}' }\n",
        json!({}),
    )
    .await;
    assert_eq!(
        result.unwrap().output,
        json!({ "got": [{"n": 1}, null, {"n": 3}], "why": "step 'a' (odd), item 2: too late" })
    );
    let (result, _, _) = call(
        "  steps: [ { id: a, tool: odd, each: '{list}', args: { n: '{item}' } } ]\n",
        json!({}),
    )
    .await;
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Timeout, "step 'a' (odd), item 2: too late")
    );
}

#[tokio::test]
async fn what_runs_for_each_item_is_bounded() {
    let steps = "  steps: [ { id: a, tool: one, each: '{list}' } ]\n";
    let (result, calls, _) = call(steps, json!({ "list": vec![0; 1_001] })).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Protocol);
    assert!(calls.is_empty());
    let (result, calls, _) = call(steps, json!({ "list": vec![0; 1_000] })).await;
    assert_eq!((result.is_ok(), calls.len()), (true, 1_000));
    let (result, _, _) = call(steps, json!({ "list": "text" })).await;
    assert!(result.unwrap_err().message().ends_with("what 'each' names is not a list"));
    // Nothing to do is no failure.
    let (result, _, _) = call(steps, json!({ "list": null })).await;
    assert_eq!(result.unwrap().output, json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_group_runs_at_the_same_time_and_gives_all_outputs() {
    let start = tokio::time::Instant::now();
    let (result, _, _) = call(
        "  steps:\n  - parallel:\n    - { id: a, tool: late, args: { n: 1 } }\n    \
         - { id: b, tool: late, args: { n: 2 } }\n",
        json!({}),
    )
    .await;
    assert_eq!(result.unwrap().output, json!({ "a": 1, "b": 2 }));
    assert_eq!(start.elapsed().as_secs(), 9);
}

#[tokio::test]
async fn what_is_missing_is_said_by_the_step_that_misses_it() {
    let (result, calls, _) = call(
        "  steps: [ { id: a, tool: one, args: { x: 1 } }, { id: b, tool: two, args: { y: '{a.output.y}' } } ]\n",
        json!({}),
    )
    .await;
    assert_eq!(
        result.unwrap_err().message(),
        "step 'b' (two): 'a.output.y' does not exist: it has x"
    );
    assert_eq!(calls.len(), 1);
}

#[test]
fn everything_that_can_be_told_is_told_at_once() {
    let harness = KindHarness::new(
        &kind(),
        "tools:\n- name: p\n  parameters_schema: { type: object, properties: { topic: {}, name: {} } }\n  steps:\n  \
         - { id: a, tool: one, args: { x: '{b.output}', y: '{topc}', z: '{nope.output}' } }\n  \
         - { id: a, tol: one }\n  \
         - { id: item, tool: '{topic}' }\n  \
         - { id: b, tool: two, args: { x: '{', i: '{item}' }, on_error: maybe, parallel: 3 }\n  \
         - { id: c, tool: two, args: [1], when: 'maybe', each: 3, timeout: 0, retries: -1 }\n  \
         - { id: d, tool: two, args: { x: '{a.out}', y: '{d.output}', z: '{context.user}' } }\n  \
         - parallel: [ { id: e, tool: one }, { id: name, tool: one, args: { x: '{e.output}' } } ]\n  \
         result: '{gone.output}'\n",
    );
    assert!(harness.providers.is_empty());
    insta::assert_debug_snapshot!(harness.messages(), @r#"
    [
        "unknown key 'tol'",
        "a limit must be greater than 0",
        "expected a whole number, 0 or more, found a number",
        "the step 'a' names no tool",
        "'item' is reserved in templates",
        "the tool itself cannot come from a value",
        "the '{' at column 1 of '{' is not part of a placeholder",
        "'on_error' must be fail, continue, or { default: value }",
        "'parallel' as a number is only for a step with 'each'",
        "'args' must be a mapping",
        "this is not a condition",
        "expected a list, or one placeholder for a list, found a number",
        "two steps have the id 'a'",
        "'name' is the name of an argument and of a step",
        "the step 'b' comes later",
        "'{topc}' is not a property of the schema",
        "there is no step 'nope'",
        "'{item}' is only available in a step with 'each'",
        "a step has no '{a.out}'",
        "the step 'd' cannot use its own output",
        "the context has no '{context.user}'",
        "the step 'e' runs at the same time, so its output is not known",
        "there is no step 'gone'",
    ]
    "#);
}

#[test]
fn odd_entries_are_refused() {
    for (steps, expected) in [
        ("kind: pipeline", "'steps' is missing"),
        ("steps: []", "at least one step"),
        ("steps: one", "expected a list"),
        ("steps: [ one ]", "expected a mapping"),
        (
            "steps: [ { parallel: [ { tool: a } ], when: '{topic}' } ]",
            "no key other than 'parallel'",
        ),
    ] {
        let harness = KindHarness::new(&kind(), &format!("tools:\n- name: p\n  {steps}\n"));
        assert!(
            harness.messages().iter().any(|m| m.contains(expected)),
            "{:?}",
            harness.messages()
        );
        assert!(harness.providers.is_empty());
    }
}

#[test]
fn pipelines_that_call_each_other_in_a_circle_are_refused() {
    let harness = KindHarness::new(
        &kind(),
        "tools:\n- { name: a, steps: [ { tool: b } ] }\n- { name: b, steps: [ { tool: c } ] }\n\
         - { name: c, steps: [ { tool: a } ] }\n- { name: d, steps: [ { tool: a } ] }\n\
         - { name: e, steps: [ { tool: e } ] }\n",
    );
    assert_eq!(
        harness.messages(),
        [
            "this pipeline would call itself: a → b → c → a",
            "this pipeline would call itself: b → c → a → b",
            "this pipeline would call itself: c → a → b → c",
            "this pipeline would call itself: e → e",
        ]
    );
    assert_eq!(harness.definitions().len(), 1);
}

#[tokio::test]
async fn a_definition_says_what_it_calls_and_a_preview_with_what() {
    let harness = KindHarness::new(
        &kind(),
        "tools:\n- name: p\n  kind: composite\n  parameters_schema: { type: object, properties: { topic: {} } }\n  \
         steps: [ { id: a, tool: find, args: { q: '{topic}' } }, { id: b, tool: save, when: '{a.output}', args: { v: '{a.output}' } }, { tool: find } ]\n",
    );
    let definition = harness.definition("p");
    assert_eq!(definition.calls, ["find", "save"]);
    assert_eq!(definition.touches, ["calls find, save"]);
    assert_eq!(definition.annotations, crate::model::Annotations::default());
    let arguments = json!({ "topic": "t" }).as_object().cloned().unwrap();
    let call = ToolCall { name: ToolName::plain("p"), arguments };
    let preview = harness.providers[0].preview(&call).await.unwrap();
    assert_eq!(preview.summary, "calls find, then save, then find");
    assert_eq!(
        preview.request["steps"],
        json!([
            { "id": "a", "tool": "find", "args": { "q": "t" } },
            { "id": "b", "tool": "save", "when": "{a.output}", "args": { "v": "{a.output}" } },
            { "id": "step3", "tool": "find", "args": {} },
        ])
    );
}
