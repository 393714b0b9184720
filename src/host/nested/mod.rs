//! Calls that a tool makes as part of its own call.

use std::collections::BTreeMap;
use std::sync::Weak;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::ToolHost;
use super::request::{CallArguments, CallRequest};
use crate::model::{
    CallId, Error, ErrorKind, JsonObject, NestedCall, Signal, ToolCaller, ToolContext, ToolResult,
    TraceContext,
};

/// How many calls may stand inside each other, the outermost included.
pub const MAX_DEPTH: usize = 8;

/// Where a call stands: the calls it is part of.
#[derive(Debug, Clone, Default)]
pub(super) struct Nesting {
    pub(super) parent: Option<CallId>,
    /// The full names of all calls around it, outermost first.
    pub(super) chain: Vec<String>,
}

impl Nesting {
    pub(super) fn is_nested(&self) -> bool {
        self.parent.is_some()
    }

    /// Lets the tool `name` in.
    ///
    /// # Errors
    /// A usage error when the tool waits further out already, or when the calls nest too deep.
    pub(super) fn check_nesting(&self, name: &str) -> Result<(), Error> {
        let path = || {
            let all = self.chain.iter().map(String::as_str).chain([name]);
            all.collect::<Vec<_>>().join(" → ")
        };
        if self.chain.iter().any(|waiting| waiting == name) {
            return Err(Error::usage(format!("'{name}' would call itself: {}", path()))
                .with_hint("a tool cannot call a tool that is waiting for it"));
        }
        if self.chain.len() >= MAX_DEPTH {
            return Err(Error::usage(format!(
                "calls would nest deeper than {MAX_DEPTH}: {}",
                path()
            )));
        }
        Ok(())
    }

    fn child(&self, id: CallId, name: String) -> Self {
        let chain = self.chain.iter().cloned().chain([name]).collect();
        Self { parent: Some(id), chain }
    }
}

/// The [`ToolCaller`] that an attempt gives to its tool.
pub(super) struct HostCaller {
    host: Weak<ToolHost>,
    nesting: Nesting,
    session: String,
    /// A call cannot see more through nested calls than it can itself.
    profile: Option<String>,
    environment: BTreeMap<String, String>,
    metadata: JsonObject,
    user_id: Option<String>,
    trace: Option<TraceContext>,
    /// Approval of the calls inside, see [`CallRequest::assume_yes_nested`].
    assume_yes: bool,
    /// Fires when the attempt has ended, however it did.
    ended: CancellationToken,
}

impl HostCaller {
    /// Calls on behalf of the call `id` of the tool `name`, which was asked for by `request` and
    /// stands at `outer` and in `trace`.
    pub(super) fn new(
        host: &ToolHost,
        request: &CallRequest,
        outer: &Nesting,
        (id, name): (CallId, String),
        (trace, ended): (Option<TraceContext>, CancellationToken),
    ) -> Self {
        Self {
            host: host.weak_self.clone(),
            nesting: outer.child(id, name),
            session: host.sessions.session_of(request).to_owned(),
            profile: request.profile.clone(),
            environment: request.environment.clone(),
            metadata: request.metadata.clone(),
            user_id: request.user_id.clone(),
            trace,
            assume_yes: request.assume_yes_nested,
            ended,
        }
    }
}

#[async_trait]
impl ToolCaller for HostCaller {
    async fn run(&self, context: &ToolContext, call: NestedCall) -> Result<ToolResult, Error> {
        let Some(host) = self.host.upgrade().filter(|_| !self.ended.is_cancelled()) else {
            let interrupted = ErrorKind::Interrupted(Signal::Interrupt);
            let message = format!("'{}' was not called: the call around it has ended", call.name);
            return Err(Error::new(interrupted, message));
        };
        let cancel = self.ended.child_token();
        let request = CallRequest {
            profile: self.profile.clone(),
            timeout: call.timeout,
            retries: call.retries,
            assume_yes: self.assume_yes,
            assume_yes_nested: self.assume_yes,
            environment: self.environment.clone(),
            metadata: self.metadata.clone(),
            user_id: self.user_id.clone(),
            trace: self.trace.clone(),
            session: Some(self.session.clone()),
            client: context.client,
            cancel: cancel.clone(),
            ..CallRequest::new(call.name, CallArguments::Object(call.arguments))
        };
        let mut work = std::pin::pin!(host.call_within(request, &self.nesting));
        let outcome = tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                cancel.cancel();
                work.await
            }
            outcome = &mut work => outcome,
        };
        outcome?.result
    }
}

#[cfg(test)]
mod tests;
