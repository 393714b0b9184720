//! Tests of resolving names, and of which servers that contacts.

use super::*;

#[tokio::test]
async fn an_exact_local_name_contacts_no_server() {
    let (tools, server) = (local(&["calculator"]), Arc::new(FakeProvider::server("s", &["echo"])));
    let host = host(&[&tools, &server]).build();
    host.call(call("calculator")).await.unwrap();
    assert_eq!(server.listed(), 0);
}

#[tokio::test]
async fn a_qualified_name_contacts_one_server() {
    let one = Arc::new(FakeProvider::server("one", &["echo"]));
    let two = Arc::new(FakeProvider::server("two", &["echo"]));
    let host = host(&[&one, &two]).build();
    for name in ["one-echo", "one.echo", "one/echo", "one:echo", "one__echo"] {
        let outcome = host.call(call(name)).await.unwrap();
        assert_eq!(outcome.definition.name.full(), "one-echo");
    }
    assert_eq!((one.listed(), two.listed(), one.called()), (1, 0, 5));
}

#[tokio::test]
async fn connecting_is_told_once() {
    let host = host(&[&Arc::new(FakeProvider::server("s", &["echo"]))]).build();
    let first = host.call(call("s-echo")).await.unwrap().metadata;
    let second = host.call(call("s-echo")).await.unwrap().metadata;
    assert_eq!((first.connect, second.connect), (Some(Duration::from_millis(12)), None));
    assert_eq!(second.protocol.as_deref(), Some("2025-11-25"));
    assert_eq!(second.attempts, 1);
}

#[tokio::test]
async fn a_changed_list_is_asked_for_again() {
    let server = Arc::new(FakeProvider::server("s", &["echo"]));
    let host = host(&[&server]).build();
    host.find("s-echo", &LookupScope::default()).await.unwrap();
    *server.live.lock().unwrap() = Ok(vec![of_server("s", "new")]);
    assert!(host.find("s-new", &LookupScope::default()).await.is_err());
    server.announce_change();
    assert!(host.find("s-new", &LookupScope::default()).await.is_ok());
    assert_eq!(server.listed(), 2);
}

#[tokio::test]
async fn a_bare_name_that_one_has_is_enough_and_failures_are_told() {
    let one = Arc::new(FakeProvider::server("one", &["echo"]));
    let bad = Arc::new(FakeProvider::dead("bad"));
    let host = host(&[&one, &bad]).build();
    let outcome = host.call(call("echo")).await.unwrap();
    let result = outcome.result.unwrap();
    assert_eq!(outcome.definition.name.full(), "one-echo");
    assert_eq!(
        result.warnings,
        ["server 'bad' did not answer and may offer 'echo' too: connection refused"]
    );
    assert!(result.error.is_none());
}

#[tokio::test]
async fn an_ambiguous_name_lists_its_candidates_and_runs_nothing() {
    let one = Arc::new(FakeProvider::server("one", &["echo"]));
    let two = Arc::new(FakeProvider::server("two", &["echo"]));
    let host = host(&[&one, &two]).build();
    let error = host.call(call("echo")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.details(), ["one-echo (of server 'one')", "two-echo (of server 'two')"]);
    assert_eq!(one.called() + two.called(), 0);
    let outcome =
        host.call(CallRequest { servers: vec!["two".into()], ..call("echo") }).await.unwrap();
    assert_eq!(outcome.definition.name.full(), "two-echo");
}

#[tokio::test]
async fn weights_decide_between_servers_only_when_each_has_one() {
    let one = Arc::new(FakeProvider::server("one", &["echo"]));
    let two = Arc::new(FakeProvider::server("two", &["echo"]));
    let weighed = |first: Option<f64>| {
        one.set_weight(first);
        two.set_weight(Some(1.0));
        host(&[&one, &two]).build()
    };
    let both = weighed(Some(0.5));
    assert_eq!(both.find("echo", &LookupScope::default()).await.unwrap().name.full(), "two-echo");
    assert!(weighed(None).find("echo", &LookupScope::default()).await.is_err());
}

#[tokio::test]
async fn an_unknown_name_gets_suggestions() {
    let host =
        host(&[&local(&["calculator"]), &Arc::new(FakeProvider::server("s", &["echo"]))]).build();
    let error = host.find("calculater", &LookupScope::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.hint(), Some("did you mean 'calculator'?"));
    let error = host.find("s-ecko", &LookupScope::default()).await.unwrap_err();
    assert_eq!(error.hint(), Some("did you mean 's-echo'?"));
}

#[tokio::test]
async fn a_name_that_nothing_has_is_wrong_whichever_servers_are_silent() {
    let dead = |name| Arc::new(FakeProvider::dead(name));
    let notes = FakeProvider::local(vec![internal(ToolName::of("notes", "read"), 1)]);
    let (notes, good) = (Arc::new(notes), Arc::new(FakeProvider::server("good", &["echo"])));
    let host = host(&[&local(&["calculator"]), &notes, &good, &dead("one"), &dead("two")]);
    let host = host.build();
    let error = host.find("calculater", &LookupScope::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.hint(), Some("did you mean 'calculator'?"));
    let note = "2 servers did not answer and may offer 'calculater': one, two";
    assert_eq!(error.details(), [note]);
    // A component that is known is never blamed on a server, and a server not on another one.
    for (name, hint) in
        [("notes-nope", "its tools are notes-read"), ("good-nope", "its tools are good-echo")]
    {
        let error = host.find(name, &LookupScope::default()).await.unwrap_err();
        assert_eq!((error.kind(), error.hint()), (ErrorKind::Usage, Some(hint)), "{name}");
    }
    // The failure of the server that is asked for is the answer, however it was asked for.
    let error = host.find("one-echo", &LookupScope::default()).await.unwrap_err();
    assert_eq!((error.kind(), error.server()), (ErrorKind::Unreachable, Some("one")));
    let error = host.find("echo", &LookupScope::of_servers(&["one".to_owned()])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
}

#[tokio::test]
async fn the_failure_is_the_answer_when_no_server_answered() {
    let dead = |name| Arc::new(FakeProvider::dead(name));
    let host = host(&[&dead("one"), &dead("two")]).build();
    let error = host.find("echo", &LookupScope::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.details(), ["'two' did not answer either"]);
}

#[tokio::test]
async fn an_entry_out_of_service_says_why() {
    let entry = |name: &str, role| DisabledEntry {
        name: name.into(),
        role,
        diagnostic: Diagnostic::error("TOKEN is not set"),
        definitions: vec![of_server(name, "commit")],
        refusal: None,
    };
    let host = host(&[&local(&["calculator"])]).build();
    let disabled = [entry("weather", FileRole::Tools), entry("git", FileRole::Servers)];
    host.directory.disabled.replace(disabled);
    for name in ["weather", "git-log"] {
        let error = host.find(name, &LookupScope::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().ends_with("is out of service: TOKEN is not set"));
    }
    // What its file says of a tool is listed and described, and no more.
    let tool = host.find("git-commit", &LookupScope::default()).await.unwrap();
    assert_eq!(tool.status, ToolStatus::Unavailable);
    let request = CallRequest::new("git-commit", words(&[]));
    assert_eq!(host.call(request).await.unwrap_err().kind(), ErrorKind::Config);
    for (scope, listed) in [
        (ListScope::Everything, 3),
        (ListScope::Declared, 3),
        (ListScope::Servers(vec!["other".into()]), 2),
    ] {
        let catalogue = host.catalogue(&scope).await;
        assert_eq!(catalogue.tools.len(), listed, "{scope:?}");
    }
    assert_eq!(host.servers_out_of_service()[0].name, "git");
    // The bare name of a tool that its entry declares, whichever server fails meanwhile.
    let host = crate::host::fake::host(&[&Arc::new(FakeProvider::dead("bad"))]).build();
    host.directory.disabled.replace([entry("git", FileRole::Servers)]);
    let error = host.find("commit", &LookupScope::default()).await.unwrap_err();
    assert_eq!(error.message(), "'git' is out of service: TOKEN is not set");
    assert_eq!(error.details(), ["it declares the tool 'commit'"]);
    let error =
        host.find("commit", &LookupScope::of_servers(&["bad".to_owned()])).await.unwrap_err();
    assert_eq!(error.server(), Some("bad"));
    let error = host.find("echo", &LookupScope::of_servers(&["gti".to_owned()])).await.unwrap_err();
    assert_eq!(error.message(), "unknown server 'gti'");
}

#[tokio::test]
async fn a_profile_hides_tools_from_calls_too() {
    let profile = ProfileSpec { exclude: vec!["secret*".into()], ..ProfileSpec::default() };
    let host = host(&[&local(&["open", "secret"])]).profile(Some(profile)).build();
    assert!(host.find("open", &LookupScope::default()).await.is_ok());
    assert_eq!(
        host.find("secret", &LookupScope::default()).await.unwrap_err().kind(),
        ErrorKind::Denied
    );
    let catalogue = host.catalogue(&ListScope::Everything).await;
    assert_eq!(catalogue.tools.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_lists_is_given_up() {
    struct Silent(FakeProvider);
    #[async_trait::async_trait]
    impl crate::provider::ToolProvider for Silent {
        fn component(&self) -> Option<&str> {
            Some("silent")
        }
        fn declared(&self) -> Vec<Arc<crate::model::ToolDefinition>> {
            Vec::new()
        }
        async fn list(&self) -> Result<crate::provider::ToolListing, Error> {
            std::future::pending().await
        }
        async fn call(
            &self,
            context: &crate::model::ToolContext,
            call: &crate::model::ToolCall,
        ) -> Result<ToolResult, Error> {
            self.0.call(context, call).await
        }
        async fn preview(
            &self,
            call: &crate::model::ToolCall,
        ) -> Result<crate::provider::Preview, Error> {
            self.0.preview(call).await
        }
        fn as_server(&self) -> Option<&dyn crate::provider::ManagedServer> {
            self.0.as_server()
        }
    }
    let silent = Silent(FakeProvider::server("silent", &[]));
    let host = ToolHost::builder().provider(Arc::new(silent)).build();
    let error = host
        .call(CallRequest { timeout: Some(Duration::from_secs(3)), ..call("silent-x") })
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.message(), "did not start and list its tools within 3 s");
}
