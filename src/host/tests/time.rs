//! Tests of time limits, cancellation and silence.

use super::*;

fn hanging(polite: bool) -> Arc<FakeProvider> {
    let tools = vec![internal(ToolName::plain("t"), 1)];
    Arc::new(FakeProvider::local(tools).answering(move |context, _| async move {
        if polite {
            context.cancel.cancelled().await;
            return Err(Error::unreachable("killed by SIGTERM").with_detail("last words"));
        }
        std::future::pending().await
    }))
}

fn request(timeout: u64) -> CallRequest {
    CallRequest { timeout: Some(Duration::from_secs(timeout)), ..call("t") }
}

#[tokio::test(start_paused = true)]
async fn a_limit_names_itself_and_keeps_the_last_words() {
    let start = tokio::time::Instant::now();
    let outcome = host(&[&hanging(true)]).build().call(request(2)).await.unwrap();
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.message(), "'t' did not finish within 2 s (--timeout)");
    assert_eq!(error.details(), ["killed by SIGTERM", "last words"]);
    assert_eq!(start.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_stop_is_left_after_a_grace() {
    let start = tokio::time::Instant::now();
    let outcome = host(&[&hanging(false)]).build().call(request(2)).await.unwrap();
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(start.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn the_total_bounds_a_server_whose_provider_does_not() {
    let server = FakeProvider::server("s", &["t"]).answering(|context, _| async move {
        context.cancel.cancelled().await;
        Err(Error::timeout("no answer"))
    });
    let start = tokio::time::Instant::now();
    let outcome = host(&[&Arc::new(server)]).build().call(call("s-t")).await.unwrap();
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("the limit for a whole call"), "{error}");
    assert_eq!(error.server(), Some("s"));
    assert_eq!(start.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_tells_the_tool_and_ends_soon() {
    let host = host(&[&hanging(true)]).build();
    let request = call("t");
    let cancel = request.cancel.clone();
    let (outcome, ()) = tokio::join!(host.call(request), async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    });
    let error = outcome.unwrap().result.unwrap_err();
    assert_eq!(error.kind().exit_code(), 130);
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_repeated_as_often_as_allowed() {
    let mut tool = internal(ToolName::plain("t"), 1);
    tool.retries = 2;
    tool.has_own_retries = true;
    let tries = Arc::new(Mutex::new(0));
    let flaky = FakeProvider::local(vec![tool]).answering({
        let tries = Arc::clone(&tries);
        move |_, _| {
            let mut tries = tries.lock().unwrap();
            *tries += 1;
            let answer = if *tries < 3 {
                Err(Error::unreachable("not yet"))
            } else {
                Ok(ToolResult::text("there"))
            };
            std::future::ready(answer)
        }
    });
    let flaky = Arc::new(flaky);
    let failed = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&failed);
    let sink = EventSink::new(move |event| {
        if matches!(event, HostEvent::AttemptFailed { .. }) {
            *counted.lock().unwrap() += 1;
        }
    });
    let host = host(&[&flaky]).events(sink).build();
    let outcome = host.call(call("t")).await.unwrap();
    assert_eq!(outcome.metadata.attempts, 3);
    assert!(outcome.result.unwrap().success);
    assert_eq!(*failed.lock().unwrap(), 2);
    *tries.lock().unwrap() = 0;
    let once = host.call(CallRequest { retries: Some(0), ..call("t") }).await.unwrap();
    assert_eq!(once.metadata.attempts, 1);
    assert!(once.result.is_err());
}

#[tokio::test]
async fn a_tool_not_marked_safe_is_called_once_whatever_is_asked() {
    let server = Arc::new(
        FakeProvider::server("s", &["t"])
            .answering(|_, _| async { Err(Error::unreachable("gone")) }),
    );
    let host = host(&[&server]).build();
    let outcome = host.call(CallRequest { retries: Some(5), ..call("s-t") }).await.unwrap();
    assert_eq!(server.called(), 1);
    let error = outcome.result.unwrap_err();
    assert_eq!(error.details(), ["not retried: it is not marked safe to repeat"]);
}
