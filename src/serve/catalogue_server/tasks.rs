//! Calls whose clients come back for the result: tasks, as the extension
//! `io.modelcontextprotocol/tasks` of revision 2026-07-28 has them (SEP-2663).
//!
//! A call becomes a task when the server behind it makes it one and its client supports tasks. Owns:
//! the tasks from their creation to the end of their lifetime, what their clients see of them, and that
//! a task is visible only to the session that created it. Never does: contact the server.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rmcp::model::{
    CallToolResult, ClientCapabilities, CreateTaskResult, ErrorData, GetTaskResult, InputResponses,
    ServerResult,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::running_request::{RequestStep, RunningRequest};
use super::{mixed_up, questions};
use crate::model::{HostEvent, QuestionReply};
use crate::serve::shared_room::SharedRoom;
use crate::util::json;
use crate::util::lock::lock;
use crate::util::units::{show_size, show_span};

/// How long a call may take as a task, and how long its result is kept.
const TIME_TO_LIVE: Duration = Duration::from_hours(1);
const POLL_INTERVAL_MS: u64 = 500;
const MAX_OF_SESSION: usize = 64;
const MAX_TASKS: usize = 1_024;
const MAX_RESULT_BYTES: usize = 64 << 20;

pub(super) struct ServedTasks {
    by_session: Mutex<HashMap<String, SessionTasks>>,
    places: SharedRoom,
    /// The room for results, in bytes.
    results: SharedRoom,
}

impl Default for ServedTasks {
    fn default() -> Self {
        Self {
            by_session: Mutex::default(),
            places: SharedRoom::new((MAX_TASKS, MAX_OF_SESSION)),
            results: SharedRoom::new((MAX_RESULT_BYTES, MAX_RESULT_BYTES)),
        }
    }
}

struct SessionTasks {
    manager: TaskManager,
    places: SharedRoom,
    /// Ends the calls of its tasks.
    ended: CancellationToken,
    _ended_when_dropped: DropGuard,
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
        let mut sessions = lock(&self.by_session);
        let tasks = sessions.entry(session.to_owned()).or_insert_with(|| {
            let (ended, places) = (stop.child_token(), self.places.of_one_token());
            let guard = ended.clone().drop_guard();
            let manager = TaskManager::new();
            SessionTasks { manager, places, ended, _ended_when_dropped: guard }
        });
        let Some(place) = tasks.places.try_take(1) else { return Err(running) };
        let options = TaskOptions::new()
            .with_ttl_ms(u64::try_from(TIME_TO_LIVE.as_millis()).ok())
            .with_poll_interval_ms(POLL_INTERVAL_MS);
        let (ended, results) = (tasks.ended.clone(), self.results.clone());
        let manager = tasks.manager.clone();
        let task = tasks.manager.spawn(options, |context| {
            Box::pin(async move {
                let followed = timeout(TIME_TO_LIVE, follow(&context, running, capabilities));
                let outcome = match ended.run_until_cancelled(followed).await {
                    None => Err(TaskExit::Cancelled),
                    Some(Err(_elapsed)) => Err(too_long().into()),
                    Some(Ok(outcome)) => outcome,
                };
                let bytes = |result| usize::try_from(json::size(result)).unwrap_or(usize::MAX);
                let room = outcome.as_ref().ok().map(|result| results.try_take(bytes(result)));
                let is_kept = !matches!(room, Some(None));
                // What is kept of it takes its place as long.
                tokio::spawn(ended.run_until_cancelled_owned(async move {
                    // The manager forgets what is out of date only when it is used.
                    tokio::time::sleep(TIME_TO_LIVE + Duration::from_secs(1)).await;
                    let _running = manager.running_task_count();
                    drop((place, room));
                }));
                if is_kept { outcome } else { Err(too_much().into()) }
            })
        });
        Ok(CreateTaskResult::new(task))
    }

    pub(super) fn get(&self, session: &str, id: &str) -> Result<GetTaskResult, ErrorData> {
        self.manager(session).get_task(id).map(GetTaskResult::new)
    }

    /// Takes the answers to questions of a task. What answers no open question is ignored.
    pub(super) fn update(
        &self,
        session: &str,
        id: &str,
        answers: InputResponses,
    ) -> Result<(), ErrorData> {
        let answers = answers.into_iter().filter(|(_, answer)| answer.is_object());
        self.manager(session).update_task(id, answers)
    }

    pub(super) fn cancel(&self, session: &str, id: &str) -> Result<(), ErrorData> {
        self.manager(session).cancel_task(id)
    }

    pub(super) fn end_session(&self, session: &str) {
        lock(&self.by_session).remove(session);
    }

    /// The tasks of a session; of one that has none, no task is known.
    fn manager(&self, session: &str) -> TaskManager {
        let sessions = lock(&self.by_session);
        sessions.get(session).map(|tasks| tasks.manager.clone()).unwrap_or_default()
    }
}

/// Takes in what happens to the call, until it ends or its client cancels the task.
async fn follow(
    task: &TaskContext,
    mut running: RunningRequest,
    capabilities: Option<ClientCapabilities>,
) -> Result<CallToolResult, TaskExit> {
    let (mut pending, mut asked) = (FuturesUnordered::new(), 0);
    loop {
        let step = tokio::select! {
            () = task.cancelled() => return Err(TaskExit::Cancelled),
            Some(()) = pending.next(), if !pending.is_empty() => continue,
            step = running.next() => step,
        };
        match step {
            RequestStep::Update(HostEvent::Progress { message: Some(message), .. }) => {
                task.set_status_message(message);
            }
            RequestStep::Update(_) => {}
            RequestStep::Question(question) => {
                if questions::is_supported(&question.body, capabilities.as_ref()) {
                    // A name is used once: a client may ignore one that it has answered.
                    asked += 1;
                    let name = format!("input-{asked}");
                    let request = questions::input_request_of(&question.body)?;
                    pending.push(async move {
                        if let Ok(answer) = task.request_input(name, request).await {
                            questions::answer_question(question, answer);
                        }
                    });
                } else {
                    let _gone = question.reply.send(QuestionReply::Unattended);
                }
            }
            RequestStep::Ended(ended) => {
                let ServerResult::CallToolResult(result) = ended? else {
                    return Err(mixed_up().into());
                };
                return Ok(result);
            }
        }
    }
}

fn too_long() -> ErrorData {
    let reason = format!("the call took longer than {}", show_span(TIME_TO_LIVE));
    ErrorData::internal_error(reason, None)
}

fn too_much() -> ErrorData {
    let room = show_size(MAX_RESULT_BYTES as u64);
    let message = format!(
        "the call is done, but its result was discarded: results of tasks take more than {room}"
    );
    ErrorData::internal_error(message, None)
}

#[cfg(test)]
mod tests {
    use rmcp::model::ContentBlock;

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
