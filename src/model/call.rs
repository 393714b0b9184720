//! A request to run a tool with its identity and the context it runs in, and the filter for recorded calls.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::JsonObject;
use super::error::Error;
use super::event::EventSink;
use super::name::ToolName;
use super::question::ClientAbilities;
use super::result::ToolResult;
use super::trace_context::TraceContext;
use crate::util::pattern;

/// A request to run a tool with these arguments.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The tool to run, by its full name.
    pub name: ToolName,
    /// The arguments, already coerced and validated by the host unless that was switched off.
    pub arguments: JsonObject,
}

/// The context of a call, available to every kind of tool.
#[derive(Clone)]
pub struct ToolContext {
    /// The identity that records and events of the call share.
    pub call_id: CallId,
    /// The session the call belongs to.
    pub session_id: Arc<str>,
    /// The user on whose behalf the call is made, as named by the caller; `None` if not given.
    pub user_id: Option<String>,
    /// The position of the call in the caller's trace.
    pub trace: Option<TraceContext>,
    /// The working directory of the user.
    pub cwd: Arc<Path>,
    /// Variables the caller set (`--context`) and the tool's entry declares, given to the tool as
    /// its environment.
    pub environment: BTreeMap<String, String>,
    /// Free-form metadata attached by the caller.
    pub metadata: JsonObject,
    /// Fires when the call should stop: Ctrl-C, a deadline, a client that disconnected.
    pub cancel: CancellationToken,
    /// The client behind the call: what it can be asked, and which log lines it wants.
    #[doc(hidden)] // for `serve`
    pub client: ClientAbilities,
    /// Receives progress and log lines while the tool runs.
    pub events: EventSink,
    /// Idle timeout for the provider; a provider that receives progress may restart it. The host
    /// itself limits the whole call.
    pub idle_limit: Duration,
    /// Lets the tool call other tools as part of this call.
    pub caller: Option<Arc<dyn ToolCaller>>,
    /// The full names of the calls this one is part of, outermost first, this one not included.
    pub ancestors: Vec<String>,
}

impl ToolContext {
    /// The idle limit where nothing says another.
    pub(crate) const IDLE_LIMIT: Duration = Duration::from_mins(1);

    /// An empty context: no session, the root as its directory, no listener.
    pub fn empty(call_id: CallId) -> Self {
        Self {
            call_id,
            session_id: Arc::from(""),
            user_id: None,
            trace: None,
            cwd: Arc::from(Path::new("/")),
            environment: BTreeMap::new(),
            metadata: JsonObject::new(),
            cancel: CancellationToken::new(),
            client: ClientAbilities::default(),
            events: EventSink::discard(),
            idle_limit: Self::IDLE_LIMIT,
            caller: None,
            ancestors: Vec::new(),
        }
    }
}

/// A call that is part of another one.
#[derive(Debug, Clone)]
pub struct NestedCall {
    /// The tool: its full name, or a bare name that only one tool has.
    pub name: String,
    /// The arguments. They are checked, but not coerced.
    pub arguments: JsonObject,
    /// Overrides the configured timeout of an attempt. The limit of the outer call still applies.
    pub timeout: Option<Duration>,
    /// Overrides the configured number of retries; only for tools marked safe to repeat.
    pub retries: Option<u32>,
}

impl NestedCall {
    /// A call with the configured limits of its tool.
    pub fn new(name: impl Into<String>, arguments: JsonObject) -> Self {
        Self { name: name.into(), arguments, timeout: None, retries: None }
    }
}

/// Calls other tools on behalf of a tool that is composed of them. Such calls are treated like all
/// others: checks, policy, approval, limits, records.
#[async_trait]
pub trait ToolCaller: Send + Sync {
    /// Makes a call as part of the one that `context` belongs to. It inherits the session,
    /// variables and metadata of that call, but not its approval. It stops when `context.cancel`
    /// fires and never outlives that call.
    ///
    /// # Errors
    /// As for every call; and a usage error when calls would nest too deeply or would call a tool
    /// that is waiting for them. A tool that reports a failure is not an error: see
    /// [`ToolResult::error`].
    async fn run(&self, context: &ToolContext, call: NestedCall) -> Result<ToolResult, Error>;

    /// Like [`ToolCaller::run`], with the configured limits of the tool.
    ///
    /// # Errors
    /// As [`ToolCaller::run`].
    async fn call(
        &self,
        context: &ToolContext,
        name: &str,
        arguments: JsonObject,
    ) -> Result<ToolResult, Error> {
        self.run(context, NestedCall::new(name, arguments)).await
    }
}

/// The identity of one call, in every record of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallId(pub Arc<str>);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A search from newest to oldest ends at records that are older than requested by more than this,
/// in seconds. A clock that was set back by less does not hide newer records behind them.
const CLOCK_SLACK: f64 = 86_400.0;

/// A choice among recorded calls; the default is all of them. The statistics count calls without
/// keeping them, so that only the time and the tools choose among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Not before this, as time since the Unix epoch.
    pub since: Option<Duration>,
    /// Only before this, as time since the Unix epoch.
    pub until: Option<Duration>,
    /// Only tools whose full name matches one of these patterns; `None` is all.
    pub tools: Option<Vec<String>>,
    pub failed: Option<bool>,
    /// Only calls of the project with this root directory; `None` is all.
    pub project: Option<String>,
    pub session: Option<String>,
    pub decision: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// When it started, in seconds since the Unix epoch.
    pub at: f64,
    pub tool: &'a str,
    pub failed: bool,
    /// The root directory of the project it was made for, if recorded.
    pub project: Option<&'a str>,
    /// The session it was made in, if recorded.
    pub session: Option<&'a str>,
    pub decision: &'a str,
}

impl CallFilter {
    pub fn matches(&self, call: &CallFacts<'_>) -> bool {
        let session = self.session.as_deref();
        self.since.is_none_or(|since| call.at >= since.as_secs_f64())
            && self.until.is_none_or(|until| call.at < until.as_secs_f64())
            && self.matches_tool(call.tool)
            && self.matches_project(call.project)
            && self.failed.is_none_or(|failed| failed == call.failed)
            && session.is_none_or(|session| call.session == Some(session))
            && self.decision.as_ref().is_none_or(|text| call.decision.contains(text.as_str()))
    }

    pub fn matches_tool(&self, tool: &str) -> bool {
        let is_one = |patterns: &Vec<String>| patterns.iter().any(|p| pattern::matches(p, tool));
        self.tools.as_ref().is_none_or(is_one)
    }

    pub fn matches_project(&self, project: Option<&str>) -> bool {
        self.project.is_none() || self.project.as_deref() == project
    }

    /// Whether a record with this time, in seconds since the Unix epoch, and all earlier ones are
    /// too old.
    pub fn ends_at(&self, at: f64) -> bool {
        self.since.is_some_and(|since| at < since.as_secs_f64() - CLOCK_SLACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: CallFacts<'_> = CallFacts {
        at: 100_000.0,
        tool: "notes-read",
        failed: false,
        project: Some("/p"),
        session: Some("s"),
        decision: "allowed",
    };

    #[test]
    fn every_part_has_to_match() {
        let at = |seconds| Some(Duration::from_secs(seconds));
        let tools = |pattern: &str| Some(vec!["x".to_owned(), pattern.to_owned()]);
        let all = CallFilter {
            since: at(100_000),
            until: at(100_001),
            tools: tools("notes-*"),
            failed: Some(false),
            project: Some("/p".into()),
            session: Some("s".into()),
            decision: Some("allow".into()),
        };
        assert!(all.matches(&CALL) && CallFilter::default().matches(&CALL));
        for other in [
            CallFilter { since: at(100_001), ..all.clone() },
            CallFilter { until: at(100_000), ..all.clone() },
            CallFilter { tools: tools("notes"), ..all.clone() },
            CallFilter { failed: Some(true), ..all.clone() },
            CallFilter { project: Some("/q".into()), ..all.clone() },
            CallFilter { session: Some("t".into()), ..all.clone() },
            CallFilter { decision: Some("refused".into()), ..all.clone() },
        ] {
            assert!(!other.matches(&CALL), "{other:?}");
        }
        assert!(all.ends_at(13_599.0) && !all.ends_at(13_600.0));
    }
}
