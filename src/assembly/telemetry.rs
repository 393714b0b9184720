//! Traces and metrics of calls, exported over OTLP/HTTP to the collector that the standard
//! variables `OTEL_*` name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use opentelemetry::metrics::{Histogram, MeterProvider as _};
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use tokio::runtime::Handle;

use crate::config::environment::Environment;
use crate::host::recorder::{RecordError, Recorder};
use crate::model::{
    CallId, CallRecord, EventSink, HostEvent, RecordedOutcome, ToolResult, ToolSource, TraceContext,
};
use crate::net::otlp::OtlpHttpClient;

/// How long sending remaining data may delay the end of a run.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);
/// How long one request to the collector may take unless `OTEL_EXPORTER_OTLP_TIMEOUT` sets it.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// The histogram bounds in seconds that the MCP conventions recommend.
const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The recorder itself, or one that also exports if the environment names a collector.
pub(super) fn exporting(
    recorder: Arc<dyn Recorder>,
    environment: &dyn Environment,
    events: &EventSink,
) -> Arc<dyn Recorder> {
    let Ok(runtime) = Handle::try_current() else { return recorder };
    let plan = ExportPlan::of(environment);
    if !plan.traces && !plan.metrics {
        return recorder;
    }
    match TelemetryRecorder::new(Arc::clone(&recorder), &plan, &runtime) {
        Ok(exporting) => Arc::new(exporting),
        Err(error) => {
            let text = format!("telemetry is not exported: {error}; check the OTEL_* variables");
            events.emit(HostEvent::Warning { text });
            recorder
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct ExportPlan {
    traces: bool,
    metrics: bool,
    timeout: Duration,
    has_service_name: bool,
}

impl ExportPlan {
    /// Nothing is exported without an endpoint: the default is a port on which any
    /// program on the machine may listen.
    fn of(environment: &dyn Environment) -> Self {
        let var = |name| environment.var(name).filter(|value| !value.is_empty());
        let is = |name, expected: &str| var(name).is_some_and(|v| v.eq_ignore_ascii_case(expected));
        let disabled = is("OTEL_SDK_DISABLED", "true");
        let wants = |endpoint, exporter| {
            let named = var("OTEL_EXPORTER_OTLP_ENDPOINT").or_else(|| var(endpoint));
            !disabled && named.is_some() && !is(exporter, "none")
        };
        let timeout = var("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|value| value.parse().ok());
        let attributes = var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        Self {
            traces: wants("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER"),
            metrics: wants("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_METRICS_EXPORTER"),
            timeout: timeout.map_or(EXPORT_TIMEOUT, Duration::from_millis),
            has_service_name: var("OTEL_SERVICE_NAME").is_some()
                || attributes.split(',').any(|pair| pair.trim().starts_with("service.name=")),
        }
    }
}

struct TelemetryRecorder {
    inner: Arc<dyn Recorder>,
    traces: Option<(SdkTracerProvider, SdkTracer)>,
    metrics: Option<(SdkMeterProvider, CallDurations)>,
    running: Mutex<HashMap<CallId, Span>>,
}

/// The durations of calls, with those served by MCP servers kept separately.
struct CallDurations {
    internal: Histogram<f64>,
    mcp: Histogram<f64>,
}

impl TelemetryRecorder {
    fn new(
        inner: Arc<dyn Recorder>,
        plan: &ExportPlan,
        runtime: &Handle,
    ) -> Result<Self, ExporterBuildError> {
        let mut resource = Resource::builder()
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        if !plan.has_service_name {
            resource = resource.with_service_name("toolhost");
        }
        let resource = resource.build();
        let client = || OtlpHttpClient::new(runtime.clone(), plan.timeout);
        let traces = plan
            .traces
            .then(|| {
                let exporter =
                    SpanExporter::builder().with_http().with_http_client(client()).build()?;
                let provider = SdkTracerProvider::builder()
                    .with_resource(resource.clone())
                    .with_batch_exporter(exporter)
                    .build();
                let tracer = provider.tracer("toolhost");
                Ok::<_, ExporterBuildError>((provider, tracer))
            })
            .transpose()?;
        let metrics = plan
            .metrics
            .then(|| {
                let exporter =
                    MetricExporter::builder().with_http().with_http_client(client()).build()?;
                let provider = SdkMeterProvider::builder()
                    .with_resource(resource)
                    .with_periodic_exporter(exporter)
                    .build();
                let durations = CallDurations::of(&provider);
                Ok::<_, ExporterBuildError>((provider, durations))
            })
            .transpose()?;
        Ok(Self { inner, traces, metrics, running: Mutex::default() })
    }

    fn start(&self, call: &CallRecord, parent: Option<&TraceContext>) -> Option<Span> {
        let (_, tracer) = self.traces.as_ref()?;
        let (name, kind) = match call.source {
            Some(ToolSource::Mcp) => (format!("tools/call {}", call.tool), SpanKind::Client),
            _ => (format!("execute_tool {}", call.tool), SpanKind::Internal),
        };
        let builder = tracer.span_builder(name).with_kind(kind);
        Some(tracer.build_with_context(builder, &parent_context(parent)))
    }

    fn export(&self, call: &CallRecord, outcome: &RecordedOutcome) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&call.id);
        let mut attributes = attributes(call);
        if let Some(failure) = outcome.failure {
            attributes.push(KeyValue::new("error.type", failure.as_str()));
        }
        // A name that no tool has is made up by the caller, and each would add its own time series.
        if let (Some((_, durations)), Some(_)) = (&self.metrics, &call.definition) {
            let histogram = match call.source {
                Some(ToolSource::Mcp) => &durations.mcp,
                _ => &durations.internal,
            };
            histogram.record(outcome.duration.as_secs_f64(), &attributes);
        }
        // A call that was refused never started.
        if let Some(mut span) = running.or_else(|| self.start(call, None)) {
            span.set_attributes(attributes);
            span.set_attribute(KeyValue::new("gen_ai.tool.call.id", call.id.0.clone()));
            span.set_attribute(KeyValue::new("session.id", call.caller.session.clone()));
            span.set_attribute(KeyValue::new("toolhost.attempts", i64::from(outcome.attempts)));
            if let Some(failure) = outcome.failure {
                // The message of an error may quote what was sent.
                span.set_status(Status::error(failure.as_str()));
            }
            span.end();
        }
    }
}

impl CallDurations {
    fn of(provider: &SdkMeterProvider) -> Self {
        let meter = provider.meter("toolhost");
        let histogram = |name: &'static str, description: &'static str| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(description);
            histogram.with_boundaries(BOUNDS.to_vec()).build()
        };
        Self {
            internal: histogram("gen_ai.client.operation.duration", "Duration of a tool's call"),
            mcp: histogram(
                "mcp.client.operation.duration",
                "Duration of a request to an MCP server",
            ),
        }
    }
}

/// The attributes that the conventions define for a call, and nothing made up by its caller or its
/// tool.
fn attributes(call: &CallRecord) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("gen_ai.operation.name", "execute_tool"),
        KeyValue::new("gen_ai.tool.name", call.tool.clone()),
    ];
    if call.source == Some(ToolSource::Mcp) {
        attributes.push(KeyValue::new("gen_ai.tool.type", "extension"));
        attributes.push(KeyValue::new("mcp.method.name", "tools/call"));
    } else {
        attributes.push(KeyValue::new("gen_ai.tool.type", "function"));
    }
    let server = call.server.clone().map(|server| KeyValue::new("toolhost.server", server));
    let protocol =
        call.protocol.clone().map(|version| KeyValue::new("mcp.protocol.version", version));
    attributes.extend(server.into_iter().chain(protocol));
    attributes
}

/// The caller's span as the parent of the next one.
fn parent_context(parent: Option<&TraceContext>) -> Context {
    let remote = parent.and_then(|parent| {
        let mut fields = parent.traceparent().split('-').skip(1);
        let (trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?);
        let state = parent.tracestate().and_then(|state| state.parse::<TraceState>().ok());
        Some(SpanContext::new(
            TraceId::from_hex(trace).ok()?,
            SpanId::from_hex(span).ok()?,
            TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
            true,
            state.unwrap_or_default(),
        ))
    });
    match remote {
        Some(remote) => Context::new().with_remote_span_context(remote),
        None => Context::new(),
    }
}

impl Recorder for TelemetryRecorder {
    fn is_switched_on(&self) -> bool {
        self.inner.is_switched_on()
    }

    fn begin_span(&self, call: &CallRecord, parent: Option<&TraceContext>) -> Option<TraceContext> {
        let Some(span) = self.start(call, parent) else { return parent.cloned() };
        let place = span.span_context().clone();
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(call.id.clone(), span);
        let (trace, span) = (place.trace_id(), place.span_id());
        let own = format!("00-{trace}-{span}-{:02x}", place.trace_flags().to_u8());
        let state = parent.and_then(TraceContext::tracestate);
        TraceContext::parse(&own, state).ok().or_else(|| parent.cloned())
    }

    fn record_intent(&self, call: &CallRecord) -> Result<(), RecordError> {
        self.inner.record_intent(call)
    }

    fn record_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
        result: Option<&ToolResult>,
    ) -> Result<(), RecordError> {
        self.export(call, outcome);
        self.inner.record_outcome(call, outcome, result)
    }

    fn record_batch_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
    ) -> Result<(), RecordError> {
        self.inner.record_batch_outcome(call, outcome)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let traces = self.traces.as_ref().map(|(provider, _)| provider.clone());
        let metrics = self.metrics.as_ref().map(|(provider, _)| provider.clone());
        async move {
            // Sending waits for the runtime, so it runs on another thread.
            let sending = [
                tokio::task::spawn_blocking(move || drop(traces.map(|it| it.shutdown()))),
                tokio::task::spawn_blocking(move || drop(metrics.map(|it| it.shutdown()))),
            ];
            let _late =
                tokio::time::timeout(FLUSH_LIMIT, futures_util::future::join_all(sending)).await;
            self.inner.close().await;
        }
        .boxed()
    }
}
