//! Calls that a tool makes as part of its own call.

use std::sync::Weak;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::ToolHost;
use super::request::{CallArguments, CallRequest};
use crate::model::{
    CallId, Error, JsonObject, NestedCall, ToolCaller, ToolContext, ToolResult, TraceContext,
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
    /// What every call inside has of the call around it: no more than that can see and may do.
    template: CallRequest,
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
        let template = CallRequest {
            profile: request.profile.clone(),
            assume_yes: request.assume_yes_nested,
            assume_yes_nested: request.assume_yes_nested,
            environment: request.environment.clone(),
            metadata: request.metadata.clone(),
            user_id: request.user_id.clone(),
            trace,
            session: Some(host.sessions.session_of(request).to_owned()),
            ..CallRequest::new(String::new(), CallArguments::Object(JsonObject::new()))
        };
        Self { host: host.weak_self.clone(), nesting: outer.child(id, name), template, ended }
    }
}

#[async_trait]
impl ToolCaller for HostCaller {
    async fn run(&self, context: &ToolContext, call: NestedCall) -> Result<ToolResult, Error> {
        let Some(host) = self.host.upgrade().filter(|_| !self.ended.is_cancelled()) else {
            let message = format!("'{}' was not called: the call around it has ended", call.name);
            return Err(Error::interrupted(message));
        };
        let cancel = self.ended.child_token();
        let request = CallRequest {
            name: call.name,
            arguments: CallArguments::Object(call.arguments),
            timeout: call.timeout,
            retries: call.retries,
            client: context.client,
            cancel: cancel.clone(),
            ..self.template.clone()
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
