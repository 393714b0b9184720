//! Tests of the built-in tools through their provider.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::*;
use crate::config::consent::Seal;
use crate::config::node::{ConfigKey, NodeValue, SourceText, TextPosition};
use crate::config::spec::KindClaim;
use crate::model::{
    CallId, ErrorKind, EventSink, HostEvent, Origin, SourceLocation, ToolName, ToolSource,
};

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Instant {
        SystemClock.now()
    }

    fn unix(&self) -> Duration {
        Duration::from_secs(1_700_000_000)
    }
}

fn spec(name: &str, keys: &[(&str, &str)]) -> ToolSpec {
    let source = SourceText::new("tools.yaml", "tools:");
    let position = TextPosition { line: 1, column: 1 };
    let node = |value| ConfigNode { value, position, source: Arc::clone(&source) };
    let entries = keys
        .iter()
        .map(|(key, value)| {
            let key = ConfigKey { text: (*key).into(), position };
            (key, node(NodeValue::Text((*value).to_owned())))
        })
        .collect();
    let entry = node(NodeValue::map(entries));
    let place: SourceLocation = entry.location();
    ToolSpec {
        definition: ToolDefinition::new(
            ToolName::plain(name),
            ToolSource::Internal,
            "builtin",
            Origin::File(place.clone()),
        ),
        kind: "builtin",
        unexpanded: entry.clone().into(),
        entry: entry.into(),
        base_dir: PathBuf::from("/"),
        location: place,
        defaults: None,
        scopes: Arc::default(),
        grant: None,
        seal: Seal::default(),
    }
}

fn built(specs: &[ToolSpec]) -> BuiltProviders {
    build_with(&specs.iter().collect::<Vec<_>>(), &(Arc::new(FixedClock) as _), false)
}

fn all() -> BuiltProviders {
    let specs = super::super::FUNCTIONS.iter().map(|row| {
        let name = format!("{}.{}", row.module, row.name);
        spec(&name, &[("module", row.module), ("function", row.name)])
    });
    let specs: Vec<ToolSpec> = specs.collect();
    built(&specs)
}

fn context(events: EventSink) -> ToolContext {
    ToolContext { events, ..ToolContext::empty(CallId("call-1".into())) }
}

async fn call(name: &str, arguments: Value) -> Result<ToolResult, Error> {
    call_in(&context(EventSink::discard()), name, arguments).await
}

async fn call_in(context: &ToolContext, name: &str, arguments: Value) -> Result<ToolResult, Error> {
    let Value::Object(arguments) = arguments else { panic!("not an object") };
    let call = ToolCall { name: ToolName::plain(name), arguments };
    all().providers[0].call(context, &call).await
}

async fn output(name: &str, arguments: Value) -> Value {
    call(name, arguments).await.unwrap().output
}

#[tokio::test]
async fn every_function_runs_through_the_provider() {
    assert_eq!(
        output("builtin.calculator.calculate", json!({ "expression": "2 * 7.0" })).await,
        "14.0"
    );
    assert_eq!(output("builtin.time.now", json!({})).await, "2023-11-14T22:13:20Z");
    assert_eq!(
        output("builtin.text.count", json!({ "text": "a b\nc" })).await,
        json!({ "bytes": 5, "characters": 5, "words": 3, "lines": 2 })
    );
    let upper = json!({ "text": "a", "operation": "upper" });
    assert_eq!(output("builtin.text.transform", upper).await, "A");
    assert_eq!(
        output("builtin.json.query", json!({ "filter": ".a", "json": "{\"a\":1.50}" }))
            .await
            .to_string(),
        "1.50"
    );
    assert_eq!(
        output("builtin.json.query", json!({ "filter": ".[]", "input": [1, 2] })).await,
        json!([1, 2])
    );
    let diff = json!({ "before": { "a": 1 }, "after": { "a": 2 } });
    assert_eq!(output("builtin.json_diff.diff", diff).await["equal"], false);
    let digits = json!({ "pattern": "[0-9]", "text": "a1" });
    assert_eq!(output("builtin.regex.match", digits).await["match"]["start"], 1);
    assert_eq!(output("builtin.echo.echo", json!({ "message": "hi" })).await, "hi");
    assert_eq!(output("builtin.echo.echo", json!({ "x": 1 })).await, json!({ "x": 1 }));
    let uuids = output("builtin.uuid.generate", json!({ "version": 7, "count": 3 })).await;
    let lines: Vec<&str> = uuids.as_str().unwrap().lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.len() == 36 && line.as_bytes()[14] == b'7'));
}

#[tokio::test]
async fn a_no_is_a_result_and_an_error_is_a_error() {
    let no = call("builtin.calculator.calculate", json!({ "expression": "1/0" })).await.unwrap();
    assert!(!no.success);
    assert_eq!(no.error.unwrap().kind(), ErrorKind::Tool);
    let no = call("builtin.fail.fail", json!({ "message": "nope" })).await.unwrap();
    assert_eq!(no.output, "nope");
    let error = call("builtin.fail.fail", json!({ "mode": "error", "kind": "timeout" })).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Timeout);
    for (name, arguments) in [
        ("builtin.calculator.calculate", json!({})),
        ("builtin.fail.fail", json!({ "mode": "sometimes" })),
        ("builtin.uuid.generate", json!({ "count": 101 })),
        ("builtin.wait.wait", json!({ "seconds": -1 })),
        ("builtin.text.transform", json!({ "text": "x" })),
    ] {
        assert_eq!(call(name, arguments).await.unwrap_err().kind(), ErrorKind::Usage, "{name}");
    }
}

#[tokio::test]
async fn waiting_reports_progress_and_stops_when_told() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&events);
    let sink = EventSink::new(move |event| {
        if let HostEvent::Progress { progress, .. } = event {
            log.lock().unwrap().push(progress);
        }
    });
    let context = context(sink);
    call_in(&context, "builtin.wait.wait", json!({ "seconds": 0.001 })).await.unwrap();
    assert_eq!(*events.lock().unwrap(), [0.001]);
    context.cancel.cancel();
    let stopped = call_in(&context, "builtin.wait.wait", json!({ "seconds": 3600 })).await;
    assert!(matches!(stopped.unwrap_err().kind(), ErrorKind::Interrupted(_)));
}

#[test]
fn definitions_are_complete_and_honest() {
    let built = all();
    assert!(built.diagnostics.is_empty());
    for definition in built.providers[0].declared() {
        let name = definition.name.full();
        assert_eq!(definition.input_schema["additionalProperties"], false, "{name}");
        assert!(definition.title.is_some() && definition.description.is_some(), "{name}");
        if name == "builtin.http.fetch" {
            assert_eq!(definition.annotations.read_only, None, "{name}");
            assert!(definition.requires_approval && !definition.is_repeatable, "{name}");
            assert_eq!(definition.touches, ["sends a request to the address given in the call"]);
        } else {
            assert_eq!(definition.annotations.read_only, Some(true), "{name}");
            assert!(definition.is_repeatable && !definition.requires_approval, "{name}");
            assert_eq!(definition.touches, ["nothing outside the process"], "{name}");
        }
        let schemas = [Some(&definition.input_schema), definition.output_schema.as_ref()];
        for schema in schemas.into_iter().flatten() {
            jsonschema::meta::validate(schema).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}

#[test]
fn an_entry_keeps_what_it_says_itself() {
    let mut own =
        spec("calc", &[("module", "src.tools.core.calculator_tool"), ("function", "calculate")]);
    own.definition.description = Some("mine".to_owned());
    own.definition.input_schema =
        ToolSchema::from(json!({ "type": "object", "required": ["expression"] }));
    own.definition.annotations.read_only = Some(false);
    let provider = &built(&[own]).providers[0];
    let definition = &provider.declared()[0];
    assert_eq!(definition.description.as_deref(), Some("mine"));
    assert_eq!(definition.input_schema["required"], json!(["expression"]));
    assert_eq!(definition.annotations.read_only, Some(false));
}

#[test]
fn a_wrong_entry_costs_only_itself() {
    let specs = vec![
        spec("a", &[("module", "builtin.calculater")]),
        spec("b", &[("module", "builtin.echo")]),
        spec("c", &[]),
        spec("d", &[("module", "builtin.text"), ("function", "cuont")]),
    ];
    let built = built(&specs);
    assert_eq!(built.providers[0].declared().len(), 1);
    let diagnostics: Vec<String> = built
        .diagnostics
        .iter()
        .map(|p| format!("{}: {}", p.entry.as_deref().unwrap_or_default(), p.message))
        .collect();
    assert_eq!(
        diagnostics,
        [
            "a: there is no module 'builtin.calculater'",
            "c: 'module' is missing",
            "d: 'builtin.text' has no function 'cuont'",
        ]
    );
    assert!(built.diagnostics[2].hint.as_deref().unwrap().starts_with("did you mean 'count'?"));
}

#[test]
fn the_kind_claims_its_own_entries_only() {
    let claims = |entry: &[(&str, &str)]| {
        (super::super::kind().words.claims)(&spec("x", entry).entry, Path::new("/"))
    };
    assert_eq!(claims(&[("module", "builtin.nonsense")]), KindClaim::Certain);
    let alias = [("module", "src.tools.core.datetime_tool"), ("function", "get_datetime")];
    assert_eq!(claims(&alias), KindClaim::Fallback);
    assert_eq!(claims(&[("module", "mytools.text"), ("function", "f")]), KindClaim::No);
    assert_eq!(claims(&[("command", "ls")]), KindClaim::No);
}
