//! Components and servers that are registered from settings.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::config::environment::{FixedEnvironment, ProcessEnvironment};
use crate::host::request::{CallArguments, CallRequest, ListScope, LookupScope};
use crate::host::{RegistrationError, ToolHost};
use crate::model::{ErrorKind, JsonObject, Origin};

fn environment(dir: &std::path::Path) -> Arc<dyn Environment> {
    let vars = BTreeMap::from([("STORE".to_owned(), "s3cret-place".to_owned())]);
    Arc::new(FixedEnvironment { vars, cwd: dir.to_path_buf(), root: Some(dir.join("home")) })
}

fn host(dir: &std::path::Path) -> Arc<ToolHost> {
    host_builder(&environment(dir), FrontEnd::headless()).build()
}

fn component(name: &str, settings: &Value) -> ComponentConfig {
    ComponentConfig::new(name, settings.as_object().cloned().unwrap())
}

async fn call(host: &ToolHost, name: &str, arguments: Value) -> Result<Value, Error> {
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    let request = CallRequest::new(name, CallArguments::Object(arguments));
    Ok(host.call(request).await?.result?.output)
}

async fn names(host: &ToolHost) -> Vec<String> {
    let tools = host.catalogue(&ListScope::Everything).await.tools;
    tools.iter().map(|tool| tool.name.full()).collect()
}

#[tokio::test]
async fn every_kind_is_a_type_of_components() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path());
    let type_keys = host.kinds();
    for kind in kinds() {
        assert!(type_keys.contains(&kind.words.key.to_owned()), "{type_keys:?}");
    }
    let error = host.register_component("storge", &component("x", &json!({}))).unwrap_err();
    let error = Error::from(error);
    assert!(
        error.hint().unwrap().starts_with("did you mean 'storage'? known types: "),
        "{error:?}"
    );
}

#[tokio::test]
async fn stores_and_directories_are_registered_by_their_settings() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("readme.txt"), "hello").unwrap();
    let host = host(dir.path());
    host.register_component("storage", &component("notes", &json!({ "storage_type": "memory" })))
        .unwrap();
    host.register_component(
        "files",
        &component("project", &json!({ "root_dir": ".", "access": "read" })),
    )
    .unwrap();
    host.register_component(
        "command",
        &component("greet", &json!({ "command": ["/bin/echo", "hi"] })),
    )
    .unwrap();
    let listed = names(&host).await;
    assert!(listed.contains(&"notes-write".to_owned()) && listed.contains(&"greet".to_owned()));
    assert!(listed.iter().any(|name| name.starts_with("project-")), "{listed:?}");
    call(&host, "notes-write", json!({ "key": "k", "value": 1 })).await.unwrap();
    assert_eq!(call(&host, "notes-read", json!({ "key": "k" })).await.unwrap(), 1);
    assert_eq!(call(&host, "greet", json!({})).await.unwrap(), json!("hi"));
    let tool = host.find("notes-read", &LookupScope::default()).await.unwrap();
    assert!(matches!(tool.origin, Origin::Program));
    host.unregister_component("notes").await.unwrap();
    let error = call(&host, "notes-read", json!({ "key": "k" })).await.unwrap_err();
    assert_eq!(error.message(), "'notes-read' was removed");
    host.close().await;
}

#[tokio::test]
async fn wrong_settings_are_refused_with_every_reason_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path());
    let refused = |key: &str, settings: Value| {
        let error = host.register_component(key, &component("notes", &settings)).unwrap_err();
        assert!(matches!(error, RegistrationError::Invalid(_)), "{error:?}");
        let error = Error::from(error);
        assert_eq!(error.kind(), ErrorKind::Config);
        error.message().to_owned()
    };
    let message = refused("storage", json!({ "storage_type": "paper" }));
    assert!(message.starts_with("the settings of 'notes' are invalid: "), "{message}");
    let message = refused("storage", json!({ "storage_type": "postgresql", "mcp_server": "pg" }));
    assert!(message.contains("takes its tools from an MCP server"), "{message}");
    let server = |settings: Value| {
        Error::from(host.register_client(&component("s", &settings)).unwrap_err())
    };
    assert_eq!(server(json!({})).kind(), ErrorKind::Config);
    assert_eq!(
        server(json!({ "command": "x", "url": "http://localhost/" })).kind(),
        ErrorKind::Config
    );
    assert!(names(&host).await.is_empty() && host.sources().is_empty());
}

#[tokio::test]
async fn a_doubt_about_settings_is_told_and_a_reference_is_masked() {
    let dir = tempfile::tempdir().unwrap();
    let texts = Arc::new(Mutex::new(Vec::new()));
    let hearing = Arc::clone(&texts);
    let events = EventSink::new(move |event| {
        if let HostEvent::Warning { text } = event {
            hearing.lock().unwrap().push(text);
        }
    });
    let front_end = FrontEnd { events, ..FrontEnd::headless() };
    let host = host_builder(&environment(dir.path()), front_end).build();
    let settings = json!({ "storage_type": "disk", "path": "${STORE}.db", "max_kyes": 3 });
    host.register_component("storage", &component("notes", &settings)).unwrap();
    let texts = texts.lock().unwrap().clone();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].starts_with("settings of 'notes': ") && texts[0].contains("max_kyes"));
    call(&host, "notes-write", json!({ "key": "k", "value": "v" })).await.unwrap();
    assert!(dir.path().join("s3cret-place.db").exists());
    let echoed = json!({ "key": "s3cret-place", "value": "v" });
    call(&host, "notes-write", echoed).await.unwrap();
    let listed = call(&host, "notes-list", json!({})).await.unwrap();
    assert!(!listed.to_string().contains("s3cret-place"), "{listed}");
    host.close().await;
}

#[tokio::test]
async fn a_server_is_registered_started_when_needed_and_ended_when_removed() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("server.sh");
    // A server that answers nothing: it is there, and has to end.
    std::fs::write(&script, "echo $$ > pid\nexec cat > /dev/null\n").unwrap();
    let host = host(dir.path());
    let settings = json!({ "command": "/bin/sh", "args": [script], "start_timeout": "1h" });
    host.register_client(&component("quiet", &settings)).unwrap();
    assert_eq!(host.servers()[0].name, "quiet");
    assert!(!dir.path().join("pid").exists());
    let error = host.register_client(&component("quiet", &settings)).unwrap_err();
    assert_eq!(error.to_string(), "the name 'quiet' is taken by the MCP server 'quiet'");
    let removal = host.unregister_client("quiet").await.unwrap();
    assert_eq!(removal.cancelled, 0);
    assert!(host.servers().is_empty());
    let error = call(&host, "quiet-tool", Value::Object(JsonObject::new())).await.unwrap_err();
    assert_eq!(error.message(), "'quiet-tool' was removed");
    assert!(!dir.path().join("pid").exists());
}

#[tokio::test]
async fn what_is_registered_may_name_the_credentials_of_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let vars = BTreeMap::from([("KEY".to_owned(), "s3cret-key".to_owned())]);
    let cwd = dir.path().to_path_buf();
    let environment: Arc<dyn Environment> =
        Arc::new(FixedEnvironment { vars, cwd, root: Some(home) });
    let config = environment.config_dir().unwrap();
    std::fs::create_dir_all(&config).unwrap();
    let text =
        "credentials: { api: { type: bearer, value: \"${KEY}\", variable: API_KEY } }\ntools: []\n";
    std::fs::write(config.join("tools.yaml"), text).unwrap();
    let options = crate::assembly::AssemblyOptions::default();
    let read = crate::assembly::read(&options, &*environment).unwrap();
    let assembly = crate::assembly::build(read, &options, &environment, FrontEnd::headless());
    let host = assembly.unwrap().host;
    let script = "echo \"$API_KEY\" > key";
    let settings = json!({ "command": "/bin/sh", "args": ["-c", script], "credentials": ["api"] });
    host.register_client(&component("quiet", &settings)).unwrap();
    let error = call(&host, "quiet-tool", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    let key = std::fs::read_to_string(dir.path().join("key")).unwrap();
    assert_eq!(key.trim(), "s3cret-key");
    let unknown = json!({ "command": "x", "credentials": ["apo"] });
    let error = host.register_client(&component("other", &unknown)).unwrap_err();
    assert!(error.to_string().contains("unknown credential 'apo'"), "{error}");
    assert_eq!(Error::from(error).hint(), Some("did you mean 'api'?"));
}

/// A server whose only tool answers when something is written to the pipe `gate`.
const GATED_SERVER: &str = r#"
import json, os, sys
open("pid", "w").write(str(os.getpid()))
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    method = message["method"]
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "gated", "version": "1"}
        answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        open("called", "w").close()
        text = open("gate").read()
        answer["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

#[tokio::test]
async fn a_call_of_a_real_server_finishes_before_the_server_is_ended() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("server.py"), GATED_SERVER).unwrap();
    let gate = dir.path().join("gate");
    crate::util::named_pipe::make(&gate);
    let path = ProcessEnvironment.var("PATH").unwrap_or_default();
    let environment: Arc<dyn Environment> = Arc::new(FixedEnvironment {
        vars: BTreeMap::from([("PATH".to_owned(), path)]),
        cwd: dir.path().to_path_buf(),
        root: Some(dir.path().join("home")),
    });
    let host = host_builder(&environment, FrontEnd::headless()).build();
    let settings = json!({ "command": "python3", "args": ["server.py"], "protocol": "legacy" });
    host.register_client(&component("gated", &settings)).unwrap();
    let running = tokio::spawn({
        let host = Arc::clone(&host);
        async move { call(&host, "gated-wait", json!({})).await }
    });
    while !dir.path().join("called").exists() {
        assert!(!running.is_finished(), "{:?}", running.await);
        tokio::task::yield_now().await;
    }
    let removing = tokio::spawn({
        let host = Arc::clone(&host);
        async move { host.unregister_client("gated").await }
    });
    while !host.sources().is_empty() {
        tokio::task::yield_now().await;
    }
    let error = call(&host, "gated-wait", json!({})).await.unwrap_err();
    assert_eq!(error.message(), "'gated-wait' was removed");
    let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap();
    assert!(std::path::Path::new("/proc").join(&pid).exists());
    std::fs::write(&gate, "done").unwrap();
    assert_eq!(running.await.unwrap().unwrap(), json!("done"));
    assert_eq!(removing.await.unwrap().unwrap().cancelled, 0);
    assert!(!std::path::Path::new("/proc").join(&pid).exists());
}
