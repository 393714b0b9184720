//! Tasks: calls that continue after their first answer.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::calling::read_result;
use super::connection::{Connection, RequestOptions};
use super::message::RawJson;
use super::rounds::InputRounds;
use crate::model::{Error, ErrorPhase, HostEvent, JsonObject, LogLevel, ToolResult};
use crate::util::text::truncate;
use crate::util::units::show_duration;

/// How long a server is asked to keep a task and its result, in milliseconds: one hour.
pub const TIME_TO_LIVE: u64 = 3_600_000;
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_millis(500);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(30);
const CANCEL_TIMEOUT: Duration = Duration::from_millis(800);
const STATUS_CHARS: usize = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Tasks as revision 2025-11-25 has them in its core.
    Core,
    /// Tasks as the extension `io.modelcontextprotocol/tasks` has them (2026-07-28).
    Extension,
}

#[derive(Debug, Clone, PartialEq)]
struct Task {
    id: String,
    status: TaskStatus,
    message: Option<String>,
    poll: Duration,
}

#[derive(Debug, Clone, PartialEq)]
enum TaskStatus {
    Working,
    /// The questions, in the extension; in the core they come by themselves.
    InputRequired(JsonObject),
    /// The result, in the extension.
    Completed(Option<JsonObject>),
    /// The error, in the extension.
    Failed(Option<Value>),
    Cancelled,
}

#[derive(Debug)]
enum TaskAction {
    /// Ask again after this time.
    Wait(Duration),
    AnswerQuestions(JsonObject),
    Fetch,
    /// End the call with this result.
    Done(JsonObject),
    /// End the call with this error: the task has no result.
    Fail(Error),
}

impl Task {
    fn read(map: &JsonObject) -> Result<Self, Error> {
        let broken = |what: &str| Error::protocol(format!("the task {what}"));
        let id = map.get("taskId").and_then(Value::as_str).unwrap_or_default();
        if id.is_empty() {
            return Err(broken("has no taskId"));
        }
        let status = match map.get("status").and_then(Value::as_str) {
            Some("working" | "submitted") => TaskStatus::Working,
            Some("input_required") => {
                let requests = map.get("inputRequests").and_then(Value::as_object);
                TaskStatus::InputRequired(requests.cloned().unwrap_or_default())
            }
            Some("completed") => {
                TaskStatus::Completed(map.get("result").and_then(Value::as_object).cloned())
            }
            Some("failed") => TaskStatus::Failed(map.get("error").cloned()),
            Some("cancelled") => TaskStatus::Cancelled,
            Some(other) => {
                return Err(broken(&format!("has the unknown status {:?}", truncate(other, 40))));
            }
            None => return Err(broken("has no status")),
        };
        let poll = ["pollIntervalMs", "pollInterval"]
            .into_iter()
            .find_map(|key| map.get(key)?.as_f64())
            .map_or(DEFAULT_POLL_INTERVAL, |ms| {
                Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(DEFAULT_POLL_INTERVAL)
            });
        Ok(Self {
            id: id.to_owned(),
            status,
            message: map.get("statusMessage").and_then(Value::as_str).map(str::to_owned),
            poll: poll.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL),
        })
    }

    fn next_action(&self, dialect: Dialect) -> TaskAction {
        match (&self.status, dialect) {
            (TaskStatus::Working, _) => TaskAction::Wait(self.poll),
            (TaskStatus::Cancelled, _) => TaskAction::Fail(Error::tool(match &self.message {
                Some(why) => {
                    format!("the server cancelled its task: {}", truncate(why, STATUS_CHARS))
                }
                None => "the server cancelled its task".to_owned(),
            })),
            (_, Dialect::Core) => TaskAction::Fetch,
            (TaskStatus::InputRequired(requests), Dialect::Extension) => {
                TaskAction::AnswerQuestions(requests.clone())
            }
            (TaskStatus::Completed(Some(result)), Dialect::Extension) => {
                TaskAction::Done(result.clone())
            }
            (TaskStatus::Completed(None), Dialect::Extension) => {
                TaskAction::Fail(Error::protocol("the task completed without a result"))
            }
            (TaskStatus::Failed(error), Dialect::Extension) => {
                TaskAction::Fail(failed(error.as_ref()))
            }
        }
    }

    fn with_reason(&self, error: Error) -> Error {
        match (&self.status, &self.message) {
            (TaskStatus::Failed(_), Some(reason)) => {
                error.context(&format!("the task failed: {}", truncate(reason, STATUS_CHARS)))
            }
            _ => error,
        }
    }

    fn label(&self) -> &'static str {
        match self.status {
            TaskStatus::Working => "working",
            TaskStatus::InputRequired(_) => "waits for input",
            TaskStatus::Completed(_) => "completed",
            TaskStatus::Failed(_) => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }
}

fn failed(error: Option<&Value>) -> Error {
    let code = error.and_then(|error| error.get("code")?.as_i64());
    let message = error.and_then(|error| error.get("message")?.as_str());
    let (Some(code), Some(message)) = (code, message) else {
        return Error::protocol("the task has failed without a well-formed error");
    };
    let data = error.and_then(|error| error.get("data"));
    Error::tool(format!("error {code}: {message}")).with_rpc_error(code, data)
}

/// Waits for a task's result, which is that of the call. `first` is the task as it was created.
pub(super) async fn await_result(
    connection: &Connection,
    first: &JsonObject,
    dialect: Dialect,
    options: &RequestOptions,
) -> Result<ToolResult, Error> {
    let task = Task::read(first)?;
    let params = JsonObject::from_iter([("taskId".to_owned(), json!(task.id))]);
    let mut pursuit = TaskPoller {
        connection,
        dialect,
        params,
        // The headers of the call are its arguments, and these requests have none.
        options: RequestOptions { headers: Vec::new(), ..options.clone() },
        deadline: Instant::now() + options.total_timeout,
        answered_keys: Vec::new(),
        rounds: InputRounds::default(),
        is_finished: false,
    };
    if let Some(call_id) = options.call.clone() {
        connection.respondent.events.emit(HostEvent::TaskStarted { call_id });
    }
    let outcome = pursuit.run(task).await;
    if outcome.is_err() && !pursuit.is_finished && connection.close_reason().is_none() {
        pursuit.cancel_task().await;
    }
    outcome
}

struct TaskPoller<'a> {
    connection: &'a Connection,
    dialect: Dialect,
    params: JsonObject,
    options: RequestOptions,
    deadline: Instant,
    /// The keys of the questions that were answered: each is asked once, however often it is seen.
    answered_keys: Vec<String>,
    rounds: InputRounds,
    is_finished: bool,
}

impl TaskPoller<'_> {
    async fn run(&mut self, mut task: Task) -> Result<ToolResult, Error> {
        self.report_status(&task);
        let mut wait = if task.status == TaskStatus::Working { task.poll } else { Duration::ZERO };
        loop {
            self.wait_to_poll(wait).await?;
            let raw = self.request("tasks/get", self.params.clone()).await?;
            let now = Task::read(&object(&raw, "tasks/get")?)?;
            if (now.label(), &now.message) != (task.label(), &task.message) {
                self.report_status(&now);
            }
            task = now;
            match task.next_action(self.dialect) {
                TaskAction::Wait(poll) => wait = poll,
                TaskAction::AnswerQuestions(requests) => {
                    self.answer(requests).await?;
                    wait = task.poll;
                }
                TaskAction::Fetch => {
                    let raw = self.request("tasks/result", self.params.clone()).await;
                    // A task that ended by itself needs no end from here.
                    self.is_finished =
                        raw.is_ok() || !matches!(task.status, TaskStatus::InputRequired(_));
                    let raw = raw.map_err(|error| task.with_reason(error))?;
                    return read_result(object(&raw, "tasks/result")?, raw.get());
                }
                TaskAction::Done(result) => {
                    self.is_finished = true;
                    let text = Value::Object(result.clone()).to_string();
                    return read_result(result, &text);
                }
                TaskAction::Fail(error) => {
                    self.is_finished = true;
                    return Err(task.with_reason(error));
                }
            }
        }
    }

    /// Waits until it is time to ask, or the server says that something happened.
    async fn wait_to_poll(&self, wait: Duration) -> Result<(), Error> {
        let now = Instant::now();
        if now >= self.deadline {
            let limit = show_duration(self.options.total_timeout);
            return Err(Error::timeout(format!("the task did not end within {limit}")));
        }
        let until = (now + wait).min(self.deadline);
        // From now on, also what comes during the shortest pause.
        let updated = self.connection.task_updated.notified();
        let news = async {
            tokio::time::sleep(MIN_POLL_INTERVAL).await;
            updated.await;
        };
        tokio::select! {
            biased;
            () = self.options.cancel.cancelled() => Err(Error::interrupted("the task was abandoned")),
            () = tokio::time::sleep_until(until) => Ok(()),
            () = news => Ok(()),
        }
    }

    async fn answer(&mut self, mut requests: JsonObject) -> Result<(), Error> {
        requests.retain(|key, _| !self.answered_keys.contains(key));
        if requests.is_empty() {
            return Ok(());
        }
        let answers = self.rounds.answer(self.connection, &requests, &self.options).await?;
        self.answered_keys.extend(requests.keys().cloned());
        let mut params = self.params.clone();
        params.insert("inputResponses".to_owned(), Value::Object(answers));
        self.request("tasks/update", params).await.map(drop)
    }

    async fn request(&self, method: &str, params: JsonObject) -> Result<RawJson, Error> {
        self.connection.request(method, Value::Object(params), &self.options).await
    }

    async fn cancel_task(&self) {
        let options =
            RequestOptions::with_timeouts(CANCEL_TIMEOUT, CANCEL_TIMEOUT, ErrorPhase::Call);
        let params = Value::Object(self.params.clone());
        // The answer to the cancellation changes nothing.
        let _unheard = self.connection.request("tasks/cancel", params, &options).await;
    }

    fn report_status(&self, task: &Task) {
        let text = match &task.message {
            Some(message) => format!("task {}: {}", task.label(), truncate(message, STATUS_CHARS)),
            None => format!("task {}", task.label()),
        };
        let respondent = &self.connection.respondent;
        respondent.events.emit(HostEvent::Log {
            origin: respondent.server.clone(),
            call_id: self.options.call.clone(),
            level: LogLevel("info".to_owned()),
            text,
        });
    }
}

fn object(raw: &RawJson, method: &str) -> Result<JsonObject, Error> {
    match raw.parse()? {
        Value::Object(map) => Ok(map),
        _ => Err(Error::protocol(format!("the response to {method} is not an object"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ErrorKind;

    fn task(value: &Value) -> Result<Task, Error> {
        Task::read(value.as_object().unwrap())
    }

    fn next(dialect: Dialect, value: &Value) -> TaskAction {
        task(value).unwrap().next_action(dialect)
    }

    #[test]
    fn intervals_are_kept_within_reason() {
        let poll = |value: Value| {
            task(&json!({ "taskId": "t", "status": "working", "pollIntervalMs": value }))
                .unwrap()
                .poll
        };
        assert_eq!(poll(json!(2000)), Duration::from_secs(2));
        assert_eq!(poll(json!(0)), MIN_POLL_INTERVAL);
        assert_eq!(poll(json!(1e300)), DEFAULT_POLL_INTERVAL);
        assert_eq!(poll(json!(9_000_000)), MAX_POLL_INTERVAL);
        assert_eq!(poll(json!(-5)), DEFAULT_POLL_INTERVAL);
        assert_eq!(poll(json!("soon")), DEFAULT_POLL_INTERVAL);
    }

    #[test]
    fn each_state_has_its_next_step_in_each_dialect() {
        use Dialect::{Core, Extension};
        let state = |status: &str| json!({ "taskId": "t", "status": status });
        for dialect in [Core, Extension] {
            assert!(matches!(next(dialect, &state("working")), TaskAction::Wait(_)));
            assert!(matches!(next(dialect, &state("cancelled")), TaskAction::Fail(_)));
        }
        for status in ["input_required", "completed", "failed"] {
            assert!(matches!(next(Core, &state(status)), TaskAction::Fetch), "{status}");
        }
        let mut asks = state("input_required");
        asks["inputRequests"] = json!({ "a": {} });
        assert!(matches!(next(Extension, &asks), TaskAction::AnswerQuestions(r) if r.len() == 1));
        let mut task = state("completed");
        assert!(
            matches!(next(Extension, &task), TaskAction::Fail(f) if f.kind() == ErrorKind::Protocol)
        );
        task["result"] = json!({ "content": [] });
        assert!(matches!(next(Extension, &task), TaskAction::Done(_)));
        let mut failed = state("failed");
        failed["error"] = json!({ "code": -32000, "message": "no tea" });
        assert!(
            matches!(next(Extension, &failed), TaskAction::Fail(f) if f.kind() == ErrorKind::Tool)
        );
    }

    #[test]
    fn what_is_no_task_says_why() {
        for (value, expected) in [
            (json!({ "status": "working" }), "no taskId"),
            (json!({ "taskId": "t" }), "no status"),
            (json!({ "taskId": "t", "status": "napping" }), "unknown status"),
        ] {
            let error = task(&value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Protocol);
            assert!(error.message().contains(expected), "{error}");
        }
    }
}
