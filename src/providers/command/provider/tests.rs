//! Tests with real programs: scripts for `/bin/sh` in temporary directories.

use crate::model::{
    CallId, ErrorKind, EventSink, HostEvent, Origin, ToolName, ToolSource, ToolStatus,
};
use crate::provider::ToolProvider;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;
use std::time::Duration;

use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::config::consent::{EntryEffect, EntrySite, ProgramEffect, Seal};
use crate::config::environment::FixedEnvironment;
use crate::config::node::{ConfigKey, ConfigNode, NodeValue, SourceText, TextPosition};

/// A directory with one script, and the entry that runs it.
struct CommandHarness {
    dir: tempfile::TempDir,
    spec: ToolSpec,
}

fn node(value: &Value) -> ConfigNode {
    let source = SourceText::new("tools.yaml", "the entry");
    let position = TextPosition { line: 1, column: 1 };
    let value = match value {
        Value::Null => NodeValue::Null,
        Value::Bool(b) => NodeValue::Bool(*b),
        Value::Number(n) => NodeValue::Number(n.clone()),
        Value::String(s) => NodeValue::Text(s.clone()),
        Value::Array(items) => NodeValue::list(items.iter().map(node).collect()),
        Value::Object(map) => NodeValue::map(
            map.iter()
                .map(|(k, v)| (ConfigKey { text: k.as_str().into(), position }, node(v)))
                .collect(),
        ),
    };
    ConfigNode { value, position, source }
}

impl CommandHarness {
    #[expect(clippy::needless_pass_by_value, reason = "the callers write the value in place")]
    fn new(script: &str, entry: Value, schema: Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let entry = node(&entry);
        let place = entry.location();
        let mut definition = ToolDefinition::new(
            ToolName::plain("tool"),
            ToolSource::Internal,
            "command",
            Origin::File(place.clone()),
        );
        definition.input_schema = schema.into();
        let base_dir = dir.path().to_path_buf();
        let spec = ToolSpec {
            definition,
            kind: "command",
            unexpanded: entry.clone().into(),
            entry: entry.into(),
            base_dir,
            location: place,
            defaults: None,
            scopes: Arc::default(),
            grant: None,
            seal: Seal::default(),
        };
        Self { dir, spec }
    }

    fn build(&self) -> BuiltProviders {
        let environment = FixedEnvironment {
            vars: BTreeMap::from([
                ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
                ("SECRET".to_owned(), "s3cret".to_owned()),
                ("WANTED".to_owned(), "yes".to_owned()),
            ]),
            cwd: self.dir.path().to_path_buf(),
            root: None,
        };
        build(&[&self.spec], &ProviderDeps::bare(Arc::new(environment)))
    }

    fn diagnostics(&self) -> Vec<String> {
        self.build().diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect()
    }

    fn provider(&self) -> Arc<dyn ToolProvider> {
        let built = self.build();
        built.providers.first().cloned().unwrap_or_else(|| panic!("{:?}", built.diagnostics))
    }

    fn context(&self) -> ToolContext {
        ToolContext {
            session_id: "session-1".into(),
            cwd: self.dir.path().into(),
            ..ToolContext::empty(CallId("call-1".into()))
        }
    }

    async fn call(&self, arguments: Value) -> Result<ToolResult, Error> {
        self.call_in(&self.context(), arguments).await
    }

    async fn call_in(&self, context: &ToolContext, arguments: Value) -> Result<ToolResult, Error> {
        self.provider().call(context, &call(arguments)).await
    }
}

fn call(arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("not an object") };
    ToolCall { name: ToolName::plain("tool"), arguments }
}

fn schema(names: &[&str]) -> Value {
    let properties: JsonObject = names.iter().map(|n| ((*n).to_owned(), json!({}))).collect();
    json!({ "type": "object", "properties": properties })
}

/// Prints each argument between brackets, with its bytes in octal where `od` is needed for none.
const SHOW_ARGUMENTS: &str = r#"for a in "$@"; do printf '[%s]' "$a"; done"#;

#[tokio::test]
async fn arguments_arrive_one_by_one() {
    let entry = json!({ "command": ["./script", "--n={n}", "{text}", "{gone}", "{{}}", 7] });
    let harness = CommandHarness::new(SHOW_ARGUMENTS, entry, schema(&["n", "text", "gone"]));
    let result = harness.call(json!({ "n": 3, "text": "a b; $(id) `x`\n\"'*" })).await.unwrap();
    assert_eq!(result.output, "[--n=3][a b; $(id) `x`\n\"'*][{}][7]");
    assert!(result.success);
}

#[tokio::test]
async fn a_schema_default_stands_in_for_an_absent_argument() {
    let harness = CommandHarness::new(
        SHOW_ARGUMENTS,
        json!({ "command": ["./script", "--n={n}"] }),
        json!({ "properties": { "n": { "default": 5 } } }),
    );
    assert_eq!(harness.call(json!({})).await.unwrap().output, "[--n=5]");
}

#[tokio::test]
async fn dangerous_arguments_are_refused_before_anything_starts() {
    let entry = json!({ "command": ["./script", "{text}"] });
    let harness = CommandHarness::new("touch started", entry, schema(&["text"]));
    for text in ["--help", "-", "a\0b"] {
        let error = harness.call(json!({ "text": text })).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{text:?}");
    }
    assert!(!harness.dir.path().join("started").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// O01 with a real program: what arrives is what was given, byte for byte, or it was refused.
    #[test]
    fn the_program_gets_the_very_bytes(
        text in prop_oneof![any::<String>(), "[-;$`'\"\\\\ \n{}*?~|&<>()]{0,12}"],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let harness = CommandHarness::new(
            r#"printf '%s' "$2""#,
            json!({ "command": ["./script", "--", "{text}"] }),
            schema(&["text"]),
        );
        match runtime.block_on(harness.call(json!({ "text": text }))) {
            // A text result ends without the newline that ends the output.
            Ok(result) => {
                let expected = text.strip_suffix('\n').unwrap_or(&text);
                let expected = expected.strip_suffix('\r').unwrap_or(expected);
                prop_assert_eq!(result.output.as_str(), Some(expected));
            }
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::Usage);
                prop_assert!(text.contains('\0') || text.starts_with('-'));
            }
        }
    }
}

#[tokio::test]
async fn json_goes_in_and_out() {
    let entry = json!({ "command": "./script", "output": "json" });
    let harness = CommandHarness::new("cat", entry, schema(&["a"]));
    let result = harness.call(json!({ "a": [1.50, "ü"] })).await.unwrap();
    assert_eq!(result.structured, Some(json!({ "a": [1.50, "ü"] })));
    let harness = CommandHarness::new(
        "echo hello",
        json!({ "command": ["./script"], "output": "json" }),
        json!({}),
    );
    let error = harness.call(json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert_eq!(error.details(), ["it starts with: hello\n"]);
    let harness = CommandHarness::new(
        "echo 1 2",
        json!({ "command": ["./script"], "output": "json" }),
        json!({}),
    );
    assert_eq!(harness.call(json!({})).await.unwrap_err().kind(), ErrorKind::Protocol);
}

#[tokio::test]
async fn every_way_in() {
    let text = json!({ "command": ["./script"], "input": "stdin_text" });
    let harness = CommandHarness::new("tr a-z A-Z", text, schema(&["text"]));
    assert_eq!(harness.call(json!({ "text": "abc" })).await.unwrap().output, "ABC");

    let named = json!({ "command": ["./script", "{x}"], "input_property": "body" });
    let harness = CommandHarness::new("echo $1; cat", named, schema(&["x", "body"]));
    assert_eq!(harness.call(json!({ "x": 1, "body": "b" })).await.unwrap().output, "1\nb");

    let env = json!({ "command": ["./script"], "input": "env" });
    let harness = CommandHarness::new("echo $TOOLHOST_ARG_MAX_COUNT", env, schema(&["max-count"]));
    assert_eq!(harness.call(json!({ "max-count": 4 })).await.unwrap().output, "4");

    let none = json!({ "command": ["./script"], "input": "none" });
    let harness = CommandHarness::new("cat; echo over", none, schema(&["x"]));
    assert_eq!(harness.call(json!({ "x": 4 })).await.unwrap().output, "over");
}

#[tokio::test]
async fn a_non_zero_exit_is_a_well_formed_no() {
    let harness = CommandHarness::new(
        "echo partial; echo oh no >&2; exit 3",
        json!({ "command": ["./script"] }),
        json!({}),
    );
    let result = harness.call(json!({})).await.unwrap();
    assert!(!result.success);
    assert_eq!(result.output, "./script exited with 3: oh no");
    assert_eq!(result.content[1]["text"], "partial");
    assert_eq!(result.meta, Some(json!({ "exit_code": 3, "stderr": ["oh no"] })));
    let error = result.error.unwrap();
    assert_eq!((error.kind(), error.details()), (ErrorKind::Tool, &["oh no".to_owned()][..]));
}

#[tokio::test]
async fn a_program_that_dies_gave_no_answer() {
    let harness = CommandHarness::new(
        "echo last words >&2; kill -SEGV $$",
        json!({ "command": ["./script"] }),
        json!({}),
    );
    let error = harness.call(json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.message(), "./script was killed by SIGSEGV");
    assert_eq!(error.details(), ["last words"]);
}

#[tokio::test]
async fn the_environment_is_made_from_nothing() {
    let entry = json!({
        "command": ["env"],
        "env": { "OWN": "1" },
        "env_keys": ["WANTED", "NOT_SET"],
        "cwd": ".",
    });
    let harness = CommandHarness::new("", entry, json!({}));
    let mut context = harness.context();
    context.environment.insert("GIVEN_ID".to_owned(), "2".to_owned());
    context.metadata.insert("k".to_owned(), json!("v"));
    let result = harness.call_in(&context, json!({})).await.unwrap();
    let mut names: Vec<&str> =
        result.output.as_str().unwrap().lines().filter_map(|l| l.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "GIVEN_ID",
            "OWN",
            "PATH",
            "TOOLHOST_CALL_ID",
            "TOOLHOST_CONTEXT",
            "TOOLHOST_CWD",
            "TOOLHOST_EVENTS_FD",
            "TOOLHOST_SESSION_ID",
            "WANTED",
        ]
    );
    context.environment.insert("LD_PRELOAD".to_owned(), "x.so".to_owned());
    let error = harness.call_in(&context, json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[tokio::test]
async fn progress_and_log_lines_reach_the_viewers() {
    let script = "echo '{\"progress\":1,\"total\":2}' >&$TOOLHOST_EVENTS_FD\n\
                  echo '{\"level\":\"info\",\"text\":\"hello\"}' >&3\necho nonsense >&3; echo done";
    let harness = CommandHarness::new(script, json!({ "command": ["./script"] }), json!({}));
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&events);
    let mut context = harness.context();
    context.events = EventSink::new(move |event| {
        log.lock().unwrap().push(match event {
            HostEvent::Progress { progress, total, .. } => format!("{progress} of {total:?}"),
            HostEvent::Log { origin, text, .. } => format!("{origin}: {text}"),
            other => format!("{other:?}"),
        });
    });
    let result = harness.call_in(&context, json!({})).await.unwrap();
    assert_eq!(result.output, "done");
    assert_eq!(*events.lock().unwrap(), ["1 of Some(2.0)", "tool: hello"]);
    assert_eq!(result.warnings, ["1 lines on the events pipe could not be read"]);
}

#[tokio::test]
async fn a_flood_is_cut_off_and_ended() {
    let entry = json!({ "command": ["./script"], "max_output": "64KiB" });
    let harness = CommandHarness::new(
        "echo $$ > pid; while :; do echo yyyyyyyyyyyyyyyyyyyyyyyy; done",
        entry,
        json!({}),
    );
    let error = harness.call(json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert_eq!(error.message(), "the program wrote more than the limit of 64.0 KiB");
    assert!(!alive(&harness, "pid"));
}

#[tokio::test]
async fn a_large_input_and_a_large_output_do_not_wait_for_each_other() {
    let entry = json!({ "command": ["./script"], "input": "stdin_text" });
    let harness = CommandHarness::new("cat; cat /dev/null >&2", entry, schema(&["text"]));
    let text = "0123456789abcdef".repeat(1 << 16);
    let result = harness.call(json!({ "text": text })).await.unwrap();
    assert_eq!(result.output.as_str().map(str::len), Some(1 << 20));
    // A program that does not want its input is no error.
    let entry = json!({ "command": ["./script"], "input": "stdin_text" });
    let harness = CommandHarness::new("echo enough", entry, schema(&["text"]));
    assert_eq!(harness.call(json!({ "text": text })).await.unwrap().output, "enough");
}

#[tokio::test]
async fn stdin_is_empty_when_there_is_no_input() {
    let harness = CommandHarness::new(
        "cat; readlink /proc/$$/fd/0",
        json!({ "command": ["./script"] }),
        json!({}),
    );
    assert_eq!(harness.call(json!({})).await.unwrap().output, "/dev/null");
}

#[tokio::test]
async fn something_left_behind_neither_delays_the_answer_nor_survives() {
    let script =
        "sh -c 'echo $$ > pid; exec sleep 600' & \nwhile [ ! -s pid ]; do :; done; echo answer";
    let harness = CommandHarness::new(script, json!({ "command": ["./script"] }), json!({}));
    let result = harness.call(json!({})).await.unwrap();
    assert_eq!(result.output, "answer");
    assert!(result.warnings[0].contains("kept its output open"), "{:?}", result.warnings);
    assert!(!alive(&harness, "pid"));
}

#[tokio::test]
async fn a_cancelled_call_ends_the_whole_group() {
    let script = "sh -c 'echo $$ > pid; exec sleep 600' & \
                  while [ ! -s pid ]; do :; done; echo '{\"progress\":1}' >&3; wait";
    let harness = CommandHarness::new(script, json!({ "command": ["./script"] }), json!({}));
    let error = cancelled_at_first_event(&harness).await;
    assert!(matches!(error.kind(), ErrorKind::Interrupted(_)));
    assert!(!alive(&harness, "pid"));
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed() {
    let script =
        "trap '' TERM; echo $$ > pid; echo '{\"progress\":1}' >&3; while :; do sleep 600; done";
    let harness = CommandHarness::new(script, json!({ "command": ["./script"] }), json!({}));
    cancelled_at_first_event(&harness).await;
    assert!(!alive(&harness, "pid"));
}

async fn cancelled_at_first_event(harness: &CommandHarness) -> Error {
    let mut context = harness.context();
    let cancel = context.cancel.clone();
    context.events = EventSink::new(move |_| cancel.cancel());
    harness.call_in(&context, json!({})).await.unwrap_err()
}

/// Whether the process whose id the script wrote to `file` still runs (a zombie does not).
fn alive(harness: &CommandHarness, file: &str) -> bool {
    let pid = std::fs::read_to_string(harness.dir.path().join(file)).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

#[tokio::test]
async fn a_program_that_never_reads_its_input_is_given_up() {
    let program = Program {
        path: "/bin/sh".into(),
        args: vec!["-c".into(), "sleep 600".into()],
        env: BTreeMap::new(),
        cwd: "/".into(),
        stdin: true,
    };
    let process = Process::start_within(&program, None, true).unwrap();
    let limits = ProgramLimits {
        write_timeout: Duration::from_millis(20),
        ..ProgramLimits::with_max_stdout(1 << 20)
    };
    let (call, sink) = (CallId("c".into()), EventSink::discard());
    let events = CommandEventReader::new(&call, "tool".to_owned(), &sink);
    let input = Some(vec![b'x'; 1 << 20]);
    let error = run::run_to_end(process, input, events, &CancellationToken::new(), &limits).await;
    assert_eq!(error.unwrap_err().message(), "the program did not read its input for 20 ms");
}

#[tokio::test]
async fn a_missing_program_says_where_it_was_looked_for() {
    let harness = CommandHarness::new("", json!({ "command": ["no-such-program"] }), json!({}));
    let error = harness.call(json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.message(), "'no-such-program' was not found in PATH");
    assert_eq!(error.details(), ["searched: /usr/bin:/bin"]);
    let definition = &harness.provider().declared()[0];
    assert_eq!(definition.status, ToolStatus::Unavailable);
    let harness =
        CommandHarness::new("", json!({ "command": ["env"], "cwd": "nowhere" }), json!({}));
    let error = harness.call(json!({})).await.unwrap_err();
    assert!(error.message().contains("nowhere' does not exist"), "{error}");
}

#[tokio::test]
async fn a_preview_shows_the_exact_request() {
    let entry = json!({
        "command": ["env", "--", "{x}"], "env": { "TOKEN": "hidden" }, "input": "stdin_json", "cwd": "/",
    });
    let harness = CommandHarness::new("", entry, schema(&["x"]));
    let preview = harness.provider().preview(&call(json!({ "x": "a b" }))).await.unwrap();
    assert_eq!(preview.summary, "starts /usr/bin/env in /");
    insta::assert_json_snapshot!(preview.request, @r#"
    {
      "argv": [
        "/usr/bin/env",
        "--",
        "a b"
      ],
      "cwd": "/",
      "env": [
        "PATH",
        "TOKEN"
      ],
      "stdin": "{\"x\":\"a b\"}"
    }
    "#);
    let touches = harness.provider().declared()[0].touches.clone();
    assert_eq!(touches, ["starts /usr/bin/env", "works in /"]);
}

#[test]
fn wrong_entries_are_refused_with_their_reason() {
    for (entry, names, expected) in [
        (json!({ "command": [] }), &[][..], "'command' is empty"),
        (json!({ "command": 3 }), &[], "expected a list of texts, found a number"),
        (json!({ "command": "git log" }), &[], "'git log' is not the name of a program"),
        (json!({ "command": ["{x}"] }), &["x"], "the program itself cannot come from an argument"),
        (json!({ "command": ["a", "{y}"] }), &["x"], "'{y}' is not a property of the schema"),
        (
            json!({ "command": ["a", "{print $1}"] }),
            &[],
            "the '{' at column 1 of '{print $1}' is not part of a placeholder",
        ),
        (
            json!({ "command": ["a"], "shell": true }),
            &[],
            "toolhost does not run commands in a shell",
        ),
        (
            json!({ "command": ["a"], "sandbox": { "level": "limits", "network": false } }),
            &[],
            "'network' has no effect at the level 'limits'",
        ),
        (
            json!({ "command": ["a"], "input": "tape" }),
            &[],
            "unknown input 'tape'; expected one of stdin_json, stdin_text, args, env, none",
        ),
        (
            json!({ "command": ["a"], "input": "stdin_text" }),
            &["body"],
            "the schema has no property 'text' to write to stdin",
        ),
        (
            json!({ "command": ["a"], "input": "env" }),
            &["a-b", "a_b"],
            "'a-b' and 'a_b' would both be the variable TOOLHOST_ARG_A_B",
        ),
        (
            json!({ "command": ["a"], "output": "xml" }),
            &[],
            "unknown output 'xml'; expected one of text, json",
        ),
        (
            json!({ "command": ["a"], "max_output": "1GiB" }),
            &[],
            "expected a size from 1 to 16.0 MiB, such as 64KiB, found text",
        ),
        (
            json!({ "command": ["a"], "env": { "A=B": "c" } }),
            &[],
            "'A=B' cannot be an environment variable",
        ),
        (json!({ "command": ["a\0b"] }), &[], "'a\\0b' contains a NUL byte"),
    ] {
        let harness = CommandHarness::new("", entry.clone(), schema(names));
        assert!(harness.build().providers.is_empty(), "{entry}");
        assert_eq!(harness.diagnostics(), [expected], "{entry}");
    }
    let entry = json!({ "command": ["env"], "sandbox": "none" });
    let mut harness = CommandHarness::new("", entry, json!({}));
    harness.spec.definition.safety = Safety::Sandboxed;
    assert_eq!(
        harness.diagnostics(),
        ["'safety: sandboxed' and the sandbox 'none' contradict each other"]
    );
}

#[test]
fn doubtful_entries_work_with_a_warning() {
    let entry = json!({ "command": ["env", "--n={n}"] });
    let harness = CommandHarness::new("", entry, schema(&["n", "unused"]));
    assert_eq!(
        harness.diagnostics(),
        ["calls without 'n' will be refused", "the command does not use unused"]
    );
    assert!(!harness.build().providers.is_empty());
}

#[test]
fn a_person_is_told_the_whole_of_it() {
    let entry = node(&json!({
        "command": ["./run", "{x}"], "args": ["--fast"], "cwd": "work",
        "env": { "TOKEN": "hidden", "LD_PRELOAD": "./x.so" }, "env_keys": ["HOME"],
        "allow_dash": true,
    }));
    let environment = FixedEnvironment { cwd: "/here".into(), ..FixedEnvironment::default() };
    let (base, scopes) = (Path::new("/srv"), BTreeMap::new());
    let site = EntrySite::new(base, base, &scopes, None, &environment);
    let effects = (super::super::kind().words.effects)(&entry, &site);
    let runs = ProgramEffect {
        argv: ["./run", "{x}", "--fast"].map(str::to_owned).to_vec(),
        cwd: Some("work".to_owned()),
        env: vec![
            ("LD_PRELOAD".to_owned(), "./x.so".to_owned()),
            ("TOKEN".to_owned(), "hidden".to_owned()),
        ],
        found_from: Some(base.to_path_buf()),
        usual_cwd: "/here".into(),
    };
    let dash = EntryEffect::Other("allows values that start an argument with '-'".to_owned());
    assert_eq!(effects, [EntryEffect::Runs(runs), dash]);
}
