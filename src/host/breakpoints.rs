//! Breakpoints: rules by which a call waits for a person at an attached console, before it is sent
//! or with its result.
//!
//! Rules live as long as the host. Without a console that watches they stop nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ToolHost;
use super::attempt::check_output;
use super::dispatch::prepare_arguments;
use super::link::HostQuery;
use super::listings::ListedTool;
use super::request::{CallArguments, CallRequest};
use crate::audit::mask::MASK;
use crate::model::{
    BreakpointRecord, CallId, Error, HoldOutcome, HoldPoint, HostEvent, JsonObject, ToolDefinition,
    ToolName, ToolResult,
};
use crate::util::units::show_span;
use crate::util::{json, pattern};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// How often the client of a stopped call hears that it is still there.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
pub const MAX_LIMIT: Duration = Duration::from_hours(24);
/// A longer result is not shown, in bytes of JSON.
const MAX_SHOWN: u64 = 256 << 10;

/// A rule that stops calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakpoint {
    /// Of the full name or the bare name of a tool.
    pub pattern: String,
    /// How the names of the clients begin; `None` for all.
    pub client: Option<String>,
    pub on: HoldPoint,
    /// How long a call waits for a person.
    pub limit: Duration,
    /// Whether the call then goes on; else it is refused.
    pub continues: bool,
}

impl Breakpoint {
    pub const DEFAULT_LIMIT: Duration = Duration::from_mins(5);

    /// A rule about a tool, whoever calls it.
    pub fn before(tool: &str) -> Self {
        Self {
            pattern: tool.to_owned(),
            client: None,
            on: HoldPoint::Call,
            limit: Self::DEFAULT_LIMIT,
            continues: false,
        }
    }

    pub fn is_about(&self, tool: &ToolName) -> bool {
        pattern::matches(&self.pattern, &tool.full())
            || pattern::matches(&self.pattern, tool.tool())
    }

    fn is_of(&self, client: Option<&str>) -> bool {
        let Some(begin) = &self.client else { return true };
        let begin = format!("{}*", begin.to_lowercase());
        client.is_some_and(|client| pattern::matches(&begin, &client.to_lowercase()))
    }

    fn replaces(&self, other: &Self) -> bool {
        (&self.pattern, &self.client, self.on) == (&other.pattern, &other.client, other.on)
    }
}

/// What is asked about the rules.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum BreakpointChange {
    /// To tell which there are.
    Nothing,
    Set(Breakpoint),
    /// To remove those with this pattern; all of them without one.
    Remove(Option<String>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BreakpointList {
    pub rules: Vec<Breakpoint>,
    /// How many rules the change removed.
    pub removed: usize,
    /// How many consoles are attached, which show the calls.
    pub consoles: usize,
}

/// A stopped call, as a person sees it: secrets are masked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeldCall {
    pub hold: u64,
    pub call: CallId,
    pub definition: ToolDefinition,
    pub arguments: JsonObject,
    /// `None` before it is sent.
    pub result: Option<HeldResult>,
    pub client: Option<String>,
    pub rule: Breakpoint,
    pub time_left: Duration,
    /// Why what a person made of it cannot be used.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeldResult {
    /// `None` when it is too long to be shown.
    pub value: Option<Value>,
    pub error: Option<String>,
}

/// What a person decides about a stopped call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum HoldAnswer {
    Continue,
    /// Call with these arguments; masked values that are left as they were stand for the secrets.
    Arguments(JsonObject),
    /// Give the caller this result.
    Result(Value),
    /// Refuse, for a reason that the caller gets.
    Refuse(Option<String>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum HoldNews {
    /// All rules, at first and after each change.
    Rules(Vec<Breakpoint>),
    Held(Box<HeldCall>),
    /// It waits no more.
    Released(u64),
}

#[derive(Default)]
pub(super) struct Breakpoints {
    state: Mutex<HoldState>,
    /// Wakes the consoles, which look for themselves at what is new to them.
    changed: Notify,
}

#[derive(Default)]
struct HoldState {
    rules: Vec<Breakpoint>,
    /// How many consoles are attached.
    consoles: usize,
    held: BTreeMap<u64, Hold>,
    next: u64,
}

struct Hold {
    shown: HeldCall,
    until: Instant,
    answer: oneshot::Sender<Verdict>,
}

/// What a person decided, and at which console.
type Verdict = (HoldAnswer, String);

/// What an attached console sees of stopped calls. Dropped, it is not attached any more.
pub struct HoldWatch {
    breakpoints: Arc<Breakpoints>,
    /// The rules and the stopped calls that it was told of; no rules before the first time.
    rules: Option<Vec<Breakpoint>>,
    held: BTreeSet<u64>,
}

impl HoldWatch {
    /// What is new to this console, however late it asks.
    pub async fn next(&mut self) -> HoldNews {
        let breakpoints = Arc::clone(&self.breakpoints);
        loop {
            let changed = breakpoints.changed.notified();
            if let Some(news) = self.unseen(&breakpoints.state()) {
                return news;
            }
            changed.await;
        }
    }

    fn unseen(&mut self, state: &HoldState) -> Option<HoldNews> {
        if self.rules.as_ref() != Some(&state.rules) {
            self.rules = Some(state.rules.clone());
            return Some(HoldNews::Rules(state.rules.clone()));
        }
        if let Some(gone) = self.held.iter().copied().find(|hold| !state.held.contains_key(hold)) {
            self.held.remove(&gone);
            return Some(HoldNews::Released(gone));
        }
        let (hold, held) = state.held.iter().find(|(hold, _)| !self.held.contains(hold))?;
        self.held.insert(*hold);
        let time_left = held.until.saturating_duration_since(Instant::now());
        Some(HoldNews::Held(Box::new(HeldCall { time_left, ..held.shown.clone() })))
    }
}

impl Drop for HoldWatch {
    fn drop(&mut self) {
        let mut state = self.breakpoints.state();
        state.consoles -= 1;
        if state.consoles == 0 {
            state.held.clear();
        }
    }
}

impl Breakpoints {
    fn state(&self) -> MutexGuard<'_, HoldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: BreakpointChange) -> BreakpointList {
        let mut state = self.state();
        let before = state.rules.len();
        match change {
            BreakpointChange::Nothing => {}
            BreakpointChange::Set(rule) => {
                state.rules.retain(|other| !rule.replaces(other));
                state.rules.push(Breakpoint { limit: rule.limit.min(MAX_LIMIT), ..rule });
            }
            BreakpointChange::Remove(pattern) => {
                let is_named =
                    |rule: &Breakpoint| pattern.as_ref().is_none_or(|p| *p == rule.pattern);
                state.rules.retain(|rule| !is_named(rule));
            }
        }
        self.changed.notify_waiters();
        let removed = before.saturating_sub(state.rules.len());
        BreakpointList { rules: state.rules.clone(), removed, consoles: state.consoles }
    }

    fn watch(self: &Arc<Self>) -> HoldWatch {
        self.state().consoles += 1;
        HoldWatch { breakpoints: Arc::clone(self), rules: None, held: BTreeSet::new() }
    }

    fn answer(&self, hold: u64, verdict: Verdict) -> bool {
        let held = self.state().held.remove(&hold);
        held.is_some_and(|held| held.answer.send(verdict).is_ok())
    }

    /// The first rule about such a call, and whether a console is there to show it.
    fn rule(
        &self,
        tool: &ToolName,
        client: Option<&str>,
        on: HoldPoint,
    ) -> Option<(Breakpoint, bool)> {
        let state = self.state();
        let is_about =
            |rule: &&Breakpoint| rule.on == on && rule.is_of(client) && rule.is_about(tool);
        Some((state.rules.iter().find(is_about)?.clone(), state.consoles > 0))
    }

    /// Shows a stopped call to the consoles until the guard is dropped.
    fn hold(&self, held: HeldCall, until: Instant) -> (HoldGuard<'_>, oneshot::Receiver<Verdict>) {
        let (answer, verdict) = oneshot::channel();
        let mut state = self.state();
        state.next += 1;
        let hold = state.next;
        if state.consoles > 0 {
            let shown = HeldCall { hold, ..held };
            state.held.insert(hold, Hold { shown, until, answer });
        }
        self.changed.notify_waiters();
        (HoldGuard { breakpoints: self, hold }, verdict)
    }
}

struct HoldGuard<'a> {
    breakpoints: &'a Breakpoints,
    hold: u64,
}

impl Drop for HoldGuard<'_> {
    fn drop(&mut self) {
        self.breakpoints.state().held.remove(&self.hold);
        self.breakpoints.changed.notify_waiters();
    }
}

/// A call at a breakpoint.
pub(super) struct StoppedCall<'a> {
    pub(super) request: &'a CallRequest,
    pub(super) call: &'a CallId,
    /// The call whose time does not count meanwhile.
    pub(super) waiting: Option<&'a CallId>,
    pub(super) tool: &'a ListedTool,
    pub(super) arguments: &'a JsonObject,
}

/// What became of it.
pub(super) struct Stop {
    pub(super) record: BreakpointRecord,
    pub(super) waited: Duration,
    pub(super) verdict: Result<StopVerdict, Error>,
}

pub(super) enum StopVerdict {
    Unchanged,
    Arguments(JsonObject),
    Result(Box<ToolResult>),
}

impl ToolHost {
    /// Changes the rules of the host that makes the calls; `None` when that does not answer.
    pub(crate) async fn change_breakpoints(
        &self,
        change: BreakpointChange,
    ) -> Option<BreakpointList> {
        if self.link().is_none() {
            return Some(self.pipeline.breakpoints.change(change));
        }
        self.ask_link(HostQuery::Breakpoints(change)).await.ok().flatten()
    }

    /// Decides about a stopped call; whether it still waited.
    pub(crate) async fn release(&self, hold: u64, answer: HoldAnswer, by: String) -> bool {
        if self.link().is_none() {
            return self.pipeline.breakpoints.answer(hold, (answer, by));
        }
        let released = self.ask_link(HostQuery::Release { hold, answer, by }).await;
        released.ok().flatten().unwrap_or(false)
    }

    /// Watches stopped calls, as a console that shows them.
    pub(crate) fn watch_breakpoints(&self) -> HoldWatch {
        self.pipeline.breakpoints.watch()
    }

    /// Lets a person decide about a call if a rule says so; `None` if none does.
    pub(super) async fn stop_at_breakpoint(
        &self,
        stopped: &StoppedCall<'_>,
        result: Option<&Result<ToolResult, Error>>,
    ) -> Option<Stop> {
        let StoppedCall { request, call, waiting, tool, arguments } = *stopped;
        let on = if result.is_some() { HoldPoint::Result } else { HoldPoint::Call };
        let (name, schema) = (&tool.definition.name, &tool.definition.input_schema);
        let client = self.client.as_deref().or(request.client_name.as_deref());
        let breakpoints = &self.pipeline.breakpoints;
        let (rule, is_watched) = breakpoints.rule(name, client, on)?;
        let (pattern, outcome) = (rule.pattern.clone(), HoldOutcome::NotStopped);
        let by = "no console is attached".to_owned();
        let mut record = BreakpointRecord { pattern, on, outcome, by, arguments_before: None };
        if !is_watched {
            return Some(Stop {
                record,
                waited: Duration::ZERO,
                verdict: Ok(StopVerdict::Unchanged),
            });
        }
        let wait = self.pipeline.questions.wait_for_person(waiting);
        let root = wait.outermost().unwrap_or(call);
        let masked = self.pipeline.masked_arguments(arguments, schema);
        let mut definition = Arc::clone(&tool.definition);
        self.pipeline.masker.definition(&mut definition);
        let until = Instant::now() + rule.limit;
        let mut problem = None;
        let verdict = loop {
            let held = HeldCall {
                hold: 0,
                call: call.clone(),
                definition: ToolDefinition::clone(&definition),
                arguments: masked.clone(),
                result: result.map(held_result),
                client: client.map(|client| self.pipeline.masker.text(client)),
                rule: rule.clone(),
                time_left: until.saturating_duration_since(Instant::now()),
                problem: problem.take(),
            };
            let verdict = self.wait_at_breakpoint(held, until, root).await;
            // Without a person the rule decides.
            let (answer, by) = verdict.unwrap_or_else(|why| {
                let refusal = HoldAnswer::Refuse(Some(format!("no person decided: {why}")));
                (if rule.continues { HoldAnswer::Continue } else { refusal }, why)
            });
            record.by = by;
            let changed = match answer {
                HoldAnswer::Refuse(reason) => {
                    record.outcome = HoldOutcome::Refused;
                    let reason = reason.unwrap_or_else(|| "a person refused it".to_owned());
                    break Err(refusal(name, on, &reason));
                }
                HoldAnswer::Continue => Ok(StopVerdict::Unchanged),
                HoldAnswer::Arguments(edited) => {
                    self.edited_arguments(stopped, edited, &masked).await
                }
                HoldAnswer::Result(value) => given_result(stopped, value).await,
            };
            match changed {
                Ok(verdict) => {
                    record.outcome = match &verdict {
                        StopVerdict::Unchanged => HoldOutcome::Continued,
                        StopVerdict::Result(_) if on == HoldPoint::Call => HoldOutcome::Answered,
                        StopVerdict::Result(_) => HoldOutcome::Edited,
                        StopVerdict::Arguments(_) => {
                            record.arguments_before = Some(masked);
                            HoldOutcome::Edited
                        }
                    };
                    break Ok(verdict);
                }
                Err(error) => {
                    let details = error.details().join("\n");
                    let text = format!("{}\n{details}", error.message());
                    problem = Some(self.pipeline.masker.text(text.trim_end()));
                }
            }
        };
        tracing::info!(
            call = &*call.0,
            tool = name.full(),
            outcome = record.outcome.as_str(),
            "stopped"
        );
        Some(Stop { record, waited: wait.elapsed(), verdict })
    }

    /// The verdict of a person, or why there is none.
    async fn wait_at_breakpoint(
        &self,
        held: HeldCall,
        until: Instant,
        root: &CallId,
    ) -> Result<Verdict, String> {
        let limit = held.rule.limit;
        let (_held, mut verdict) = self.pipeline.breakpoints.hold(held, until);
        let (start, mut ticks) = (Instant::now(), tokio::time::interval(PROGRESS_INTERVAL));
        loop {
            tokio::select! {
                biased;
                verdict = &mut verdict => {
                    return verdict.map_err(|_| "the console was closed".to_owned());
                }
                () = tokio::time::sleep_until(until) => {
                    return Err(format!("the limit of {} has passed", show_span(limit)));
                }
                now = ticks.tick() => self.sessions.events.emit(HostEvent::Progress {
                    call_id: root.clone(),
                    progress: now.saturating_duration_since(start).as_secs_f64(),
                    total: None,
                    message: Some("stopped at a breakpoint, until a person decides".to_owned()),
                }),
            }
        }
    }

    async fn edited_arguments(
        &self,
        stopped: &StoppedCall<'_>,
        edited: JsonObject,
        masked: &JsonObject,
    ) -> Result<StopVerdict, Error> {
        let original = Value::Object(stopped.arguments.clone());
        let edited = unmasked(Value::Object(edited), &Value::Object(masked.clone()), &original);
        let has_mask = |value: &Value| value.to_string().contains(MASK);
        if has_mask(&edited) && !has_mask(&original) {
            return Err(Error::usage("a secret can only be kept as a whole, or replaced"));
        }
        let Value::Object(edited) = edited else { return Ok(StopVerdict::Unchanged) };
        if edited == *stopped.arguments {
            return Ok(StopVerdict::Unchanged);
        }
        let arguments = CallArguments::Object(edited);
        let request = CallRequest { arguments, validate: true, ..stopped.request.clone() };
        let (arguments, _unchecked) = prepare_arguments(stopped.tool, &request).await?;
        Ok(StopVerdict::Arguments(arguments))
    }
}

/// The result that a person gives, if it fits the tool's schema.
async fn given_result(stopped: &StoppedCall<'_>, value: Value) -> Result<StopVerdict, Error> {
    let mut result = ToolResult::json(value);
    check_output(stopped.tool, &mut result, stopped.request.validate).await;
    match result.error.take() {
        Some(error) => Err(error),
        None => Ok(StopVerdict::Result(Box::new(result))),
    }
}

fn refusal(name: &ToolName, on: HoldPoint, reason: &str) -> Error {
    Error::denied(match on {
        HoldPoint::Call => format!("'{name}' was refused at a breakpoint: {reason}"),
        HoldPoint::Result => {
            format!("the result of '{name}' was withheld at a breakpoint: {reason}")
        }
    })
}

fn held_result(result: &Result<ToolResult, Error>) -> HeldResult {
    match result {
        Ok(result) => {
            let value = result.structured.as_ref().unwrap_or(&result.output);
            HeldResult {
                value: (!json::is_longer_than(value, MAX_SHOWN)).then(|| value.clone()),
                error: result.error.as_ref().map(ToString::to_string),
            }
        }
        Err(error) => HeldResult { value: None, error: Some(error.to_string()) },
    }
}

/// What a person made of masked values, with the secrets where they were left as they were.
fn unmasked(edited: Value, masked: &Value, original: &Value) -> Value {
    if edited == *masked {
        return original.clone();
    }
    match (edited, masked, original) {
        (Value::Object(edited), Value::Object(masked), Value::Object(original)) => {
            let value = |(key, value): (String, Value)| {
                let before = masked.get(&key).zip(original.get(&key));
                let value = match before {
                    Some((masked, original)) => unmasked(value, masked, original),
                    None => value,
                };
                (key, value)
            };
            Value::Object(edited.into_iter().map(value).collect())
        }
        (Value::Array(edited), Value::Array(masked), Value::Array(original))
            if edited.len() == masked.len() && masked.len() == original.len() =>
        {
            let before = masked.iter().zip(original);
            let values = edited.into_iter().zip(before);
            values.map(|(value, (masked, original))| unmasked(value, masked, original)).collect()
        }
        (edited, ..) => edited,
    }
}
