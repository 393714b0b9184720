//! Calls whose clients come back for the result: tasks, as the extension
//! `io.modelcontextprotocol/tasks` of revision 2026-07-28 has them (SEP-2663).
//!
//! A call becomes a task when the server behind it makes it one and its client supports tasks. Owns:
//! the tasks from their creation to the end of their lifetime, what their clients see of them, and that
//! a task is visible only to the session that created it. Never does: contact the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, InputRequests,
    InputResponses, ServerResult, Task, TaskPayload, TaskStatus,
};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::client_registry::ClientQuestion;
use super::questions;
use super::running_request::{RequestStep, RunningRequest};
use crate::model::{HostEvent, JsonObject, QuestionReply};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::json;
use crate::util::lock::lock;
use crate::util::timestamp::rfc3339;
use crate::util::units::show_size;

/// How long a task and its result are kept, counted from its creation.
const TIME_TO_LIVE: Duration = Duration::from_hours(1);
const POLL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_OF_SESSION: usize = 64;
const MAX_TASKS: usize = 1_024;
const MAX_RESULT_BYTES: usize = 64 << 20;

pub(super) struct ServedTasks {
    by_id: Arc<Mutex<HashMap<String, ServedTask>>>,
    /// The room for results, in bytes.
    room: Arc<Semaphore>,
}

impl Default for ServedTasks {
    fn default() -> Self {
        Self { by_id: Arc::default(), room: Arc::new(Semaphore::new(MAX_RESULT_BYTES)) }
    }
}

struct ServedTask {
    session: String,
    state: Arc<TaskState>,
    /// Ends the call; the task stays.
    cancel: CancellationToken,
    _cancelled_when_dropped: DropGuard,
}

struct TaskState(Mutex<TaskContents>);

struct TaskContents {
    task: Task,
    /// The questions without an answer yet, under the names by which the client answers.
    questions: Vec<(String, ClientQuestion)>,
    asked: usize,
    ended: Option<(TaskPayload, Option<OwnedSemaphorePermit>)>,
}

impl ServedTasks {
    /// Makes a task of a call that runs, for a client with these capabilities. It ends when `stop` fires.
    pub(super) fn begin(
        &self,
        session: &str,
        running: RunningRequest,
        capabilities: Option<ClientCapabilities>,
        stop: &CancellationToken,
    ) -> Result<CreateTaskResult, RunningRequest> {
        let mut tasks = lock(&self.by_id);
        let of_session = tasks.values().filter(|task| task.session == session).count();
        if tasks.len() >= MAX_TASKS || of_session >= MAX_OF_SESSION {
            return Err(running);
        }
        let (id, now) = (Uuid::new_v4().simple().to_string(), now());
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let task = Task::new(id.clone(), TaskStatus::Working, now.clone(), now)
            .with_ttl_ms(millis(TIME_TO_LIVE))
            .with_poll_interval_ms(millis(POLL_INTERVAL));
        let contents =
            TaskContents { task: task.clone(), questions: Vec::new(), asked: 0, ended: None };
        let state = Arc::new(TaskState(Mutex::new(contents)));
        let dropped = stop.child_token();
        let cancel = dropped.child_token();
        let served = ServedTask {
            session: session.to_owned(),
            state: Arc::clone(&state),
            cancel: cancel.clone(),
            _cancelled_when_dropped: dropped.clone().drop_guard(),
        };
        tasks.insert(id.clone(), served);
        drop(tasks);
        let (all, room) = (Arc::clone(&self.by_id), Arc::clone(&self.room));
        tokio::spawn(async move {
            let life = async {
                let ended = cancel.run_until_cancelled(state.follow(running, capabilities)).await;
                state.end(ended.unwrap_or(TaskPayload::Cancelled), &room);
                std::future::pending::<()>().await;
            };
            let life = tokio::time::timeout(TIME_TO_LIVE, life);
            if dropped.run_until_cancelled(life).await.is_some() {
                drop(lock(&all).remove(&id));
            }
        });
        Ok(CreateTaskResult::new(task))
    }

    pub(super) fn get(&self, session: &str, id: &str) -> Result<GetTaskResult, ErrorData> {
        let detailed = self.with(session, id, |task| task.state.detailed())?;
        Ok(GetTaskResult::new(detailed?))
    }

    /// Takes the answers to questions of a task. What answers no open question is ignored.
    pub(super) fn update(
        &self,
        session: &str,
        id: &str,
        answers: InputResponses,
    ) -> Result<(), ErrorData> {
        self.with(session, id, |task| task.state.answer(answers))
    }

    pub(super) fn cancel(&self, session: &str, id: &str) -> Result<(), ErrorData> {
        self.with(session, id, |task| task.cancel.cancel())
    }

    pub(super) fn end_session(&self, session: &str) {
        lock(&self.by_id).retain(|_, task| task.session != session);
    }

    fn with<T>(
        &self,
        session: &str,
        id: &str,
        work: impl FnOnce(&ServedTask) -> T,
    ) -> Result<T, ErrorData> {
        let tasks = lock(&self.by_id);
        let task = tasks.get(id).filter(|task| task.session == session);
        task.map(work).ok_or_else(|| {
            ErrorData::invalid_params("this client has no task with this taskId", None)
        })
    }
}

impl TaskState {
    /// Takes in what happens to the call, until it ends.
    async fn follow(
        &self,
        mut running: RunningRequest,
        capabilities: Option<ClientCapabilities>,
    ) -> TaskPayload {
        loop {
            match running.next().await {
                RequestStep::Update(HostEvent::Progress { message, .. }) => {
                    self.change(|contents| contents.task.status_message = message);
                }
                RequestStep::Update(_) => {}
                RequestStep::Question(question) => {
                    if questions::is_supported(&question.body, capabilities.as_ref()) {
                        self.change(|contents| contents.ask(question));
                    } else {
                        let _gone = question.reply.send(QuestionReply::Unattended);
                    }
                }
                RequestStep::Ended(ended) => return payload(ended),
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut TaskContents)) {
        let mut contents = lock(&self.0);
        change(&mut contents);
        contents.task.last_updated_at = now();
    }

    /// Keeps how the call ended; its result only if there is room for it.
    fn end(&self, payload: TaskPayload, room: &Arc<Semaphore>) {
        let ended = match payload {
            TaskPayload::Completed { result } => {
                let bytes = u32::try_from(json::size(&result)).unwrap_or(u32::MAX);
                match Arc::clone(room).try_acquire_many_owned(bytes) {
                    Ok(permit) => (TaskPayload::Completed { result }, Some(permit)),
                    Err(_) => (failed(&too_much()), None),
                }
            }
            other => (other, None),
        };
        self.change(|contents| {
            // Dropped, they count as turned away from.
            contents.questions.clear();
            contents.ended = Some(ended);
        });
    }

    fn answer(&self, mut answers: InputResponses) {
        self.change(|contents| {
            for (name, question) in std::mem::take(&mut contents.questions) {
                match answers.remove(&name).filter(Value::is_object) {
                    Some(answer) => questions::answer_question(question, answer),
                    None => contents.questions.push((name, question)),
                }
            }
        });
    }

    fn detailed(&self) -> Result<DetailedTask, ErrorData> {
        let contents = lock(&self.0);
        let payload = match &contents.ended {
            Some((ended, _)) => ended.clone(),
            None if contents.questions.is_empty() => TaskPayload::Working,
            None => {
                let mut input_requests = InputRequests::new();
                for (name, question) in &contents.questions {
                    input_requests
                        .insert(name.clone(), questions::input_request_of(&question.body)?);
                }
                TaskPayload::InputRequired { input_requests }
            }
        };
        Ok(DetailedTask::new(contents.task.clone(), payload))
    }
}

impl TaskContents {
    fn ask(&mut self, question: ClientQuestion) {
        self.asked += 1;
        // A name is used once: a client may ignore one that it has answered.
        self.questions.push((format!("input-{}", self.asked), question));
    }
}

fn payload(ended: Result<ServerResult, ErrorData>) -> TaskPayload {
    match ended {
        Ok(result) => TaskPayload::Completed { result: object(&result) },
        Err(error) => failed(&error),
    }
}

fn failed(error: &ErrorData) -> TaskPayload {
    TaskPayload::Failed { error: object(error) }
}

fn too_much() -> ErrorData {
    let room = show_size(MAX_RESULT_BYTES as u64);
    let message = format!(
        "the call is done, but its result was discarded: results of tasks take more than {room}"
    );
    ErrorData::internal_error(message, None)
}

fn object(value: &impl serde::Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}

fn now() -> String {
    rfc3339(SystemClock.unix().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, ContentBlock};

    use super::super::ClientRegistry;
    use super::*;
    use crate::model::CallId;

    fn call_with(bytes: usize) -> RunningRequest {
        let result = CallToolResult::success(vec![ContentBlock::text("x".repeat(bytes))]);
        let work = async { Ok(ServerResult::CallToolResult(result)) };
        let (clients, call) = (ClientRegistry::new(), CallId("call".into()));
        RunningRequest::start(&clients, call, None, false, |_, _| work)
    }

    fn begin(tasks: &ServedTasks, session: &str, bytes: usize) -> Option<String> {
        let begun = tasks.begin(session, call_with(bytes), None, &CancellationToken::new());
        Some(begun.ok()?.task.task_id)
    }

    #[tokio::test]
    async fn a_session_has_so_many_tasks_and_others_have_theirs() {
        let tasks = ServedTasks::default();
        for _ in 0..MAX_OF_SESSION {
            assert!(begin(&tasks, "one", 1).is_some());
        }
        assert!(begin(&tasks, "one", 1).is_none(), "the call goes on without a task");
        let other = begin(&tasks, "other", 1).unwrap();
        assert!(tasks.get("one", &other).is_err(), "it belongs to another session");
        tasks.end_session("one");
        assert!(begin(&tasks, "one", 1).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn results_beyond_the_room_for_them_are_not_kept_and_their_room_comes_back() {
        let tasks = ServedTasks::default();
        let ended = async |id: &str| loop {
            let task = tasks.get("s", id).unwrap();
            match serde_json::to_value(task).unwrap() {
                task if task["status"] == "working" => tokio::task::yield_now().await,
                task => return task,
            }
        };
        let first = begin(&tasks, "s", MAX_RESULT_BYTES / 2).unwrap();
        assert_eq!(ended(&first).await["status"], "completed");
        let second = begin(&tasks, "s", MAX_RESULT_BYTES / 2).unwrap();
        let task = ended(&second).await;
        assert_eq!(task["status"], "failed", "{task}");
        assert!(task["error"]["message"].as_str().unwrap().contains("64.0 MiB"), "{task}");
        tasks.end_session("s");
        let third = begin(&tasks, "s", MAX_RESULT_BYTES / 2).unwrap();
        assert_eq!(ended(&third).await["status"], "completed");
    }
}
