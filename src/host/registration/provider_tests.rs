//! Providers, components and servers that come and go while calls run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use proptest::prelude::*;
use serde_json::json;
use tokio::sync::Notify;

use super::{HostContents, RegistrationError, Removal};
use crate::catalogue::pins::Pins;
use crate::config::spec::ProfileSpec;
use crate::host::ToolHost;
use crate::host::attempt::REMOVAL_GRACE_PERIOD;
use crate::host::fake::{FakeProvider, call, host, internal};
use crate::host::request::{CallRequest, ListRequest, ListScope, LookupScope};
use crate::model::{
    Error, ErrorCause, ErrorKind, EventSink, HostEvent, JsonObject, ListKind, ListOwner, Origin,
    ToolContext, ToolName, ToolResult, ToolSchema,
};
use crate::provider::{ComponentConfig, ToolProvider};

fn provider(component: &str, tool: &str) -> Arc<FakeProvider> {
    Arc::new(FakeProvider::local(vec![internal(ToolName::of(component, tool), 1)]))
}

fn waiting(component: &str) -> (Arc<FakeProvider>, Arc<Notify>, Arc<Notify>) {
    let (gate, begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (wait, tell) = (Arc::clone(&gate), Arc::clone(&begun));
    let tools = vec![internal(ToolName::of(component, "wait"), 1)];
    let fake = FakeProvider::local(tools).answering(move |context, _| {
        let (wait, tell) = (Arc::clone(&wait), Arc::clone(&tell));
        async move {
            tell.notify_one();
            tokio::select! {
                () = wait.notified() => Ok(ToolResult::text("done")),
                () = context.cancel.cancelled() => Err(Error::tool("told to stop")),
            }
        }
    });
    (Arc::new(fake), gate, begun)
}

async fn names(host: &ToolHost) -> Vec<String> {
    let tools = host.catalogue(&ListScope::Everything).await.tools;
    tools.iter().map(|tool| tool.name.full()).collect()
}

fn settings(value: &serde_json::Value) -> JsonObject {
    value.as_object().cloned().unwrap()
}

fn notes(host: &ToolHost) {
    host.register_kind("notes", |config: &ComponentConfig| {
        if config.settings.contains_key("broken") {
            return Err(Error::config("it is broken"));
        }
        let tool = config.settings.get("tool").and_then(|tool| tool.as_str()).unwrap_or("read");
        Ok(provider(&config.name, tool) as Arc<dyn ToolProvider>)
    })
    .unwrap();
}

#[tokio::test]
async fn a_provider_comes_and_goes_and_everybody_is_told() {
    let changes = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&changes);
    let sink = EventSink::new(move |event| {
        if let HostEvent::ListChanged { owner: ListOwner::Program, list: ListKind::Tools } = event {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let host = host(&[]).events(sink).build();
    let late = provider("late", "hello");
    host.register_provider("source", Arc::clone(&late) as _).unwrap();
    assert_eq!(names(&host).await, ["late-hello"]);
    assert!(host.call(call("hello")).await.unwrap().result.unwrap().success);
    assert_eq!(host.sources(), ["source"]);
    assert_eq!(host.unregister_provider("source").await.unwrap(), Removal { cancelled: 0 });
    assert_eq!((late.ended(), names(&host).await.len()), (1, 0));
    assert_eq!(changes.load(Ordering::Relaxed), 2);
    let error = host.call(call("late-hello")).await.unwrap_err();
    assert_eq!(
        (error.message(), error.cause()),
        ("'late-hello' was removed", ErrorCause::ToolRemoved)
    );
    assert_eq!(error.kind(), ErrorKind::Usage);
    // It was there; something else never was.
    assert_eq!(host.call(call("other")).await.unwrap_err().cause(), ErrorCause::Unspecified);
    host.register_provider("source", provider("late", "bye")).unwrap();
    let error = host.call(call("late-hello")).await.unwrap_err();
    assert_eq!(error.message(), "unknown tool 'late-hello'");
}

#[tokio::test]
async fn the_owner_of_a_name_is_named() {
    let local = provider("notes", "read");
    let server = Arc::new(FakeProvider::server("github", &["search"]));
    let host = host(&[&local, &server]).build();
    host.register_provider("mine", provider("own", "tool")).unwrap();
    let refused = |source: &str, component: &str, tool: &str| {
        let error = host.register_provider(source, provider(component, tool)).unwrap_err();
        assert!(matches!(error, RegistrationError::NameTaken { .. }), "{error:?}");
        error.to_string()
    };
    let taken = "is taken by";
    assert_eq!(refused("mine", "x", "y"), format!("the name 'mine' {taken} the provider 'mine'"));
    assert_eq!(refused("x", "own", "y"), format!("the name 'own' {taken} the provider 'mine'"));
    assert_eq!(
        refused("x", "github", "y"),
        format!("the name 'github' {taken} the MCP server 'github'")
    );
    assert_eq!(
        refused("github", "x", "y"),
        format!("the name 'github' {taken} the MCP server 'github'")
    );
    assert!(refused("x", "notes", "other").contains("the name 'notes'"));
    let plain = FakeProvider::local(vec![internal(ToolName::plain("own-tool"), 1)]);
    let error = host.register_provider("x", Arc::new(plain)).unwrap_err();
    assert!(
        error.to_string().starts_with("the name 'own-tool' is taken by the tool at"),
        "{error}"
    );
    let error = host.register_provider("no name", provider("x", "y")).unwrap_err();
    assert!(matches!(error, RegistrationError::InvalidName(_)));
    assert_eq!(host.sources(), ["github", "mine"]);
}

#[tokio::test]
async fn what_is_not_there_is_not_removed() {
    let host = host(&[&Arc::new(FakeProvider::server("s", &["t"]))]).build();
    notes(&host);
    host.register_component("notes", &ComponentConfig::new("n", JsonObject::new())).unwrap();
    for error in [
        host.unregister_provider("x").await.unwrap_err(),
        host.unregister_component("s").await.unwrap_err(),
        host.unregister_client("n").await.unwrap_err(),
        host.unregister_kind("x").unwrap_err(),
    ] {
        assert!(matches!(error, RegistrationError::NotRegistered { .. }), "{error:?}");
        assert_eq!(Error::from(error).kind().exit_code(), 2);
    }
    let error = Error::from(host.unregister_client("n").await.unwrap_err());
    assert_eq!(error.hint(), Some("it is the notes component 'n'"));
    host.unregister_component("n").await.unwrap();
    assert!(host.unregister_component("n").await.is_err());
    // A server that the host was built with goes as well.
    host.unregister_client("s").await.unwrap();
    assert!(host.servers().is_empty() && host.sources().is_empty());
}

#[tokio::test]
async fn a_component_is_made_by_its_type() {
    let host = host(&[]).build();
    notes(&host);
    let error = host.register_kind("notes", |_: &ComponentConfig| Err(Error::internal("no")));
    assert!(matches!(error.unwrap_err(), RegistrationError::NameTaken { .. }));
    let register = |key: &str, name: &str, value: serde_json::Value| {
        host.register_component(key, &ComponentConfig::new(name, settings(&value)))
    };
    register("notes", "one", json!({})).unwrap();
    register("notes", "two", json!({ "tool": "list" })).unwrap();
    assert_eq!(names(&host).await, ["one-read", "two-list"]);
    let definition = host.find("one-read", &LookupScope::default()).await.unwrap();
    assert!(matches!(definition.origin, Origin::Program));
    let error = register("notes", "one", json!({})).unwrap_err();
    assert_eq!(error.to_string(), "the name 'one' is taken by the notes component 'one'");
    let error = Error::from(register("nots", "three", json!({})).unwrap_err());
    assert_eq!(error.message(), "unknown component type 'nots'");
    assert_eq!(error.hint(), Some("did you mean 'notes'? known types: notes"));
    let error = Error::from(register("notes", "three", json!({ "broken": true })).unwrap_err());
    assert_eq!((error.kind(), error.message()), (ErrorKind::Config, "it is broken"));
    host.register_kind("foreign", |_: &ComponentConfig| Ok(provider("x", "y") as _)).unwrap();
    let error = register("foreign", "three", json!({})).unwrap_err();
    assert!(matches!(error, RegistrationError::ForeignTool { .. }), "{error}");
    let error = host.register_client(&ComponentConfig::new("s", JsonObject::new()));
    assert!(matches!(error.unwrap_err(), RegistrationError::NoClients));
    // What was made of a type stays when the type goes.
    host.unregister_kind("notes").unwrap();
    assert_eq!(host.kinds(), ["foreign"]);
    assert!(register("notes", "three", json!({})).is_err());
    assert!(host.call(call("one-read")).await.unwrap().result.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_finishes_before_its_provider_is_closed() {
    let host = host(&[]).build();
    let (slow, gate, begun) = waiting("slow");
    host.register_provider("slow", Arc::clone(&slow) as _).unwrap();
    let running = tokio::spawn({
        let host = Arc::clone(&host);
        async move { host.call(call("slow-wait")).await }
    });
    begun.notified().await;
    let mut removing = std::pin::pin!(host.unregister_provider("slow"));
    assert!(futures_util::poll!(&mut removing).is_pending());
    // No new user begins, and the name is free again.
    assert_eq!(host.call(call("slow-wait")).await.unwrap_err().cause(), ErrorCause::ToolRemoved);
    assert_eq!(slow.ended(), 0);
    host.register_provider("slow", provider("slow", "other")).unwrap();
    gate.notify_one();
    assert_eq!(removing.await.unwrap(), Removal { cancelled: 0 });
    assert!(running.await.unwrap().unwrap().result.unwrap().success);
    assert_eq!(slow.ended(), 1);
    assert_eq!(names(&host).await, ["slow-other"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_cancelled_and_says_why() {
    let host = host(&[]).build();
    let (slow, _gate, begun) = waiting("slow");
    host.register_provider("slow", Arc::clone(&slow) as _).unwrap();
    let running = tokio::spawn({
        let host = Arc::clone(&host);
        async move { host.call(call("slow-wait")).await }
    });
    begun.notified().await;
    assert_eq!(host.unregister_provider("slow").await.unwrap(), Removal { cancelled: 1 });
    let error = running.await.unwrap().unwrap().result.unwrap_err();
    assert_eq!((error.kind(), error.cause()), (ErrorKind::Unreachable, ErrorCause::ToolRemoved));
    assert_eq!(error.message(), "'slow-wait' was cancelled, because it was removed while it ran");
    assert_eq!(error.details(), ["told to stop"]);
    assert_eq!(slow.ended(), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_of_what_is_superseded_go_on_to_their_end() {
    let (old, gate, begun) = waiting("slow");
    let host = host(&[&old]).build();
    let running = tokio::spawn({
        let host = Arc::clone(&host);
        async move { host.call(call("slow-wait")).await }
    });
    begun.notified().await;
    let contents = HostContents {
        providers: vec![provider("slow", "other")],
        superseded: vec![Arc::clone(&old) as _],
        policy: Vec::new(),
        disabled: Vec::new(),
        pins: Pins::default(),
        profile: None,
        profiles: BTreeMap::new(),
    };
    host.replace_contents(contents).unwrap();
    tokio::time::sleep(REMOVAL_GRACE_PERIOD * 2).await;
    assert_eq!((names(&host).await, old.ended()), (vec!["slow-other".to_owned()], 0));
    gate.notify_one();
    assert!(running.await.unwrap().unwrap().result.unwrap().success);
    while old.ended() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_removal_goes_on_without_its_caller() {
    let host = host(&[]).build();
    let (slow, gate, begun) = waiting("slow");
    host.register_provider("slow", Arc::clone(&slow) as _).unwrap();
    let running = tokio::spawn({
        let host = Arc::clone(&host);
        async move { host.call(call("slow-wait")).await }
    });
    begun.notified().await;
    {
        let mut removing = std::pin::pin!(host.unregister_provider("slow"));
        assert!(futures_util::poll!(&mut removing).is_pending());
    }
    gate.notify_one();
    running.await.unwrap().unwrap();
    while slow.ended() == 0 {
        tokio::task::yield_now().await;
    }
    // A host that is closed meanwhile closes it itself, and takes nothing new.
    host.close().await;
    let error = host.register_provider("x", provider("x", "y")).unwrap_err();
    assert!(matches!(error, RegistrationError::HostClosed));
}

#[tokio::test]
async fn a_server_is_not_listed_again_once_it_is_removed() {
    let server = Arc::new(FakeProvider::server("s", &["t"]));
    let host = host(&[]).build();
    host.register_provider("s", Arc::clone(&server) as _).unwrap();
    assert_eq!(names(&host).await, ["s-t"]);
    assert_eq!(host.servers()[0].name, "s");
    host.unregister_client("s").await.unwrap();
    let listed = server.listed();
    let catalogue = host.catalogue(&ListScope::Everything).await;
    assert!(catalogue.tools.is_empty() && catalogue.servers.is_empty());
    assert!(host.check_servers(&["s".into()]).await.is_empty());
    assert!(host.restart_server("s").await.is_err());
    assert_eq!(server.listed(), listed);
}

#[tokio::test]
async fn two_agents_see_the_same_host_through_their_own_profiles() {
    let local = provider("notes", "read");
    let (git, web) = (FakeProvider::server("git", &["log"]), FakeProvider::dead("web"));
    let (git, web) = (Arc::new(git), Arc::new(web));
    let profile =
        |include: &str| ProfileSpec { include: vec![include.to_owned()], ..Default::default() };
    let profiles = [("writer", profile("notes-*")), ("reader", profile("git-*"))];
    let profiles = profiles.map(|(name, profile)| (name.to_owned(), profile));
    let host = host(&[&local, &git, &web]).profiles(profiles).build();
    let list = async |profile: &str| {
        let listing = host.list(&ListRequest::in_profile(profile)).await.unwrap();
        assert!(listing.servers.iter().all(|server| server.error.is_none()));
        listing.tools.iter().map(|tool| tool.name.full()).collect::<Vec<_>>()
    };
    let (writer, reader) = tokio::join!(list("writer"), list("reader"));
    assert_eq!((writer, reader), (vec!["notes-read".to_owned()], vec!["git-log".to_owned()]));
    // Servers of which nothing is shown were not contacted.
    assert_eq!((git.listed(), web.listed()), (1, 0));
    let call_as = async |profile: &str, name: &str| {
        let profile = Some(profile.to_owned());
        host.call(CallRequest { profile, ..call(name) }).await
    };
    assert!(call_as("writer", "notes-read").await.is_ok());
    for name in ["git-log", "web-anything", "git.log"] {
        let error = call_as("writer", name).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{name}");
        assert!(error.message().ends_with("is not part of the profile 'writer'"), "{error}");
    }
    assert_eq!(call_as("reader", "notes-read").await.unwrap_err().kind(), ErrorKind::Denied);
    assert!(call_as("reader", "log").await.is_ok());
    assert_eq!((git.listed(), web.listed()), (1, 0));
    let error = call_as("raeder", "log").await.unwrap_err();
    assert_eq!(error.hint(), Some("did you mean 'reader'? known profiles: reader, writer"));
    let unknown = host.list(&ListRequest::in_profile("none")).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Usage);
    // Without a profile everything is shown, and what fails is told.
    let all = host.catalogue(&ListScope::Everything).await;
    assert_eq!((all.tools.len(), all.servers.len()), (2, 2));
    // A hidden server that is asked for by its name is refused.
    let scope = ListScope::Servers(vec!["git".to_owned()]);
    let hidden = ListRequest { scope, profile: Some("writer".to_owned()) };
    let hidden = host.list(&hidden).await.unwrap();
    assert_eq!(hidden.servers[0].error.as_ref().unwrap().kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn what_a_call_calls_is_bound_to_its_profile() {
    let profile = ProfileSpec { exclude: vec!["inner-*".to_owned()], ..Default::default() };
    let inner = provider("inner", "tool");
    let host = host(&[&inner]).profiles([("p".to_owned(), profile)]).build();
    let outer = async |arguments: JsonObject, context: ToolContext| {
        let caller = context.caller.clone().unwrap();
        caller.call(&context, "inner-tool", arguments).await
    };
    let mut tool = internal(ToolName::plain("outer"), 1);
    tool.input_schema = ToolSchema::from(json!({ "type": "object" }));
    host.register(tool, outer).unwrap();
    assert!(host.call(call("outer")).await.unwrap().result.is_ok());
    let request = CallRequest { profile: Some("p".into()), ..call("outer") };
    let error = host.call(request).await.unwrap().result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(inner.called(), 1);
}

#[test]
fn of_many_threads_that_want_one_name_one_gets_it() {
    const THREADS: usize = 8;
    for round in 0..20 {
        let host = host(&[]).build();
        let start = Arc::new(Barrier::new(THREADS));
        let threads: Vec<_> = (0..THREADS)
            .map(|n| {
                let (host, start) = (Arc::clone(&host), Arc::clone(&start));
                std::thread::spawn(move || {
                    start.wait();
                    // Half of them want the source, the other half the component.
                    if n % 2 == 0 {
                        host.register_provider("one", provider(&format!("c{n}"), "t")).is_ok()
                    } else {
                        host.register_provider(&format!("s{n}"), provider("one", "t")).is_ok()
                    }
                })
            })
            .collect();
        let won = threads.into_iter().map(|thread| thread.join().unwrap());
        assert_eq!(won.filter(|ok| *ok).count(), 1, "round {round}");
    }
}

fn spawn_thread<F: Future + 'static>(
    work: impl FnOnce() -> F + Send + 'static,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(work());
    })
}

#[test]
fn calls_and_lists_go_on_while_providers_come_and_go() {
    const ROUNDS: usize = 60;
    let steady = provider("steady", "tool");
    let host = host(&[&steady]).build();
    let done = Arc::new(AtomicBool::new(false));
    let callers = ["steady-tool", "moving-tool", "other-tool"].map(|name| {
        let (host, done) = (Arc::clone(&host), Arc::clone(&done));
        spawn_thread(move || async move {
            while !done.load(Ordering::Relaxed) {
                let listed = names(&host).await;
                assert!(listed.contains(&"steady-tool".to_owned()), "{listed:?}");
                match host.call(call(name)).await {
                    Ok(outcome) => assert!(outcome.result.unwrap().success),
                    // Not there yet, or not any more.
                    Err(error) => {
                        assert_ne!(name, "steady-tool", "{error}");
                        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
                    }
                }
            }
        })
    });
    let movers = ["moving", "other"].map(|name| {
        let host = Arc::clone(&host);
        spawn_thread(move || async move {
            for _ in 0..ROUNDS {
                let new = provider(name, "tool");
                host.register_provider(name, Arc::clone(&new) as _).unwrap();
                assert!(host.register_provider(name, provider("x", "y")).is_err());
                tokio::task::yield_now().await;
                let removal = host.unregister_provider(name).await.unwrap();
                assert_eq!((removal.cancelled, new.ended()), (0, 1));
            }
        })
    });
    let moved = movers.map(std::thread::JoinHandle::join);
    done.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.join().unwrap();
    }
    moved.into_iter().for_each(Result::unwrap);
    assert_eq!(host.sources(), ["steady"; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is registered and removed in whatever order: what is listed is what is there.
    #[test]
    fn the_list_is_what_is_registered(
        steps in prop::collection::vec((any::<bool>(), 0_usize..4, 0_usize..4), 0..24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let host = host(&[]).build();
            // Source to component.
            let mut model: Vec<(String, String)> = Vec::new();
            for (adds, source, component) in steps {
                let (source, component) = (format!("n{source}"), format!("n{component}"));
                if adds {
                    let is_free = model.iter().all(|(s, c)| {
                        [s, c].iter().all(|name| **name != source && **name != component)
                    });
                    let outcome = host.register_provider(&source, provider(&component, "t"));
                    prop_assert_eq!(outcome.is_ok(), is_free, "{} {} {:?}", source, component, model);
                    if is_free {
                        model.push((source, component));
                    }
                } else {
                    let is_registered = model.iter().any(|(s, _)| *s == source);
                    prop_assert_eq!(host.unregister_provider(&source).await.is_ok(), is_registered);
                    model.retain(|(s, _)| *s != source);
                }
                let listed: BTreeSet<String> = names(&host).await.into_iter().collect();
                let expected = model.iter().map(|(_, component)| format!("{component}-t"));
                prop_assert_eq!(listed, expected.collect::<BTreeSet<_>>());
            }
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn a_weight_that_a_registered_server_names_counts() {
    let (one, two) =
        (FakeProvider::server("one", &["echo"]), FakeProvider::server("two", &["echo"]));
    one.set_weight(Some(0.5));
    two.set_weight(Some(1.0));
    let host = host(&[]).build();
    host.register_provider("one", Arc::new(one)).unwrap();
    host.register_provider("two", Arc::new(two)).unwrap();
    assert_eq!(host.find("echo", &LookupScope::default()).await.unwrap().name.full(), "two-echo");
    host.unregister_client("two").await.unwrap();
    assert_eq!(host.call(call("echo")).await.unwrap().definition.name.full(), "one-echo");
}
