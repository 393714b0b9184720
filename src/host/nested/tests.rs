//! Tests of nested calls, on fake providers and paused time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::MAX_DEPTH;
use crate::config::spec::{PolicyAction, PolicyRule, ProfileSpec};
use crate::host::attempt::MAX_PARALLEL_CALLS;
use crate::host::fake::{
    FakeApprover, FakeProvider, MemoryRecorder, call, host, internal, variables,
};
use crate::host::policy::Approval;
use crate::host::request::{CallRequest, LookupScope};
use crate::model::{
    Error, ErrorKind, EventSink, HostEvent, JsonObject, NestedCall, SourceLocation, ToolCall,
    ToolContext, ToolName, ToolResult,
};

async fn pass_on(context: ToolContext, next: &str) -> Result<ToolResult, Error> {
    let caller = context.caller.clone().unwrap();
    caller.call(&context, next, JsonObject::new()).await
}

/// Local tools, each of which calls the one after its arrow; those without one wait a second.
fn chains(arrows: &[(&str, &str)]) -> Arc<FakeProvider> {
    let tools = arrows.iter().zip(1..).map(|((name, _), at)| {
        let mut tool = internal(ToolName::plain(*name), at);
        tool.context_env = Arc::new(["A_ID".to_owned()]);
        tool
    });
    let next: Vec<(String, String)> =
        arrows.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    Arc::new(FakeProvider::local(tools.collect()).answering(move |context, call: ToolCall| {
        let next = next.clone();
        async move {
            match next.iter().find(|(name, _)| *name == call.name.full()) {
                Some((_, next)) if !next.is_empty() => pass_on(context, next).await,
                _ => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(ToolResult::json(json!({
                        "session": context.session_id,
                        "env": context.environment,
                        "metadata": context.metadata,
                        "chain": context.ancestors,
                    })))
                }
            }
        }
    }))
}

#[tokio::test(start_paused = true)]
async fn a_nested_call_has_the_context_and_the_record_of_any_call() {
    let book = Arc::new(MemoryRecorder::default());
    let host = host(&[&chains(&[("outer", "inner"), ("inner", "")])])
        .recorder(Arc::clone(&book) as _)
        .build();
    let mut request = call("outer");
    request.session = Some("mine".into());
    request.environment = variables(&[("A_ID", "1")]);
    request.metadata.insert("tenant".into(), json!(7));
    let outcome = host.call(request).await.unwrap();
    assert_eq!(
        outcome.result.unwrap().output,
        json!({"session": "mine", "env": {"A_ID": "1"}, "metadata": {"tenant": 7}, "chain": ["outer"]})
    );
    assert_eq!(
        book.lines(),
        [
            "intent outer {} allowed",
            "intent inner {} allowed in id-2",
            "outcome inner ok after 1 in id-2",
            "outcome outer ok after 1",
        ]
    );
}

#[tokio::test]
async fn a_nested_call_gets_the_variables_that_its_own_entry_declares() {
    let mut outer = internal(ToolName::plain("outer"), 1);
    outer.context_env = Arc::new(["A_ID".to_owned(), "B_ID".to_owned()]);
    let mut inner = internal(ToolName::plain("inner"), 2);
    inner.context_env = Arc::new(["B_ID".to_owned()]);
    let fake =
        FakeProvider::local(vec![outer, inner]).answering(|context, call: ToolCall| async move {
            match call.name.tool() {
                "outer" => pass_on(context, "inner").await,
                _ => Ok(ToolResult::json(json!(context.environment))),
            }
        });
    let host = host(&[&Arc::new(fake)]).build();
    let mut request = call("outer");
    request.environment = variables(&[("A_ID", "1"), ("B_ID", "2")]);
    let outcome = host.call(request).await.unwrap();
    assert_eq!(outcome.result.unwrap().output, json!({ "B_ID": "2" }));
}

#[tokio::test]
async fn a_tool_that_waits_cannot_be_called_again() {
    let host = host(&[&chains(&[("a", "b"), ("b", "a")])]).build();
    let error = host.call(call("a")).await.unwrap().result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.message(), "'a' would call itself: a → b → a");
}

#[tokio::test]
async fn calls_nest_only_so_deep() {
    let names: Vec<String> = (0..=MAX_DEPTH).map(|n| format!("t{n}")).collect();
    let mut arrows: Vec<(&str, &str)> =
        names.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
    arrows.push((names[MAX_DEPTH].as_str(), ""));
    let host = host(&[&chains(&arrows)]).build();
    let error = host.call(call("t0")).await.unwrap().result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.message().starts_with("calls would nest deeper than 8: t0 → "), "{error}");
    assert!(host.call(call("t1")).await.unwrap().result.is_ok());
}

/// Twice as many calls as there are permits, of tools of one component that call each other, and of
/// two tools that call each other across: no call waits for a permit of one that waits for it.
#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_each_other_never_block_each_other() {
    let name = |tool: &str| ToolName::of("c", tool);
    let tools = ["x", "y", "z"].iter().zip(1..).map(|(tool, at)| internal(name(tool), at));
    let family =
        FakeProvider::local(tools.collect()).answering(|context, call: ToolCall| async move {
            match call.name.tool() {
                "x" => pass_on(context, "c-y").await,
                "y" => pass_on(context, "c-z").await,
                _ => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(ToolResult::text("done"))
                }
            }
        });
    let across = chains(&[("a", "b"), ("b", "a")]);
    let host = host(&[&Arc::new(family), &across]).build();
    let start = tokio::time::Instant::now();
    let calls =
        (0..MAX_PARALLEL_CALLS * 2).flat_map(|_| ["c-x", "c-y", "c-z", "a", "b"]).map(|name| {
            let host = Arc::clone(&host);
            async move { (name, host.call(call(name)).await.unwrap().result) }
        });
    for (name, result) in futures_util::future::join_all(calls).await {
        match name {
            "a" | "b" => assert_eq!(result.unwrap_err().kind(), ErrorKind::Usage, "{name}"),
            _ => assert!(result.unwrap().success, "{name}"),
        }
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

fn hanging() -> Arc<FakeProvider> {
    let tools = ["outer", "inner"].iter().zip(1..);
    let tools = tools.map(|(name, at)| internal(ToolName::plain(*name), at)).collect();
    Arc::new(FakeProvider::local(tools).answering(|context, call: ToolCall| async move {
        if call.name.tool() == "outer" {
            return pass_on(context, "inner").await;
        }
        context.cancel.cancelled().await;
        Err(Error::unreachable("killed by SIGTERM"))
    }))
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_the_outer_call_ends_the_inner_one() {
    let book = Arc::new(MemoryRecorder::default());
    let host = host(&[&hanging()]).recorder(Arc::clone(&book) as _).build();
    let request = CallRequest { timeout: Some(Duration::from_secs(2)), ..call("outer") };
    let start = tokio::time::Instant::now();
    let error = host.call(request).await.unwrap().result.unwrap_err();
    assert_eq!(error.message(), "'outer' did not finish within 2 s (--timeout)");
    assert_eq!(start.elapsed().as_secs(), 2);
    assert_eq!(book.lines()[2], "outcome inner interrupted after 1 in id-2");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_reaches_the_innermost_call() {
    let host = host(&[&hanging()]).build();
    let request = call("outer");
    let cancel = request.cancel.clone();
    let (outcome, ()) = tokio::join!(host.call(request), async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    });
    assert_eq!(outcome.unwrap().result.unwrap_err().kind().exit_code(), 130);
}

/// A tool may leave work behind in a task of its own; what that calls ends with the tool.
#[tokio::test(start_paused = true)]
async fn a_nested_call_never_outlives_the_one_around_it() {
    let handle = Arc::new(Mutex::new(None));
    let tools = ["outer", "inner"].iter().zip(1..);
    let tools = tools.map(|(name, at)| internal(ToolName::plain(*name), at)).collect();
    let fake = FakeProvider::local(tools).answering({
        let handle = Arc::clone(&handle);
        move |context, call: ToolCall| {
            let handle = Arc::clone(&handle);
            async move {
                if call.name.tool() == "inner" {
                    context.cancel.cancelled().await;
                    return Err(Error::unreachable("stopped"));
                }
                let task = tokio::spawn(async move {
                    let first = pass_on(context.clone(), "inner").await;
                    (first, pass_on(context, "inner").await)
                });
                *handle.lock().unwrap() = Some(task);
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(ToolResult::text("done"))
            }
        }
    });
    let host = host(&[&Arc::new(fake)]).build();
    assert!(host.call(call("outer")).await.unwrap().result.is_ok());
    let task = handle.lock().unwrap().take().unwrap();
    let (running, new) = task.await.unwrap();
    assert_eq!(running.unwrap_err().message(), "'inner' was interrupted");
    let new = new.unwrap_err();
    assert_eq!(new.message(), "'inner' was not called: the call around it has ended");
}

#[tokio::test]
async fn a_nested_call_asks_and_takes_over_a_yes() {
    let mut inner = internal(ToolName::plain("inner"), 2);
    inner.requires_approval = true;
    let fake = FakeProvider::local(vec![internal(ToolName::plain("outer"), 1), inner]).answering(
        |context, call: ToolCall| async move {
            match call.name.tool() {
                "outer" => pass_on(context, "inner").await,
                _ => Ok(ToolResult::text("done")),
            }
        },
    );
    let fake = Arc::new(fake);
    let person = FakeApprover::with_answer(Approval::Refused);
    let host = host(&[&fake]).approver(Arc::clone(&person) as _).build();
    let error = host.call(call("outer")).await.unwrap().result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(person.asked.lock().unwrap().len(), 1);
    // A yes to the outer call is none to those that it makes.
    let yes = CallRequest { assume_yes: true, ..call("outer") };
    let error = host.call(yes).await.unwrap().result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(person.asked.lock().unwrap().len(), 2);
    let all = CallRequest { assume_yes_nested: true, ..call("outer") };
    assert!(host.call(all).await.unwrap().result.is_ok());
    assert_eq!(person.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_nested_call_obeys_the_policy_and_the_profile() {
    let chain = chains(&[("outer", "inner"), ("inner", "")]);
    let place = SourceLocation { file: Arc::new("t".into()), line: 1, column: 1, text: "".into() };
    let rule = PolicyRule {
        pattern: "inner".into(),
        action: PolicyAction::Deny,
        project: None,
        location: place,
    };
    let profile = ProfileSpec { exclude: vec!["inner".into()], ..ProfileSpec::default() };
    for host in [host(&[&chain]).policy(vec![rule]), host(&[&chain]).profile(Some(profile))] {
        let error = host.build().call(call("outer")).await.unwrap().result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
    }
    assert_eq!(chain.called(), 2);
}

#[tokio::test]
async fn what_a_tool_calls_is_forewarned_about() {
    let mut outer = internal(ToolName::plain("outer"), 1);
    outer.calls = vec!["inner".into(), "nothing".into(), "outer2".into()];
    let mut inner = internal(ToolName::plain("inner"), 2);
    inner.requires_approval = true;
    let tools = vec![outer, inner, internal(ToolName::plain("outer2"), 3)];
    let host = host(&[&Arc::new(FakeProvider::local(tools))]).build();
    assert_eq!(
        host.find("outer", &LookupScope::default()).await.unwrap().warnings,
        [
            "calls 'inner', which needs approval: its entry requires approval",
            "calls 'nothing', which is not a known tool",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_has_limits_and_events_of_its_own() {
    let tools = ["outer", "inner"].iter().zip(1..);
    let tools = tools.map(|(name, at)| internal(ToolName::plain(*name), at)).collect();
    let fake = FakeProvider::local(tools).answering(|context, call: ToolCall| async move {
        if call.name.tool() == "inner" {
            return std::future::pending().await;
        }
        let nested = NestedCall {
            timeout: Some(Duration::from_secs(1)),
            ..NestedCall::new("inner", JsonObject::new())
        };
        let caller = context.caller.clone().unwrap();
        caller.run(&context, nested).await
    });
    let started = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&started);
    let sink = EventSink::new(move |event| {
        if let HostEvent::CallStarted { tool, parent, .. } = event {
            log.lock().unwrap().push((tool, parent.map(|id| id.0)));
        }
    });
    let host = host(&[&Arc::new(fake)]).events(sink).build();
    let error = host.call(call("outer")).await.unwrap().result.unwrap_err();
    assert_eq!(error.message(), "'inner' did not finish within 1 s (the timeout of its step)");
    assert!(!error.hint().unwrap().contains("--timeout"));
    assert_eq!(
        started.lock().unwrap().as_slice(),
        [("outer".to_owned(), None), ("inner".to_owned(), Some("id-2".into()))]
    );
}
