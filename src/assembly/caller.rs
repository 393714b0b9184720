//! On whose behalf a run makes calls, according to the user's own environment.

use crate::config::environment::Environment;
use crate::host::builder::ToolHostBuilder;
use crate::host::request::check_user;
use crate::model::{Error, EventSink, HostEvent, TraceContext};

/// Gives every call of a host the user and the trace of the environment.
pub(super) fn apply(
    host: ToolHostBuilder,
    environment: &dyn Environment,
    events: &EventSink,
) -> ToolHostBuilder {
    let set = |name| environment.var(name).filter(|value| !value.is_empty());
    let user = set("TOOLHOST_USER").map(|user| check_user(&user).map(|()| user));
    let state = set("TRACESTATE");
    let trace = set("TRACEPARENT").map(|parent| TraceContext::parse(&parent, state.as_deref()));
    host.user_id(usable(user, "TOOLHOST_USER", events)).trace(usable(trace, "TRACEPARENT", events))
}

fn usable<T>(value: Option<Result<T, Error>>, variable: &str, events: &EventSink) -> Option<T> {
    match value? {
        Ok(value) => Some(value),
        Err(error) => {
            let text = format!("{variable} is ignored: {error}");
            events.emit(HostEvent::Warning { text });
            None
        }
    }
}
