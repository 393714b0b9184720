//! Work that goes on after a call was answered with a task.
//!
//! Owns: both dialects of tasks. In revision 2025-11-25 a client asks for a task and fetches its
//! result with `tasks/result`; in the extension of 2026-07-28 (SEP-2663) a server answers with one
//! by itself and `tasks/get` brings the result. What to do next follows from the task's state
//! alone ([`Task::next`]). A task that we stop waiting for is cancelled.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::connection::{Connection, RequestOptions};
use super::message::{Raw, head};
use super::results;
use super::rounds::Rounds;
use crate::model::{Event, Fault, FaultKind, JsonObject, LogLevel, Phase, Signal, ToolResult};
use crate::util::units::show_duration;

/// How long a server is asked to keep a task and its result, in milliseconds: one hour.
pub const TIME_TO_LIVE: u64 = 3_600_000;
/// How often a server is asked that names no interval.
const POLL: Duration = Duration::from_millis(500);
/// The shortest and the longest interval that a server may name.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);
/// How long telling the server that a task was given up may take.
const CANCEL_LIMIT: Duration = Duration::from_millis(800);
/// How much of a status message is shown, in characters.
const SHOWN: usize = 300;

/// Which words a server has for tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Revision 2025-11-25.
    Core,
    /// `io.modelcontextprotocol/tasks`.
    Extension,
}

/// A task as the server last described it.
#[derive(Debug, Clone, PartialEq)]
struct Task {
    id: String,
    status: Status,
    message: Option<String>,
    poll: Duration,
}

#[derive(Debug, Clone, PartialEq)]
enum Status {
    Working,
    /// The questions, in the extension; in the core they come by themselves.
    InputRequired(JsonObject),
    /// The result, in the extension.
    Completed(Option<JsonObject>),
    /// The error, in the extension.
    Failed(Option<Value>),
    Cancelled,
}

/// What to do about a task.
#[derive(Debug)]
enum Next {
    /// Ask again after this time.
    Wait(Duration),
    /// Answer these questions.
    Answer(JsonObject),
    /// Fetch the result, which also brings the questions.
    Fetch,
    /// This is the result.
    Done(JsonObject),
    /// There is none.
    Fail(Fault),
}

impl Task {
    fn read(map: &JsonObject) -> Result<Self, Fault> {
        let broken = |what: &str| Fault::protocol(format!("the task {what}"));
        let id = map.get("taskId").and_then(Value::as_str).unwrap_or_default();
        if id.is_empty() {
            return Err(broken("has no taskId"));
        }
        let status = match map.get("status").and_then(Value::as_str) {
            Some("working" | "submitted") => Status::Working,
            Some("input_required") => {
                let requests = map.get("inputRequests").and_then(Value::as_object);
                Status::InputRequired(requests.cloned().unwrap_or_default())
            }
            Some("completed") => {
                Status::Completed(map.get("result").and_then(Value::as_object).cloned())
            }
            Some("failed") => Status::Failed(map.get("error").cloned()),
            Some("cancelled") => Status::Cancelled,
            Some(other) => {
                return Err(broken(&format!("has the unknown status {:?}", head(other, 40))));
            }
            None => return Err(broken("has no status")),
        };
        let poll = ["pollIntervalMs", "pollInterval"]
            .into_iter()
            .find_map(|key| map.get(key)?.as_f64())
            .map_or(POLL, |ms| Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(POLL));
        Ok(Self {
            id: id.to_owned(),
            status,
            message: map.get("statusMessage").and_then(Value::as_str).map(str::to_owned),
            poll: poll.clamp(SHORTEST, LONGEST),
        })
    }

    fn next(&self, dialect: Dialect) -> Next {
        match (&self.status, dialect) {
            (Status::Working, _) => Next::Wait(self.poll),
            (Status::Cancelled, _) => Next::Fail(Fault::tool(match &self.message {
                Some(why) => format!("the server cancelled its task: {}", head(why, SHOWN)),
                None => "the server cancelled its task".to_owned(),
            })),
            (_, Dialect::Core) => Next::Fetch,
            (Status::InputRequired(requests), Dialect::Extension) => Next::Answer(requests.clone()),
            (Status::Completed(Some(result)), Dialect::Extension) => Next::Done(result.clone()),
            (Status::Completed(None), Dialect::Extension) => {
                Next::Fail(Fault::protocol("the task is completed and has no result"))
            }
            (Status::Failed(error), Dialect::Extension) => Next::Fail(failed(error.as_ref())),
        }
    }

    fn word(&self) -> &'static str {
        match self.status {
            Status::Working => "working",
            Status::InputRequired(_) => "waits for input",
            Status::Completed(_) => "completed",
            Status::Failed(_) => "failed",
            Status::Cancelled => "cancelled",
        }
    }
}

/// The JSON-RPC error that ended a task.
fn failed(error: Option<&Value>) -> Fault {
    let code = error.and_then(|error| error.get("code")?.as_i64());
    let message = error.and_then(|error| error.get("message")?.as_str());
    let (Some(code), Some(message)) = (code, message) else {
        return Fault::protocol("the task has failed without a well-formed error");
    };
    let data = error.and_then(|error| error.get("data"));
    Fault::tool(format!("error {code}: {message}")).data(json!({ "code": code, "data": data }))
}

/// Waits for a task's result, which is that of the call. `first` is the task as it was created.
///
/// # Errors
/// As a call without a task; and when the task was cancelled, or is not what a task must be.
pub(super) async fn follow(
    connection: &Connection,
    first: &JsonObject,
    dialect: Dialect,
    options: &RequestOptions,
) -> Result<ToolResult, Fault> {
    let task = Task::read(first)?;
    let params = JsonObject::from_iter([("taskId".to_owned(), json!(task.id))]);
    let mut pursuit = Pursuit {
        connection,
        dialect,
        params,
        // The headers of the call are its arguments, and these requests have none.
        options: RequestOptions { headers: Vec::new(), ..options.clone() },
        deadline: Instant::now() + options.total,
        answered: Vec::new(),
        rounds: Rounds::default(),
        over: false,
    };
    let outcome = pursuit.run(task).await;
    if outcome.is_err() && !pursuit.over && connection.closed().is_none() {
        pursuit.give_up().await;
    }
    outcome
}

/// One task on its way.
struct Pursuit<'a> {
    connection: &'a Connection,
    dialect: Dialect,
    /// The parameters that name the task.
    params: JsonObject,
    options: RequestOptions,
    deadline: Instant,
    /// The keys of the questions that were answered: each is asked once, however often it is seen.
    answered: Vec<String>,
    rounds: Rounds,
    /// The server is done with it.
    over: bool,
}

impl Pursuit<'_> {
    async fn run(&mut self, mut task: Task) -> Result<ToolResult, Fault> {
        self.tell(&task);
        let mut wait = if task.status == Status::Working { task.poll } else { Duration::ZERO };
        loop {
            self.pause(wait).await?;
            let raw = self.ask("tasks/get", self.params.clone()).await?;
            let now = Task::read(&object(&raw, "tasks/get")?)?;
            if (now.word(), &now.message) != (task.word(), &task.message) {
                self.tell(&now);
            }
            task = now;
            match task.next(self.dialect) {
                Next::Wait(poll) => wait = poll,
                Next::Answer(requests) => {
                    self.answer(requests).await?;
                    wait = task.poll;
                }
                Next::Fetch => {
                    let raw = self.ask("tasks/result", self.params.clone()).await;
                    self.over = raw.is_ok();
                    let raw = raw?;
                    return results::read(object(&raw, "tasks/result")?, raw.get());
                }
                Next::Done(result) => {
                    self.over = true;
                    let text = Value::Object(result.clone()).to_string();
                    return results::read(result, &text);
                }
                Next::Fail(fault) => {
                    self.over = true;
                    return Err(fault);
                }
            }
        }
    }

    /// Waits until it is time to ask, or the server says that something happened.
    async fn pause(&self, wait: Duration) -> Result<(), Fault> {
        let now = Instant::now();
        if now >= self.deadline {
            let limit = show_duration(self.options.total);
            return Err(Fault::timeout(format!("the task did not end within {limit}")));
        }
        let until = (now + wait).min(self.deadline);
        let news = async {
            tokio::time::sleep(SHORTEST).await;
            self.connection.task_news().await;
        };
        tokio::select! {
            biased;
            () = self.options.cancel.cancelled() => {
                let interrupted = FaultKind::Interrupted(Signal::Interrupt);
                Err(Fault::new(interrupted, "the task was given up"))
            }
            () = tokio::time::sleep_until(until) => Ok(()),
            () = news => Ok(()),
        }
    }

    async fn answer(&mut self, mut requests: JsonObject) -> Result<(), Fault> {
        requests.retain(|key, _| !self.answered.contains(key));
        if requests.is_empty() {
            return Ok(());
        }
        let answers = self.rounds.answer(self.connection, &requests, &self.options).await?;
        self.answered.extend(requests.keys().cloned());
        let mut params = self.params.clone();
        params.insert("inputResponses".to_owned(), Value::Object(answers));
        self.ask("tasks/update", params).await.map(drop)
    }

    async fn ask(&self, method: &str, params: JsonObject) -> Result<Raw, Fault> {
        self.connection.request(method, Value::Object(params), &self.options).await
    }

    /// Tells the server that nobody waits any more.
    async fn give_up(&self) {
        let options = RequestOptions::within(CANCEL_LIMIT, CANCEL_LIMIT, Phase::Call);
        let params = Value::Object(self.params.clone());
        // It is told; what it makes of that concerns nobody any more.
        let _unheard = self.connection.request("tasks/cancel", params, &options).await;
    }

    fn tell(&self, task: &Task) {
        let text = match &task.message {
            Some(message) => format!("task {}: {}", task.word(), head(message, SHOWN)),
            None => format!("task {}", task.word()),
        };
        let respondent = self.connection.respondent();
        respondent.events.emit(Event::Log {
            origin: respondent.server.clone(),
            level: LogLevel("info".to_owned()),
            text,
        });
    }
}

fn object(raw: &Raw, method: &str) -> Result<JsonObject, Fault> {
    match raw.parse()? {
        Value::Object(map) => Ok(map),
        _ => Err(Fault::protocol(format!("the answer to {method} is not an object"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(value: &Value) -> Result<Task, Fault> {
        Task::read(value.as_object().unwrap())
    }

    fn next(dialect: Dialect, value: &Value) -> Next {
        task(value).unwrap().next(dialect)
    }

    #[test]
    fn intervals_are_kept_within_reason() {
        let poll = |value: Value| {
            task(&json!({ "taskId": "t", "status": "working", "pollIntervalMs": value }))
                .unwrap()
                .poll
        };
        assert_eq!(poll(json!(2000)), Duration::from_secs(2));
        assert_eq!(poll(json!(0)), SHORTEST);
        assert_eq!(poll(json!(1e300)), POLL);
        assert_eq!(poll(json!(9_000_000)), LONGEST);
        assert_eq!(poll(json!(-5)), POLL);
        assert_eq!(poll(json!("soon")), POLL);
    }

    #[test]
    fn each_state_has_its_next_step_in_each_dialect() {
        use Dialect::{Core, Extension};
        let state = |status: &str| json!({ "taskId": "t", "status": status });
        for dialect in [Core, Extension] {
            assert!(matches!(next(dialect, &state("working")), Next::Wait(_)));
            assert!(matches!(next(dialect, &state("cancelled")), Next::Fail(_)));
        }
        for status in ["input_required", "completed", "failed"] {
            assert!(matches!(next(Core, &state(status)), Next::Fetch), "{status}");
        }
        let mut asks = state("input_required");
        asks["inputRequests"] = json!({ "a": {} });
        assert!(matches!(next(Extension, &asks), Next::Answer(r) if r.len() == 1));
        let mut done = state("completed");
        assert!(matches!(next(Extension, &done), Next::Fail(f) if f.kind() == FaultKind::Protocol));
        done["result"] = json!({ "content": [] });
        assert!(matches!(next(Extension, &done), Next::Done(_)));
        let mut failed = state("failed");
        failed["error"] = json!({ "code": -32000, "message": "no tea" });
        assert!(matches!(next(Extension, &failed), Next::Fail(f) if f.kind() == FaultKind::Tool));
    }

    #[test]
    fn what_is_no_task_says_why() {
        for (value, words) in [
            (json!({ "status": "working" }), "no taskId"),
            (json!({ "taskId": "t" }), "no status"),
            (json!({ "taskId": "t", "status": "napping" }), "unknown status"),
        ] {
            let fault = task(&value).unwrap_err();
            assert_eq!(fault.kind(), FaultKind::Protocol);
            assert!(fault.message().contains(words), "{fault}");
        }
    }
}
