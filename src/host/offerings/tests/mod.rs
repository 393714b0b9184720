//! Tests of prompts and resources, on fake servers.

mod requests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ServerChange;
use crate::audit::Masker;
use crate::config::spec::ProfileSpec;
use crate::host::ToolHost;
use crate::host::builder::ToolHostBuilder;
use crate::host::fake::FakeProvider;
use crate::host::request::{ItemRequest, LookupScope};
use crate::model::{
    Completion, CompletionQuery, CompletionReference, Error, ErrorKind, ErrorPhase, Freshness,
    JsonObject, OfferingListing, Prompt, PromptArgument, PromptMessages, Resource,
    ResourceContents, ResourceTemplate, SubscriptionEvent, SubscriptionFilter, ToolCall,
    ToolContext, ToolDefinition, ToolListing, ToolName, ToolResult,
};
use crate::provider::{ManagedServer, OfferingSupport, Preview, ToolProvider};

/// A server that offers what a test tells it; its other half is a [`FakeProvider`].
struct FakeOfferingServer {
    half: FakeProvider,
    name: &'static str,
    prompts: Vec<&'static str>,
    uris: Vec<&'static str>,
    templates: Vec<&'static str>,
    error: Option<Error>,
    /// What reading and filling in fail with, while the lists come.
    request_error: Option<Error>,
    /// What its requests were told, and how often it was asked for a list.
    contexts: Arc<Mutex<Vec<ToolContext>>>,
    lists: Arc<AtomicUsize>,
}

fn shop(name: &'static str) -> FakeOfferingServer {
    FakeOfferingServer {
        half: FakeProvider::server(name, &[]),
        name,
        prompts: Vec::new(),
        uris: Vec::new(),
        templates: Vec::new(),
        error: None,
        request_error: None,
        contexts: Arc::default(),
        lists: Arc::default(),
    }
}

fn raw() -> Arc<RawValue> {
    Arc::from(RawValue::from_string("{}".to_owned()).unwrap())
}

impl FakeOfferingServer {
    fn offer<T>(&self, items: Vec<T>) -> Result<OfferingListing<T>, Error> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        let freshness = Freshness { ttl_ms: Some(7), scope: None };
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(OfferingListing { items, freshness, ..OfferingListing::default() }),
        }
    }
}

#[async_trait]
impl ToolProvider for FakeOfferingServer {
    fn component(&self) -> Option<&str> {
        Some(self.name)
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        Vec::new()
    }

    fn is_remote(&self) -> bool {
        true
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        self.half.list().await
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        self.half.call(context, call).await
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        self.half.preview(call).await
    }

    fn as_server(&self) -> Option<&dyn ManagedServer> {
        self.half.as_server()
    }

    fn as_offerings(&self) -> Option<&dyn OfferingSupport> {
        Some(self)
    }
}

#[async_trait]
impl OfferingSupport for FakeOfferingServer {
    async fn prompts(&self) -> Result<OfferingListing<Prompt>, Error> {
        let argument = |name: &str, required| PromptArgument {
            name: name.to_owned(),
            title: None,
            description: None,
            required,
        };
        let prompt = |name: &&str| Prompt {
            name: ToolName::of(self.name, *name),
            title: None,
            description: None,
            arguments: vec![argument("who", true), argument("how", false)],
            warnings: Vec::new(),
            raw: raw(),
        };
        self.offer(self.prompts.iter().map(prompt).collect())
    }

    async fn resources(&self) -> Result<OfferingListing<Resource>, Error> {
        let resource = |uri: &&str| Resource {
            server: self.name.to_owned(),
            uri: (*uri).to_owned(),
            name: (*uri).to_owned(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            warnings: Vec::new(),
            raw: raw(),
        };
        self.offer(self.uris.iter().map(resource).collect())
    }

    async fn templates(&self) -> Result<OfferingListing<ResourceTemplate>, Error> {
        let template = |template: &&str| ResourceTemplate {
            server: self.name.to_owned(),
            template: (*template).to_owned(),
            name: (*template).to_owned(),
            title: None,
            description: None,
            mime_type: None,
            warnings: Vec::new(),
            raw: raw(),
        };
        self.offer(self.templates.iter().map(template).collect())
    }

    async fn read(&self, context: &ToolContext, uri: &str) -> Result<ResourceContents, Error> {
        self.contexts.lock().unwrap().push(context.clone());
        self.request_error.clone().map_or(Ok(()), Err)?;
        Ok(ResourceContents {
            server: self.name.to_owned(),
            uri: uri.to_owned(),
            contents: vec![json!({ "uri": uri, "text": "the key is hunter22" })],
            freshness: Freshness::default(),
            meta: None,
            routing: None,
        })
    }

    async fn prompt(
        &self,
        context: &ToolContext,
        name: &str,
        arguments: &JsonObject,
    ) -> Result<PromptMessages, Error> {
        self.contexts.lock().unwrap().push(context.clone());
        self.request_error.clone().map_or(Ok(()), Err)?;
        let text = json!({ "type": "text", "text": arguments["who"] });
        Ok(PromptMessages {
            name: ToolName::of(self.name, name),
            description: None,
            messages: vec![json!({ "role": "user", "content": text })],
            meta: None,
            routing: None,
        })
    }

    async fn complete(
        &self,
        context: &ToolContext,
        query: &CompletionQuery,
    ) -> Result<Completion, Error> {
        self.contexts.lock().unwrap().push(context.clone());
        self.request_error.clone().map_or(Ok(()), Err)?;
        let values = vec![self.name.to_owned(), format!("{:?}", query.reference)];
        Ok(Completion { values, ..Completion::default() })
    }

    async fn watch(
        &self,
        filter: &SubscriptionFilter,
        changes: &mpsc::Sender<SubscriptionEvent>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        for uri in &filter.uris {
            let change = SubscriptionEvent::ResourceUpdated { uri: uri.clone(), times: 1 };
            if changes.send(change).await.is_err() {
                return Ok(());
            }
        }
        cancel.cancelled().await;
        Ok(())
    }

    async fn set_log_level(&self, _: &'static str) -> Result<(), Error> {
        Ok(())
    }
}

fn builder(shops: Vec<FakeOfferingServer>) -> ToolHostBuilder {
    shops.into_iter().fold(ToolHost::builder(), |builder, shop| builder.provider(Arc::new(shop)))
}

fn never() -> CancellationToken {
    CancellationToken::new()
}

fn who(name: &str) -> JsonObject {
    JsonObject::from_iter([("who".to_owned(), json!(name))])
}

fn to(server: &str) -> ItemRequest {
    ItemRequest::to_servers(&of(server), &never())
}

fn of(server: &str) -> Vec<String> {
    vec![server.to_owned()]
}

#[tokio::test]
async fn one_bad_server_costs_itself() {
    let bad = FakeOfferingServer { error: Some(Error::unreachable("refused")), ..shop("bad") };
    let good = FakeOfferingServer { prompts: vec!["greet"], ..shop("good") };
    let host = builder(vec![bad, good]).build();
    let all = host.prompts(&LookupScope::default()).await.unwrap();
    assert_eq!(all.items.len(), 1);
    let failed: Vec<bool> = all.servers.iter().map(|server| server.error.is_some()).collect();
    assert_eq!(failed, [true, false]);
    assert_eq!(all.freshness, [("good".to_owned(), Freshness { ttl_ms: Some(7), scope: None })]);
    assert_eq!(host.prompts(&LookupScope::of_servers(&of("good"))).await.unwrap().servers.len(), 1);
    let unknown = host.prompts(&LookupScope::of_servers(&of("god"))).await.unwrap();
    let error = unknown.servers[0].error.as_ref().unwrap();
    assert_eq!(error.hint(), Some("did you mean 'good'?"));
}

#[tokio::test]
async fn a_prompt_is_found_by_full_and_by_bare_name() {
    let one = FakeOfferingServer { prompts: vec!["greet", "both"], ..shop("one") };
    let two = FakeOfferingServer { prompts: vec!["both"], ..shop("two") };
    let host = builder(vec![one, two]).build();
    for name in ["one-greet", "one.greet", "one__greet", "greet"] {
        assert_eq!(
            host.find_prompt(name, &LookupScope::default()).await.unwrap().name.full(),
            "one-greet",
            "{name}"
        );
    }
    let error = host.find_prompt("both", &LookupScope::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.details(), ["one-both", "two-both"]);
    assert_eq!(
        host.find_prompt("both", &LookupScope::of_servers(&of("two"))).await.unwrap().name.full(),
        "two-both"
    );
    let error = host.find_prompt("one-gret", &LookupScope::default()).await.unwrap_err();
    assert!(error.hint().unwrap().starts_with("did you mean 'one-greet'"));
}

#[tokio::test]
async fn arguments_of_a_prompt_are_checked_all_at_once() {
    let host = builder(vec![FakeOfferingServer { prompts: vec!["greet"], ..shop("one") }]).build();
    let arguments = JsonObject::from_iter([("hows".to_owned(), json!("x"))]);
    let error = host.prompt("greet", &arguments, &ItemRequest::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(
        error.details(),
        ["who: required, but missing", "hows: unknown; did you mean 'how'?"]
    );
    let filled = host.prompt("greet", &who("Ada"), &ItemRequest::default()).await.unwrap();
    assert_eq!(filled.messages[0]["content"]["text"], "Ada");
}

#[tokio::test]
async fn an_address_belongs_to_who_lists_it_or_has_a_template_for_it() {
    let one =
        FakeOfferingServer { uris: vec!["a:1", "a:2"], templates: vec!["b:{x}"], ..shop("one") };
    let two = FakeOfferingServer { uris: vec!["a:2"], ..shop("two") };
    let host = builder(vec![one, two]).build();
    let owner = async |uri: &str, servers: &[String]| {
        host.read(uri, &ItemRequest::to_servers(servers, &never())).await.map(|read| read.server)
    };
    assert_eq!(owner("a:1", &[]).await.unwrap(), "one");
    assert_eq!(owner("b:x", &[]).await.unwrap(), "one");
    // One named server is asked for anything.
    assert_eq!(owner("c:x", &of("two")).await.unwrap(), "two");
    assert_eq!(owner("a:2", &of("two")).await.unwrap(), "two");
    let error = owner("a:2", &[]).await.unwrap_err();
    assert_eq!(error.details(), ["one", "two"]);
    assert!(error.hint().unwrap().contains("--server"));
    let error = owner("c:x", &[]).await.unwrap_err();
    assert!(error.message().contains("no server lists"), "{}", error.message());
    assert!(owner("a:1", &of("three")).await.unwrap_err().message().contains("unknown server"));
}

#[tokio::test]
async fn a_silent_server_is_a_note_unless_it_was_asked_for() {
    let bad = || FakeOfferingServer { error: Some(Error::unreachable("refused")), ..shop("bad") };
    let host = builder(vec![bad(), shop("good")]).build();
    let error = host.read("a:1", &ItemRequest::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.details(), ["server 'bad' did not answer and may offer 'a:1': refused"]);
    for name in ["greet", "good-greet"] {
        let error = host.find_prompt(name, &LookupScope::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{name}");
        assert_eq!(error.details().len(), 1, "{name}");
    }
    for (name, servers) in [("bad-greet", &[][..]), ("greet", &of("bad"))] {
        let error = host.find_prompt(name, &LookupScope::of_servers(servers)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{name}");
    }
    let host = builder(vec![bad()]).build();
    let error = host.read("a:1", &ItemRequest::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
}

#[tokio::test]
async fn a_completion_needs_a_known_argument() {
    let one =
        FakeOfferingServer { prompts: vec!["greet"], templates: vec!["b:{x}/{y}"], ..shop("one") };
    let host = builder(vec![one]).build();
    let query = |reference: CompletionReference, argument: &str, context: &[(&str, &str)]| {
        CompletionQuery {
            reference,
            argument: argument.to_owned(),
            value: String::new(),
            context: context.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        }
    };
    let ask = async |query| host.complete(query, &ItemRequest::default()).await;
    let prompt = || CompletionReference::Prompt("one.greet".to_owned());
    let template = || CompletionReference::Template("b:{x}/{y}".to_owned());
    let completion = ask(query(prompt(), "who", &[("how", "x")])).await.unwrap();
    assert_eq!(completion.values, ["one", "Prompt(\"greet\")"]);
    assert!(ask(query(template(), "y", &[("x", "1")])).await.is_ok());
    let error = ask(query(template(), "z", &[])).await.unwrap_err();
    assert_eq!(error.hint(), Some("its arguments are x, y"));
    assert!(ask(query(prompt(), "who", &[("hw", "x")])).await.is_err());
    let unknown = CompletionReference::Template("b:{x}/{z}".to_owned());
    let error = ask(query(unknown, "x", &[])).await.unwrap_err();
    assert_eq!(error.hint(), Some("did you mean 'b:{x}/{y}'?"));
}

#[tokio::test]
async fn known_secrets_do_not_leave_the_host() {
    let one = FakeOfferingServer { uris: vec!["a:1"], prompts: vec!["greet"], ..shop("one") };
    let masker = Masker::new([("KEY", "hunter22")]);
    let host = builder(vec![one]).masker(masker).build();
    let read = host.read("a:1", &ItemRequest::default()).await.unwrap();
    assert_eq!(read.contents[0]["text"], "the key is ‹secret:KEY›");
    let filled = host.prompt("greet", &who("hunter22"), &ItemRequest::default()).await.unwrap();
    assert_eq!(filled.messages[0]["content"]["text"], "‹secret:KEY›");
}

#[tokio::test]
async fn a_profile_hides_prompts_and_resources_too() {
    let one =
        FakeOfferingServer { prompts: vec!["greet", "part"], uris: vec!["a:1"], ..shop("one") };
    let profile = ProfileSpec { include: vec!["one-g*".to_owned()], ..ProfileSpec::default() };
    let host = builder(vec![one]).profile(Some(profile)).build();
    assert_eq!(host.prompts(&LookupScope::default()).await.unwrap().items.len(), 1);
    assert!(host.resources(&LookupScope::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn changes_of_several_servers_come_together_and_one_failure_is_told() {
    let one = FakeOfferingServer { uris: vec!["a:1"], ..shop("one") };
    let two = FakeOfferingServer { uris: vec!["a:2", "a:3"], ..shop("two") };
    let host = builder(vec![one, two]).build();
    let (sender, mut receiver) = mpsc::channel(1);
    let stop = never();
    let uris = ["a:1", "a:2", "a:3", "a:2"].map(str::to_owned);
    let (watched, counts) = tokio::join!(
        async {
            let watched =
                host.watch_resources(&uris, &LookupScope::default(), &sender, &stop).await;
            drop(sender);
            watched
        },
        async {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for _ in 0..3 {
                let Some(ServerChange {
                    server,
                    change: SubscriptionEvent::ResourceUpdated { .. },
                }) = receiver.recv().await
                else {
                    panic!("no change");
                };
                *counts.entry(server).or_default() += 1;
            }
            stop.cancel();
            counts
        }
    );
    watched.unwrap();
    assert_eq!(counts, BTreeMap::from([("one".to_owned(), 1), ("two".to_owned(), 2)]));

    let bad = FakeOfferingServer { error: Some(Error::tool("no such thing")), ..shop("bad") };
    let host = builder(vec![bad]).build();
    let (sender, mut receiver) = mpsc::channel(4);
    let failed = host
        .watch_resources(&uris[..1], &LookupScope::of_servers(&of("bad")), &sender, &never())
        .await;
    assert_eq!(failed.unwrap_err().message(), "no such thing");
    assert!(matches!(receiver.try_recv().unwrap().change, SubscriptionEvent::Failed(_)));
}

#[tokio::test(start_paused = true)]
async fn work_that_hears_no_cancellation_ends_soon_after_it() {
    let cancel = never();
    cancel.cancel();
    let work = std::future::pending::<Result<(), Error>>();
    let error = super::with_cancellation(work, &cancel).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Interrupted(_)));
}

fn weighted(servers: Vec<(FakeOfferingServer, f64)>) -> Arc<ToolHost> {
    let servers = servers.into_iter().map(|(server, weight)| {
        server.half.set_weight(Some(weight));
        FakeOfferingServer {
            prompts: vec!["greet"],
            uris: vec!["note:one"],
            templates: vec!["item:{id}"],
            ..server
        }
    });
    builder(servers.collect()).build()
}

/// Which server read, filled in and completed.
async fn served(host: &ToolHost) -> [String; 3] {
    let read = host.read("note:one", &ItemRequest::default()).await.unwrap();
    let filled = host.prompt("greet", &who("Ada"), &ItemRequest::default()).await.unwrap();
    let query = CompletionQuery {
        reference: CompletionReference::Template("item:{id}".to_owned()),
        argument: "id".to_owned(),
        value: String::new(),
        context: BTreeMap::new(),
    };
    let completion = host.complete(query, &ItemRequest::default()).await.unwrap();
    let filled = filled.name.component().unwrap().to_owned();
    [read.server, filled, completion.values[0].clone()]
}

#[tokio::test]
async fn the_greatest_weight_serves_and_of_equals_the_first_in_the_file() {
    let host = weighted(vec![(shop("spare"), 0.5), (shop("one"), 1.0), (shop("two"), 1.0)]);
    assert_eq!(served(&host).await, ["one", "one", "one"]);
    assert_eq!(served(&host).await, ["one", "one", "one"]);
    let read = host.read("note:one", &ItemRequest::default()).await.unwrap();
    assert_eq!(read.routing.unwrap().others, ["spare", "two"]);
    // A name that says whose is no choice.
    let filled = host.prompt("spare-greet", &who("Ada"), &ItemRequest::default()).await.unwrap();
    assert_eq!((filled.name.component(), filled.routing), (Some("spare"), None));
    assert_eq!(host.read("note:one", &to("spare")).await.unwrap().server, "spare");
}

#[tokio::test]
async fn without_a_weight_for_each_the_caller_chooses() {
    let offering =
        |name| FakeOfferingServer { prompts: vec!["greet"], uris: vec!["note:one"], ..shop(name) };
    let one = offering("one");
    one.half.set_weight(Some(1.0));
    let host = builder(vec![one, offering("two")]).build();
    let error = host.read("note:one", &ItemRequest::default()).await.unwrap_err();
    assert_eq!((error.kind(), error.details().len()), (ErrorKind::Usage, 2));
    let error = host.prompt("greet", &who("Ada"), &ItemRequest::default()).await.unwrap_err();
    assert_eq!(error.details(), ["one-greet", "two-greet"]);
}

#[tokio::test]
async fn a_request_of_which_nothing_was_sent_goes_to_the_next_server() {
    let dying = |name, phase| FakeOfferingServer {
        request_error: Some(Error::unreachable("exited with 3").with_phase(phase)),
        ..shop(name)
    };
    let start = ErrorPhase::Start;
    let host = weighted(vec![(dying("first", start), 1.0), (shop("spare"), 0.5)]);
    assert_eq!(served(&host).await, ["spare", "spare", "spare"]);
    // What was sent is never sent again.
    let host = weighted(vec![(dying("first", ErrorPhase::Call), 1.0), (shop("spare"), 0.5)]);
    let error = host.read("note:one", &ItemRequest::default()).await.unwrap_err();
    assert_eq!(error.message(), "exited with 3");
    // When all fail the first failure is told, with the others below it.
    let host = weighted(vec![(dying("first", start), 1.0), (dying("spare", start), 0.5)]);
    let error = host.prompt("greet", &who("Ada"), &ItemRequest::default()).await.unwrap_err();
    assert_eq!(error.message(), "exited with 3");
}

#[tokio::test]
async fn a_server_that_cannot_be_listed_is_stood_in_for() {
    let dead = FakeOfferingServer { error: Some(Error::unreachable("refused")), ..shop("first") };
    let host = weighted(vec![(dead, 1.0), (shop("spare"), 0.5)]);
    let routing = host.read("note:one", &ItemRequest::default()).await.unwrap().routing.unwrap();
    assert_eq!((routing.server.as_str(), routing.skipped.len()), ("spare", 1));
    assert!(routing.skipped[0].reason.contains("refused"), "{routing:?}");
    // By its own name it is tried all the same.
    let error = host.prompt("first-greet", &who("Ada"), &ItemRequest::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
}
