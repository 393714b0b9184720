//! Benchmark load: many calls of one tool, as attempts of its provider, any number at once, with one audit
//! record from the intent before the first to the outcome after the last.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::attempt::{self, CallLimits};
use super::call_record::{OpenCall, new_call_record, record_intent, require_audit};
use super::listings::ListedTool;
use super::nested::{HostCaller, Nesting};
use super::policy::Decision;
use super::request::{self, CallArguments, CallRequest};
use super::router::{Route, Search};
use super::{ToolHost, content, dispatch};
use crate::model::{
    CallId, CallRecord, ClientAbilities, Error, ErrorKind, JsonObject, QuestionAbilities,
    RecordedOutcome, ServerState, ToolCall, ToolContext, ToolDefinition, ToolName, ToolResult,
};
use crate::provider::ToolProvider;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::json;
use crate::util::pacer::Pacer;
use crate::util::units::show_duration;

/// One of the calls of a run, which is made many times.
#[derive(Debug)]
pub struct LoadCall {
    pub call: ToolCall,
    /// The size of its arguments as JSON.
    pub bytes: u64,
}

impl LoadCall {
    pub fn new(name: ToolName, arguments: JsonObject) -> Self {
        Self { bytes: json::size(&arguments), call: ToolCall { name, arguments } }
    }
}

/// Makes calls of one tool over one connection.
#[async_trait]
pub trait LoadExecutor: Send {
    /// A call, and when its time begins: it is to be polled at once.
    fn call(&mut self, call: &Arc<LoadCall>) -> (Instant, BoxFuture<'static, CompletedCall>);

    /// Why no more calls can be made: the connection is gone.
    fn lost(&self) -> Option<Error>;

    /// Waits until this moment, more exactly than the timers of the runtime do.
    async fn until(&mut self, moment: Instant);

    /// Oddities of the run, as text for people.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

#[derive(Debug)]
pub struct CompletedCall {
    /// When its result was read, its limit fired, or it was abandoned.
    pub ended_at: Instant,
    /// The size of its arguments as JSON.
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub outcome: LoadOutcome,
}

/// What became of a call of a run.
#[derive(Debug)]
pub enum LoadOutcome {
    /// The tool answered without an error.
    Ok,
    /// The tool said no: `isError`, a non-zero exit, an HTTP status. With what it said, cut.
    ToolError(Box<str>),
    /// No usable answer came: a limit fired, the protocol was broken, the connection ended, the
    /// peer answered with an error.
    Failed(Box<Error>),
    /// The run ended before an answer came.
    Unanswered,
}

/// A tool that may be called many times.
pub struct LoadTarget {
    host: Arc<ToolHost>,
    route: Route,
    call: CallRequest,
    limits: CallLimits,
    call_id: CallId,
    inspect_every: Option<u64>,
    /// What was decided, in the words of the audit log.
    decision: String,
}

impl ToolHost {
    /// Finds the tool of `call` for a run of calls and makes sure that it may be called so. One answer
    /// of `inspect_every` is read whole and checked against the output schema.
    ///
    /// # Errors
    /// As for a call; and a tool that would ask a person, or says that it is not read-only, is
    /// refused unless the call is approved.
    #[doc(hidden)] // for the program's own commands
    pub async fn load_target(
        &self,
        call: &CallRequest,
        inspect_every: Option<u64>,
    ) -> Result<LoadTarget, Error> {
        require_audit(self, &call.name)?;
        let mut open = OpenCall::new(self, call, self.new_call_id(), None).of_batch();
        match self.resolve_target(call, inspect_every, &mut open).await {
            Ok(target) => {
                open.discard();
                Ok(target)
            }
            Err(error) => {
                open.fail(&error);
                Err(error)
            }
        }
    }

    async fn resolve_target(
        &self,
        call: &CallRequest,
        inspect_every: Option<u64>,
        open: &mut OpenCall<'_>,
    ) -> Result<LoadTarget, Error> {
        let view = self.profiles.default_view();
        let search = Search {
            servers: &call.servers,
            ..Search::of(&call.name, &view, attempt::LISTING_TIMEOUT)
        };
        // The arguments of each call are checked when they are known.
        let unchecked = CallRequest { validate: false, ..call.clone() };
        let nesting = Nesting::default();
        let route = self.prepare(&unchecked, &nesting, &search, &mut open.tool).await?.route;
        let tool = &route.tool.definition;
        self.check_pin(tool)?;
        let name = &tool.name;
        let refused = |why: &str| {
            Err(Error::denied(format!("'{name}' is not benchmarked: {why}"))
                .with_hint("pass --allow-writes to benchmark a tool that may write"))
        };
        let decision = match self.pipeline.decision(tool) {
            Decision::Deny(why) => {
                return Err(Error::denied(format!("'{name}' is refused by {why}")));
            }
            Decision::Ask(why) if !call.assume_yes => return refused(&why),
            Decision::Allow(_) if tool.annotations.read_only == Some(false) && !call.assume_yes => {
                return refused("it says that it is not read-only");
            }
            Decision::Ask(why) => format!("approved with --allow-writes: {why}"),
            Decision::Allow(why) => why,
        };
        let Some(host) = self.weak_self.upgrade() else {
            return Err(Error::internal("the host is being closed"));
        };
        let limits = CallLimits::of(tool, call.timeout, None);
        let call = CallRequest { name: name.full(), ..call.clone() };
        let call_id = open.id.clone();
        Ok(LoadTarget { host, route, call, limits, call_id, inspect_every, decision })
    }
}

impl LoadTarget {
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

    /// Reads arguments by the tool's schema and checks them, unless that was switched off.
    ///
    /// # Errors
    /// All that does not fit, at once.
    pub async fn prepare(&self, arguments: CallArguments) -> Result<LoadCall, Error> {
        let request = CallRequest { arguments, ..self.call.clone() };
        let (object, _unchecked) = dispatch::prepare_arguments(&self.route.tool, &request).await?;
        Ok(LoadCall::new(self.definition().name.clone(), object))
    }

    /// Connects if the connection was lost, and prepares the calls.
    ///
    /// # Errors
    /// When the tool cannot be reached.
    pub async fn executor(&self) -> Result<Box<dyn LoadExecutor>, Error> {
        let provider = &self.route.provider.inner;
        if provider.as_server().is_some() {
            let connected = tokio::select! {
                listed = provider.list() => listed.map(drop),
                () = self.call.cancel.cancelled() => {
                    Err(Error::interrupted("the run was abandoned"))
                }
            };
            connected.map_err(|error| self.host.pipeline.masker.error(error))?;
        }
        let output_sample = match self.inspect_every {
            Some(every) => Some(Arc::new(OutputSample::new(&self.route.tool, every).await)),
            None => None,
        };
        Ok(Box::new(AttemptExecutor {
            provider: Arc::clone(provider),
            timeout: self.limits.attempt.min(self.limits.total),
            output_sample,
            context: self.context(),
            lost: Arc::new(OnceLock::new()),
            pacer: Pacer::new(),
        }))
    }

    /// Ends the run at once.
    pub fn cancel(&self) -> &CancellationToken {
        &self.call.cancel
    }

    /// The text with every known secret taken out.
    pub fn masked(&self, text: &str) -> String {
        self.host.pipeline.masker.text(text)
    }

    /// Writes down that calls are about to be made: `planned` says how many, `arguments` are those
    /// of the first one. It is the only record of all these calls.
    ///
    /// # Errors
    /// As for a call: when the record is unsafe to write, or required and cannot be written.
    pub fn record(&self, arguments: &JsonObject, planned: &str) -> Result<LoadRunRecord, Error> {
        let decision = format!("{}; {planned}", self.decision);
        let call_input = (&self.call, arguments);
        LoadRunRecord::open(&self.host, &self.route.tool, &self.call_id, call_input, &decision)
    }

    fn context(&self) -> ToolContext {
        let owner = (self.call_id.clone(), self.definition().name.full());
        let ended = self.call.cancel.child_token();
        let trace = self.call.trace.clone();
        let nested =
            HostCaller::new(&self.host, &self.call, &Nesting::default(), owner, (trace, ended));
        let tool = self.definition();
        let sessions = &self.host.sessions;
        let context = sessions.context(&self.call, self.call_id.clone(), tool, &self.limits);
        // Nobody is asked in the middle of a run.
        let client =
            ClientAbilities { questions: Some(QuestionAbilities::default()), ..context.client };
        let context = ToolContext { caller: Some(Arc::new(nested)), client, ..context };
        request::without_secrets(context, tool, &self.host.pipeline.masker)
    }
}

/// An open record: the intent is written. Dropped before it is closed, it leaves a call without an
/// outcome.
pub struct LoadRunRecord {
    host: Arc<ToolHost>,
    call: CallRecord,
    started: Instant,
    warnings: Vec<String>,
}

impl LoadRunRecord {
    fn open(
        host: &Arc<ToolHost>,
        tool: &ListedTool,
        call_id: &CallId,
        call_input: (&CallRequest, &JsonObject),
        decision: &str,
    ) -> Result<Self, Error> {
        let call = new_call_record(host, &tool.definition, call_id, None, call_input, decision);
        let warnings = record_intent(host, &call)?;
        let started = host.pipeline.clock.now();
        Ok(Self { host: Arc::clone(host), call, started, warnings })
    }

    /// Writes what became of the calls: how many were `made`, and of those that count how many were
    /// answered (`ok`) and how many were not. Returns what is wrong with the record, and the error of
    /// the run when a record was required and is lost.
    pub fn close(mut self, made: u64, ok: u64, failed: u64) -> (Vec<String>, Option<Error>) {
        let outcome = RecordedOutcome {
            failure: (ok == 0 && failed > 0).then_some(ErrorKind::Tool),
            message: Some(format!("{made} calls: {ok} answered, {failed} failed")),
            duration: self.host.pipeline.clock.now().saturating_duration_since(self.started),
            attempts: u32::try_from(made).unwrap_or(u32::MAX).max(1),
            ..RecordedOutcome::default()
        };
        let written = self.host.pipeline.recorder.record_batch_outcome(&self.call, &outcome);
        let mut lost = None;
        if let Err(error) = written {
            let warning = format!("not recorded: {error}");
            lost = self.host.pipeline.require_record.then(|| Error::internal(warning.clone()));
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        (self.warnings, lost)
    }
}

/// How much of a tool's error message is kept, in characters.
const MAX_ERROR_CHARS: usize = 300;

struct AttemptExecutor {
    provider: Arc<dyn ToolProvider>,
    /// How long an answer is waited for.
    timeout: Duration,
    output_sample: Option<Arc<OutputSample>>,
    context: ToolContext,
    lost: Arc<OnceLock<Error>>,
    pacer: Pacer,
}

/// Which answers are checked against the output schema: the first, and then one in `every`.
struct OutputSample {
    every: u64,
    tool: Arc<ListedTool>,
    answers: AtomicU64,
}

impl OutputSample {
    /// Readies the check, which may take a moment the first time.
    async fn new(tool: &Arc<ListedTool>, every: u64) -> Self {
        let _compiled = tool.output_checker().await;
        Self { every: every.max(1), tool: Arc::clone(tool), answers: AtomicU64::new(0) }
    }

    /// Counts an answer; what is wrong with it, if it is one that is checked.
    fn check(&self, result: &ToolResult) -> Option<Error> {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        if !number.is_multiple_of(self.every) {
            return None;
        }
        let mut result = result.clone();
        // A schema whose check could take long is left to ordinary calls.
        attempt::check_output(&self.tool, &mut result, true).now_or_never()?;
        result.error
    }
}

#[async_trait]
impl LoadExecutor for AttemptExecutor {
    fn call(&mut self, call: &Arc<LoadCall>) -> (Instant, BoxFuture<'static, CompletedCall>) {
        let cancel = self.context.cancel.child_token();
        let context = ToolContext { cancel, ..self.context.clone() };
        let call = Arc::clone(call);
        let (provider, limit) = (Arc::clone(&self.provider), self.timeout);
        let (output_sample, lost) = (self.output_sample.clone(), Arc::clone(&self.lost));
        // What was done so far is no part of the call.
        let sent_at = SystemClock.now();
        let attempt = async move {
            // A call that is abandoned is cancelled, with the calls it made.
            let cancels = context.cancel.drop_guard_ref();
            let mut work =
                pin!(AssertUnwindSafe(provider.call(&context, &call.call)).catch_unwind());
            let (result, ended_at) = match tokio::time::timeout(limit, &mut work).await {
                Ok(result) => {
                    let panicked = |_| Err(Error::internal("the code behind the tool panicked"));
                    (result.unwrap_or_else(panicked), SystemClock.now())
                }
                Err(_elapsed) => {
                    context.cancel.cancel();
                    // A call is not over before the tool has let go.
                    let _last = tokio::time::timeout(attempt::STOP_GRACE_PERIOD, work).await;
                    let message = format!("no response within {}", show_duration(limit));
                    (Err(Error::timeout(message)), sent_at + limit)
                }
            };
            cancels.disarm();
            if let Err(error) = &result
                && is_lost(&*provider, error)
            {
                let _is_first = lost.set(error.clone());
            }
            let (outcome, bytes_in) = classify(result, output_sample.as_deref());
            CompletedCall { ended_at, bytes_out: call.bytes, bytes_in, outcome }
        };
        (sent_at, Box::pin(attempt))
    }

    fn lost(&self) -> Option<Error> {
        self.lost.get().cloned()
    }

    async fn until(&mut self, moment: Instant) {
        self.pacer.until(moment).await;
    }

    fn warnings(&self) -> Vec<String> {
        let Some(server) = self.provider.as_server() else { return Vec::new() };
        let status = server.status();
        status.warnings.iter().map(|warning| format!("{}: {warning}", status.name)).collect()
    }
}

/// Whether an attempt failed because the connection to its server is gone.
fn is_lost(provider: &dyn ToolProvider, error: &Error) -> bool {
    error.kind() == ErrorKind::Unreachable
        && provider
            .as_server()
            .is_some_and(|server| !matches!(server.status().state, ServerState::Ready))
}

fn classify(
    result: Result<ToolResult, Error>,
    output_sample: Option<&OutputSample>,
) -> (LoadOutcome, u64) {
    let result = match result {
        Ok(result) => result,
        Err(error) => return (LoadOutcome::Failed(Box::new(error)), 0),
    };
    let bytes = content::size(&result);
    let outcome = if result.success {
        let error = output_sample.and_then(|sample| sample.check(&result));
        let error = error.or_else(|| result.error.clone());
        error.map_or(LoadOutcome::Ok, |error| LoadOutcome::Failed(Box::new(error)))
    } else {
        tool_error(&result)
    };
    (outcome, bytes)
}

fn tool_error(result: &ToolResult) -> LoadOutcome {
    let message = result.error.as_ref().map_or("the tool returned an error", Error::message);
    LoadOutcome::ToolError(match message.char_indices().nth(MAX_ERROR_CHARS) {
        // The ellipsis shows the cut, also to what looks for secrets at the end of the text.
        Some((at, _)) => format!("{}…", message.get(..at).unwrap_or_default()).into(),
        None => message.into(),
    })
}
