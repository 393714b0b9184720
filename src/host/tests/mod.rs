//! Tests of the host as a whole, on fake providers and paused time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::ToolHost;
use super::builder::ToolHostBuilder;
use super::fake::{
    FakeApprover, FakeProvider, MemoryRecorder, call, host, internal, of_server, variables,
};
use super::policy::{Approval, Decision};
use super::recorder::RecordError;
use super::request::{ArgumentWord, CallArguments, CallRequest, ListScope, LookupScope};
use crate::audit::Masker;
use crate::config::spec::{DisabledEntry, FileRole, PolicyAction, PolicyRule, ProfileSpec};
use crate::model::{
    Diagnostic, Error, ErrorKind, EventSink, HostEvent, Origin, SourceLocation, ToolName,
    ToolResult, ToolSchema, ToolStatus,
};

fn words(pairs: &[(&str, &str)]) -> CallArguments {
    let word = |(key, value): &(&str, &str)| ArgumentWord::Text {
        key: (*key).into(),
        value: (*value).into(),
    };
    CallArguments::Words(pairs.iter().map(word).collect())
}

fn local(names: &[&str]) -> Arc<FakeProvider> {
    let tools = names.iter().zip(1..).map(|(n, line)| internal(ToolName::plain(*n), line));
    Arc::new(FakeProvider::local(tools.collect()))
}

fn rule(pattern: &str, action: PolicyAction) -> Vec<PolicyRule> {
    let place = SourceLocation { file: Arc::new("t".into()), line: 1, column: 1, text: "".into() };
    vec![PolicyRule { pattern: pattern.into(), action, project: None, location: place }]
}

mod breakpoints;
mod routing;
mod rules;
mod time;

mod catalogue {
    use super::*;

    #[tokio::test]
    async fn one_bad_server_costs_itself_and_its_declared_tools_stay() {
        let good = Arc::new(FakeProvider::server("good", &["echo"]));
        let bad = Arc::new(FakeProvider {
            declared: vec![of_server("bad", "promised")],
            ..FakeProvider::dead("bad")
        });
        let host = host(&[&bad, &good, &local(&["calculator"])]).build();
        let catalogue = host.catalogue(&ListScope::Everything).await;
        let tools: Vec<_> =
            catalogue.tools.iter().map(|t| (t.name.full(), t.status.as_str())).collect();
        assert_eq!(
            tools,
            [
                ("calculator".into(), "live"),
                ("bad-promised".into(), "unavailable"),
                ("good-echo".into(), "live")
            ]
        );
        assert!(catalogue.servers[0].error.is_some() && catalogue.servers[1].error.is_none());
        let error = host.call(call("bad-promised")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
    }

    #[tokio::test]
    async fn the_declared_reach_contacts_no_server() {
        let server = FakeProvider {
            declared: vec![of_server("s", "echo")],
            ..FakeProvider::server("s", &["echo"])
        };
        let server = Arc::new(server);
        let host = host(&[&server]).build();
        let catalogue = host.catalogue(&ListScope::Declared).await;
        assert_eq!(catalogue.tools[0].status, ToolStatus::Declared);
        assert_eq!(server.listed(), 0);
        assert!(host.catalogue(&ListScope::Declared).await.version > catalogue.version);
    }

    #[tokio::test]
    async fn drift_and_schemas_beyond_the_limits_are_marked() {
        let mut odd = of_server("s", "odd");
        odd.input_schema = ToolSchema::from(json!({ "description": "x".repeat(2 << 20) }));
        let server = FakeProvider {
            declared: vec![of_server("s", "echo"), of_server("s", "odd"), of_server("s", "gone")],
            ..FakeProvider::server("s", &["echo"])
        };
        *server.live.lock().unwrap() = Ok(vec![of_server("s", "echo"), odd]);
        let host = host(&[&Arc::new(server)]).build();
        let catalogue = host.catalogue(&ListScope::Servers(vec!["s".into(), "t".into()])).await;
        let status: Vec<_> = catalogue.tools.iter().map(|t| t.status).collect();
        assert_eq!(status, [ToolStatus::Live, ToolStatus::Drifted, ToolStatus::Unavailable]);
        assert!(catalogue.tools[1].warnings.iter().any(|w| w.contains("not checked")));
        assert_eq!(catalogue.diagnostics.len(), 2);
        assert!(catalogue.servers[1].error.is_some(), "t is unknown");
        assert_eq!(host.call(call("s-gone")).await.unwrap_err().kind(), ErrorKind::Usage);
    }

    #[tokio::test]
    async fn everything_is_closed() {
        let (one, two) = (local(&["a"]), Arc::new(FakeProvider::server("s", &[])));
        let host = host(&[&one, &two]).build();
        host.close().await;
        assert_eq!(one.closed.load(Ordering::Relaxed) + two.closed.load(Ordering::Relaxed), 2);
        assert_eq!(host.servers().len(), 1);
        assert_eq!(host.check_servers(&["nobody".into()]).await.len(), 0);
        assert_eq!(host.check_servers(&[]).await.len(), 1);
    }
}

mod arguments {
    use super::*;

    #[tokio::test]
    async fn words_are_coerced_by_the_schema() {
        let host = host(&[&Arc::new(FakeProvider::server("s", &["echo"]))]).build();
        let arguments = words(&[("message", "12"), ("count", "12")]);
        let outcome = host.call(CallRequest::new("s-echo", arguments)).await.unwrap();
        assert_eq!(outcome.result.unwrap().output, json!({"message": "12", "count": 12}));
    }

    #[tokio::test]
    async fn all_problems_come_at_once_and_nothing_is_sent() {
        let server = Arc::new(FakeProvider::server("s", &["echo"]));
        let host = host(&[&server]).build();
        let arguments = words(&[("mesage", "x"), ("count", "many")]);
        let mut request = CallRequest::new("s-echo", arguments);
        let error = host.call(request.clone()).await.unwrap_err();
        assert_eq!(error.message(), "2 problems with the arguments of 's-echo'");
        assert_eq!(
            error.details(),
            ["count: must be integer, not string", "mesage: is not known; did you mean 'message'?"]
        );
        assert!(host.dry_run(&request).await.is_err());
        assert_eq!(server.called(), 0);
        request.validate = false;
        assert!(host.call(request.clone()).await.is_ok());
        assert_eq!(host.dry_run(&request).await.unwrap().preview.request["name"], "s-echo");
    }

    #[tokio::test]
    async fn what_is_refused_in_a_form_is_no_call() {
        for from_form in [false, true] {
            let book = Arc::new(MemoryRecorder::default());
            let server = Arc::new(FakeProvider::server("s", &["echo"]));
            let recorder = Arc::clone(&book);
            let host = host(&[&server]).recorder(recorder).build();
            let arguments = words(&[("count", "many")]);
            let request = CallRequest { from_form, ..CallRequest::new("s-echo", arguments) };
            assert_eq!(host.call(request).await.unwrap_err().kind(), ErrorKind::Usage);
            assert_eq!(book.lines().is_empty(), from_form, "{:?}", book.lines());
        }
    }

    #[tokio::test]
    async fn a_schema_that_cannot_be_used_warns_and_calls() {
        let server = FakeProvider::server("s", &["echo"]);
        let mut tool = of_server("s", "echo");
        tool.input_schema = ToolSchema::from(json!({"$ref": "http://127.0.0.1:1/schema.json"}));
        *server.live.lock().unwrap() = Ok(vec![tool]);
        let host = host(&[&Arc::new(server)]).build();
        let result = host.call(call("s-echo")).await.unwrap().result.unwrap();
        assert!(result.warnings[0].starts_with("the arguments were not checked"), "{result:?}");
    }
}

mod decisions {
    use super::*;

    async fn approved(
        change: impl FnOnce(ToolHostBuilder) -> ToolHostBuilder,
        yes: bool,
    ) -> (Option<ErrorKind>, Vec<String>) {
        let book = Arc::new(MemoryRecorder::default());
        let recorder = Arc::clone(&book);
        let host = change(host(&[&local(&["danger"])]).recorder(recorder)).build();
        let outcome = host.call(CallRequest { assume_yes: yes, ..call("danger") }).await;
        (outcome.err().map(|error| error.kind()), book.lines())
    }

    #[tokio::test]
    async fn a_denied_call_is_recorded_and_yes_does_not_help() {
        let (kind, lines) = approved(|b| b.policy(rule("dan*", PolicyAction::Deny)), true).await;
        assert_eq!(kind, Some(ErrorKind::Denied));
        assert_eq!(lines, ["outcome danger denied after 0"]);
    }

    #[tokio::test]
    async fn without_an_approver_the_call_is_refused_unless_yes() {
        let ask = |b: ToolHostBuilder| b.policy(rule("*", PolicyAction::Ask));
        assert_eq!(approved(ask, false).await.0, Some(ErrorKind::Denied));
        let (kind, lines) = approved(ask, true).await;
        assert_eq!(kind, None);
        assert_eq!(
            lines,
            [
                "intent danger {} approved with --yes: the rule '*: ask' at t:1",
                "outcome danger ok after 1"
            ]
        );
    }

    #[tokio::test]
    async fn a_preview_says_what_is_decided_and_shows_no_secret() {
        let host = host(&[&local(&["danger"])])
            .policy(rule("*", PolicyAction::Ask))
            .masker(Masker::new([("KEY", "hunter22")]))
            .build();
        let arguments = json!({"password": "x", "note": "it is hunter22"});
        let arguments = CallArguments::Object(arguments.as_object().cloned().unwrap());
        let preview = host.dry_run(&CallRequest::new("danger", arguments)).await.unwrap();
        assert_eq!(preview.decision, Decision::Ask("the rule '*: ask' at t:1".into()));
        assert_eq!(
            preview.preview.request["arguments"],
            json!({"password": "‹secret›", "note": "it is ‹secret:KEY›"})
        );
    }

    #[tokio::test]
    async fn a_person_sees_masked_arguments_and_decides() {
        let tools = local(&["danger"]);
        for (answer, runs) in [(Approval::Granted, true), (Approval::Refused, false)] {
            let person = FakeApprover::with_answer(answer);
            let host = host(&[&tools])
                .policy(rule("*", PolicyAction::Ask))
                .approver(Arc::clone(&person) as _)
                .masker(Masker::new([("KEY", "hunter22")]))
                .build();
            let arguments = json!({"password": "x", "note": "it is hunter22"});
            let arguments = CallArguments::Object(arguments.as_object().cloned().unwrap());
            let outcome = host.call(CallRequest::new("danger", arguments)).await;
            assert_eq!(outcome.is_ok(), runs);
            let requests = person.asked.lock().unwrap();
            let shown = json!({"password": "‹secret›", "note": "it is ‹secret:KEY›"});
            assert_eq!(requests.as_slice(), [("the rule '*: ask' at t:1".to_owned(), shown)]);
        }
        assert_eq!(tools.called(), 1);
    }
}

mod records {
    use super::*;

    async fn with(error: RecordError, required: bool) -> (Result<ToolResult, Error>, usize) {
        let tools = local(&["t"]);
        let book = MemoryRecorder { error: Some(error), ..MemoryRecorder::default() };
        let host = host(&[&tools]).recorder(Arc::new(book)).require_record(required).build();
        let outcome = host.call(call("t")).await;
        (outcome.and_then(|outcome| outcome.result), tools.called())
    }

    #[tokio::test]
    async fn a_lost_record_is_a_warning_and_never_costs_the_call() {
        let (result, _) = with(RecordError::Lost("disk full".into()), false).await;
        let result = result.unwrap();
        assert_eq!(result.warnings, ["not recorded: disk full"]);
        assert!(result.error.is_none());
    }

    #[tokio::test]
    async fn a_required_record_refuses_the_call() {
        let (result, calls) = with(RecordError::Lost("disk full".into()), true).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Internal);
        assert_eq!(calls, 0);
    }

    #[tokio::test]
    async fn an_unsafe_record_refuses_the_call() {
        let (result, calls) = with(RecordError::Unsafe("is a link".into()), false).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Denied);
        assert_eq!(calls, 0);
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_has_an_outcome_and_its_tool_is_told() {
        let token = Arc::new(Mutex::new(None));
        let tools = FakeProvider::local(vec![internal(ToolName::plain("t"), 1)]).answering({
            let token = Arc::clone(&token);
            move |context, _| {
                *token.lock().unwrap() = Some(context.cancel);
                std::future::pending()
            }
        });
        let book = Arc::new(MemoryRecorder::default());
        let host = host(&[&Arc::new(tools)]).recorder(Arc::clone(&book) as _).build();
        {
            let mut running = std::pin::pin!(host.call(call("t")));
            assert!(futures_util::poll!(&mut running).is_pending());
        }
        assert_eq!(book.lines()[1], "outcome t interrupted after 1");
        assert!(token.lock().unwrap().as_ref().unwrap().is_cancelled());
    }
}

mod results {
    use super::*;

    async fn result(output_schema: Option<Value>, result: ToolResult) -> ToolResult {
        let mut tool = of_server("s", "t");
        tool.output_schema = output_schema.map(ToolSchema::from);
        let server = FakeProvider::server("s", &[]).answering(move |_, _| {
            let result = result.clone();
            async move { Ok(result) }
        });
        *server.live.lock().unwrap() = Ok(vec![tool]);
        host(&[&Arc::new(server)]).build().call(call("s-t")).await.unwrap().result.unwrap()
    }

    #[tokio::test]
    async fn a_result_is_checked_against_its_own_schema_and_kept() {
        let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}});
        let good = result(Some(schema.clone()), ToolResult::json(json!({"sum": 3}))).await;
        assert!(good.error.is_none());
        let bad = result(Some(schema.clone()), ToolResult::json(json!({"sum": "3"}))).await;
        assert_eq!(bad.structured, Some(json!({"sum": "3"})));
        let error = bad.error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert_eq!(error.details(), ["sum: must be integer, not string"]);
        let missing = result(Some(schema.clone()), ToolResult::text("3")).await;
        assert_eq!(missing.error.unwrap().kind(), ErrorKind::Protocol);
        let no = result(Some(schema), ToolResult::failure("cannot")).await;
        assert_eq!(no.error.unwrap().kind(), ErrorKind::Tool);
    }

    #[tokio::test]
    async fn a_no_without_a_reason_gets_one() {
        let mut no = ToolResult::text("sorry");
        no.success = false;
        let error = result(None, no).await.error.unwrap();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Tool, "sorry"));
    }

    #[tokio::test]
    async fn a_panic_costs_one_call() {
        let tools = FakeProvider::local(vec![internal(ToolName::plain("t"), 1)])
            .answering(|_, _| async { panic!("a bug") });
        let host = host(&[&Arc::new(tools)]).build();
        let error = host.call(call("t")).await.unwrap().result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(error.message(), "the code of 't' panicked: a bug");
    }

    #[tokio::test]
    async fn the_context_reaches_the_tool() {
        let mut tool = internal(ToolName::plain("t"), 1);
        tool.context_env = Arc::new(["A_ID".to_owned(), "B_ID".to_owned()]);
        let tools = FakeProvider::local(vec![tool]).answering(|context, _| async move {
            Ok(ToolResult::json(json!({
                "id": context.call_id.0,
                "session": context.session_id,
                "env": context.environment,
                "idle": context.idle_limit.as_secs(),
            })))
        });
        let host = host(&[&Arc::new(tools)])
            .environment(variables(&[("A_ID", "1"), ("B_ID", "1")]))
            .build();
        let mut request = call("t");
        request.environment = variables(&[("B_ID", "2")]);
        let outcome = host.call(request).await.unwrap();
        assert_eq!(
            outcome.result.unwrap().output,
            json!({"id": "id-2", "session": "id-1", "env": {"A_ID": "1", "B_ID": "2"}, "idle": 30})
        );
        assert!(matches!(outcome.definition.origin, Origin::File(_)));
    }
}
