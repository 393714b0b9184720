//! Tests of the demo server with the SDK's client over an in-memory pipe, in both eras.
#![expect(deprecated, reason = "logging is deprecated in the newest revision, and a demo shows it")]

use std::sync::{Arc, Mutex};

use rmcp::model::{
    ArgumentInfo, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
    CompleteRequestParams, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, Reference, RequestMetaObject,
    ResourceContents, SetLevelRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::serve;

const LEGACY: ProtocolVersion = ProtocolVersion::V_2025_11_25;
const MODERN: ProtocolVersion = ProtocolVersion::V_2026_07_28;
const ERAS: [ProtocolVersion; 2] = [LEGACY, MODERN];

/// A client with a fixed answer to every question, which keeps what it was told.
struct Listener {
    config: ClientConfig,
    answer: ElicitResult,
    progress: Mutex<Vec<(f64, Option<f64>)>>,
    logs: mpsc::Sender<Value>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { requested_schema, .. } = request else {
            panic!("asked for a form, got {request:?}");
        };
        assert!(requested_schema.properties.contains_key("name"));
        Ok(self.answer.clone())
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().unwrap().push((progress.progress, progress.total));
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.logs.send(message.data).await.unwrap();
    }
}

struct Session {
    client: RunningService<RoleClient, Arc<Listener>>,
    logs: mpsc::Receiver<Value>,
    server: tokio::task::JoinHandle<Result<(), crate::model::Error>>,
}

impl Session {
    async fn open(version: &ProtocolVersion) -> Self {
        let elicitation = ElicitationCapability::new();
        Self::with(version, ElicitResult::new(ElicitationAction::Decline), Some(elicitation)).await
    }

    async fn with(
        version: &ProtocolVersion,
        answer: ElicitResult,
        elicitation: Option<ElicitationCapability>,
    ) -> Self {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(far);
        let server = tokio::spawn(serve(input, output));
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = elicitation;
        let mut config = ClientConfig::new(capabilities, Implementation::new("test", "0"));
        config.protocol_version = LEGACY;
        let lifecycle = if *version == MODERN {
            ClientLifecycleMode::Discover { preferred_versions: vec![MODERN] }
        } else {
            ClientLifecycleMode::Initialize
        };
        let (sender, logs) = mpsc::channel(128);
        let listener =
            Arc::new(Listener { config, answer, progress: Mutex::default(), logs: sender });
        let client = listener.serve_with_lifecycle(near, lifecycle).await.unwrap();
        assert_eq!(client.peer_info().unwrap().protocol_version, *version);
        Self { client, logs, server }
    }

    async fn call(&self, name: &'static str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else { panic!("not an object: {arguments}") };
        let params = CallToolRequestParams::new(name).with_arguments(arguments);
        self.client.call_tool(params).await.unwrap()
    }

    /// The text of a call's answer, with `!` before a well-formed no.
    async fn text(&self, name: &'static str, arguments: Value) -> String {
        let result = self.call(name, arguments).await;
        let no = if result.is_error == Some(true) { "!" } else { "" };
        format!("{no}{}", result.content[0].as_text().unwrap().text)
    }

    async fn close(self) {
        self.client.cancel().await.unwrap();
        self.server.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn every_tool_is_listed_with_a_schema_and_honest_hints() {
    for era in &ERAS {
        let session = Session::open(era).await;
        let tools = session.client.list_tools(None).await.unwrap().tools;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        let expected = [
            "echo",
            "add",
            "weather_report",
            "slow",
            "fail",
            "delete_note",
            "ask_name",
            "log_lines",
        ];
        assert_eq!(names, expected);
        for tool in &tools {
            assert_eq!(tool.input_schema.get("type"), Some(&json!("object")), "{}", tool.name);
            let hints = tool.annotations.as_ref().unwrap();
            let destroys = tool.name == "delete_note";
            assert_eq!(hints.read_only_hint, Some(!destroys), "{}", tool.name);
            assert_eq!(hints.destructive_hint, destroys.then_some(true), "{}", tool.name);
            assert_eq!(hints.open_world_hint, Some(false), "{}", tool.name);
        }
        session.close().await;
    }
}

#[tokio::test]
async fn quick_tools_answer_and_explain_wrong_arguments() {
    for era in &ERAS {
        let session = Session::open(era).await;
        assert_eq!(session.text("echo", json!({ "message": "hé\u{1b}llo" })).await, "hé\u{1b}llo");
        assert_eq!(
            session.text("echo", json!({})).await,
            "!wrong arguments: missing field `message`"
        );
        assert_eq!(session.text("fail", json!({})).await, "!this tool always fails");
        assert_eq!(session.text("fail", json!({ "message": "no" })).await, "!no");
        let sum = session.call("add", json!({ "a": 2, "b": 3.5 })).await;
        assert_eq!(sum.structured_content, Some(json!({ "sum": 5.5 })));
        let weather =
            session.call("weather_report", json!({ "city": "oslo", "units": "fahrenheit" }));
        assert_eq!(
            weather.await.structured_content,
            Some(json!({
                "city": "Oslo", "sky": "snow", "temperature": 25, "units": "fahrenheit",
            }))
        );
        assert!(session.text("weather_report", json!({ "city": "x" })).await.starts_with("!wrong"));
        session.close().await;
    }
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error() {
    for era in &ERAS {
        let session = Session::open(era).await;
        let error = session.client.call_tool(CallToolRequestParams::new("nothing")).await;
        assert!(error.unwrap_err().to_string().contains("unknown tool: nothing"));
        session.close().await;
    }
}

#[tokio::test]
async fn structured_output_fits_the_declared_schema() {
    let session = Session::open(&MODERN).await;
    let tools = session.client.list_tools(None).await.unwrap().tools;
    let calls = [("add", json!({ "a": 1, "b": 2 })), ("weather_report", json!({ "city": "lima" }))];
    for (name, arguments) in calls {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let schema = Value::Object((**tool.output_schema.as_ref().unwrap()).clone());
        let output = session.call(name, arguments).await.structured_content.unwrap();
        assert!(jsonschema::is_valid(&schema, &output), "{name}: {output}");
        assert!(!jsonschema::is_valid(&schema, &json!({})), "{name} accepts anything");
    }
    session.close().await;
}

#[tokio::test]
async fn progress_counts_up_to_the_total() {
    for era in &ERAS {
        let session = Session::open(era).await;
        assert_eq!(session.text("slow", json!({ "seconds": 0.2 })).await, "waited 0.2 s");
        // The SDK hands notifications to tasks of their own; a later answer is no barrier for
        // them, so the client is closed first.
        let listener = Arc::clone(session.client.service());
        session.close().await;
        let mut progress = listener.progress.lock().unwrap().clone();
        progress.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!(progress, [(0.1, Some(0.2)), (0.2, Some(0.2))]);
    }
    let session = Session::open(&LEGACY).await;
    assert!(session.text("slow", json!({ "seconds": 31 })).await.starts_with('!'));
    session.close().await;
}

#[tokio::test]
async fn a_deleted_note_is_gone_for_good() {
    for era in &ERAS {
        let session = Session::open(era).await;
        let read =
            || session.client.read_resource(ReadResourceRequestParams::new("demo://notes/draft"));
        assert!(read().await.is_ok());
        assert_eq!(session.text("delete_note", json!({ "name": "draft" })).await, "deleted draft");
        assert!(read().await.is_err());
        assert_eq!(
            session.text("delete_note", json!({ "name": "draft" })).await,
            "!there is no note 'draft'; there are: ideas, shopping"
        );
        session.close().await;
    }
}

#[tokio::test]
async fn a_name_is_asked_for_in_the_way_of_the_era() {
    let accept = ElicitResult::new(ElicitationAction::Accept);
    let answers = [
        (accept.clone().with_content(json!({ "name": " Ada " })), "Hello, Ada!"),
        (accept.with_content(json!({ "name": "" })), "!the answer has no name"),
        (
            ElicitResult::new(ElicitationAction::Decline),
            "Hello, whoever you are. Thank you anyway.",
        ),
        (ElicitResult::new(ElicitationAction::Cancel), "No name then. Perhaps another time."),
    ];
    for era in &ERAS {
        for (answer, reply) in &answers {
            let elicitation = Some(ElicitationCapability::new());
            let session = Session::with(era, answer.clone(), elicitation).await;
            assert_eq!(session.text("ask_name", json!({})).await, *reply);
            session.close().await;
        }
        let session = Session::with(era, answers[2].0.clone(), None).await;
        assert!(session.text("ask_name", json!({})).await.starts_with("!this client cannot ask"));
        session.close().await;
    }
}

#[tokio::test]
async fn log_lines_respect_the_level_of_the_era() {
    let mut session = Session::open(&LEGACY).await;
    assert_eq!(session.text("log_lines", json!({ "count": 2 })).await, "sent 2 of 2 lines");
    let mut lines = [session.logs.recv().await.unwrap(), session.logs.recv().await.unwrap()];
    lines.sort_by_key(ToString::to_string);
    assert_eq!(lines, [json!("line 1"), json!("line 2")]);
    session.client.set_level(SetLevelRequestParams::new(LoggingLevel::Error)).await.unwrap();
    assert_eq!(session.text("log_lines", json!({ "count": 2 })).await, "sent 0 of 2 lines");
    session.close().await;

    let mut session = Session::open(&MODERN).await;
    assert_eq!(session.text("log_lines", json!({})).await, "sent 0 of 3 lines");
    let mut params = CallToolRequestParams::new("log_lines");
    let mut meta = RequestMetaObject::default();
    meta.set_log_level(LoggingLevel::Debug);
    params.meta = Some(meta);
    session.client.call_tool(params).await.unwrap();
    assert!(session.logs.recv().await.unwrap().to_string().contains("line"));
    session.close().await;
}

#[tokio::test]
async fn the_resource_and_the_template_can_be_read() {
    for era in &ERAS {
        let session = Session::open(era).await;
        let listed = session.client.list_resources(None).await.unwrap().resources;
        let templates =
            session.client.list_resource_templates(None).await.unwrap().resource_templates;
        assert_eq!(templates[0].uri_template, "demo://notes/{name}");
        for uri in [listed[0].uri.as_str(), "demo://notes/ideas"] {
            let params = ReadResourceRequestParams::new(uri);
            let response = session.client.peer().read_resource_once(params).await.unwrap();
            let ReadResourceResponse::Complete(result) = response else { panic!("{response:?}") };
            let ResourceContents::TextResourceContents { text, .. } = &result.contents[0] else {
                panic!("{result:?}");
            };
            assert!(!text.is_empty());
        }
        let missing = ReadResourceRequestParams::new("demo://nothing");
        assert!(session.client.read_resource(missing).await.is_err());
        session.close().await;
    }
}

#[tokio::test]
async fn the_prompt_takes_arguments_and_completes_them() {
    for era in &ERAS {
        let session = Session::open(era).await;
        let prompts = session.client.list_prompts(None).await.unwrap().prompts;
        assert_eq!(prompts[0].name, "greet");
        let arguments = json!({ "name": "Ada", "language": "French" });
        let Value::Object(arguments) = arguments else { unreachable!() };
        let params = GetPromptRequestParams::new("greet").with_arguments(arguments);
        let response = session.client.peer().get_prompt_once(params).await.unwrap();
        let GetPromptResponse::Complete(result) = response else { panic!("{response:?}") };
        let text = serde_json::to_string(&result.messages).unwrap();
        assert!(text.contains("Greet Ada in French"), "{text}");
        assert!(session.client.get_prompt(GetPromptRequestParams::new("greet")).await.is_err());

        let complete = async |reference, argument, value| {
            let argument = ArgumentInfo::new(argument, value);
            let params = CompleteRequestParams::new(reference, argument);
            session.client.complete(params).await.map(|result| result.completion.values)
        };
        let greet = || Reference::for_prompt("greet");
        assert_eq!(complete(greet(), "language", "f").await.unwrap(), ["Finnish", "French"]);
        assert!(complete(greet(), "nothing", "").await.is_err());
        let notes = Reference::for_resource("demo://notes/{name}");
        assert_eq!(complete(notes, "name", "s").await.unwrap(), ["shopping"]);
        session.close().await;
    }
}

#[tokio::test]
async fn a_call_that_only_waits_ends_when_the_client_has_hung_up() {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
    let (mut near, input) = tokio::io::duplex(4096);
    let (output, answers) = tokio::io::duplex(4096);
    let server = tokio::spawn(serve(input, output));
    let call = |id, name, arguments| {
        json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": name, "arguments": arguments, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
                "io.modelcontextprotocol/clientCapabilities": {},
            } },
        })
    };
    let calls = format!(
        "{}\n{}\n",
        call(1, "slow", json!({ "seconds": 30 })),
        call(2, "echo", json!({ "message": "quick" }))
    );
    near.write_all(calls.as_bytes()).await.unwrap();
    drop(near);
    let mut answers = tokio::io::BufReader::new(answers).lines();
    let mut text = String::new();
    while let Some(line) = answers.next_line().await.unwrap() {
        text.push_str(&line);
    }
    assert!(text.contains("quick"), "{text}");
    assert!(text.contains("cancelled after"), "{text}");
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_leaves_before_its_first_word_is_no_failure() {
    let (near, far) = tokio::io::duplex(64);
    drop(near);
    let (input, output) = tokio::io::split(far);
    serve(input, output).await.unwrap();
}
