//! One call's life: find, coerce and check, decide, record, attempt, check the answer, record.
//!
//! Owns: the order of these steps, once for every kind of tool. Each step is a module of its own.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::approval::{self, Approval, ApprovalRequest};
use super::attempt::Attempt;
use super::failover::is_unsent;
use super::ledger::Ledger;
use super::limits::{self, Limits};
use super::listings::Tool;
use super::nested::{Nested, Nesting};
use super::policy::{self, Decision};
use super::request::{Arguments, CallOutcome, CallRequest, Rehearsal};
use super::router::{Route, Search};
use super::{ToolHost, arguments, coerce, content, output, retry, variables};
use crate::model::{
    CallId, CallMetadata, Event, Fault, FaultKind, JsonObject, Signal, Skipped, ToolCall,
    ToolContext, ToolDefinition, ToolResult, map_json,
};
use crate::provider::Preview;
use crate::util::units::show_duration;

/// A call whose tool is found and whose arguments are ready.
struct Prepared {
    route: Route,
    call: ToolCall,
}

impl ToolHost {
    /// What a call would send or start.
    ///
    /// # Errors
    /// As [`ToolHost::call`], as far as nothing is sent.
    pub async fn preview(&self, request: &CallRequest) -> Result<Rehearsal, Fault> {
        let work = async {
            let search = Self::search(request, false, &[]);
            let prepared = self.prepare(request, &Nesting::default(), &search).await?;
            let Prepared { route, call } = prepared;
            let tool = &route.tool.definition;
            let masked = self.masker.arguments(&call.arguments, &tool.input_schema);
            Ok(Rehearsal {
                definition: Arc::clone(tool),
                preview: self.masked_preview(&route, &masked).await?,
                decision: policy::decide(&self.policy, tool),
                warnings: [self.admitted(tool)?, route.warnings, self.forewarnings(tool)].concat(),
            })
        };
        tokio::select! {
            biased;
            () = request.cancel.cancelled() => Err(interrupted(&request.name)),
            preview = work => preview,
        }
    }

    /// Runs one call through its whole life.
    ///
    /// # Errors
    /// When nothing was dispatched: unknown name, bad arguments, refusal, unreachable server.
    /// After dispatch the fault is inside the outcome.
    pub async fn call(&self, request: CallRequest) -> Result<CallOutcome, Fault> {
        self.call_within(request, &Nesting::default()).await
    }

    /// A name for a call that is about to be made.
    pub fn new_call_id(&self) -> CallId {
        CallId(self.ids.next())
    }

    /// One call to one server. Whether another one could have taken it stands beside the outcome.
    pub(super) async fn call_once(
        &self,
        request: &CallRequest,
        nesting: &Nesting,
        skipped: &[Skipped],
    ) -> Result<(CallOutcome, bool), Fault> {
        let call_id = request.id.clone().unwrap_or_else(|| self.new_call_id());
        let before = async {
            let search = Self::search(request, true, skipped);
            let prepared = self.prepare(request, nesting, &search).await?;
            let tool = &prepared.route.tool.definition;
            let decision = match self.decide(&prepared, request, nesting).await {
                Ok(decision) => decision,
                Err(fault) => {
                    let session = request.session.as_deref().unwrap_or(&self.session);
                    let asked = (session, &prepared.call.arguments);
                    Ledger::refused(self, tool, &call_id, nesting, asked, &fault);
                    return Err(fault);
                }
            };
            Ok((prepared, decision))
        };
        let (Prepared { route, call }, decision) = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return Err(interrupted(&request.name)),
            ready = before => ready?,
        };
        let tool = Arc::clone(&route.tool);
        let session = request.session.as_deref().unwrap_or(&self.session);
        let mut ledger = Ledger::open(
            self,
            Arc::clone(&tool),
            call_id.clone(),
            nesting,
            session,
            &call.arguments,
            &decision,
        )?;
        ledger.protocol.clone_from(&route.protocol);
        // Refusals ended the call before; what is left are warnings.
        ledger.warnings.extend(self.admitted(&tool.definition).unwrap_or_default());
        ledger.warnings.extend(route.warnings.iter().cloned());
        if request.retries.is_some_and(|asked| asked > 0)
            && retry::allowance(&tool.definition, request.retries) == 0
        {
            ledger.warnings.push("not repeated: it is not marked safe to repeat".into());
        }
        let total = Limits::of(&tool.definition, request.timeout).total;
        self.questions.begun(&call_id, total);
        let mut result = self.run(request, nesting, &route, &call, &mut ledger).await;
        ledger.asked_for = self.questions.ended(&call_id);
        if let Ok(result) = &mut result {
            output::examine(&tool, result, request.validate).await;
        }
        let mut result = self.masker.result(result);
        let metadata = CallMetadata {
            call_id,
            duration: self.clock.now().saturating_duration_since(ledger.started),
            waited: ledger.asked_for.waited,
            connect: route.connect,
            attempts: ledger.attempts,
            protocol: route.protocol.clone(),
            routing: route.routing.clone().map(|routing| self.masked_routing(routing)),
        };
        let bytes = result.as_ref().map_or(0, content::size);
        ledger.close(&mut result, bytes);
        let outcome = CallOutcome { definition: Arc::clone(&tool.definition), result, metadata };
        Ok((outcome, route.has_others()))
    }

    /// Finds the tool and readies the arguments; contacts at most the tool's server.
    async fn prepare(
        &self,
        request: &CallRequest,
        nesting: &Nesting,
        search: &Search<'_>,
    ) -> Result<Prepared, Fault> {
        let route = self.route(search).await;
        let mut route = route.map_err(|fault| self.masker.fault(fault))?;
        nesting.admit(&route.tool.definition.name.full())?;
        if let Some(fault) = &route.tool.definition.unavailable {
            return Err(fault.clone());
        }
        if !nesting.is_nested() {
            variables::check(&request.environment, &route.tool.definition)?;
        }
        let (arguments, unchecked) = ready(&route.tool, request).await?;
        route.warnings.extend(unchecked);
        let call = ToolCall { name: route.tool.definition.name.clone(), arguments };
        Ok(Prepared { route, call })
    }

    /// What a call looks for.
    fn search<'a>(request: &'a CallRequest, calls: bool, skipped: &'a [Skipped]) -> Search<'a> {
        // A caller's own limit also bounds starting; a longer one does not lengthen it, for
        // starting has limits of its own.
        let limit = request.timeout.unwrap_or(limits::LISTING).min(limits::LISTING);
        Search { servers: &request.servers, calls, skipped, ..Search::of(&request.name, limit) }
    }

    /// What a call would send. Masked before and after: a provider may encode an argument in its
    /// own way, and may add secrets that are no arguments.
    async fn masked_preview(&self, route: &Route, masked: &JsonObject) -> Result<Preview, Fault> {
        let name = route.tool.definition.name.clone();
        let call = ToolCall { name, arguments: masked.clone() };
        let preview = route.member.provider.preview(&call);
        match tokio::time::timeout(limits::LISTING, preview).await {
            Ok(Ok(preview)) => {
                let mask = |text: &str| self.masker.text(text);
                let request = map_json(&preview.request, &mask);
                Ok(Preview { summary: mask(&preview.summary), request })
            }
            Ok(Err(fault)) => Err(self.masker.fault(fault)),
            Err(_elapsed) => Err(Fault::timeout(format!(
                "the request to '{}' takes too long to build",
                call.name
            ))),
        }
    }

    /// Applies the policy and asks a person where that is needed. Returns the decision in the
    /// words of the audit log.
    async fn decide(
        &self,
        ready: &Prepared,
        request: &CallRequest,
        nesting: &Nesting,
    ) -> Result<String, Fault> {
        let tool = &ready.route.tool.definition;
        let name = &tool.name;
        self.admitted(tool)?;
        let reason = match policy::decide(&self.policy, tool) {
            Decision::Allow(why) => return Ok(why),
            Decision::Deny(why) => {
                return Err(Fault::denied(format!("'{name}' is refused by {why}")));
            }
            Decision::Ask(reason) => reason,
        };
        if request.assume_yes {
            let flag = if nesting.is_nested() { "--yes-nested" } else { "--yes" };
            return Ok(format!("approved with {flag}: {reason}"));
        }
        let masked = self.masker.arguments(&ready.call.arguments, &tool.input_schema);
        let preview = self.masked_preview(&ready.route, &masked).await;
        let mut shown = Arc::clone(tool);
        self.masker.definition(&mut shown);
        let asked = ApprovalRequest {
            definition: &shown,
            arguments: &masked,
            reason: self.masker.text(&reason),
            preview,
            identity: approval::identity(tool, &ready.call.arguments),
            call: request.id.clone(),
        };
        // One question at a time: calls that are made of others may ask several at once.
        let _the_floor = self.questions.floor().await;
        match self.approver.ask(&asked).await {
            Approval::Granted => Ok(format!("approved by a person: {reason}")),
            Approval::Refused => {
                Err(Fault::denied(format!("a person refused the call of '{name}'")))
            }
            Approval::Nobody => Err(Fault::denied(format!(
                "'{name}' needs approval and nobody can be asked: {reason}"
            ))
            .hint(if nesting.is_nested() {
                "--yes approves the outer call only; --yes-nested approves those it makes too"
            } else {
                "--yes approves without asking"
            })),
        }
    }

    /// Attempts the call until it answers, fails for good, or runs out of time.
    async fn run(
        &self,
        request: &CallRequest,
        nesting: &Nesting,
        route: &Route,
        call: &ToolCall,
        ledger: &mut Ledger<'_>,
    ) -> Result<ToolResult, Fault> {
        let definition = &route.tool.definition;
        let limits = if nesting.is_nested() {
            Limits::nested(definition, request.timeout)
        } else {
            Limits::of(definition, request.timeout)
        };
        let further = retry::allowance(definition, request.retries);
        let mut total = std::pin::pin!(tokio::time::sleep(limits.total));
        let permit = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return Err(interrupted(&request.name)),
            permit = self.permits.acquire(definition, nesting.chain.len()) => permit,
            () = &mut total => None,
        };
        let Some(_permit) = permit else {
            return Err(Fault::timeout(format!(
                "'{}' got no turn: {} calls of its component are running",
                call.name,
                limits::PARALLEL
            )));
        };
        // What was waited for a turn is no time of the tool's.
        ledger.started = self.clock.now();
        let attempt = Attempt {
            provider: &*route.member.provider,
            definition,
            call,
            limits: &limits,
            interrupt: &request.cancel,
        };
        loop {
            ledger.attempts += 1;
            let ended = CancellationToken::new();
            let _ends_what_it_calls = ended.clone().drop_guard();
            let owner = (ledger.call_id.clone(), call.name.full());
            let caller = Nested::new(self, request, nesting, owner, ended);
            let context = ToolContext {
                caller: Some(Arc::new(caller)),
                chain: nesting.chain.clone(),
                ..self.context(request, ledger.call_id.clone(), definition, &limits)
            };
            let outcome = attempt.run(context, total.as_mut()).await;
            if let Some(server) = &route.member.server {
                self.circuits.note(server, outcome.as_ref());
            }
            if route.has_others() && outcome.as_ref().err().is_some_and(is_unsent) {
                return outcome;
            }
            let Some(fault) = retry::reason(&outcome).cloned() else { return outcome };
            if ledger.attempts > further || total.is_elapsed() {
                return outcome;
            }
            let jitter = retry::jitter(&self.ids.next());
            let delay = retry::delay(&fault, definition, ledger.attempts, jitter);
            let left = total.deadline().saturating_duration_since(tokio::time::Instant::now());
            if delay >= left {
                return given_up(outcome, delay, left);
            }
            self.events.emit(Event::AttemptFailed {
                call_id: ledger.call_id.clone(),
                attempt: ledger.attempts,
                fault: fault.clone(),
                delay,
            });
            tokio::select! {
                biased;
                () = request.cancel.cancelled() => return Err(interrupted(&request.name)),
                () = &mut total => {
                    return Err(fault.detail("no time is left for another attempt"));
                }
                () = tokio::time::sleep(delay) => {}
            }
        }
    }

    pub(super) fn context(
        &self,
        request: &CallRequest,
        call_id: CallId,
        tool: &ToolDefinition,
        limits: &Limits,
    ) -> ToolContext {
        let session_id = request.session.clone().unwrap_or_else(|| self.session.clone());
        let mut environment = self.environment.clone();
        let mut metadata = self.metadata.clone();
        let mut cwd = self.cwd.clone();
        if let Some(session) = self.sessions.info(&session_id) {
            environment.extend(session.environment.clone());
            metadata.extend(session.metadata.clone());
            cwd.clone_from(&session.cwd);
        }
        environment.extend(request.environment.clone());
        variables::retain(&mut environment, tool);
        metadata.extend(request.metadata.clone());
        ToolContext {
            call_id,
            session_id,
            cwd,
            environment,
            metadata,
            cancel: request.cancel.clone(),
            events: self.events.clone(),
            idle_limit: limits.attempt,
            caller: None,
            chain: Vec::new(),
        }
    }
}

/// Coerces and checks the arguments; all problems at once. Beside them stands a warning when they
/// could not be checked.
pub(super) async fn ready(
    tool: &Tool,
    request: &CallRequest,
) -> Result<(JsonObject, Option<String>), Fault> {
    let schema = &*tool.definition.input_schema;
    let given = match &request.arguments {
        Arguments::Object(object) => object.clone(),
        Arguments::Words(words) => coerce::coerce(words, schema)
            .map_err(|problems| arguments::misfit(&tool.definition, &problems))?,
    };
    if !request.validate {
        return Ok((given, None));
    }
    let mut problems = arguments::unknown_keys(&given, schema);
    let value = Value::Object(given);
    let unchecked = match tool.input().await.check(&value).await {
        Ok(more) => {
            problems.extend(more);
            None
        }
        Err(reason) => Some(format!("the arguments were not checked: {reason}")),
    };
    match value {
        Value::Object(given) if problems.is_empty() => Ok((given, unchecked)),
        _ => Err(arguments::misfit(&tool.definition, &problems)),
    }
}

/// An outcome after which there is no time for the wait before another attempt.
fn given_up(
    outcome: Result<ToolResult, Fault>,
    delay: Duration,
    left: Duration,
) -> Result<ToolResult, Fault> {
    let why = format!(
        "not repeated: the next attempt would be in {}, and the call ends in {}",
        show_duration(delay),
        show_duration(left)
    );
    match outcome {
        Ok(mut result) => {
            result.warnings.push(why);
            Ok(result)
        }
        Err(fault) => Err(fault.detail(why)),
    }
}

fn interrupted(name: &str) -> Fault {
    Fault::new(FaultKind::Interrupted(Signal::Interrupt), format!("'{name}' was interrupted"))
}
