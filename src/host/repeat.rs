//! Many calls of one tool, for whoever makes load.
//!
//! Owns: what a run of calls needs before its first one: the tool, the right to call it so often,
//! checked arguments, and something that carries the calls. Never does: pace, count, or record
//! each call; a run leaves one record.

mod inspector;
mod lanes;
mod record;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::limits::{self, Limits};
use super::nested::{Nested, Nesting};
use super::policy::{self, Decision};
use super::request::{Arguments, CallRequest};
use super::router::{Route, Search};
use super::{ToolHost, dispatch, variables};
use crate::model::{CallId, Fault, JsonObject, ToolContext, ToolDefinition};
use crate::provider::repeat::{Inspection, Order, Payload, Repeat, Repeater};
use inspector::Examiner;
use lanes::Lanes;
pub use record::RunRecord;

/// A tool to be called many times.
#[derive(Debug, Clone)]
pub struct TargetRequest {
    /// The name as typed: full, with another separator, or bare.
    pub name: String,
    /// Only these servers are considered (empty: everything).
    pub servers: Vec<String>,
    /// Overrides every configured timeout.
    pub timeout: Option<Duration>,
    /// Whether arguments are checked against the schema.
    pub validate: bool,
    /// Call even what would ask a person first, or says that it changes something.
    pub allow_writes: bool,
    /// Approve the calls that its calls make without asking, too.
    pub assume_yes_nested: bool,
    /// One answer of so many is read whole and checked against the output schema; no one when not
    /// set.
    pub inspect_every: Option<u64>,
    /// Variables for the tool.
    pub environment: BTreeMap<String, String>,
    /// Metadata for the tool.
    pub metadata: JsonObject,
    /// Ends the run at once.
    pub cancel: CancellationToken,
}

impl TargetRequest {
    /// A tool that changes nothing, with checked arguments and every default.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            servers: Vec::new(),
            timeout: None,
            validate: true,
            allow_writes: false,
            assume_yes_nested: false,
            inspect_every: None,
            environment: BTreeMap::new(),
            metadata: JsonObject::new(),
            cancel: CancellationToken::new(),
        }
    }
}

/// A tool that may be called many times.
pub struct Target {
    host: Arc<ToolHost>,
    route: Route,
    call: CallRequest,
    limits: Limits,
    call_id: CallId,
    inspect_every: Option<u64>,
    /// Another target of its run is of the same provider.
    has_sibling: bool,
    /// What was decided, in the words of the audit log.
    decision: String,
}

impl ToolHost {
    /// Finds a tool for a run of calls and makes sure that it may be called so.
    ///
    /// # Errors
    /// As for a call; and a tool that would ask a person, or says that it is not read-only, is
    /// refused unless writes are allowed.
    pub async fn target(&self, request: &TargetRequest) -> Result<Target, Fault> {
        let search = Search {
            servers: &request.servers,
            calls: true,
            ..Search::of(&request.name, limits::LISTING)
        };
        let route = self.route(&search).await.map_err(|fault| self.masker.fault(fault))?;
        let tool = &route.tool.definition;
        if let Some(fault) = &tool.unavailable {
            return Err(fault.clone());
        }
        self.admitted(tool)?;
        variables::check(&request.environment, tool)?;
        let name = &tool.name;
        let refused = |why: &str| {
            Err(Fault::denied(format!("'{name}' is not called many times: {why}"))
                .hint("--allow-writes does it all the same"))
        };
        let decision = match policy::decide(&self.policy, tool) {
            Decision::Deny(why) => {
                return Err(Fault::denied(format!("'{name}' is refused by {why}")));
            }
            Decision::Ask(why) if !request.allow_writes => return refused(&why),
            Decision::Allow(_)
                if tool.annotations.read_only == Some(false) && !request.allow_writes =>
            {
                return refused("it says that it is not read-only");
            }
            Decision::Ask(why) => format!("approved with --allow-writes: {why}"),
            Decision::Allow(why) => why,
        };
        let Some(host) = self.me.upgrade() else {
            return Err(Fault::internal("the host is being closed"));
        };
        let limits = Limits::of(tool, request.timeout);
        let call = CallRequest {
            servers: request.servers.clone(),
            timeout: request.timeout,
            validate: request.validate,
            assume_yes: request.allow_writes,
            assume_yes_nested: request.assume_yes_nested,
            environment: request.environment.clone(),
            metadata: request.metadata.clone(),
            cancel: request.cancel.clone(),
            ..CallRequest::new(name.full(), Arguments::Object(JsonObject::new()))
        };
        let (call_id, inspect_every) = (CallId(self.ids.next()), request.inspect_every);
        let has_sibling = false;
        Ok(Target { host, route, call, limits, call_id, inspect_every, has_sibling, decision })
    }
}

/// Lets the targets of one run know of each other, so that those of one provider are carried alike.
pub fn introduce(targets: &mut [&mut Target]) {
    let members: Vec<_> = targets.iter().map(|t| Arc::clone(&t.route.member)).collect();
    for target in targets {
        let own = members.iter().filter(|member| Arc::ptr_eq(member, &target.route.member));
        target.has_sibling = own.count() > 1;
    }
}

impl Target {
    /// The tool.
    pub fn definition(&self) -> &ToolDefinition {
        &self.route.tool.definition
    }

    /// How long connecting took, when finding the tool was the reason to connect.
    pub fn connect(&self) -> Option<Duration> {
        self.route.connect
    }

    /// The protocol revision, for tools of servers.
    pub fn protocol(&self) -> Option<&str> {
        self.route.protocol.as_deref()
    }

    /// What could not be found out, for people.
    pub fn warnings(&self) -> &[String] {
        &self.route.warnings
    }

    /// How long each answer is waited for.
    pub fn limit(&self) -> Duration {
        self.limits.attempt.min(self.limits.total)
    }

    /// Reads arguments by the tool's schema and checks them, unless that was switched off.
    ///
    /// # Errors
    /// All that does not fit, at once.
    pub async fn payload(&self, arguments: Arguments) -> Result<Payload, Fault> {
        let request = CallRequest { arguments, ..self.call.clone() };
        let (object, _unchecked) = dispatch::ready(&self.route.tool, &request).await?;
        Ok(Payload::new(object))
    }

    /// Readies something that carries calls, with at most so many in flight.
    ///
    /// # Errors
    /// When the tool cannot be reached.
    pub async fn repeater(&self, lanes: usize) -> Result<Box<dyn Repeater>, Fault> {
        let inspection = match self.inspect_every {
            Some(every) => {
                let inspector = Arc::new(Examiner::new(&self.route.tool).await);
                Some(Inspection { every: every.max(1), inspector })
            }
            None => None,
        };
        let order = Order {
            tool: self.definition().name.clone(),
            lanes: lanes.max(1),
            limit: self.limit(),
            inspection,
            context: self.context(),
        };
        let provider = &self.route.member.provider;
        let shared = |repeat: &&dyn Repeat| repeat.carries_several() || !self.has_sibling;
        let own = match provider.as_repeat().filter(shared) {
            Some(repeat) => repeat.repeater(&order).await,
            None => Ok(None),
        };
        let own = own.map_err(|fault| self.host.masker.fault(fault))?;
        Ok(own.unwrap_or_else(|| Box::new(Lanes::new(Arc::clone(provider), order))))
    }

    /// Whether the run is to end at once.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }

    /// The text with every known secret taken out.
    pub fn masked(&self, text: &str) -> String {
        self.host.masker.text(text)
    }

    /// Writes down that calls are about to be made: `planned` says how many, `arguments` are those
    /// of the first one. What is made of it is the only record of all these calls.
    ///
    /// # Errors
    /// As for a call: when the record is unsafe to write, or required and cannot be written.
    pub fn record(&self, arguments: &JsonObject, planned: &str) -> Result<RunRecord, Fault> {
        let decision = format!("{}; {planned}", self.decision);
        let tool = Arc::clone(&self.route.tool);
        let session = self.call.session.as_deref().unwrap_or(&self.host.session);
        RunRecord::open(&self.host, tool, self.call_id.clone(), (session, arguments), &decision)
    }

    fn context(&self) -> ToolContext {
        let owner = (self.call_id.clone(), self.definition().name.full());
        let ended = self.call.cancel.child_token();
        let caller = Nested::new(&self.host, &self.call, &Nesting::default(), owner, ended);
        ToolContext {
            caller: Some(Arc::new(caller)),
            ..self.host.context(&self.call, self.call_id.clone(), self.definition(), &self.limits)
        }
    }
}
