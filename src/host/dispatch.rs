//! The life of one call: find, coerce, validate, decide, record, attempt, check the result, record.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::attempt::{self, Attempt, CallLimits};
use super::breakpoints::{Stop, StopVerdict, StoppedCall};
use super::call_record::{OpenCall, require_audit};
use super::failover::is_unsent;
use super::link::HostQuery;
use super::listings::ListedTool;
use super::nested::{HostCaller, Nesting};
use super::policy::{self, Approval, ApprovalRequest, Decision};
use super::profiles::ProfileView;
use super::request::{self, CallArguments, CallOutcome, CallRequest, DryRun};
use super::router::{Route, Search};
use super::{ToolHost, arguments, content, registry, retry, variables};
use crate::model::{
    BreakpointRecord, CallId, CallMetadata, Error, HoldOutcome, HostEvent, JsonObject,
    SkippedServer, ToolCall, ToolContext, ToolDefinition, ToolResult, ToolSource,
};
use crate::provider::Preview;

/// A call whose tool is found and whose arguments are ready.
pub(super) struct PreparedCall {
    pub(super) route: Route,
    call: ToolCall,
}

/// What was decided about a call that may be made.
struct Permission {
    /// In the words of the audit log.
    decision: String,
    /// The result that a person gave in the tool's place.
    given: Option<Box<ToolResult>>,
}

impl ToolHost {
    /// What a call would send or start.
    ///
    /// # Errors
    /// As [`ToolHost::call`], as far as nothing is sent.
    pub async fn dry_run(&self, request: &CallRequest) -> Result<DryRun, Error> {
        let query = || HostQuery::DryRun(Box::new(self.complete_request(request)));
        if let Some(outcome) = self.ask_link_within(query, &request.cancel).await? {
            return outcome;
        }
        let work = async {
            let view = self.view(request.profile.as_deref())?;
            let search = Self::search(request, &view, &[]);
            let PreparedCall { route, call } =
                self.prepare(request, &Nesting::default(), &search, &mut None).await?;
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
        unless_interrupted(request, work).await
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
        let id = request.id.clone().unwrap_or_else(|| self.new_call_id());
        let mut open = OpenCall::new(self, request, id, nesting.parent.as_ref());
        let ready = self.ready(request, nesting, skipped, &mut open);
        let (PreparedCall { route, call }, permission) =
            match unless_interrupted(request, ready).await {
                Ok(ready) => ready,
                Err(error) => {
                    // The server that failed already has its record; that no other accepts the
                    // call is not a call.
                    if !skipped.is_empty() && open.tool.is_none() {
                        open.discard();
                    } else {
                        open.fail(&error);
                    }
                    return Err(error);
                }
            };
        let Permission { mut decision, given } = permission;
        if let Some(BreakpointRecord { outcome, pattern, .. }) = &open.breakpoint {
            let outcome = outcome.as_str();
            decision = format!("{decision}; {outcome} at the breakpoint '{pattern}'");
        }
        let tool = Arc::clone(&route.tool);
        open.dispatch(&tool.definition, &call.arguments, route.protocol.as_ref(), &decision)?;
        // Refusals ended the call before; what is left are warnings.
        open.warnings.extend(self.check_pin(&tool.definition).unwrap_or_default());
        open.warnings.extend(route.warnings.iter().cloned());
        if request.retries.is_some_and(|retries| retries > 0)
            && self.max_retries(&tool.definition, request) == 0
        {
            open.warnings.push("not retried: it is not marked safe to repeat".into());
        }
        let total = CallLimits::of(&tool.definition, request.timeout, request.idle_timeout).total;
        self.pipeline.questions.begin_call(&open.id, open.parent, total);
        let was_given = given.is_some();
        let was_edited =
            open.breakpoint.as_ref().is_some_and(|stop| stop.outcome == HoldOutcome::Edited);
        let mut result = match given {
            Some(given) => Ok(*given),
            None => self.run(request, nesting, &route, &call, &mut open).await,
        };
        if let Ok(result) = &mut result {
            attempt::check_output(&tool, result, request.validate).await;
        }
        let mut result = self.pipeline.masker.result(result);
        let goes_elsewhere =
            route.has_alternatives() && result.as_ref().err().is_some_and(is_unsent);
        if !was_given && (was_edited || !goes_elsewhere) {
            let stopped = StoppedCall {
                request,
                call: &open.id,
                waiting: Some(&open.id),
                tool: &tool,
                arguments: &call.arguments,
            };
            let stop = tokio::select! {
                biased;
                () = request.cancel.cancelled() => None,
                stop = self.stop_at_breakpoint(&stopped, Some(&result)) => stop,
            };
            if let Some(Stop { record: breakpoint, verdict, .. }) = stop {
                open.result_stop = Some(breakpoint);
                match verdict {
                    Ok(StopVerdict::Result(given)) => result = Ok(*given),
                    Ok(_) => {}
                    Err(refused) => result = Err(refused),
                }
            }
        }
        open.questions = self.pipeline.questions.end_call(&open.id);
        let mut metadata = CallMetadata {
            call_id: open.id.clone(),
            duration: open.duration(),
            person_wait: open.person_wait(),
            connect: route.connect,
            attempts: open.attempts,
            protocol: route.protocol.clone(),
            // An edited call is not made of another server as it was before.
            routing: route
                .routing
                .clone()
                .filter(|_| !(goes_elsewhere && was_edited))
                .map(|routing| self.pipeline.masked_routing(routing)),
            host_pid: None,
            unrecorded: None,
        };
        let bytes = result.as_ref().map_or(0, content::size);
        metadata.unrecorded = open.close(&mut result, bytes);
        Ok(CallOutcome { definition: Arc::clone(&tool.definition), result, metadata })
    }

    /// All that comes before a call is dispatched: nothing of it was sent yet.
    async fn ready(
        &self,
        request: &CallRequest,
        nesting: &Nesting,
        skipped: &[SkippedServer],
        open: &mut OpenCall<'_>,
    ) -> Result<(PreparedCall, Permission), Error> {
        let view = self.view(request.profile.as_deref())?;
        let search = Self::search(request, &view, skipped);
        let mut ready = self.prepare(request, nesting, &search, &mut open.tool).await?;
        let permitted = self.permit(&mut ready, request, nesting, open).await;
        if permitted.is_err() {
            open.arguments = Some(ready.call.arguments.clone());
        }
        Ok((ready, permitted?))
    }

    /// Finds the tool, which is put into `tool`, and readies the arguments; contacts at most the tool's
    /// server.
    pub(super) async fn prepare(
        &self,
        request: &CallRequest,
        nesting: &Nesting,
        search: &Search<'_>,
        tool: &mut Option<Arc<ToolDefinition>>,
    ) -> Result<PreparedCall, Error> {
        let route = self.directory.route(search).await;
        let mut route = route.map_err(|error| self.pipeline.masker.error(error))?;
        *tool = Some(Arc::clone(&route.tool.definition));
        nesting.check_nesting(&route.tool.definition.name.full())?;
        if let Some(error) = &route.tool.definition.unavailable_reason {
            return Err(error.clone());
        }
        if !nesting.is_nested() {
            request::check(request.user_id.as_deref(), &request.metadata)?;
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
        let limit =
            request.timeout.unwrap_or(attempt::LISTING_TIMEOUT).min(attempt::LISTING_TIMEOUT);
        Search { servers: &request.servers, skipped, ..Search::of(&request.name, view, limit) }
    }

    /// What a call would send. Masked before and after: a provider may encode an argument in its
    /// own way, and may add secrets that are not arguments.
    async fn masked_preview(&self, route: &Route, masked: &JsonObject) -> Result<Preview, Error> {
        let name = route.tool.definition.name.clone();
        let call = ToolCall { name, arguments: masked.clone() };
        let preview = route.provider.inner.preview(&call);
        match tokio::time::timeout(attempt::LISTING_TIMEOUT, preview).await {
            Ok(Ok(preview)) => Ok(self.pipeline.masked_preview(&preview)),
            Ok(Err(error)) => Err(self.pipeline.masker.error(error)),
            Err(_elapsed) => Err(Error::timeout(format!(
                "the request to '{}' takes too long to build",
                call.name
            ))),
        }
    }

    /// Lets a person change the call at a breakpoint, and then decides: policy and approval are about
    /// what is sent. A call that is refused anyway is not shown to a person.
    async fn permit(
        &self,
        ready: &mut PreparedCall,
        request: &CallRequest,
        nesting: &Nesting,
        open: &mut OpenCall<'_>,
    ) -> Result<Permission, Error> {
        let tool = &*ready.route.tool;
        let is_refused = matches!(self.pipeline.decision(&tool.definition), Decision::Deny(_))
            || self.check_pin(&tool.definition).is_err();
        let arguments = &ready.call.arguments;
        let (call, waiting) = (&open.id, open.parent);
        let stopped = StoppedCall { request, call, waiting, tool, arguments };
        let stop = if is_refused { None } else { self.stop_at_breakpoint(&stopped, None).await };
        if let Some(stop) = stop {
            open.breakpoint = Some(stop.record);
            open.earlier_wait += stop.waited;
            match stop.verdict? {
                StopVerdict::Unchanged => {}
                StopVerdict::Arguments(edited) => ready.call.arguments = edited,
                StopVerdict::Result(given) => {
                    let decision = "answered by a person".to_owned();
                    return Ok(Permission { decision, given: Some(given) });
                }
            }
        }
        Ok(Permission { decision: self.decide(ready, request, nesting, open).await?, given: None })
    }

    /// Applies the policy and asks a person where that is needed. Returns the decision in the
    /// words of the audit log.
    async fn decide(
        &self,
        ready: &PreparedCall,
        request: &CallRequest,
        nesting: &Nesting,
        open: &mut OpenCall<'_>,
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
            identity: policy::identity(tool, &ready.call.arguments),
            call: request.id.clone(),
        };
        let (answer, waited) = self.pipeline.approve(&approval, nesting.parent.as_ref()).await;
        open.earlier_wait += waited;
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
        open: &mut OpenCall<'_>,
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
            () = route.provider.stop.cancelled() => {
                return Err(registry::cancelled_by_removal(&call.name));
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
        let _turn = self.pipeline.questions.hold_turn(&open.id, permit);
        // The wait for a turn does not count as the tool's time.
        open.started = self.pipeline.clock.now();
        let attempt = Attempt {
            provider: &*route.provider.inner,
            definition,
            call,
            limits: &limits,
            interrupt: &request.cancel,
            removed: &route.provider.stop,
        };
        loop {
            open.attempts += 1;
            let ended = CancellationToken::new();
            let _ends_what_it_calls = ended.drop_guard_ref();
            let trace = open.trace.clone();
            // A server calls none of our tools.
            let caller = (definition.source == ToolSource::Internal).then(|| {
                let owner = (open.id.clone(), call.name.full());
                let context = (trace.clone(), ended.clone());
                Arc::new(HostCaller::new(self, request, nesting, owner, context)) as _
            });
            let context = ToolContext {
                caller,
                ancestors: nesting.chain.clone(),
                trace,
                ..self.sessions.context(request, open.id.clone(), definition, &limits)
            };
            let context = request::without_secrets(context, definition, &self.pipeline.masker);
            self.directory.mark_start([&*route.provider]);
            let outcome = attempt.run(context, total.as_mut()).await;
            if route.has_alternatives() && outcome.as_ref().err().is_some_and(is_unsent) {
                return outcome;
            }
            let Some(error) = retry::retryable_error(&outcome).cloned() else { return outcome };
            let is_last = open.attempts > further || total.is_elapsed();
            if is_last || route.provider.is_removed() {
                return outcome;
            }
            let jitter = retry::jitter(&self.pipeline.ids.next());
            let delay = retry::delay(&error, definition, open.attempts, jitter);
            let left = total.deadline().saturating_duration_since(tokio::time::Instant::now());
            if delay >= left {
                return retry::no_time_for_retry(outcome, delay, left);
            }
            tracing::warn!(
                call = &*open.id.0,
                tool = definition.name.full(),
                attempt = open.attempts,
                kind = error.kind().as_str(),
                delay_ms = delay.as_millis(),
                "attempt failed, another follows"
            );
            self.sessions.events.emit(HostEvent::AttemptFailed {
                call_id: open.id.clone(),
                attempt: open.attempts,
                error: error.clone(),
                delay,
            });
            tokio::select! {
                biased;
                () = request.cancel.cancelled() => return Err(interrupted_error(&request.name)),
                () = route.provider.stop.cancelled() => return Err(error),
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
        CallArguments::Words(pairs) => arguments::coerce(pairs, schema)
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

async fn unless_interrupted<T>(
    request: &CallRequest,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = request.cancel.cancelled() => Err(interrupted_error(&request.name)),
        outcome = work => outcome,
    }
}

fn interrupted_error(name: &str) -> Error {
    Error::interrupted(format!("'{name}' was interrupted"))
}
