//! Components and servers that are registered from settings.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::config::environment::FixedEnvironment;
use crate::host::RegistrationError;
use crate::host::request::{CallArguments, CallRequest, ListScope};
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
    let known = host.kinds();
    for kind in kinds() {
        assert!(known.contains(&kind.words.key.to_owned()), "{known:?}");
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
    let tool = host.find("notes-read", &[]).await.unwrap();
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
    assert!(message.contains("stands for the tools of an MCP server"), "{message}");
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
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = Arc::clone(&heard);
    let events = EventSink::new(move |event| {
        if let HostEvent::Warning { text } = event {
            hearing.lock().unwrap().push(text);
        }
    });
    let front_end = FrontEnd { events, ..FrontEnd::headless() };
    let host = host_builder(&environment(dir.path()), front_end).build();
    let settings = json!({ "storage_type": "disk", "path": "${STORE}.db", "max_kyes": 3 });
    host.register_component("storage", &component("notes", &settings)).unwrap();
    let heard = heard.lock().unwrap().clone();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].starts_with("settings of 'notes': ") && heard[0].contains("max_kyes"));
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
