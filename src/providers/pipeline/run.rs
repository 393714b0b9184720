//! One run of a pipeline: its steps in order, what each came to, and the result of the whole.
//!
//! Owns: the order, what a failure means, progress, and the bounds on what a run may hold. Never
//! does: wait, repeat or stop by itself; each step is a call of the host, which ends when this
//! call ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Value, json};

use super::entry::Plan;
use super::scope::{self, Scope, View};
use super::step::{MAX_PARALLEL, OnError, Step, title};
use super::template::Template;
use crate::model::{
    Caller, Event, Fault, FaultKind, JsonObject, LogLevel, NestedCall, ToolContext, ToolResult,
};
use crate::util::clock::Clock;

/// The most items that one step runs for.
const MAX_ITEMS: usize = 1_000;

/// What the outputs of all steps may come to, in bytes of text.
const MAX_KEPT: usize = 64 << 20;

/// What the arguments of one step may come to, in bytes of text.
const MAX_ARGUMENTS: usize = 16 << 20;

/// How many warnings of steps are passed on.
const MAX_WARNINGS: usize = 20;

/// A run under way.
pub(super) struct Run<'a> {
    pub(super) name: String,
    pub(super) plan: &'a Plan,
    pub(super) context: &'a ToolContext,
    pub(super) caller: Arc<dyn Caller>,
    pub(super) clock: &'a dyn Clock,
    /// How many steps are over.
    pub(super) over: AtomicUsize,
}

/// What a step came to.
struct Done {
    /// What later steps see of it.
    state: Value,
    /// What is told about it beside the result.
    report: Value,
    /// The result of its call, when it was one call.
    result: Option<ToolResult>,
    warnings: Vec<String>,
}

/// One call of a step, or why it failed.
type Answer = Result<ToolResult, Fault>;

impl Run<'_> {
    /// Runs all steps.
    ///
    /// # Errors
    /// The failure of the first step that may not fail, in that step's words.
    pub(super) async fn finish(&self, arguments: JsonObject) -> Result<ToolResult, Fault> {
        let ids = self.plan.steps().map(|step| step.id.as_str());
        let mut scope = Scope::of(arguments, Some(scope::context(self.context)), ids);
        let mut reports = Vec::new();
        let mut warnings = Vec::new();
        let mut last = ToolResult::json(Value::Null);
        let mut kept = 0;
        for stage in &self.plan.stages {
            let steps = stage.steps.as_slice();
            let mut all: Vec<Done> = Vec::with_capacity(steps.len());
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
                all.first_mut().map(last_of).unwrap_or_default()
            };
            for (step, done) in steps.iter().zip(all) {
                kept += weigh(&done.state);
                if kept > MAX_KEPT {
                    let size = MAX_KEPT >> 20;
                    let message = format!("{}: the outputs are beyond {size} MiB", title(step));
                    return Err(Fault::protocol(message).hint("keep less of what the steps give"));
                }
                scope.done(&step.id, done.state);
                reports.push(done.report);
                warnings.extend(done.warnings);
            }
        }
        let mut result = match &self.plan.result {
            None => last,
            Some(template) => {
                let value = template.fill(&scope.view());
                let value = value.map_err(|why| Fault::tool(format!("the result: {why}")))?;
                ToolResult::json(value.unwrap_or_default())
            }
        };
        warnings.truncate(MAX_WARNINGS);
        result.warnings = warnings;
        result.meta = Some(json!({ "steps": reports }));
        Ok(result)
    }

    async fn step(&self, step: &Step, view: View<'_>) -> Result<Done, Fault> {
        let started = self.clock.now();
        let bad = |why: String| Fault::tool(format!("{}: {why}", title(step)));
        let runs = step.when.as_ref().map_or(Ok(true), |when| when.holds(&view)).map_err(bad)?;
        if !runs {
            self.over.fetch_add(1, Ordering::Relaxed);
            self.log("debug", format!("{}: skipped", title(step)));
            return Ok(Done {
                state: json!({ "output": null, "error": null, "success": false, "skipped": true }),
                report: json!({ "id": step.id, "tool": step.tool, "skipped": true }),
                result: None,
                warnings: Vec::new(),
            });
        }
        self.progress(0.0, format!("{} ({})", step.id, step.tool));
        let mut done = match &step.each {
            None => self.once(step, view).await?,
            Some(list) => self.each(step, list, view).await?,
        };
        self.over.fetch_add(1, Ordering::Relaxed);
        let took = self.clock.now().saturating_duration_since(started);
        if let Some(report) = done.report.as_object_mut() {
            report.insert("duration_ms".to_owned(), json!(millis(took)));
        }
        Ok(done)
    }

    /// A step that is one call.
    async fn once(&self, step: &Step, view: View<'_>) -> Result<Done, Fault> {
        let answer = self.call(step, view, None).await;
        let (output, failure, result) = self.settle(step, view, answer, None)?;
        let mut report = json!({ "id": step.id, "tool": step.tool, "success": failure.is_none() });
        if let (Some(fields), Some(failure)) = (report.as_object_mut(), &failure) {
            fields.insert("error".to_owned(), json!(failure));
        }
        Ok(Done {
            state: state(&output, failure.as_deref()),
            report,
            warnings: result.iter().flat_map(|r| noted(step, r)).collect(),
            result,
        })
    }

    /// A step that is a call for each item.
    async fn each(&self, step: &Step, list: &Template, view: View<'_>) -> Result<Done, Fault> {
        let bad = |why: String| Fault::tool(format!("{}: {why}", title(step)));
        let items = match list.fill(&view).map_err(bad)? {
            Some(Value::Array(items)) => items,
            Some(Value::Null) | None => Vec::new(),
            Some(_) => return Err(bad("what 'each' names is no list".to_owned())),
        };
        let count = items.len();
        if count > MAX_ITEMS {
            let message = format!("{}: {count} items are beyond {MAX_ITEMS}", title(step));
            return Err(Fault::protocol(message));
        }
        let (mut outputs, mut first_failure) = (Vec::with_capacity(count), None);
        let (mut failures, mut kept, mut warnings) = (0, 0, Vec::new());
        let calls = items.iter().enumerate();
        let calls: Vec<_> =
            calls.map(|(at, item)| self.call(step, view.at(at, item), Some(at))).collect();
        let mut answers = stream::iter(calls).buffered(step.parallel).enumerate();
        while let Some((at, answer)) = answers.next().await {
            let item = items.get(at).unwrap_or(&Value::Null);
            let (output, failure, result) =
                self.settle(step, view.at(at, item), answer, Some(at))?;
            kept += weigh(&output);
            if kept > MAX_KEPT {
                return Err(Fault::protocol(format!("{}: too much output", title(step))));
            }
            outputs.push(output);
            failures += usize::from(failure.is_some());
            first_failure = first_failure.or(failure);
            if warnings.len() < MAX_WARNINGS {
                warnings.extend(result.iter().flat_map(|r| noted(step, r)));
            }
            let words = format!("{} ({}) {} of {count}", step.id, step.tool, at + 1);
            self.progress(share(at + 1, count), words);
        }
        let mut report = json!({
            "id": step.id, "tool": step.tool, "success": failures == 0, "items": count,
        });
        if let (Some(fields), Some(failure)) = (report.as_object_mut(), &first_failure) {
            fields.insert("failed".to_owned(), json!(failures));
            fields.insert("error".to_owned(), json!(failure));
        }
        Ok(Done {
            state: state(&Value::Array(outputs), first_failure.as_deref()),
            report,
            result: None,
            warnings,
        })
    }

    /// Makes one call of a step. A tool's no is a failure.
    async fn call(&self, step: &Step, view: View<'_>, item: Option<usize>) -> Answer {
        let filled = step.args.fill(&view);
        let arguments = match filled.map_err(|why| Fault::tool(inside(step, item, &why)))? {
            Some(Value::Object(arguments)) => arguments,
            None => JsonObject::new(),
            Some(_) => return Err(Fault::tool(inside(step, item, "'args' became no object"))),
        };
        if arguments.values().map(weigh).sum::<usize>() > MAX_ARGUMENTS {
            let size = MAX_ARGUMENTS >> 20;
            let why = format!("the arguments are beyond {size} MiB");
            return Err(Fault::protocol(inside(step, item, &why)));
        }
        let call = NestedCall {
            timeout: step.timeout,
            retries: step.retries,
            ..NestedCall::new(&step.tool, arguments)
        };
        let words = inside(step, item, "");
        let words = words.trim_end_matches([':', ' ']);
        match self.caller.run(self.context, call).await {
            Ok(mut result) => match result.fault.take() {
                Some(fault) => Err(fault.within(words)),
                None => Ok(result),
            },
            Err(fault) => Err(fault.within(words)),
        }
    }

    /// What an answer comes to: an output, and the failure that was lived with.
    ///
    /// # Errors
    /// The failure, when it is the pipeline's too: because the step may not fail, or because the
    /// pipeline itself has to stop.
    fn settle(
        &self,
        step: &Step,
        view: View<'_>,
        answer: Answer,
        item: Option<usize>,
    ) -> Result<(Value, Option<String>, Option<ToolResult>), Fault> {
        let fault = match answer {
            Ok(result) => return Ok((result.output.clone(), None, Some(result))),
            Err(fault) => fault,
        };
        let stops =
            self.context.cancel.is_cancelled() || matches!(fault.kind(), FaultKind::Interrupted(_));
        let output = match &step.on_error {
            // The limit or person that stopped the pipeline has the word; this is where it was.
            _ if stops => return Err(fault.detail(format!("{} was running", title(step)))),
            OnError::Fail => return Err(fault),
            OnError::Continue => Value::Null,
            OnError::Default(value) => {
                let value = value.fill(&view);
                value.map_err(|why| Fault::tool(inside(step, item, &why)))?.unwrap_or_default()
            }
        };
        let words = in_words(&fault);
        self.log("warning", format!("{words}; going on"));
        Ok((output, Some(words), None))
    }

    fn progress(&self, share: f64, message: String) {
        let over = self.over.load(Ordering::Relaxed);
        self.context.events.emit(Event::Progress {
            call_id: self.context.call_id.clone(),
            progress: number(over) + share,
            total: Some(number(self.plan.steps().count())),
            message: Some(message),
        });
    }

    fn log(&self, level: &str, text: String) {
        let (origin, level) = (self.name.clone(), LogLevel(level.to_owned()));
        self.context.events.emit(Event::Log { origin, level, text });
    }
}

/// What the pipeline gives when this was its last step.
fn last_of(done: &mut Done) -> ToolResult {
    let output = || done.state["output"].clone();
    done.result.take().unwrap_or_else(|| ToolResult::json(output()))
}

fn state(output: &Value, failure: Option<&str>) -> Value {
    json!({ "output": output, "error": failure, "success": failure.is_none(), "skipped": false })
}

/// A failure on one line, with the beginning of its evidence: what `{step.error}` says.
fn in_words(fault: &Fault) -> String {
    const EVIDENCE: usize = 3;
    let lines: Vec<&str> = fault.detail_lines().iter().take(EVIDENCE).map(String::as_str).collect();
    if lines.is_empty() { fault.to_string() } else { format!("{fault}: {}", lines.join("; ")) }
}

fn inside(step: &Step, item: Option<usize>, why: &str) -> String {
    match item {
        Some(at) => format!("{}, item {}: {why}", title(step), at + 1),
        None => format!("{}: {why}", title(step)),
    }
}

fn noted(step: &Step, result: &ToolResult) -> Vec<String> {
    result.warnings.iter().map(|warning| inside(step, None, warning)).collect()
}

/// About how much memory a value takes, in bytes.
fn weigh(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weigh).sum::<usize>() + 8,
        Value::Object(map) => map.iter().map(|(key, v)| key.len() + weigh(v)).sum::<usize>() + 8,
        _ => 8,
    }
}

fn share(part: usize, whole: usize) -> f64 {
    number(part) / number(whole.max(1))
}

/// Counts here are far below what a float holds exactly.
fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
