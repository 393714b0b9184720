//! Tests with real interpreters, in temporary directories.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::providers::harness::KindHarness;
use crate::providers::python;

/// A module of every oddity a function can have.
const ODD: &str = r#"
import asyncio, ctypes, os, signal, subprocess, sys, threading, time
from dataclasses import dataclass

calls = 0

def count():
    global calls
    calls += 1
    return calls

def pair(input, context):
    return {"given": input, "session": context.session_id, "cwd": context.cwd,
            "environment": context.environment, "metadata": context.metadata, "id": context.call_id}

async def later(arguments, ctx):
    ctx.progress(1, 2, "half")
    ctx.log("careful", level="warning")
    await asyncio.sleep(0)
    return {"success": True, "output": arguments["q"], "metadata": {"rows": 1}}

def keywords(a, b=2, *, context):
    context.log("a line")
    return [a, b, context.call_id]

def noise():
    print("printed")
    print("no end", end="")
    os.write(1, b"{\"id\":1,\"result\":\"forged\"}\n")
    subprocess.run(["echo", "from a child"])
    sys.stdout.buffer.write(b"bytes\n")
    return [sys.stdin.read(), sys.argv]

def refuse():
    return {"success": False, "error": "no such table"}

def fail(x):
    return inner(x)

def inner(x):
    try:
        return 1 // x
    except ZeroDivisionError as error:
        raise ValueError("bad\nvalue") from error

def deep(n=0):
    return deep(n + 1)

def leave(code):
    sys.exit(code)

def interrupt():
    raise KeyboardInterrupt()

def die():
    print("last words", file=sys.stderr)
    os._exit(7)

def segfault():
    ctypes.string_at(0)

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

def huge(size):
    return "x" * size

gate = threading.Event()

def wait_at_gate(context):
    context.log("waiting")
    return gate.wait(20)

async def wait_async(context):
    context.log("waiting")
    try:
        await asyncio.sleep(60)
    finally:
        global calls
        calls = 100

def open_gate():
    gate.set()
    return True

def spin(context):
    context.log("waiting")
    while True:
        pass

def stubborn(context):
    told = False
    while True:
        try:
            if not told:
                told = True
                context.log("waiting")
            time.sleep(60)
        except BaseException:
            pass

class Odd:
    def __str__(self):
        return "odd one"

def values():
    import datetime, decimal, enum, pathlib, uuid
    class Color(enum.Enum):
        RED = "red"
    @dataclass
    class Point:
        x: int
        where: pathlib.Path
    return {"point": Point(1, pathlib.Path("/tmp")), "set": {3, 1, 2}, "bytes": b"abc",
            "raw": b"\xff", "time": datetime.datetime(2026, 1, 2, 3, 4, 5),
            "decimal": decimal.Decimal("1.10"), "enum": Color.RED, "odd": Odd(),
            1: (i for i in range(3)), "big": 10 ** 30, "span": datetime.timedelta(seconds=90)}

def not_a_number():
    return [1.5, float("nan"), float("inf")]

def circle():
    items = [1]
    items.append(items)
    return items

def nested():
    value = []
    for _ in range(500):
        value = [value]
    return value

def broken_text():
    return {"a\ud800": "\udfff"}
"#;

fn entry(function: &str, more: &str) -> String {
    format!(
        "  - {{ name: {function}, module: odd, function: {function}, parameters: {{ type: object }}{more} }}\n"
    )
}

/// The functions of [`ODD`], as tools of their own names.
fn harness(functions: &[&str]) -> KindHarness {
    let entries: String = functions.iter().map(|function| entry(function, "")).collect();
    with(&format!("tools:\n{entries}"), &[("odd.py", ODD)])
}

fn with(yaml: &str, files: &[(&str, &str)]) -> KindHarness {
    KindHarness::prepared(&python::kind(), yaml, |dir, _| {
        for (name, text) in files {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    })
}

/// Waits until an event tells `text`.
async fn wait_for_event(harness: &KindHarness, text: &str) {
    while !harness.events().iter().any(|event| event.contains(text)) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn cancellable(harness: &KindHarness) -> (ToolContext, CancellationToken) {
    let cancel = CancellationToken::new();
    (ToolContext { cancel: cancel.clone(), ..harness.context() }, cancel)
}

#[tokio::test]
async fn both_calling_conventions_get_what_they_ask_for() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(&["pair", "later", "keywords"]);
    let mut context = harness.context();
    context.environment.insert("REGION".into(), "eu".into());
    context.metadata.insert("team".into(), json!("blue"));
    let pair = harness.call_in(&context, "pair", json!({ "q": 1 })).await.unwrap();
    assert_eq!(
        pair.output,
        json!({
            "given": { "q": 1 }, "session": "session-1", "id": "call-1",
            "cwd": harness.dir.path().to_str(), "environment": { "REGION": "eu" },
            "metadata": { "team": "blue" },
        })
    );
    let later = harness.call("later", json!({ "q": [1] })).await.unwrap();
    assert_eq!((later.output, later.meta), (json!([1]), Some(json!({ "rows": 1 }))));
    let keywords = harness.call("keywords", json!({ "a": "x" })).await.unwrap();
    assert_eq!(keywords.output, json!(["x", 2, "call-1"]));
    insta::assert_debug_snapshot!(harness.events(), @r#"
    [
        "Progress { call_id: CallId(\"call-1\"), progress: 1.0, total: Some(2.0), message: Some(\"half\") }",
        "Log { origin: \"later\", call_id: Some(CallId(\"call-1\")), level: LogLevel(\"warning\"), text: \"careful\" }",
        "Log { origin: \"keywords\", call_id: Some(CallId(\"call-1\")), level: LogLevel(\"info\"), text: \"a line\" }",
    ]
    "#);
}

#[tokio::test]
async fn a_worker_stays_and_keeps_its_state() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(&["count"]);
    for expected in 1..=3 {
        assert_eq!(harness.call("count", json!({})).await.unwrap().output, json!(expected));
    }
}

#[tokio::test]
async fn nothing_that_prints_reaches_the_protocol() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(&["noise"]);
    let result = harness.call("noise", json!({})).await.unwrap();
    assert_eq!(result.output, json!(["", [""]]));
    for line in ["printed", "no end", "forged", "from a child", "bytes"] {
        wait_for_event(&harness, line).await;
    }
}

#[tokio::test]
async fn a_function_may_say_no() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(&["refuse", "fail", "deep", "leave", "interrupt", "count"]);
    let refused = harness.call("refuse", json!({})).await.unwrap();
    assert_eq!((refused.success, refused.output), (false, json!("no such table")));
    let failed = harness.call("fail", json!({ "x": 0 })).await.unwrap();
    let error = failed.error.unwrap();
    assert_eq!((failed.success, error.kind()), (false, ErrorKind::Tool));
    assert_eq!(error.message(), "ValueError: bad\nvalue");
    let dir = harness.dir.path().to_str().unwrap().to_owned();
    // Marks under the lines differ from version to version.
    let is_text = |line: &&String| line.contains(|c: char| !" ~^".contains(c));
    let lines = error.details().iter().filter(is_text);
    let lines: Vec<String> = lines.map(|line| line.replace(&dir, "DIR")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    Traceback (most recent call last):
      File "DIR/odd.py", line 42, in inner
        return 1 // x
    ZeroDivisionError: integer division or modulo by zero
    The above exception was the direct cause of the following exception:
    Traceback (most recent call last):
      File "DIR/odd.py", line 38, in fail
        return inner(x)
      File "DIR/odd.py", line 44, in inner
        raise ValueError("bad\nvalue") from error
    ValueError: bad
    value
    "#);
    // Arguments that do not fit are the function's own complaint, and no frame of ours is shown.
    let odd = harness.call("fail", json!({ "y": 0 })).await.unwrap().error.unwrap();
    assert!(odd.message().starts_with("TypeError: fail() got an unexpected"), "{odd}");
    assert_eq!(odd.details(), [""; 0]);
    let deep = harness.call("deep", json!({})).await.unwrap().error.unwrap();
    assert!(deep.message().starts_with("RecursionError: "), "{deep}");
    assert!((3..=40).contains(&deep.details().len()), "{:?}", deep.details());
    for (name, arguments, message) in [
        ("leave", json!({ "code": 3 }), "SystemExit: 3"),
        ("interrupt", json!({}), "KeyboardInterrupt"),
    ] {
        let error = harness.call(name, arguments).await.unwrap().error.unwrap();
        assert_eq!(error.message(), message);
    }
    // All that was one worker.
    assert_eq!(harness.call("count", json!({})).await.unwrap().output, json!(1));
}

#[tokio::test]
async fn a_worker_that_dies_is_replaced_and_says_why() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(&["die", "segfault", "killed", "count"]);
    let error = harness.call("die", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.message().ends_with("exited with 7"), "{error}");
    assert_eq!(error.details(), ["last words"]);
    assert_eq!(harness.call("count", json!({})).await.unwrap().output, json!(1));
    let error = harness.call("segfault", json!({})).await.unwrap_err();
    assert!(error.message().ends_with("was killed by SIGSEGV"), "{error}");
    let details = error.details().join("\n");
    assert!(details.contains("in segfault") && !details.contains("<toolhost"), "{details}");
    let error = harness.call("killed", json!({})).await.unwrap_err();
    assert!(error.message().ends_with("was killed by SIGKILL"), "{error}");
    // Three deaths within a minute are enough.
    let error = harness.call("count", json!({})).await.unwrap_err();
    assert!(error.message().contains("died 3 times within a minute"), "{error}");
    assert!(error.details()[0].contains("SIGKILL"), "{:?}", error.details());
}

#[tokio::test]
async fn a_death_takes_the_calls_in_flight_with_it() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(&["wait_at_gate", "die"]);
    let waiting = harness.call("wait_at_gate", json!({}));
    let dying = async {
        wait_for_event(&harness, "waiting").await;
        harness.call("die", json!({})).await
    };
    let (waiting, dying) = tokio::join!(waiting, dying);
    assert_eq!(waiting.unwrap_err().message(), dying.unwrap_err().message());
}

#[tokio::test]
async fn no_call_waits_for_another() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(&["wait_at_gate", "wait_async", "open_gate", "count"]);
    let slow = harness.call("wait_at_gate", json!({}));
    let (context, cancel) = cancellable(&harness);
    let asleep = harness.call_in(&context, "wait_async", json!({}));
    let others = async {
        while harness.events().iter().filter(|event| event.contains("waiting")).count() < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(harness.call("count", json!({})).await.unwrap().output, json!(1));
        let opened = harness.call("open_gate", json!({})).await;
        cancel.cancel();
        opened
    };
    let (slow, asleep, opened) = tokio::join!(slow, asleep, others);
    assert_eq!((slow.unwrap().output, opened.unwrap().output), (json!(true), json!(true)));
    assert!(matches!(asleep.unwrap_err().kind(), ErrorKind::Interrupted(_)));
    // The coroutine was cancelled as coroutines are: its `finally` ran.
    assert_eq!(harness.call("count", json!({})).await.unwrap().output, json!(101));
}

#[tokio::test]
async fn a_function_in_python_code_stops_and_the_worker_stays() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(&["spin", "count"]);
    assert_eq!(harness.call("count", json!({})).await.unwrap().output, json!(1));
    let (context, cancel) = cancellable(&harness);
    let spin = harness.call_in(&context, "spin", json!({}));
    let stop = async {
        wait_for_event(&harness, "waiting").await;
        cancel.cancel();
    };
    let (spin, ()) = tokio::join!(spin, stop);
    assert!(matches!(spin.unwrap_err().kind(), ErrorKind::Interrupted(_)));
    assert_eq!(harness.call("count", json!({})).await.unwrap().output, json!(2));
}

#[tokio::test]
async fn a_function_that_cannot_be_stopped_takes_the_worker_with_it() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(&["stubborn", "count", "wait_at_gate"]);
    assert_eq!(harness.call("count", json!({})).await.unwrap().output, json!(1));
    let (context, cancel) = cancellable(&harness);
    let stubborn = harness.call_in(&context, "stubborn", json!({}));
    let other = harness.call("wait_at_gate", json!({}));
    let stop = async {
        while harness.events().iter().filter(|event| event.contains("waiting")).count() < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        cancel.cancel();
    };
    let (stubborn, other, ()) = tokio::join!(stubborn, other, stop);
    assert!(matches!(stubborn.unwrap_err().kind(), ErrorKind::Interrupted(_)));
    let other = other.unwrap_err();
    assert!(other.message().contains("'stubborn' did not stop when it was told to"), "{other}");
    // The next call has a worker again, as often as this happens.
    assert_eq!(harness.call("count", json!({})).await.unwrap().output, json!(1));
}

#[tokio::test]
async fn values_have_a_sensible_form() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let harness = harness(&["values", "not_a_number", "circle", "nested", "broken_text", "huge"]);
    let result = harness.call("values", json!({})).await.unwrap();
    insta::assert_snapshot!(result.output, @r#"{"point":{"x":1,"where":"/tmp"},"set":[1,2,3],"bytes":"abc","raw":"/w==","time":"2026-01-02T03:04:05","decimal":"1.10","enum":"red","odd":"odd one","1":[0,1,2],"big":1000000000000000000000000000000,"span":90.0}"#);
    insta::assert_debug_snapshot!(result.warnings, @r#"
    [
        "bytes that are not text were written in base64",
        "a value of the type Odd was written as text",
    ]
    "#);
    let result = harness.call("not_a_number", json!({})).await.unwrap();
    assert_eq!((result.output, result.warnings.len()), (json!([1.5, null, null]), 2));
    let result = harness.call("circle", json!({})).await.unwrap();
    assert_eq!((result.output, result.warnings.len()), (json!([1, null]), 1));
    let result = harness.call("nested", json!({})).await.unwrap();
    assert!(result.warnings[0].contains("nested deeper"), "{:?}", result.warnings);
    let result = harness.call("broken_text", json!({})).await.unwrap();
    assert_eq!(result.output, json!({ "a?": "?" }));
    let result = harness.call("huge", json!({ "size": 12 << 20 })).await.unwrap();
    assert_eq!(result.output.as_str().map(str::len), Some(12 << 20));
    let error = harness.call("huge", json!({ "size": 17 << 20 })).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.message().contains("the limit is 16 MiB"), "{error}");
    let error = harness.call("huge", json!({ "size": "x".repeat(17 << 20) })).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[tokio::test]
async fn a_session_has_a_state_of_its_own() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let own = entry("count", ", scope: session");
    let yaml = format!("tools:\n{own}{}", entry("open_gate", ""));
    let harness = with(&yaml, &[("odd.py", ODD)]);
    let mut counts = Vec::new();
    for session in ["a", "b", "a"] {
        let context = ToolContext { session_id: session.into(), ..harness.context() };
        counts.push(harness.call_in(&context, "count", json!({})).await.unwrap().output);
    }
    assert_eq!(counts, [json!(1), json!(1), json!(2)]);
}

#[tokio::test]
async fn what_cannot_be_imported_says_what_is_missing() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let function = |name: &str, module: &str, function: &str| {
        format!(
            "  - {{ name: {name}, kind: python, module: {module}, function: {function}, parameters: {{ type: object }} }}\n"
        )
    };
    let yaml = [
        "tools:\n".to_owned(),
        function("none", "mytools.txt", "f"),
        function("needs", "needs", "f"),
        function("syntax", "syntax", "f"),
        function("raises", "raises", "f"),
        function("near", "good", "sumarize"),
        function("constant", "good", "LIMIT"),
        function("hidden", "json", "f"),
    ];
    let files = [
        ("needs.py", "import no_such_package.sub\n"),
        ("syntax.py", "x = 1\ndef f(:\n"),
        ("raises.py", "raise RuntimeError('no database')\n"),
        ("good.py", "LIMIT = 3\ndef summarize(): pass\n"),
        ("json.py", "def f(): pass\n"),
    ];
    let harness = with(&yaml.concat(), &files);
    let dir = harness.dir.path().to_str().unwrap().to_owned();
    let mut text = String::new();
    for name in ["none", "needs", "syntax", "raises", "near", "constant", "hidden"] {
        let error = harness.call(name, json!({})).await.unwrap_err();
        let message = error.message().replace(&dir, "DIR");
        let message = message.split(" but ").next().unwrap();
        write!(text, "{} {message}", error.kind().exit_code()).unwrap();
        if let Some(hint) = error.hint().filter(|hint| !hint.contains("pip")) {
            write!(text, " ({hint})").unwrap();
        }
        text.push('\n');
    }
    insta::assert_snapshot!(text, @r"
    9 there is no module 'mytools.txt'
    4 'needs' needs the module 'no_such_package', which is not installed
    4 DIR/syntax.py:2: invalid syntax
    4 importing 'raises' failed: RuntimeError: no database
    9 'good' has no function 'sumarize' (did you mean 'summarize'?)
    9 'LIMIT' in 'good' is not a function
    9 'json' is not DIR/json.py (another module of this name was found first: rename yours)
    ");
    let error = harness.call("needs", json!({})).await.unwrap_err();
    assert!(error.hint().unwrap().ends_with("-m pip install no_such_package"));
    assert!(error.details()[0].starts_with("looked in "), "{:?}", error.details());
}

#[tokio::test]
async fn functions_of_installed_modules_are_tools_too() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let yaml = "tools:\n  - { name: dumps, module: json, function: dumps }\n  - { name: factorial, module: math, function: factorial, parameters: { type: object } }\n";
    let harness = with(yaml, &[]);
    let dumped = harness.call("dumps", json!({ "obj": [1], "indent": 1 })).await.unwrap();
    assert_eq!(dumped.output, json!("[\n 1\n]"));
    // Written in C, and it takes no keywords.
    let six = harness.call("factorial", json!({ "n": 3 })).await.unwrap();
    assert_eq!(six.output, json!(6), "{six:?}");
}

#[tokio::test]
async fn a_schema_comes_from_the_function_and_is_remembered() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let yaml = "tools:\n  - { name: greet, module: hello, function: greet }\n";
    let text = "def greet(name: str, times: int = 1):\n    \"\"\"Greet a person.\"\"\"\n    return name * times\n";
    let harness = with(yaml, &[("hello.py", text)]);
    let provider = &harness.providers[0];
    assert!(provider.is_remote());
    assert_eq!(*harness.definition("greet").input_schema, json!({ "type": "object" }));
    let listed = provider.list().await.unwrap().tools.remove(0);
    assert_eq!(listed.description.as_deref(), Some("Greet a person."));
    assert_eq!(
        *listed.input_schema,
        json!({
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": {
                "name": { "type": "string" }, "times": { "type": "integer", "default": 1 },
            },
        })
    );
    let called = harness.call("greet", json!({ "name": "ab", "times": 2 })).await.unwrap();
    assert_eq!(called.output, json!("abab"));
    provider.close().await;
    // No bytecode beside the sources, neither read nor written.
    assert!(!harness.dir.path().join("__pycache__").exists());
}

#[tokio::test]
async fn what_is_remembered_is_listed_without_an_interpreter() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().to_path_buf();
    // The module has to stay where it is between two runs, so the root is outside of the harness.
    std::fs::write(dir.path().join("m.py"), "def f(a: int): pass\n").unwrap();
    let yaml = format!(
        "tools:\n  - {{ name: f, module: m, function: f, root: {} }}\n",
        dir.path().display()
    );
    let run = || {
        KindHarness::prepared(&python::kind(), &yaml, |_, environment| {
            environment.root = Some(cache.clone());
        })
    };
    let first = run();
    assert!(first.providers[0].is_remote());
    first.providers[0].list().await.unwrap();
    let second = run();
    assert!(!second.providers[0].is_remote());
    assert_eq!(second.definition("f").input_schema["required"], json!(["a"]));
    std::fs::write(dir.path().join("m.py"), "def f(a: int, b: int): pass\n").unwrap();
    assert!(run().providers[0].is_remote());
}

#[tokio::test]
async fn all_typed_functions_of_a_module_are_tools() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let yaml = "tools:\n  - { name: texts, kind: python, module: texts, functions: typed, category: text }\n";
    let text = "from os.path import join\ndef up(text: str) -> str:\n    \"\"\"Shout.\"\"\"\n    return text.upper()\ndef untyped(x): pass\ndef _own(x: int): pass\nclass C: pass\n";
    let harness = with(yaml, &[("texts.py", text)]);
    let provider = &harness.providers[0];
    let listing = provider.list().await.unwrap();
    let names: Vec<String> = listing.tools.iter().map(|tool| tool.name.full()).collect();
    assert_eq!(names, ["up"]);
    assert_eq!(listing.tools[0].category.as_deref(), Some("text"));
    assert!(listing.diagnostics[0].message.ends_with("untyped: no type says what 'x' is"));
    let Value::Object(arguments) = json!({ "text": "hey" }) else { unreachable!() };
    let call = ToolCall { name: listing.tools[0].name.clone(), arguments };
    let result = provider.call(&harness.context(), &call).await.unwrap();
    assert_eq!(result.output, json!("HEY"));
}

#[test]
fn everything_wrong_with_an_entry_is_said() {
    let yaml = "tools:
  - { name: a, kind: python }
  - { name: h, kind: python, module: m, function: f, config: {}, methods: [x] }
  - { name: i, kind: python, module: m, class: 'C()', config: [x], methods: [], start_timeout: 0 }
  - { name: j, kind: python, module: m, class: C, function: f }
  - { name: b, kind: python, module: my/tools.py, function: 'f()' }
  - { name: c, kind: python, module: m, function: f, safety: sandboxed, sandbox: none }
  - { name: d, kind: python, module: m, functions: all }
  - { name: e, kind: python, module: m, function: f, functions: typed }
  - { name: g, kind: python, module: m, function: f, env: { 'A=B': x }, python: [x] }
";
    insta::assert_debug_snapshot!(with(yaml, &[]).messages(), @r#"
    [
        "'module' is missing",
        "'config' is for a 'class', but the entry has none",
        "'methods' is for a 'class', but the entry has none",
        "a limit must be greater than 0",
        "'C()' cannot be the name of a class",
        "expected a mapping, found a list",
        "the list selects no methods",
        "'function' and 'class' exclude each other",
        "'my/tools.py' cannot be the name of a Python module",
        "'f()' cannot be the name of a function",
        "'safety: sandboxed' and the sandbox 'none' contradict each other",
        "'functions' can only be 'typed'",
        "'function' and 'functions' exclude each other",
        "expected text, found a list",
        "'A=B' cannot be an environment variable",
    ]
    "#);
}

#[test]
fn an_interpreter_that_is_not_there_makes_the_tool_unavailable() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let yaml = "tools:
  - { name: a, kind: python, module: m, function: f, python: ./none/python }
  - { name: b, kind: python, module: m, function: f, python: no-such-python }
  - { name: c, kind: python, module: m, function: f, root: nowhere }
";
    let harness = with(yaml, &[]);
    let dir = harness.dir.path().to_str().unwrap().to_owned();
    let reasons: Vec<String> = harness
        .definitions()
        .into_iter()
        .map(|tool| tool.unavailable_reason.unwrap().message().replace(&dir, "DIR"))
        .collect();
    insta::assert_debug_snapshot!(reasons, @r#"
    [
        "'DIR/./none/python' does not exist",
        "'no-such-python' was not found in PATH",
        "the root 'DIR/nowhere' is not a directory",
    ]
    "#);
}

#[tokio::test]
async fn a_program_that_is_no_python_says_so_at_once() {
    let yaml = "tools:\n  - { name: a, kind: python, module: m, function: f, python: /bin/false, parameters: { type: object } }\n";
    let harness = with(yaml, &[]);
    for _ in 0..2 {
        let error = harness.call("a", json!({})).await.unwrap_err();
        assert_eq!(error.message(), "'/bin/false' did not become ready: the process exited with 1");
    }
}

#[test]
fn a_key_of_a_class_with_a_wrong_type_is_located() {
    let values = [
        ("number", "3"),
        ("switch", "true"),
        ("text", "'x y'"),
        ("list", "[1]"),
        ("mapping", "{ a: 1 }"),
    ];
    let fine = [("config", "mapping"), ("start_timeout", "number")];
    for key in ["class", "config", "methods", "start_timeout"] {
        for (kind, value) in values.into_iter().filter(|(kind, _)| !fine.contains(&(key, kind))) {
            let class = if key == "class" { "" } else { "class: C, " };
            let start = format!("  - {{ name: t, kind: python, module: m, {class}{key}: ");
            let diagnostics = with(&format!("tools:\n{start}{value} }}\n"), &[]).diagnostics;
            assert_eq!(diagnostics.len(), 1, "{key} as {kind}: {diagnostics:?}");
            let place = diagnostics[0].location.as_ref().unwrap();
            let column = place.column as usize;
            assert!(
                place.line == 2 && column > start.len(),
                "{key} as {kind}: {}:{column} {}",
                place.line,
                diagnostics[0].message
            );
        }
    }
}
