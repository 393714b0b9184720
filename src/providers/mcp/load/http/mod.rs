//! Benchmark load over HTTP, one connection for each call in flight.
//!
//! Owns: what the loop of a run needs of the lanes, and where the ordinary way has to be gone
//! instead. Never does: pace or count (the load does), or speak HTTP (the `mcp` room does).
//!
//! What a time means here: a call was sent right before its request was written, and answered when
//! the last byte of its answer was read and the id in it was known. Judging the answer comes after
//! that. Making a connection again is in no call's time.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::Value;
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
    BenchRequest, CompletedRequest, EncodedArguments, Load, LoadExecutor, LoadJob, LoadOutcome,
    LoadTransport, LoadWait, drive, split_decision,
};
use crate::providers::mcp::McpProvider;
use crate::providers::mcp::call::CurrentDefinition;
use crate::providers::mcp::call_meta::shared_meta;

/// Variables that name a proxy, which our own connections would go around.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Sends calls over their own connections.
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
    /// An executor for a server over Streamable HTTP. None where its calls have to go the ordinary
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
            let mut meta = connection.request_meta(self.log_level());
            meta.extend(shared_meta(&job.context));
            let request = ToolCallTemplate::new(tool, &meta);
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
                Err(Error::new(interrupted, "the run was abandoned").with_server(&self.spec.name))
            }
        }
    }
}

fn is_proxied(environment: &dyn Environment) -> bool {
    PROXIES.iter().any(|name| environment.var(name).is_some_and(|value| !value.is_empty()))
}

/// The headers that carry arguments, rebuilt when the arguments change.
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
        if !self.of.as_ref().is_some_and(|previous| Arc::ptr_eq(previous, arguments)) {
            self.lines = param_header_lines(&headers::for_call(schema, &arguments.object))?;
            self.of = Some(Arc::clone(arguments));
        }
        Ok(&self.lines)
    }
}

#[async_trait]
impl LoadExecutor for HttpExecutor {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Error> {
        let cancel = self.cancel.clone();
        drive(self, load, &cancel).await
    }

    fn warnings(&self) -> Vec<String> {
        let name = self.connection.name();
        let doubts =
            self.lanes.protocol_warnings().into_iter().chain(self.connection.protocol_warnings());
        doubts.map(|doubt| format!("{name}: {doubt}")).collect()
    }
}

impl LoadTransport for HttpExecutor {
    type Event = LanePoolEvent;

    fn send_due(&mut self, load: &mut dyn Load) -> LoadWait {
        loop {
            if let Some(request) = self.pending_request.take() {
                if !self.lanes.has_idle() {
                    self.pending_request = Some(request);
                    // The end of the run is still noticed, if it depends on a person.
                    return LoadWait::Indefinitely;
                }
                self.send(request, load);
                if self.pending_request.is_some() {
                    return LoadWait::Indefinitely;
                }
            }
            match split_decision(load.next(load.now())) {
                Ok(request) => self.pending_request = Some(request),
                Err(wait) => return wait,
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.pending_request.is_none() && !self.lanes.is_busy()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.lanes.next_deadline()
    }

    async fn wait(&mut self) -> LanePoolEvent {
        poll_fn(|cx| self.lanes.poll(cx)).await
    }

    fn on_wake(&mut self, event: Option<LanePoolEvent>, load: &mut dyn Load) -> Result<(), Error> {
        match event {
            Some(LanePoolEvent::Completed(ended)) => self.report(ended, load),
            Some(LanePoolEvent::Free) => {}
            Some(LanePoolEvent::Closed(error)) => {
                let error = self.classifier.with_server(error);
                self.fail_pending(&error, load);
                return Err(error);
            }
            None => {
                let at = load.now();
                while let Some(ended) = self.lanes.expire(at) {
                    self.report(ended, load);
                }
            }
        }
        Ok(())
    }

    /// The connections are dropped with the run, so no server is told the reason.
    fn abandon(&mut self, load: &mut dyn Load, _reason: &str) {
        let at = load.now();
        for (ticket, sent) in self.lanes.abandon() {
            load.on_completed(CompletedRequest::unanswered(ticket, sent, at));
        }
        if let Some(request) = self.pending_request.take() {
            let outcome = LoadOutcome::Unanswered;
            load.on_completed(CompletedRequest::unsent(request.ticket, load.now(), outcome));
        }
    }
}

impl HttpExecutor {
    fn send(&mut self, request: BenchRequest, load: &mut dyn Load) {
        let sent = load.now();
        let roots_guard = self.roots_guard.as_mut();
        let within =
            roots_guard.map_or(Ok(()), |roots_guard| roots_guard.check(&request.arguments));
        let own = match within.and_then(|()| self.own.of(&request.arguments)) {
            Ok(own) => own,
            Err(error) => {
                let error = self.classifier.with_server(error);
                let outcome = LoadOutcome::Failed(Box::new(error));
                let unsent = CompletedRequest::unsent(request.ticket, load.now(), outcome);
                return load.on_completed(unsent);
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
            let outcome = LoadOutcome::Failed(Box::new(error.clone()));
            load.on_completed(CompletedRequest::unsent(request.ticket, load.now(), outcome));
        }
    }
}
