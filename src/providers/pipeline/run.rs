//! Running a pipeline: its steps in order, their outcomes, and the result.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::entry::PipelinePlan;
use super::step::{MAX_PARALLEL, OnError, PipelineStep, title};
use super::template::{self, PipelineTemplate, Scope, ScopeView};
use crate::model::{
    Error, ErrorKind, HostEvent, JsonObject, LogLevel, NestedCall, ToolCaller, ToolContext,
    ToolResult,
};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::units::{float_len, millis};

const MAX_ITEMS: usize = 1_000;

/// Maximum size of the outputs of all steps, in bytes of text.
const MAX_OUTPUT_BYTES: usize = 64 << 20;

/// Maximum size of the arguments of one step, in bytes of text.
const MAX_ARGUMENT_BYTES: usize = 16 << 20;

const MAX_WARNINGS: usize = 20;

/// One call of a pipeline, from its first step to its result.
pub(super) struct PipelineRun<'a> {
    pub(super) name: String,
    pub(super) plan: &'a PipelinePlan,
    pub(super) context: &'a ToolContext,
    pub(super) caller: Arc<dyn ToolCaller>,
    pub(super) finished_steps: AtomicUsize,
}

struct StepOutcome {
    state: Value,
    /// Its row under `steps` in the result's `_meta`.
    report: Value,
    result: Option<ToolResult>,
    warnings: Vec<String>,
}

impl PipelineRun<'_> {
    pub(super) async fn run(&self, arguments: JsonObject) -> Result<ToolResult, Error> {
        let ids = self.plan.steps().map(|step| step.id.as_str());
        let mut scope = Scope::of(arguments, Some(template::context(self.context)), ids);
        let mut reports = Vec::new();
        let mut warnings = Vec::new();
        let mut last = ToolResult::json(Value::Null);
        let mut total_size = 0;
        for stage in &self.plan.stages {
            let steps = stage.steps.as_slice();
            let mut all: Vec<StepOutcome> = Vec::with_capacity(steps.len());
            let calls: Vec<_> = steps.iter().map(|step| self.step(step, scope.view())).collect();
            let mut running = stream::iter(calls).buffered(MAX_PARALLEL);
            while let Some(done) = running.next().await {
                all.push(done?);
            }
            drop(running);
            last = if stage.group {
                let outputs = steps.iter().zip(&all);
                let outputs = outputs.map(|(s, d)| (s.id.clone(), d.state["output"].clone()));
                ToolResult::json(Value::Object(outputs.collect()))
            } else {
                all.first_mut().map(final_result).unwrap_or_default()
            };
            for (step, done) in steps.iter().zip(all) {
                total_size += approximate_size(&done.state);
                if total_size > MAX_OUTPUT_BYTES {
                    let size = MAX_OUTPUT_BYTES >> 20;
                    let message =
                        format!("{}: the outputs are larger than {size} MiB", title(step));
                    return Err(Error::protocol(message).with_hint("return less from the steps"));
                }
                scope.record(&step.id, done.state);
                reports.push(done.report);
                warnings.extend(done.warnings);
            }
        }
        let mut result = match &self.plan.result {
            None => last,
            Some(template) => {
                let value = template.fill(&scope.view());
                let value = value.map_err(|error| Error::tool(format!("the result: {error}")))?;
                ToolResult::json(value.unwrap_or_default())
            }
        };
        warnings.truncate(MAX_WARNINGS);
        result.warnings = warnings;
        result.meta = Some(json!({ "steps": reports }));
        Ok(result)
    }

    async fn step(&self, step: &PipelineStep, view: ScopeView<'_>) -> Result<StepOutcome, Error> {
        let started = SystemClock.now();
        let runs = step.when.as_ref().map_or(Ok(true), |when| when.holds(&view));
        if !runs.map_err(|error| step_error(step, None, &error))? {
            self.finished_steps.fetch_add(1, Ordering::Relaxed);
            self.log("debug", format!("{}: skipped", title(step)));
            return Ok(StepOutcome {
                state: json!({ "output": null, "error": null, "success": false, "skipped": true }),
                report: json!({ "id": step.id, "tool": step.tool, "skipped": true }),
                result: None,
                warnings: Vec::new(),
            });
        }
        self.progress(0.0, format!("{} ({})", step.id, step.tool));
        let mut done = match &step.each {
            None => self.run_single(step, view).await?,
            Some(list) => self.run_for_each(step, list, view).await?,
        };
        self.finished_steps.fetch_add(1, Ordering::Relaxed);
        let took = SystemClock.now().saturating_duration_since(started);
        done.report["duration_ms"] = json!(millis(took));
        Ok(done)
    }

    async fn run_single(
        &self,
        step: &PipelineStep,
        view: ScopeView<'_>,
    ) -> Result<StepOutcome, Error> {
        let answer = self.call(step, view, None).await;
        let (output, failure, result) = self.apply_on_error(step, view, answer, None)?;
        let mut report = json!({ "id": step.id, "tool": step.tool, "success": failure.is_none() });
        if let Some(failure) = &failure {
            report["error"] = json!(failure);
        }
        Ok(StepOutcome {
            state: state(&output, failure.as_deref()),
            report,
            warnings: result.iter().flat_map(|r| step_warnings(step, r)).collect(),
            result,
        })
    }

    async fn run_for_each(
        &self,
        step: &PipelineStep,
        list: &PipelineTemplate,
        view: ScopeView<'_>,
    ) -> Result<StepOutcome, Error> {
        let items = match list.fill(&view).map_err(|error| step_error(step, None, &error))? {
            Some(Value::Array(items)) => items,
            Some(Value::Null) | None => Vec::new(),
            Some(_) => return Err(step_error(step, None, &"what 'each' names is not a list")),
        };
        let count = items.len();
        if count > MAX_ITEMS {
            let message = format!("{}: {count} items exceed the limit of {MAX_ITEMS}", title(step));
            return Err(Error::protocol(message));
        }
        let (mut outputs, mut first_failure) = (Vec::with_capacity(count), None);
        let (mut failures, mut total_size, mut warnings) = (0, 0, Vec::new());
        let calls = items.iter().enumerate();
        let calls: Vec<_> =
            calls.map(|(at, item)| self.call(step, view.with_item(at, item), Some(at))).collect();
        let mut answers = stream::iter(calls).buffered(step.parallel).enumerate();
        while let Some((at, answer)) = answers.next().await {
            let item = items.get(at).unwrap_or(&Value::Null);
            let (output, failure, result) =
                self.apply_on_error(step, view.with_item(at, item), answer, Some(at))?;
            total_size += approximate_size(&output);
            if total_size > MAX_OUTPUT_BYTES {
                return Err(Error::protocol(format!("{}: too much output", title(step))));
            }
            outputs.push(output);
            failures += usize::from(failure.is_some());
            first_failure = first_failure.or(failure);
            if warnings.len() < MAX_WARNINGS {
                warnings.extend(result.iter().flat_map(|r| step_warnings(step, r)));
            }
            let message = format!("{} ({}) {} of {count}", step.id, step.tool, at + 1);
            self.progress(float_len(at + 1) / float_len(count), message);
        }
        let mut report = json!({
            "id": step.id, "tool": step.tool, "success": failures == 0, "items": count,
        });
        if let Some(failure) = &first_failure {
            report["failed"] = json!(failures);
            report["error"] = json!(failure);
        }
        Ok(StepOutcome {
            state: state(&Value::Array(outputs), first_failure.as_deref()),
            report,
            result: None,
            warnings,
        })
    }

    async fn call(
        &self,
        step: &PipelineStep,
        view: ScopeView<'_>,
        item: Option<usize>,
    ) -> Result<ToolResult, Error> {
        let filled = step.args.fill(&view);
        let arguments = match filled.map_err(|error| step_error(step, item, &error))? {
            Some(Value::Object(arguments)) => arguments,
            None => JsonObject::new(),
            Some(_) => return Err(step_error(step, item, &"'args' did not become an object")),
        };
        if arguments.values().map(approximate_size).sum::<usize>() > MAX_ARGUMENT_BYTES {
            let size = MAX_ARGUMENT_BYTES >> 20;
            let why = format!("the arguments are larger than {size} MiB");
            return Err(Error::protocol(step_message(step, item, &why)));
        }
        let call = NestedCall {
            timeout: step.timeout,
            retries: step.retries,
            ..NestedCall::new(&step.tool, arguments)
        };
        let prefix = step_message(step, item, "");
        let prefix = prefix.trim_end_matches([':', ' ']);
        match self.caller.run(self.context, call).await {
            Ok(mut result) => match result.error.take() {
                Some(error) => Err(error.context(prefix)),
                None => Ok(result),
            },
            Err(error) => Err(error.context(prefix)),
        }
    }

    /// The outcome of a response: an output, and the failure that was tolerated.
    fn apply_on_error(
        &self,
        step: &PipelineStep,
        view: ScopeView<'_>,
        answer: Result<ToolResult, Error>,
        item: Option<usize>,
    ) -> Result<(Value, Option<String>, Option<ToolResult>), Error> {
        let error = match answer {
            Ok(result) => return Ok((result.output.clone(), None, Some(result))),
            Err(error) => error,
        };
        let stops =
            self.context.cancel.is_cancelled() || matches!(error.kind(), ErrorKind::Interrupted(_));
        let output = match &step.on_error {
            // The limit or person that stopped the pipeline has the word; this is where it was.
            _ if stops => return Err(error.with_detail(format!("{} was running", title(step)))),
            OnError::Fail => return Err(error),
            OnError::Continue => Value::Null,
            OnError::Default(value) => {
                let value = value.fill(&view);
                value.map_err(|error| step_error(step, item, &error))?.unwrap_or_default()
            }
        };
        let message = failure_text(&error);
        self.log("warning", format!("{message}; continuing"));
        Ok((output, Some(message), None))
    }

    fn progress(&self, share: f64, message: String) {
        let over = self.finished_steps.load(Ordering::Relaxed);
        self.context.events.emit(HostEvent::Progress {
            call_id: self.context.call_id.clone(),
            progress: float_len(over) + share,
            total: Some(float_len(self.plan.steps().count())),
            message: Some(message),
        });
    }

    fn log(&self, level: &str, text: String) {
        let (origin, level) = (self.name.clone(), LogLevel(level.to_owned()));
        let call_id = Some(self.context.call_id.clone());
        self.context.events.emit(HostEvent::Log { origin, call_id, level, text });
    }
}

fn final_result(done: &mut StepOutcome) -> ToolResult {
    let output = || done.state["output"].clone();
    done.result.take().unwrap_or_else(|| ToolResult::json(output()))
}

fn state(output: &Value, failure: Option<&str>) -> Value {
    json!({ "output": output, "error": failure, "success": failure.is_none(), "skipped": false })
}

/// A failure on one line, with the beginning of its evidence: what `{step.error}` says.
fn failure_text(error: &Error) -> String {
    const MAX_DETAIL_LINES: usize = 3;
    let lines: Vec<&str> =
        error.details().iter().take(MAX_DETAIL_LINES).map(String::as_str).collect();
    if lines.is_empty() { error.to_string() } else { format!("{error}: {}", lines.join("; ")) }
}

/// The failure of a step because of its own templates, outside its call.
fn step_error(step: &PipelineStep, item: Option<usize>, cause: &dyn Display) -> Error {
    Error::tool(step_message(step, item, &cause.to_string()))
}

fn step_message(step: &PipelineStep, item: Option<usize>, why: &str) -> String {
    match item {
        Some(at) => format!("{}, item {}: {why}", title(step), at + 1),
        None => format!("{}: {why}", title(step)),
    }
}

fn step_warnings(step: &PipelineStep, result: &ToolResult) -> Vec<String> {
    result.warnings.iter().map(|warning| step_message(step, None, warning)).collect()
}

/// About how much memory a value takes, in bytes.
fn approximate_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(approximate_size).sum::<usize>() + 8,
        Value::Object(map) => {
            map.iter().map(|(key, v)| key.len() + approximate_size(v)).sum::<usize>() + 8
        }
        _ => 8,
    }
}
