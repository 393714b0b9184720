//! The life of one call: find, coerce, validate, decide, record, attempt, check the result, record.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::approval::{self, Approval, ApprovalRequest};
use super::attempt::Attempt;
use super::breakpoints::{Stop, StopVerdict, StoppedCall};
use super::call_record::{ActiveCallRecord, new_call_record, require_audit};
use super::failover::is_unsent;
use super::limits::{self, CallLimits};
use super::link::HostQuery;
use super::listings::ListedTool;
use super::nested::{HostCaller, Nesting};
use super::policy::Decision;
use super::profiles::ProfileView;
use super::request::{CallArguments, CallOutcome, CallRequest, DryRun};
use super::router::{Route, Search};
use super::unsent_call::UnsentCall;
use super::{ToolHost, arguments, caller, coerce, content, output_check, retry, roster, variables};
use crate::model::{
    BreakpointRecord, CallId, CallMetadata, Error, ErrorKind, HoldOutcome, HostEvent, JsonObject,
    Signal, SkippedServer, ToolCall, ToolContext, ToolDefinition, ToolResult,
};
use crate::provider::Preview;

/// A call whose tool is found and whose arguments are ready.
struct PreparedCall {
    route: Route,
    call: ToolCall,
}

impl ToolHost {
    /// What a call would send or start.
    ///
    /// # Errors
    /// As [`ToolHost::call`], as far as nothing is sent.
    pub async fn dry_run(&self, request: &CallRequest) -> Result<DryRun, Error> {
        let query = || HostQuery::DryRun(Box::new(self.complete_request(request)));
        if let Some(outcome) = self.ask_link(query, &request.cancel).await {
            return outcome;
        }
        let work = async {
            let view = self.view(request.profile.as_deref())?;
            let search = Self::search(request, &view, &[]);
            let prepared = self.prepare(request, &Nesting::default(), &search, None).await?;
            let PreparedCall { route, call } = prepared;
            let tool = &route.tool.definition;
            let masked = self.pipeline.masked_arguments(&call.arguments, &tool.input_schema);
            Ok(DryRun {
                definition: Arc::clone(tool),
                preview: self.masked_preview(&route, &masked).await?,
                decision: self.pipeline.decision(tool),
                warnings: [self.check_pin(tool)?, route.warnings, self.nested_call_warnings(tool)]
                    .concat(),
            })
        };
        tokio::select! {
            biased;
            () = request.cancel.cancelled() => Err(interrupted_error(&request.name)),
            preview = work => preview,
        }
    }

    /// Runs one call through its whole life.
    ///
    /// # Errors
    /// When nothing was dispatched: unknown name, bad arguments, refusal, unreachable server.
    /// After dispatch the error is inside the outcome.
    pub async fn call(&self, request: CallRequest) -> Result<CallOutcome, Error> {
        if let Some(ended) = self.call_over_link(&request).await {
            return ended;
        }
        self.call_within(request, &Nesting::default()).await
    }

    /// A name for a call that is about to be made.
    pub fn new_call_id(&self) -> CallId {
        self.pipeline.new_call_id()
    }

    pub(super) async fn call_once(
        &self,
        request: &CallRequest,
        nesting: &Nesting,
        skipped: &[SkippedServer],
    ) -> Result<CallOutcome, Error> {
        require_audit(self, &request.name)?;
        let call_id = request.id.clone().unwrap_or_else(|| self.new_call_id());
        let parent = nesting.parent.as_ref();
        let unsent = UnsentCall::new(self, request, &call_id, parent);
        let before = async {
            let view = self.view(request.profile.as_deref())?;
            let search = Self::search(request, &view, skipped);
            let mut prepared = self.prepare(request, nesting, &search, Some(&unsent)).await?;
            let decided = async {
                // Before it is decided, so that policy and approval are about what is sent.
                if self.may_stop(&prepared.route.tool.definition)
                    && let Some(given) = self
                        .stop_unsent(&mut prepared.call, &prepared.route.tool, request, &unsent)
                        .await?
                {
                    return Ok(("answered by a person".to_owned(), Some(given)));
                }
                Ok((self.decide(&prepared, request, nesting, &unsent).await?, None))
            };
            match decided.await {
                Ok((decision, given)) => Ok((prepared, decision, given)),
                Err(error) => {
                    unsent.set_arguments(prepared.call.arguments);
                    Err(error)
                }
            }
        };
        let ready = tokio::select! {
            biased;
            () = request.cancel.cancelled() => Err(interrupted_error(&request.name)),
            ready = before => ready,
        };
        let (PreparedCall { route, call }, mut decision, given) = match ready {
            Ok(ready) => ready,
            // The server that failed already has its record; that no other accepts the call is not
            // a call.
            Err(error) if !skipped.is_empty() && !unsent.has_tool() => {
                unsent.close();
                return Err(error);
            }
            Err(error) => {
                unsent.fail(&error);
                return Err(error);
            }
        };
        let person_wait = unsent.person_wait();
        let breakpoint = unsent.breakpoint();
        unsent.close();
        if let Some(BreakpointRecord { outcome, pattern, .. }) = &breakpoint {
            let outcome = outcome.as_str();
            decision = format!("{decision}; {outcome} at the breakpoint '{pattern}'");
        }
        let tool = Arc::clone(&route.tool);
        let call_input = (request, &call.arguments);
        let mut recorded =
            new_call_record(self, &tool.definition, &call_id, parent, call_input, &decision);
        recorded.protocol.clone_from(&route.protocol);
        recorded.breakpoint = breakpoint;
        let trace = self.sessions.trace_of(request);
        let mut record = ActiveCallRecord::open(self, recorded, trace)?;
        record.earlier_wait = person_wait;
        // Refusals ended the call before; what is left are warnings.
        record.warnings.extend(self.check_pin(&tool.definition).unwrap_or_default());
        record.warnings.extend(route.warnings.iter().cloned());
        if request.retries.is_some_and(|retries| retries > 0)
            && self.max_retries(&tool.definition, request) == 0
        {
            record.warnings.push("not retried: it is not marked safe to repeat".into());
        }
        tracing::debug!(
            call = call_id.0,
            tool = record.call.tool,
            parent = record.call.parent.as_ref().map(|parent| parent.0.as_str()),
            session = record.call.caller.session,
            "call started"
        );
        let total = CallLimits::of(&tool.definition, request.timeout, request.idle_timeout).total;
        self.pipeline.questions.begin_call(&call_id, parent, total);
        let was_given = given.is_some();
        let was_edited = record.call.breakpoint.as_ref();
        let was_edited = was_edited.is_some_and(|stop| stop.outcome == HoldOutcome::Edited);
        let mut result = match given {
            Some(given) => Ok(*given),
            None => self.run(request, nesting, &route, &call, &mut record).await,
        };
        if let Ok(result) = &mut result {
            output_check::check_output(&tool, result, request.validate).await;
        }
        let mut result = self.pipeline.masker.result(result);
        let goes_elsewhere =
            route.has_alternatives() && result.as_ref().err().is_some_and(is_unsent);
        if !was_given && (was_edited || !goes_elsewhere) {
            let stopped = StoppedCall {
                request,
                call: &call_id,
                waiting: Some(&call_id),
                tool: &tool,
                arguments: &call.arguments,
            };
            let stop = tokio::select! {
                biased;
                () = request.cancel.cancelled() => None,
                stop = self.stop_at_breakpoint(&stopped, Some(&result)) => stop,
            };
            if let Some(Stop { record: breakpoint, verdict, .. }) = stop {
                record.result_stop = Some(breakpoint);
                match verdict {
                    Ok(StopVerdict::Result(given)) => result = Ok(*given),
                    Ok(_) => {}
                    Err(refused) => result = Err(refused),
                }
            }
        }
        record.call_questions = self.pipeline.questions.end_call(&call_id);
        let metadata = CallMetadata {
            call_id,
            duration: record.duration(),
            person_wait: record.person_wait(),
            connect: route.connect,
            attempts: record.attempts,
            protocol: route.protocol.clone(),
            // An edited call is not made of another server as it was before.
            routing: route
                .routing
                .clone()
                .filter(|_| !(goes_elsewhere && was_edited))
                .map(|routing| self.pipeline.masked_routing(routing)),
            host_pid: None,
        };
        let bytes = result.as_ref().map_or(0, content::size);
        record.close(&mut result, bytes);
        Ok(CallOutcome { definition: Arc::clone(&tool.definition), result, metadata })
    }

    /// Finds the tool and readies the arguments; contacts at most the tool's server.
    async fn prepare(
        &self,
        request: &CallRequest,
        nesting: &Nesting,
        search: &Search<'_>,
        unsent: Option<&UnsentCall<'_>>,
    ) -> Result<PreparedCall, Error> {
        let route = self.directory.route(search).await;
        let mut route = route.map_err(|error| self.pipeline.masker.error(error))?;
        if let Some(unsent) = unsent {
            unsent.set_tool(&route.tool.definition);
        }
        nesting.check_nesting(&route.tool.definition.name.full())?;
        if let Some(error) = &route.tool.definition.unavailable_reason {
            return Err(error.clone());
        }
        if !nesting.is_nested() {
            caller::check(request.user_id.as_deref(), &request.metadata)?;
            variables::check(&request.environment, &route.tool.definition)?;
        }
        let (arguments, unchecked) = prepare_arguments(&route.tool, request).await?;
        route.warnings.extend(unchecked);
        let call = ToolCall { name: route.tool.definition.name.clone(), arguments };
        Ok(PreparedCall { route, call })
    }

    fn search<'a>(
        request: &'a CallRequest,
        view: &'a ProfileView,
        skipped: &'a [SkippedServer],
    ) -> Search<'a> {
        // A caller's own limit also bounds starting; a longer one does not lengthen it, for
        // starting has its own limits.
        let limit = request.timeout.unwrap_or(limits::LISTING_TIMEOUT).min(limits::LISTING_TIMEOUT);
        Search { servers: &request.servers, skipped, ..Search::of(&request.name, view, limit) }
    }

    /// What a call would send. Masked before and after: a provider may encode an argument in its
    /// own way, and may add secrets that are not arguments.
    async fn masked_preview(&self, route: &Route, masked: &JsonObject) -> Result<Preview, Error> {
        let name = route.tool.definition.name.clone();
        let call = ToolCall { name, arguments: masked.clone() };
        let preview = route.provider.inner.preview(&call);
        match tokio::time::timeout(limits::LISTING_TIMEOUT, preview).await {
            Ok(Ok(preview)) => Ok(self.pipeline.masked_preview(&preview)),
            Ok(Err(error)) => Err(self.pipeline.masker.error(error)),
            Err(_elapsed) => Err(Error::timeout(format!(
                "the request to '{}' takes too long to build",
                call.name
            ))),
        }
    }

    /// Whether a call of the tool may be shown to a person at a breakpoint: one that is refused anyway
    /// is not.
    fn may_stop(&self, tool: &ToolDefinition) -> bool {
        !matches!(self.pipeline.decision(tool), Decision::Deny(_)) && self.check_pin(tool).is_ok()
    }

    /// Stops a call that could be sent, if a breakpoint says so; returns the result that a person
    /// gives in the tool's place.
    async fn stop_unsent(
        &self,
        call: &mut ToolCall,
        tool: &ListedTool,
        request: &CallRequest,
        unsent: &UnsentCall<'_>,
    ) -> Result<Option<Box<ToolResult>>, Error> {
        let (call_id, waiting) = unsent.place();
        let arguments = &call.arguments;
        let stopped = StoppedCall { request, call: call_id, waiting, tool, arguments };
        let Some(stop) = self.stop_at_breakpoint(&stopped, None).await else { return Ok(None) };
        unsent.set_breakpoint(stop.record, stop.waited);
        match stop.verdict? {
            StopVerdict::Unchanged => Ok(None),
            StopVerdict::Arguments(edited) => {
                call.arguments = edited;
                Ok(None)
            }
            StopVerdict::Result(given) => Ok(Some(given)),
        }
    }

    /// Applies the policy and asks a person where that is needed. Returns the decision in the
    /// words of the audit log.
    async fn decide(
        &self,
        ready: &PreparedCall,
        request: &CallRequest,
        nesting: &Nesting,
        unsent: &UnsentCall<'_>,
    ) -> Result<String, Error> {
        let tool = &ready.route.tool.definition;
        let name = &tool.name;
        self.check_pin(tool)?;
        let reason = match self.pipeline.decision(tool) {
            Decision::Allow(why) => return Ok(why),
            Decision::Deny(why) => {
                return Err(Error::denied(format!("'{name}' is refused by {why}")));
            }
            Decision::Ask(reason) => reason,
        };
        if request.assume_yes {
            let flag = if nesting.is_nested() { "--yes-nested" } else { "--yes" };
            return Ok(format!("approved with {flag}: {reason}"));
        }
        let masked = self.pipeline.masked_arguments(&ready.call.arguments, &tool.input_schema);
        let preview = self.masked_preview(&ready.route, &masked).await;
        let mut shown = Arc::clone(tool);
        self.pipeline.masker.definition(&mut shown);
        let approval = ApprovalRequest {
            definition: Cow::Borrowed(&shown),
            arguments: Cow::Borrowed(&masked),
            reason: self.pipeline.masker.text(&reason),
            preview,
            identity: approval::identity(tool, &ready.call.arguments),
            call: request.id.clone(),
        };
        let (answer, waited) = self.pipeline.approve(&approval, nesting.parent.as_ref()).await;
        unsent.set_approval_wait(waited);
        tracing::info!(tool = name.full(), ?answer, "approval asked");
        match answer {
            Approval::Granted => Ok(format!("approved by a person: {reason}")),
            Approval::Refused => {
                Err(Error::denied(format!("a person refused the call of '{name}'")))
            }
            Approval::Unavailable => Err(Error::denied(format!(
                "'{name}' needs approval, but no person can be asked: {reason}"
            ))
            .with_hint(if self.pipeline.asks_about_all {
                "run it in a terminal, or without --ask-all"
            } else if nesting.is_nested() {
                "--yes approves the outer call only; --yes-nested approves those it makes too"
            } else {
                "--yes approves without asking"
            })),
        }
    }

    fn max_retries(&self, tool: &ToolDefinition, request: &CallRequest) -> u32 {
        let asks = matches!(self.pipeline.decision(tool), Decision::Ask(_));
        retry::max_retries(tool, asks, request.retries)
    }

    /// Attempts the call until it succeeds, fails permanently, or runs out of time.
    async fn run(
        &self,
        request: &CallRequest,
        nesting: &Nesting,
        route: &Route,
        call: &ToolCall,
        record: &mut ActiveCallRecord<'_>,
    ) -> Result<ToolResult, Error> {
        let definition = &route.tool.definition;
        let limits = if nesting.is_nested() {
            CallLimits::nested(definition, request.timeout)
        } else {
            CallLimits::of(definition, request.timeout, request.idle_timeout)
        };
        let further = self.max_retries(definition, request);
        let mut total = std::pin::pin!(tokio::time::sleep(limits.total));
        let client = self.client.as_deref().or(request.session.as_deref()).unwrap_or_default();
        let permit = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return Err(interrupted_error(&request.name)),
            () = route.provider.usage.stop().cancelled() => {
                return Err(roster::cancelled_by_removal(&call.name));
            }
            permit = self.pipeline.permits.acquire(definition, nesting.chain.len(), client) => {
                Some(permit)
            }
            () = &mut total => None,
        };
        let Some(permit) = permit else {
            return Err(Error::timeout(format!(
                "'{}' timed out in the queue: other calls of its component are running",
                call.name
            )));
        };
        let _turn = self.pipeline.questions.hold_turn(&record.call.id, permit);
        // The wait for a turn does not count as the tool's time.
        record.started = self.pipeline.clock.now();
        let attempt = Attempt {
            provider: &*route.provider.inner,
            definition,
            call,
            limits: &limits,
            interrupt: &request.cancel,
            removed: route.provider.usage.stop(),
        };
        loop {
            record.attempts += 1;
            let ended = CancellationToken::new();
            let _ends_what_it_calls = ended.clone().drop_guard();
            let owner = (record.call.id.clone(), call.name.full());
            let trace = record.trace.clone();
            let nested = HostCaller::new(self, request, nesting, owner, (trace.clone(), ended));
            let context = ToolContext {
                caller: Some(Arc::new(nested)),
                ancestors: nesting.chain.clone(),
                trace,
                ..self.sessions.context(request, record.call.id.clone(), definition, &limits)
            };
            let context = caller::without_secrets(context, definition, &self.pipeline.masker);
            self.directory.mark_start([&*route.provider]);
            let outcome = attempt.run(context, total.as_mut()).await;
            if route.has_alternatives() && outcome.as_ref().err().is_some_and(is_unsent) {
                return outcome;
            }
            let Some(error) = retry::retryable_error(&outcome).cloned() else { return outcome };
            let is_last = record.attempts > further || total.is_elapsed();
            if is_last || route.provider.usage.is_removed() {
                return outcome;
            }
            let jitter = retry::jitter(&self.pipeline.ids.next());
            let delay = retry::delay(&error, definition, record.attempts, jitter);
            let left = total.deadline().saturating_duration_since(tokio::time::Instant::now());
            if delay >= left {
                return retry::no_time_for_retry(outcome, delay, left);
            }
            tracing::warn!(
                call = record.call.id.0,
                tool = record.call.tool,
                attempt = record.attempts,
                kind = error.kind().as_str(),
                delay_ms = delay.as_millis(),
                "attempt failed, another follows"
            );
            self.sessions.events.emit(HostEvent::AttemptFailed {
                call_id: record.call.id.clone(),
                attempt: record.attempts,
                error: error.clone(),
                delay,
            });
            tokio::select! {
                biased;
                () = request.cancel.cancelled() => return Err(interrupted_error(&request.name)),
                () = route.provider.usage.stop().cancelled() => return Err(error),
                () = &mut total => {
                    return Err(error.with_detail("no time is left for another attempt"));
                }
                () = tokio::time::sleep(delay) => {}
            }
        }
    }
}

/// Coerces and checks the arguments; all problems at once. Beside them stands a warning when they
/// could not be checked.
pub(super) async fn prepare_arguments(
    tool: &ListedTool,
    request: &CallRequest,
) -> Result<(JsonObject, Option<String>), Error> {
    let schema = &*tool.definition.input_schema;
    let object = match &request.arguments {
        CallArguments::Object(object) => object.clone(),
        CallArguments::Words(pairs) => coerce::coerce(pairs, schema)
            .map_err(|problems| arguments::invalid_arguments(&tool.definition, &problems))?,
    };
    if !request.validate {
        return Ok((object, None));
    }
    let mut problems = arguments::unknown_keys(&object, schema);
    let value = Value::Object(object);
    let unchecked = match tool.input_checker().await.check(&value).await {
        Ok(more) => {
            problems.extend(more);
            None
        }
        Err(reason) => Some(format!("the arguments were not checked: {reason}")),
    };
    match value {
        Value::Object(object) if problems.is_empty() => Ok((object, unchecked)),
        _ => Err(arguments::invalid_arguments(&tool.definition, &problems)),
    }
}

fn interrupted_error(name: &str) -> Error {
    Error::new(ErrorKind::Interrupted(Signal::Interrupt), format!("'{name}' was interrupted"))
}
