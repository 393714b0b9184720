//! Tests of tools and sessions that are added and removed while the host runs.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::host::fake::{FakeProvider, call, host, internal, of_server};
use crate::host::request::{CallArguments, CallRequest, ListScope, LookupScope};
use crate::host::sessions::SessionInfo;
use crate::model::{
    Error, ErrorKind, EventSink, HostEvent, JsonObject, ListOwner, Origin, ToolContext,
    ToolDefinition, ToolName, ToolResult, ToolSchema, ToolScope, ToolSource,
};

fn definition(name: &str) -> ToolDefinition {
    let mut tool =
        ToolDefinition::new(ToolName::plain(name), ToolSource::Mcp, "program", Origin::Program);
    tool.input_schema = ToolSchema::from(json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    }));
    tool
}

async fn twice(arguments: JsonObject, _: ToolContext) -> Result<ToolResult, Error> {
    Ok(ToolResult::json(json!(arguments["n"].as_i64().unwrap() * 2)))
}

fn number(name: &str, n: i64) -> CallRequest {
    let arguments = json!({ "n": n }).as_object().cloned().unwrap();
    CallRequest::new(name, CallArguments::Object(arguments))
}

#[tokio::test]
async fn a_registered_tool_is_like_any_other_until_it_is_taken_away() {
    let changes = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&changes);
    let sink = EventSink::new(move |event| {
        if matches!(event, HostEvent::ListChanged { owner: ListOwner::Program, .. }) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let host = host(&[]).events(sink).build();
    assert!(host.call(number("twice", 1)).await.is_err());
    let before = host.catalogue(&ListScope::Everything).await;
    host.register(definition("twice"), twice).unwrap();
    assert_eq!(host.call(number("twice", 21)).await.unwrap().result.unwrap().output, json!(42));
    assert_eq!(host.call(call("twice")).await.unwrap_err().kind(), ErrorKind::Usage);
    let after = host.catalogue(&ListScope::Declared).await;
    assert!(after.version > before.version + 1);
    assert_eq!((before.tools.len(), after.tools.len()), (0, 1));
    assert!(matches!(after.tools[0].origin, Origin::Program));
    assert_eq!(after.tools[0].source, ToolSource::Internal);
    assert!(host.unregister("twice"));
    assert!(!host.unregister("twice"));
    assert!(host.find("twice", &LookupScope::default()).await.is_err());
    assert!(host.registered().is_empty());
    assert_eq!(changes.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn no_name_is_taken_twice() {
    let local = Arc::new(FakeProvider::local(vec![internal(ToolName::plain("calculator"), 3)]));
    let mut server = FakeProvider::server("s", &["live"]);
    server.declared = vec![of_server("s", "declared")];
    let host = host(&[&local, &Arc::new(server)]).build();
    host.register(definition("twice"), twice).unwrap();
    let refused = |name: &str| host.register(definition(name), twice).map_err(|f| f.to_string());
    assert_eq!(
        refused("twice"),
        Err("the name 'twice' is taken by the tool registered by this program".into())
    );
    assert_eq!(
        refused("calculator"),
        Err("the name 'calculator' is taken by the tool at tools.yaml:3:1".into())
    );
    assert_eq!(
        refused("s-declared"),
        Err("the name 's-declared' is taken by the tool of server 's'".into())
    );
    host.find("s-live", &LookupScope::default()).await.unwrap();
    assert!(refused("s-live").is_err());
    assert!(refused("no name").unwrap_err().contains("invalid name"));
    let mut aliased = definition("other");
    aliased.aliases = vec![ToolName::plain("twice")];
    assert!(host.register(aliased, twice).is_err());
    assert!(!host.unregister("calculator"));
    assert_eq!(host.registered().len(), 1);
}

#[tokio::test]
async fn many_threads_register_one_name_once() {
    let host = host(&[]).build();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let host = Arc::clone(&host);
            std::thread::spawn(move || host.register(definition("twice"), twice).is_ok())
        })
        .collect();
    let won = threads.into_iter().map(|t| t.join().unwrap());
    assert_eq!(won.filter(|ok| *ok).count(), 1);
}

#[tokio::test]
async fn a_registered_tool_may_call_others() {
    let host = host(&[]).build();
    host.register(definition("twice"), twice).unwrap();
    let four_times = async |arguments: JsonObject, context: ToolContext| {
        let caller = context.caller.clone().unwrap();
        let half = caller.call(&context, "twice", arguments).await?.output;
        let half = json!({ "n": half }).as_object().cloned().unwrap();
        caller.call(&context, "twice", half).await
    };
    host.register(definition("four-times"), four_times).unwrap();
    let outcome = host.call(number("four-times", 3)).await.unwrap();
    assert_eq!(outcome.result.unwrap().output, json!(12));
}

fn counter(info: &SessionInfo) -> impl crate::host::function_tool::ToolHandler + use<> {
    let (whose, count) = (info.metadata.get("user").cloned(), Arc::new(AtomicUsize::new(0)));
    move |_: JsonObject, context: ToolContext| {
        let count = count.fetch_add(1, Ordering::Relaxed) + 1;
        let whose = whose.clone();
        async move {
            Ok(ToolResult::json(json!({
                "user": whose, "count": count, "cwd": context.cwd.display().to_string(),
            })))
        }
    }
}

#[tokio::test]
async fn a_session_tool_is_made_for_each_session() {
    let host = host(&[]).cwd("/home".into()).build();
    host.register_session(definition("count"), counter).unwrap();
    assert_eq!(host.registered()[0].scope, ToolScope::Session);
    let count = async |session: &str| {
        let request = CallRequest { session: Some(session.into()), ..number("count", 0) };
        host.call(request).await.unwrap().result.unwrap().output
    };
    let open = |id: &str, user: &str| {
        let metadata = json!({ "user": user }).as_object().cloned().unwrap();
        let info = SessionInfo {
            session_id: id.into(),
            cwd: Path::new("/work").into(),
            metadata,
            ..SessionInfo::default()
        };
        host.open_session(info).unwrap();
    };
    open("a", "ada");
    assert_eq!(count("a").await, json!({"user": "ada", "count": 1, "cwd": "/work"}));
    assert_eq!(count("a").await["count"], 2);
    // A session that was not opened has the context of the host.
    assert_eq!(count("b").await, json!({"user": null, "count": 1, "cwd": "/home"}));
    open("a", "eve");
    assert_eq!(count("a").await, json!({"user": "eve", "count": 1, "cwd": "/work"}));
    assert!(host.end_session("a"));
    assert_eq!(count("a").await["count"], 1);
    assert!(host.unregister("count"));
    host.register_session(definition("count"), counter).unwrap();
    assert_eq!(count("b").await["count"], 1);
}

#[tokio::test]
async fn a_call_under_way_outlives_the_registration() {
    let host = host(&[]).build();
    let gate = Arc::new(tokio::sync::Notify::new());
    let inside = Arc::new(Mutex::new(false));
    let handler = {
        let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
        move |_: JsonObject, _: ToolContext| {
            *inside.lock().unwrap() = true;
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                Ok(ToolResult::text("done"))
            }
        }
    };
    host.register(definition("slow"), handler).unwrap();
    let mut running = std::pin::pin!(host.call(number("slow", 1)));
    while !*inside.lock().unwrap() {
        assert!(futures_util::poll!(&mut running).is_pending());
        tokio::task::yield_now().await;
    }
    assert!(host.unregister("slow"));
    gate.notify_one();
    assert!(running.await.unwrap().result.unwrap().success);
}
