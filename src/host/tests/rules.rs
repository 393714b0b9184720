//! Rules that hold for every call, from any caller and however much is approved beforehand.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::rule;
use crate::audit::Masker;
use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::pins::content::PinnedText;
use crate::catalogue::pins::{ConfiguredServer, PinContext, PinFileContent, PinnedEntry, Pins};
use crate::config::spec::{DriftPolicy, PolicyAction};
use crate::host::fake::{FakeProvider, MemoryRecorder, call, host, internal, variables};
use crate::host::recorder::RecordError;
use crate::host::request::{CallRequest, ListScope};
use crate::model::{
    EntryOrigin, ErrorKind, JsonObject, Layer, ToolDefinition, ToolName, ToolResult,
};

#[tokio::test]
async fn a_denied_call_does_not_run_although_its_entry_asks_and_a_person_says_yes() {
    let mut tool = internal(ToolName::plain("danger"), 1);
    tool.requires_approval = true;
    let fake = Arc::new(FakeProvider::local(vec![tool]));
    let host = host(&[&fake]).policy(rule("dan*", PolicyAction::Deny)).build();
    let yes = CallRequest { assume_yes: true, assume_yes_nested: true, ..call("danger") };
    assert_eq!(host.call(yes).await.err().map(|error| error.kind()), Some(ErrorKind::Denied));
    let many = CallRequest { assume_yes: true, ..call("danger") };
    assert_eq!(
        host.load_target(&many, None).await.err().map(|f| f.kind()),
        Some(ErrorKind::Denied)
    );
    assert_eq!(fake.called(), 0);
}

#[tokio::test]
async fn what_writes_is_not_called_many_times_unless_that_is_allowed() {
    let of = |change: fn(&mut ToolDefinition)| {
        let mut tool = internal(ToolName::plain("danger"), 1);
        change(&mut tool);
        host(&[&Arc::new(FakeProvider::local(vec![tool]))]).build()
    };
    let writing: [fn(&mut ToolDefinition); 3] = [
        |tool| tool.annotations.read_only = Some(false),
        |tool| tool.annotations.destructive = Some(true),
        |tool| tool.requires_approval = true,
    ];
    for change in writing {
        let error = of(change).load_target(&call("danger"), None).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert_eq!(error.hint(), Some("pass --allow-writes to benchmark a tool that may write"));
        let allowed = CallRequest { assume_yes: true, ..call("danger") };
        assert!(of(change).load_target(&allowed, None).await.is_ok());
    }
    assert!(of(|_| ()).load_target(&call("danger"), None).await.is_ok());
}

#[tokio::test]
async fn a_call_sets_only_the_variables_that_the_entry_declares() {
    let mut tool = internal(ToolName::plain("danger"), 1);
    tool.context_env = Arc::new(["TICKET".to_owned(), "PYTHONUSERBASE".to_owned()]);
    let fake = FakeProvider::local(vec![tool])
        .answering(|context, _| async move { Ok(ToolResult::json(json!(context.environment))) });
    let fake = Arc::new(fake);
    // What holds for many calls reaches those that declare it.
    let standing = variables(&[("TICKET", "0"), ("OTHER", "x"), ("LD_PRELOAD", "x")]);
    let host = host(&[&fake]).environment(standing).build();
    let with =
        |name: &str| CallRequest { environment: variables(&[(name, "1")]), ..call("danger") };
    for (name, expected) in [
        ("OTHER_ID", "context_env: [OTHER_ID]"),
        ("PYTHONUSERBASE", "may decide which code runs"),
        ("BASH_FUNC_ls%%", "may decide which code runs"),
        ("HTTPS_PROXY", "may decide which code runs"),
    ] {
        for error in [
            host.call(with(name)).await.err().unwrap(),
            host.dry_run(&with(name)).await.err().unwrap(),
        ] {
            assert_eq!(error.kind().exit_code(), 2, "{name}");
            assert!(error.hint().unwrap().contains(expected), "{name}: {error:?}");
        }
        assert_eq!(host.load_target(&with(name), None).await.err().unwrap().kind().exit_code(), 2);
    }
    assert_eq!(fake.called(), 0);
    let environment = |name: &'static str| {
        let called = Box::pin(host.call(with(name)));
        async move { called.await.unwrap().result.unwrap().structured.unwrap() }
    };
    assert_eq!(environment("TICKET").await, json!({ "TICKET": "1" }));
    assert_eq!(environment("TOOLHOST_X").await, json!({ "TICKET": "0", "TOOLHOST_X": "1" }));
}

#[tokio::test]
async fn what_a_server_tells_models_is_shown_without_secrets() {
    let mut server = FakeProvider::server("s", &["echo"]);
    server.instructions = Some("Use the key hunter22.".to_owned());
    let host = host(&[&Arc::new(server)]).masker(Masker::new([("KEY", "hunter22")])).build();
    let expected = Some("Use the key ‹secret:KEY›.");
    assert_eq!(host.servers()[0].instructions.as_deref(), expected);
    let checked = host.check_servers(&["s".to_owned()]).await;
    assert_eq!(checked[0].instructions.as_deref(), expected);
    let restarted = host.restart_server("s").await.unwrap();
    assert_eq!(restarted.instructions.as_deref(), expected);
}

#[tokio::test]
async fn what_a_server_tells_models_is_pinned_and_compared_without_secrets() {
    let mut server = FakeProvider::server("s", &["echo"]);
    server.instructions = Some("Use the key hunter22.".to_owned());
    let host = host(&[&Arc::new(server)]).masker(Masker::new([("KEY", "hunter22")])).build();
    let pinned = host.pin_instructions("s").unwrap();
    assert_eq!(pinned.text.as_deref(), Some("Use the key ‹secret:KEY›."));
    assert_eq!(host.pin_instructions("other"), None);

    let entry = PinnedEntry::of(&EntryOrigin::of(Layer::Project, "/p"), &str::to_owned);
    let (file, endpoint) = ("/p/mcp.yaml".to_owned(), "stdio server".to_owned());
    let owner = ConfiguredServer { file, endpoint, entry, drift: DriftPolicy::Block };
    let servers = BTreeMap::from([("s".to_owned(), owner)]);
    let context = Arc::new(PinContext { servers, ..PinContext::default() });
    let catalogue = host.catalogue(&ListScope::Everything).await;
    let changes = |pinned: PinnedText| {
        let mut content = PinFileContent::default();
        content.group_mut(Some("s"), None).instructions = Some(pinned);
        let report = host.compare(&Pins::new(Arc::clone(&context), content), &catalogue);
        report.servers.into_iter().flat_map(|server| server.changes).collect::<Vec<_>>()
    };
    assert_eq!(changes(pinned.clone()), []);
    let before = PinnedText::of("Read first.", &str::to_owned);
    let after = pinned.text;
    let change = DefinitionChange { part: "instructions", before: before.text.clone(), after };
    assert_eq!(changes(before), [change]);
}

#[tokio::test]
async fn an_outcome_that_was_lost_is_told_where_a_record_is_required() {
    let tools = || Arc::new(FakeProvider::local(vec![internal(ToolName::plain("t"), 1)]));
    let lost = || MemoryRecorder {
        lost: Some(RecordError::Lost("disk full".into())),
        ..MemoryRecorder::default()
    };
    let required = host(&[&tools()]).recorder(Arc::new(lost())).require_record(true).build();
    let outcome = required.call(call("t")).await.unwrap();
    let error = outcome.error().unwrap();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Internal, "not recorded: disk full"));
    // The answer came and is not taken back.
    assert!(outcome.result.as_ref().unwrap().success);
    let open = host(&[&tools()]).recorder(Arc::new(lost())).build();
    let outcome = open.call(call("t")).await.unwrap();
    assert!(outcome.error().is_none());
    assert_eq!(outcome.metadata.unrecorded.as_deref(), Some("not recorded: disk full"));
    assert_eq!(outcome.result.unwrap().warnings, ["not recorded: disk full"]);
}

#[tokio::test]
async fn a_run_of_calls_whose_outcome_was_lost_has_failed_where_a_record_is_required() {
    for required in [true, false] {
        let tools = Arc::new(FakeProvider::local(vec![internal(ToolName::plain("t"), 1)]));
        let book = MemoryRecorder {
            lost: Some(RecordError::Lost("disk full".into())),
            ..MemoryRecorder::default()
        };
        let host = host(&[&tools]).recorder(Arc::new(book)).require_record(required).build();
        let target = host.load_target(&call("t"), None).await.unwrap();
        let record = target.record(&JsonObject::new(), "2 calls").unwrap();
        let (warnings, lost) = record.close(2, 2, 0);
        assert_eq!(warnings, ["not recorded: disk full"]);
        assert_eq!(lost.map(|error| error.kind()), required.then_some(ErrorKind::Internal));
    }
}
