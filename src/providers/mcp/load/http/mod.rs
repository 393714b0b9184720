//! Many calls of a server over HTTP, each on a connection that waits for it.
//!
//! Owns: the loop between a [`Load`] and the lanes, and where the ordinary way has to be gone
//! instead. Never does: pace or count (the load does), or speak HTTP (the `mcp` room does).
//!
//! What a time means here: a call was sent right before its request was written, and answered when
//! the last byte of its answer was read and the id in it was known. Judging the answer comes after
//! that. Making a connection again is in no call's time.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::RootsGuard;
use super::response_classifier::ResponseClassifier;
use crate::config::environment::Environment;
use crate::config::spec::Endpoint;
use crate::mcp::call_template::ToolCallTemplate;
use crate::mcp::calling;
use crate::mcp::connection::Connection;
use crate::mcp::headers;
use crate::mcp::repeat::answer;
use crate::mcp::transport::http::lanes::param_header_lines;
use crate::mcp::wire::{CallCompletion, CallLanes, LanePoolEvent};
use crate::model::{Era, Error, ErrorKind, Signal};
use crate::net::address::is_loopback;
use crate::provider::load::{
    BenchRequest, CompletedRequest, EncodedArguments, Load, LoadDecision, LoadExecutor, LoadJob,
    LoadOutcome,
};
use crate::providers::mcp::McpProvider;
use crate::providers::mcp::call::CurrentDefinition;
use crate::util::pacer::Pacer;

/// Variables that name a proxy, which our own connections would go around.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Carries calls over connections of their own.
pub(super) struct HttpExecutor {
    lanes: Box<dyn CallLanes>,
    connection: Arc<Connection>,
    cancel: CancellationToken,
    roots_guard: Option<RootsGuard>,
    own: ArgumentHeaders,
    classifier: ResponseClassifier,
    /// A call that was handed out and found no connection yet.
    pending_request: Option<BenchRequest>,
}

impl McpProvider {
    /// A repeater for a server over Streamable HTTP. None where its calls have to go the ordinary
    /// way: over the transport before it, through a proxy, as tasks, or watched.
    pub(super) async fn http_executor(&self, job: &LoadJob) -> Result<Option<HttpExecutor>, Error> {
        let Endpoint::Http { url, socket, .. } = &self.spec.endpoint else { return Ok(None) };
        let direct = socket.is_some() || is_loopback(url);
        if !self.spec.roots.is_empty() || (!direct && is_proxied(self.setup.environment.as_ref())) {
            return Ok(None);
        }
        let tool = job.tool.tool();
        let ready = async {
            let connection = self.connection().await?;
            let CurrentDefinition { definition, warnings } =
                self.current_definition(&connection, tool).await?;
            if calling::requires_task(&connection, definition.as_deref()) {
                return Ok(None);
            }
            let request = ToolCallTemplate::new(tool, &connection.request_meta(self.log_level()));
            let Some(opener) = connection.lane_opener() else { return Ok(None) };
            let lanes = opener.open_lanes(tool, request, job.concurrency, job.timeout).await;
            let Some(lanes) = lanes.map_err(|error| error.with_server(&self.spec.name))? else {
                return Ok(None);
            };
            for warning in warnings {
                connection.add_warning(warning);
            }
            let modern = connection.agreement.era == Era::Modern;
            let schema = definition.map(|definition| Arc::clone(&definition.input_schema));
            let roots_guard = RootsGuard::new(schema.clone(), &self.spec.roots, &self.spec.name);
            Ok(Some(HttpExecutor {
                lanes,
                roots_guard,
                cancel: job.context.cancel.clone(),
                own: ArgumentHeaders::new(schema.filter(|_| modern)),
                classifier: ResponseClassifier::new(&self.spec.name, job.inspection.clone()),
                pending_request: None,
                connection: Arc::clone(&connection),
            }))
        };
        tokio::select! {
            ready = ready => ready,
            () = job.context.cancel.cancelled() => {
                let interrupted = ErrorKind::Interrupted(Signal::Interrupt);
                Err(Error::new(interrupted, "the run was given up").with_server(&self.spec.name))
            }
        }
    }
}

fn is_proxied(environment: &dyn Environment) -> bool {
    PROXIES.iter().any(|name| environment.var(name).is_some_and(|value| !value.is_empty()))
}

/// The headers that arguments travel in, made again when the arguments are others.
struct ArgumentHeaders {
    schema: Option<Arc<Value>>,
    of: Option<Arc<EncodedArguments>>,
    lines: Vec<u8>,
}

impl ArgumentHeaders {
    fn new(schema: Option<Arc<Value>>) -> Self {
        let annotated = schema.filter(|schema| headers::has_header_arguments(schema));
        Self { schema: annotated, of: None, lines: Vec::new() }
    }

    fn of(&mut self, arguments: &Arc<EncodedArguments>) -> Result<&[u8], Error> {
        let Some(schema) = &self.schema else { return Ok(&[]) };
        if !self.of.as_ref().is_some_and(|known| Arc::ptr_eq(known, arguments)) {
            self.lines = param_header_lines(&headers::for_call(schema, &arguments.object))?;
            self.of = Some(Arc::clone(arguments));
        }
        Ok(&self.lines)
    }
}

/// What is waited for, beside what happens on the lanes.
#[derive(Debug, Clone, Copy)]
enum LoadWait {
    /// The moment of the next call.
    NextRequest(Instant),
    /// Nothing else.
    Indefinitely,
    /// The end of the patience with what is in flight.
    DrainDeadline(Instant),
}

/// What ended a wait.
enum WakeReason {
    Lanes(LanePoolEvent),
    LoadWakeup,
    /// The next call is due.
    RequestDue,
    /// A limit may be over.
    Deadline,
    Cancelled,
}

#[async_trait]
impl LoadExecutor for HttpExecutor {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Error> {
        let wakeup = load.wakeup();
        let cancel = self.cancel.clone();
        let mut pacer = Pacer::new();
        let mut notified = pin!(wakeup.notified());
        let mut cancelled = pin!(cancel.cancelled());
        let mut alarm = pin!(sleep_until(load.now().into()));
        let mut armed = None;
        loop {
            let until = self.send_due(load);
            if matches!(until, LoadWait::DrainDeadline(_))
                && self.pending_request.is_none()
                && !self.lanes.is_busy()
            {
                return Ok(());
            }
            let over =
                if let LoadWait::DrainDeadline(moment) = until { Some(moment) } else { None };
            arm(
                &mut armed,
                self.lanes.next_deadline().into_iter().chain(over).min(),
                alarm.as_mut(),
            );
            let lanes = &mut self.lanes;
            let paced = async {
                match until {
                    LoadWait::NextRequest(moment) => pacer.until(moment).await,
                    LoadWait::Indefinitely | LoadWait::DrainDeadline(_) => {
                        std::future::pending().await
                    }
                }
            };
            let mut paced = pin!(paced);
            let woken = poll_fn(|cx| {
                if cancelled.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(WakeReason::Cancelled);
                }
                if let Poll::Ready(happened) = lanes.poll(cx) {
                    return Poll::Ready(WakeReason::Lanes(happened));
                }
                if notified.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(WakeReason::LoadWakeup);
                }
                if armed.is_some() && alarm.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(WakeReason::Deadline);
                }
                paced.as_mut().poll(cx).map(|()| WakeReason::RequestDue)
            });
            match woken.await {
                WakeReason::Lanes(LanePoolEvent::Completed(ended)) => self.report(ended, load),
                WakeReason::Lanes(LanePoolEvent::Free) | WakeReason::RequestDue => {}
                WakeReason::Lanes(LanePoolEvent::Closed(error)) => {
                    let error = self.classifier.with_server(error);
                    self.fail_pending(&error, load);
                    return Err(error);
                }
                WakeReason::LoadWakeup => notified.set(wakeup.notified()),
                WakeReason::Cancelled => {
                    self.abandon(load);
                    return Ok(());
                }
                WakeReason::Deadline => {
                    let at = load.now();
                    armed = None;
                    while let Some(ended) = self.lanes.expire(at) {
                        self.report(ended, load);
                    }
                    if over.is_some_and(|moment| at >= moment) {
                        self.abandon(load);
                        return Ok(());
                    }
                }
            }
        }
    }

    fn warnings(&self) -> Vec<String> {
        let name = self.connection.name();
        let doubts =
            self.lanes.protocol_warnings().into_iter().chain(self.connection.protocol_warnings());
        doubts.map(|doubt| format!("{name}: {doubt}")).collect()
    }
}

impl HttpExecutor {
    /// Sends what is due, as far as there are connections for it.
    fn send_due(&mut self, load: &mut dyn Load) -> LoadWait {
        loop {
            if let Some(request) = self.pending_request.take() {
                if !self.lanes.has_idle() {
                    self.pending_request = Some(request);
                    // The end of the run is heard of all the same, when it is for a person to say.
                    return LoadWait::Indefinitely;
                }
                self.send(request, load);
                if self.pending_request.is_some() {
                    return LoadWait::Indefinitely;
                }
            }
            match load.next(load.now()) {
                LoadDecision::Send(request) => self.pending_request = Some(request),
                LoadDecision::WaitUntil(moment) => return LoadWait::NextRequest(moment),
                LoadDecision::WaitForWakeup => return LoadWait::Indefinitely,
                LoadDecision::Drain(moment) => return LoadWait::DrainDeadline(moment),
            }
        }
    }

    fn send(&mut self, request: BenchRequest, load: &mut dyn Load) {
        let sent = load.now();
        let roots_guard = self.roots_guard.as_mut();
        let within =
            roots_guard.map_or(Ok(()), |roots_guard| roots_guard.check(&request.arguments));
        let own = match within.and_then(|()| self.own.of(&request.arguments)) {
            Ok(own) => own,
            Err(error) => {
                let error = self.classifier.with_server(error);
                return end_unsent(request.ticket, LoadOutcome::Failed(Box::new(error)), load);
            }
        };
        if !self.lanes.send(request.ticket, &request.arguments.json, own, sent) {
            self.pending_request = Some(request);
        }
    }

    /// Tells how a call ended.
    fn report(&mut self, ended: CallCompletion, load: &mut dyn Load) {
        let at = load.now();
        let CallCompletion { ticket, sent, bytes_out, bytes_in, answer: came } = ended;
        let verdict = match came {
            Ok(came) => {
                let bytes = self.lanes.answer(came);
                self.classifier.classify(came.is_plain, || answer::read_outcome(bytes))
            }
            Err(error) => LoadOutcome::Failed(Box::new(self.classifier.with_server(error))),
        };
        load.on_completed(CompletedRequest {
            ticket,
            sent_at: sent,
            ended_at: at,
            bytes_out,
            bytes_in,
            outcome: verdict,
        });
    }

    fn fail_pending(&mut self, error: &Error, load: &mut dyn Load) {
        if let Some(request) = self.pending_request.take() {
            end_unsent(request.ticket, LoadOutcome::Failed(Box::new(error.clone())), load);
        }
    }

    /// Ends all that is under way without an answer.
    fn abandon(&mut self, load: &mut dyn Load) {
        let at = load.now();
        for (ticket, sent) in self.lanes.abandon() {
            load.on_completed(CompletedRequest::unanswered(ticket, sent, at));
        }
        if let Some(request) = self.pending_request.take() {
            end_unsent(request.ticket, LoadOutcome::Unanswered, load);
        }
    }
}

/// Ends a call of which nothing was sent.
fn end_unsent(ticket: u64, verdict: LoadOutcome, load: &mut dyn Load) {
    let at = load.now();
    load.on_completed(CompletedRequest {
        outcome: verdict,
        ..CompletedRequest::unanswered(ticket, at, at)
    });
}

/// Lets the alarm ring at this moment at the latest. It mostly is put off before it rings, so it is
/// only set again after it has.
fn arm(armed: &mut Option<Instant>, moment: Option<Instant>, alarm: Pin<&mut Sleep>) {
    let Some(moment) = moment else { return };
    if armed.is_none_or(|armed| moment < armed) {
        alarm.reset(moment.into());
        *armed = Some(moment);
    }
}
