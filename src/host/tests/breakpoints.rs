//! Calls that wait for a person at a breakpoint.

use super::*;
use crate::host::breakpoints::{
    Breakpoint, BreakpointChange, HeldCall, HoldAnswer, HoldNews, HoldWatch,
};
use crate::host::request::CallOutcome;
use crate::model::HoldPoint;

const BY: &str = "console (pid 7)";

async fn set(host: &ToolHost, rule: Breakpoint) {
    host.change_breakpoints(BreakpointChange::Set(rule)).await.unwrap();
}

async fn held(watch: &mut HoldWatch) -> Box<HeldCall> {
    loop {
        if let HoldNews::Held(held) = watch.next().await {
            return held;
        }
    }
}

async fn answer(host: &ToolHost, held: &HeldCall, answer: HoldAnswer) {
    assert!(host.release(held.hold, answer, BY.to_owned()).await);
}

fn greeting(message: &str) -> CallRequest {
    CallRequest::json("s-echo", json!({ "message": message })).unwrap()
}

fn output(outcome: Result<CallOutcome, Error>) -> Value {
    outcome.unwrap().result.unwrap().output
}

/// A host with one server, which answers with its arguments, and the lines of its records.
fn recorded(
    prepare: impl FnOnce(ToolHostBuilder) -> ToolHostBuilder,
) -> (Arc<ToolHost>, Arc<FakeProvider>, Arc<MemoryRecorder>) {
    let server = Arc::new(FakeProvider::server("s", &["echo"]));
    let recorder = Arc::new(MemoryRecorder::default());
    let builder = host(&[&server]).recorder(Arc::clone(&recorder) as _);
    (prepare(builder).build(), server, recorder)
}

/// A call that waits, with what a console sees of it.
async fn stopped(
    host: &Arc<ToolHost>,
    request: CallRequest,
) -> (tokio::task::JoinHandle<Result<CallOutcome, Error>>, HoldWatch, Box<HeldCall>) {
    let mut watch = host.watch_breakpoints();
    let caller = Arc::clone(host);
    let call = tokio::spawn(async move { caller.call(request).await });
    let held = held(&mut watch).await;
    (call, watch, held)
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_until_a_person_lets_it_go_on_and_that_is_no_latency() {
    let progress: Arc<Mutex<Vec<f64>>> = Arc::default();
    let seen = Arc::clone(&progress);
    let events = EventSink::new(move |event| {
        if let HostEvent::Progress { progress, .. } = event {
            seen.lock().unwrap().push(progress);
        }
    });
    let (host, server, recorder) = recorded(|builder| builder.events(events));
    set(&host, Breakpoint { client: Some("Claude".into()), ..Breakpoint::before("ec*") }).await;
    // Calls of others do not wait.
    assert_eq!(output(host.call(greeting("a")).await), json!({ "message": "a" }));
    let request = CallRequest { client_name: Some("claude-code".into()), ..greeting("b") };
    let (call, _watch, held) = stopped(&host, request).await;
    assert_eq!(held.arguments["message"], "b");
    assert_eq!(held.client.as_deref(), Some("claude-code"));
    assert_eq!(held.time_left, Breakpoint::DEFAULT_LIMIT);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!((server.called(), progress.lock().unwrap().clone()), (1, vec![0.0, 5.0, 10.0]));
    answer(&host, &held, HoldAnswer::Continue).await;
    let outcome = call.await.unwrap().unwrap();
    assert_eq!(outcome.result.unwrap().output, json!({ "message": "b" }));
    assert!(!host.release(held.hold, HoldAnswer::Continue, BY.to_owned()).await, "it is gone");
    let lines = recorder.lines();
    let intent = r#"intent s-echo {"message":"b"} allowed; continued at the breakpoint 'ec*'"#;
    assert_eq!(lines[2], intent);
}

#[tokio::test(start_paused = true)]
async fn edited_arguments_are_checked_and_approved_like_any() {
    let person = FakeApprover::with_answer(Approval::Granted);
    let (host, _, recorder) = recorded(|builder| {
        builder.policy(rule("*", PolicyAction::Ask)).approver(Arc::clone(&person) as _)
    });
    set(&host, Breakpoint::before("s-echo")).await;
    let (call, mut watch, first) = stopped(&host, greeting("rm")).await;
    let edit = |value: Value| HoldAnswer::Arguments(value.as_object().cloned().unwrap());
    answer(&host, &first, edit(json!({ "message": "ls", "count": "many" }))).await;
    let again = held(&mut watch).await;
    assert!(again.problem.as_ref().unwrap().contains("count"), "{:?}", again.problem);
    answer(&host, &again, edit(json!({ "message": "ls" }))).await;
    assert_eq!(output(call.await.unwrap()), json!({ "message": "ls" }));
    let asked = person.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].1, json!({ "message": "ls" }));
    assert!(recorder.lines()[0].starts_with(r#"intent s-echo {"message":"ls"} approved by"#));
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_masked_and_kept_where_it_is_left_as_it_was() {
    let masker = Masker::default();
    masker.add_secret("TOKEN", "hunter2-hunter2");
    let (host, _, recorder) = recorded(|builder| builder.masker(masker));
    set(&host, Breakpoint::before("s-echo")).await;
    let request = CallRequest::json("s-echo", json!({ "message": "hunter2-hunter2", "count": 1 }));
    let (call, _watch, held) = stopped(&host, request.unwrap()).await;
    assert!(!format!("{held:?}").contains("hunter2"));
    let mut edited = held.arguments.clone();
    edited.insert("count".into(), 2.into());
    answer(&host, &held, HoldAnswer::Arguments(edited)).await;
    let sent = output(call.await.unwrap());
    // The echo is masked, too; that it is means that the secret arrived.
    assert_eq!(sent, json!({ "message": held.arguments["message"], "count": 2 }));
    assert!(recorder.lines()[0].contains("edited at the breakpoint"));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_and_the_end_of_the_wait_send_nothing() {
    let (host, server, recorder) = recorded(|builder| builder);
    set(&host, Breakpoint::before("s-echo")).await;
    let (call, watch, held) = stopped(&host, greeting("a")).await;
    answer(&host, &held, HoldAnswer::Refuse(Some("not today".into()))).await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(error.message(), "'s-echo' was refused at a breakpoint: not today");
    drop(watch);
    // Nobody decides.
    let (call, watch, _held) = stopped(&host, greeting("b")).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(error.message().ends_with("the limit of 5 min has passed"), "{error}");
    drop(watch);
    // The console is closed.
    let (call, watch, _held) = stopped(&host, greeting("c")).await;
    drop(watch);
    let error = call.await.unwrap().unwrap_err();
    assert!(error.message().ends_with("the console was closed"), "{error}");
    assert_eq!(server.called(), 0);
    assert!(recorder.lines().iter().all(|line| line == "outcome s-echo denied after 0"));
    set(&host, Breakpoint { continues: true, ..Breakpoint::before("s-echo") }).await;
    let (call, _watch, _held) = stopped(&host, greeting("d")).await;
    assert_eq!(output(call.await.unwrap()), json!({ "message": "d" }));
}

#[tokio::test(start_paused = true)]
async fn a_console_that_is_slow_sees_every_stopped_call_and_the_rules_as_they_are() {
    let (host, ..) = recorded(|builder| builder);
    let mut watch = host.watch_breakpoints();
    for seconds in 1..=2_000 {
        let limit = Duration::from_secs(seconds);
        set(&host, Breakpoint { limit, ..Breakpoint::before("s-echo") }).await;
    }
    let caller = Arc::clone(&host);
    let call = tokio::spawn(async move { caller.call(greeting("a")).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let HoldNews::Rules(rules) = watch.next().await else { panic!() };
    assert_eq!(rules[0].limit, Duration::from_secs(2_000));
    let held = held(&mut watch).await;
    assert_eq!(held.time_left, Duration::from_secs(1_999));
    answer(&host, &held, HoldAnswer::Continue).await;
    assert_eq!(output(call.await.unwrap()), json!({ "message": "a" }));
    let released = watch.next().await;
    assert!(matches!(released, HoldNews::Released(hold) if hold == held.hold), "{released:?}");
}

#[tokio::test]
async fn without_a_console_nothing_stops_and_the_record_says_so() {
    let (host, _, recorder) = recorded(|builder| builder);
    set(&host, Breakpoint::before("s-*")).await;
    assert_eq!(output(host.call(greeting("a")).await), json!({ "message": "a" }));
    let intent = r#"intent s-echo {"message":"a"} allowed; not stopped at the breakpoint 's-*'"#;
    assert_eq!(recorder.lines()[0], intent);
}

#[tokio::test]
async fn what_the_policy_denies_is_never_shown() {
    let (host, server, _) = recorded(|builder| builder.policy(rule("*", PolicyAction::Deny)));
    set(&host, Breakpoint::before("s-echo")).await;
    let _watch = host.watch_breakpoints();
    let error = host.call(greeting("a")).await.unwrap_err();
    assert_eq!((error.kind(), server.called()), (ErrorKind::Denied, 0));
    assert!(error.message().contains("is refused by the rule"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_person_may_answer_in_the_tool_s_place_and_change_what_it_answered() {
    let (host, server, recorder) = recorded(|builder| builder);
    set(&host, Breakpoint::before("s-echo")).await;
    let (call, watch, held) = stopped(&host, greeting("a")).await;
    answer(&host, &held, HoldAnswer::Result(json!({ "mocked": true }))).await;
    assert_eq!(output(call.await.unwrap()), json!({ "mocked": true }));
    assert_eq!(server.called(), 0);
    drop(watch);
    host.change_breakpoints(BreakpointChange::Remove(None)).await.unwrap();
    set(&host, Breakpoint { on: HoldPoint::Result, ..Breakpoint::before("s-echo") }).await;
    let (call, watch, held) = stopped(&host, greeting("b")).await;
    let result = held.result.as_ref().unwrap();
    assert_eq!(result.value, Some(json!({ "message": "b" })));
    answer(&host, &held, HoldAnswer::Result(json!("something else"))).await;
    let outcome = call.await.unwrap().unwrap();
    assert_eq!(outcome.result.unwrap().output, "something else");
    drop(watch);
    let (call, _watch, held) = stopped(&host, greeting("c")).await;
    answer(&host, &held, HoldAnswer::Refuse(None)).await;
    let error = call.await.unwrap().unwrap().result.unwrap_err();
    assert!(error.message().starts_with("the result of 's-echo' was withheld"), "{error}");
    assert_eq!(server.called(), 2);
    assert_eq!(
        recorder.lines(),
        [
            r#"intent s-echo {"message":"a"} answered by a person; answered at the breakpoint 's-echo'"#,
            "outcome s-echo ok after 0",
            r#"intent s-echo {"message":"b"} allowed"#,
            "outcome s-echo ok after 1 at a breakpoint",
            r#"intent s-echo {"message":"c"} allowed"#,
            "outcome s-echo denied after 1 at a breakpoint",
        ]
    );
}

#[tokio::test]
async fn rules_are_replaced_and_removed_by_their_pattern() {
    let (host, ..) = recorded(|builder| builder);
    let rule = Breakpoint::before("s-echo");
    set(&host, rule.clone()).await;
    set(&host, Breakpoint { limit: Duration::from_secs(9), ..rule.clone() }).await;
    set(&host, Breakpoint { on: HoldPoint::Result, ..rule }).await;
    set(&host, Breakpoint::before("other")).await;
    let remove = BreakpointChange::Remove(Some("s-echo".into()));
    let left = host.change_breakpoints(remove).await.unwrap();
    assert_eq!(
        (left.removed, left.consoles, left.rules),
        (2, 0, vec![Breakpoint::before("other")])
    );
    let left = host.change_breakpoints(BreakpointChange::Remove(None)).await.unwrap();
    assert_eq!((left.removed, left.rules.len()), (1, 0));
}
