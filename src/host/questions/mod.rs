//! The host's inbox: questions of servers on their way to the front end.
//!
//! Owns: that one person is asked one thing at a time, whether it is a question of a server or the
//! approval of a call, unless the front end takes many at once; how long each call waited for a
//! person, for its own questions and those of calls it makes; and what the records contain about
//! them — who asked, the kind of question, and the outcome, never the content.
//! Also the answer that a person writes in a model's place, and warnings about a URL to visit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Value, json};
use url::Url;

use super::permits::CallPermit;
use crate::audit::Masker;
use crate::model::{
    CallId, NoQuestionHandler, Question, QuestionBody, QuestionHandler, QuestionOutcome,
    QuestionRecord, QuestionReply,
};
use crate::net::address;
use crate::util::clock::{Clock, SystemClock};
use crate::util::json::map_json;
use turns::{CallTurns, TurnGuard};

mod turns;

const RECORDED: usize = 64;

/// Passes questions on, one at a time.
pub struct QuestionQueue {
    inbox: Arc<dyn QuestionHandler>,
    masker: Masker,
    clock: Arc<dyn Clock>,
    /// Held while a person is asked.
    prompt_lock: tokio::sync::Mutex<()>,
    calls: Mutex<HashMap<CallId, CallQuestions>>,
    turns: CallTurns,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallQuestions {
    /// How long a person was waited for; questions that were open at once count once.
    pub waited: Duration,
    /// The questions, in order; the first 64.
    pub questions: Vec<QuestionRecord>,
    deadline: Option<Instant>,
    /// The call that this one is part of; it waits as long.
    parent: Option<CallId>,
    /// How many answers are waited for now, and since when.
    open: u32,
    open_since: Option<Instant>,
}

impl CallQuestions {
    fn begin_wait(&mut self, now: Instant) {
        self.open += 1;
        self.open_since.get_or_insert(now);
    }

    fn end_wait(&mut self, now: Instant) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0
            && let Some(since) = self.open_since.take()
        {
            self.waited += now.saturating_duration_since(since);
        }
    }
}

impl Default for QuestionQueue {
    fn default() -> Self {
        Self::new(Arc::new(NoQuestionHandler), Masker::default())
    }
}

impl QuestionQueue {
    /// Passes questions on to `inbox`; known secrets in what a server says are masked.
    pub fn new(inbox: Arc<dyn QuestionHandler>, masker: Masker) -> Self {
        Self {
            inbox,
            masker,
            clock: Arc::new(SystemClock),
            prompt_lock: tokio::sync::Mutex::default(),
            calls: Mutex::default(),
            turns: CallTurns::default(),
        }
    }

    /// The exclusive right to ask a person; `None` where several questions may be open at once.
    pub(super) async fn lock_prompt(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if self.inbox.allows_concurrent() { None } else { Some(self.prompt_lock.lock().await) }
    }

    /// Takes note of what is asked during a call, which may take so long and may be part of another,
    /// until [`QuestionQueue::end_call`].
    pub(super) fn begin_call(&self, call: &CallId, parent: Option<&CallId>, total: Duration) {
        let deadline = self.clock.now().checked_add(total);
        let parent = parent.cloned();
        self.calls()
            .insert(call.clone(), CallQuestions { deadline, parent, ..CallQuestions::default() });
    }

    /// Counts the time until the guard is dropped as waiting for a person, for this call and those
    /// it is part of.
    pub(super) fn wait_for_person(&self, call: Option<&CallId>) -> PersonWait<'_> {
        let now = self.clock.now();
        let mut calls = self.calls();
        let mut waiting = Vec::new();
        let mut next = call.cloned();
        while let Some(id) = next.take() {
            let Some(entry) = calls.get_mut(&id) else { break };
            entry.begin_wait(now);
            next.clone_from(&entry.parent);
            waiting.push(id);
        }
        PersonWait { questions: self, waiting, since: now }
    }

    /// Keeps the permit of a call while it runs; while it waits for an answer others may run.
    pub(super) fn hold_turn(&self, call: &CallId, permit: CallPermit) -> TurnGuard<'_> {
        self.turns.hold(call, permit)
    }

    /// What was asked during a call, which has ended.
    pub(super) fn end_call(&self, call: &CallId) -> CallQuestions {
        let mut ended = self.calls().remove(call).unwrap_or_default();
        // A question that is still open is taken back with its call.
        ended.open = ended.open.min(1);
        ended.end_wait(self.clock.now());
        ended
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<CallId, CallQuestions>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn masked(&self, ask: QuestionBody) -> QuestionBody {
        let mask = |text: &str| self.masker.text(text);
        match ask {
            // The choices of a form and an address have to stay what they are to be of use.
            QuestionBody::Form { message, schema } => {
                QuestionBody::Form { message: mask(&message), schema }
            }
            QuestionBody::Url { message, url } => {
                QuestionBody::Url { message: mask(&message), url }
            }
            QuestionBody::Sampling { params } => {
                QuestionBody::Sampling { params: map_json(&params, &mask) }
            }
        }
    }
}

#[async_trait]
impl QuestionHandler for QuestionQueue {
    fn offers_roots(&self) -> bool {
        self.inbox.offers_roots()
    }

    fn asks_callers(&self) -> bool {
        self.inbox.asks_callers()
    }

    async fn list_roots(&self, call: Option<&CallId>, key: Option<&str>) -> Vec<Value> {
        self.inbox.list_roots(call, key).await
    }

    async fn ask(&self, question: Question) -> QuestionReply {
        let mut note = QuestionRecordGuard {
            questions: self,
            call: question.call.clone(),
            kind: question.body.kind(),
            verdict: QuestionOutcome::Cancelled,
        };
        let call = question.call.clone();
        if let Some(call) = &call {
            self.turns.pause(call);
        }
        let waits = self.wait_for_person(call.as_ref());
        let _prompt_lock = self.lock_prompt().await;
        let until = question.call.as_ref().and_then(|call| self.calls().get(call)?.deadline);
        let left = until.map(|until| until.saturating_duration_since(self.clock.now()));
        let question = Question { body: self.masked(question.body), time_left: left, ..question };
        let reply = self.inbox.ask(question).await;
        note.verdict = reply.outcome();
        drop((note, waits));
        if let Some(call) = &call {
            self.turns.resume(call).await;
        }
        reply
    }
}

pub(super) struct PersonWait<'a> {
    questions: &'a QuestionQueue,
    /// The calls whose time does not count meanwhile.
    waiting: Vec<CallId>,
    since: Instant,
}

impl PersonWait<'_> {
    /// The outermost of the calls that wait.
    pub(super) fn outermost(&self) -> Option<&CallId> {
        self.waiting.last()
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.questions.clock.now().saturating_duration_since(self.since)
    }
}

impl Drop for PersonWait<'_> {
    fn drop(&mut self) {
        let now = self.questions.clock.now();
        let mut calls = self.questions.calls();
        for id in &self.waiting {
            if let Some(entry) = calls.get_mut(id) {
                entry.end_wait(now);
            }
        }
    }
}

/// Written down when it is dropped: a question may also be taken back.
struct QuestionRecordGuard<'a> {
    questions: &'a QuestionQueue,
    call: Option<CallId>,
    kind: &'static str,
    verdict: QuestionOutcome,
}

impl Drop for QuestionRecordGuard<'_> {
    fn drop(&mut self) {
        let Some(call) = &self.call else { return };
        if let Some(entry) = self.questions.calls().get_mut(call)
            && entry.questions.len() < RECORDED
        {
            entry.questions.push(QuestionRecord { kind: self.kind, verdict: self.verdict });
        }
    }
}

/// How many messages of a conversation are shown, the newest of them.
const MESSAGES: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationLine<'a> {
    Role(&'a str),
    Text(&'a str),
    /// Something that is not text; its kind.
    NonText(&'a str),
    /// Something of ours about it.
    Note(String),
}

/// The end of a conversation (`sampling/createMessage`), in the order in which it is read.
pub fn conversation(params: &Value) -> Vec<ConversationLine<'_>> {
    let mut all = Vec::new();
    if let Some(system) = params.get("systemPrompt").and_then(Value::as_str) {
        all.extend([ConversationLine::Role("system"), ConversationLine::Text(system)]);
    }
    let messages = params.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let hidden = messages.len().saturating_sub(MESSAGES);
    if hidden > 0 {
        all.push(ConversationLine::Note(format!("… {hidden} earlier messages")));
    }
    for message in messages.iter().skip(hidden) {
        all.push(ConversationLine::Role(
            message.get("role").and_then(Value::as_str).unwrap_or("?"),
        ));
        let content = message.get("content").unwrap_or(&Value::Null);
        let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
        all.extend(blocks.iter().take(MESSAGES).map(|block| {
            match block.get("text").and_then(Value::as_str) {
                Some(text) => ConversationLine::Text(text),
                None => ConversationLine::NonText(
                    block.get("type").and_then(Value::as_str).unwrap_or("something"),
                ),
            }
        }));
    }
    let count = |key: &str| params.get(key).and_then(Value::as_array).map(Vec::len);
    if let Some(tools @ 1..) = count("tools") {
        all.push(ConversationLine::Note(format!(
            "{tools} tools are offered to the model; a person answers in text"
        )));
    }
    if let Some(most) = params.get("maxTokens").and_then(Value::as_u64) {
        all.push(ConversationLine::Note(format!("at most {most} tokens")));
    }
    all
}

pub fn text_result(text: &str) -> Value {
    json!({
        "role": "assistant",
        "content": { "type": "text", "text": text },
        "model": "human",
        "stopReason": "endTurn",
    })
}

/// What an address is, for a person who has to decide whether to open it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlReview {
    pub host: Option<String>,
    pub warnings: Vec<String>,
}

impl UrlReview {
    /// Looks at an address, without contacting it.
    pub fn of(url: &str) -> Self {
        let Ok(parsed) = Url::parse(url) else {
            return Self { host: None, warnings: vec!["this is not a URL".to_owned()] };
        };
        let host = parsed.host_str().unwrap_or_default();
        let mut odd = Vec::new();
        if !parsed.username().is_empty() || parsed.password().is_some() {
            odd.push(format!("the part before the @ is a user name; the host is {host}"));
        }
        if parsed.scheme() != "https" {
            odd.push("the connection is not encrypted (http)".to_owned());
        }
        if host.split('.').any(|label| label.starts_with("xn--")) {
            odd.push("the host name has letters that may look like others".to_owned());
        }
        if address::is_local_or_private(&parsed) {
            odd.push("this address is on this machine or in its network".to_owned());
        }
        Self { host: Some(address::host_and_port(&parsed)), warnings: odd }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Answers when it is let, and counts who asks at once.
    #[derive(Default)]
    struct Slow {
        asking: Mutex<(usize, usize)>,
    }

    #[async_trait]
    impl QuestionHandler for Slow {
        async fn ask(&self, _question: Question) -> QuestionReply {
            let enter = |asking: &mut (usize, usize)| {
                asking.0 += 1;
                asking.1 = asking.1.max(asking.0);
            };
            enter(&mut self.asking.lock().unwrap());
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.asking.lock().unwrap().0 -= 1;
            QuestionReply::Decline
        }
    }

    fn question(call: Option<&CallId>) -> Question {
        Question {
            server: "s".to_owned(),
            call: call.cloned(),
            round: None,
            key: None,
            time_left: None,
            body: QuestionBody::Form { message: "who?".to_owned(), schema: json!({}) },
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_question_is_asked_at_a_time() {
        let slow = Arc::new(Slow::default());
        let questions = QuestionQueue::new(Arc::clone(&slow) as _, Masker::default());
        let replies = (0..3).map(|_| questions.ask(question(None)));
        futures_util::future::join_all(replies).await;
        assert_eq!(slow.asking.lock().unwrap().1, 1);
    }

    /// Takes as many as come.
    #[derive(Default)]
    struct Wide(Mutex<Vec<Option<Duration>>>);

    #[async_trait]
    impl QuestionHandler for Wide {
        async fn ask(&self, question: Question) -> QuestionReply {
            self.0.lock().unwrap().push(question.time_left);
            std::future::pending().await
        }

        fn allows_concurrent(&self) -> bool {
            true
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_concurrent_inbox_is_asked_at_once_and_told_the_time_limit() {
        let wide = Arc::new(Wide::default());
        let questions = QuestionQueue::new(Arc::clone(&wide) as _, Masker::default());
        let call = CallId("1".into());
        questions.begin_call(&call, None, Duration::from_hours(1));
        let replies = [question(Some(&call)), question(None)].map(|one| questions.ask(one));
        let all = futures_util::future::join_all(replies);
        assert!(tokio::time::timeout(Duration::from_millis(1), all).await.is_err());
        let times = wide.0.lock().unwrap().clone();
        assert!(times[0].is_some_and(|time| time > Duration::from_mins(50)), "{times:?}");
        assert_eq!(times[1..], [None]);
    }

    /// Continues when it is notified.
    struct SteppedClock {
        start: Instant,
        passed: Mutex<Duration>,
    }

    impl SteppedClock {
        fn advance(&self, by: Duration) {
            *self.passed.lock().unwrap() += by;
        }
    }

    impl Clock for SteppedClock {
        fn now(&self) -> Instant {
            self.start + *self.passed.lock().unwrap()
        }

        fn unix(&self) -> Duration {
            *self.passed.lock().unwrap()
        }
    }

    #[test]
    fn a_person_is_waited_for_once_and_by_the_calls_around_too() {
        let clock = Arc::new(SteppedClock { start: SystemClock.now(), passed: Mutex::default() });
        let questions =
            QuestionQueue { clock: Arc::clone(&clock) as _, ..QuestionQueue::default() };
        let (outer, inner) = (CallId("outer".into()), CallId("inner".into()));
        questions.begin_call(&outer, None, Duration::from_mins(5));
        questions.begin_call(&inner, Some(&outer), Duration::from_mins(5));
        let first = questions.wait_for_person(Some(&inner));
        clock.advance(Duration::from_secs(2));
        let second = questions.wait_for_person(Some(&outer));
        clock.advance(Duration::from_secs(3));
        assert_eq!(first.elapsed(), Duration::from_secs(5));
        drop(first);
        clock.advance(Duration::from_secs(4));
        assert_eq!(questions.end_call(&inner).waited, Duration::from_secs(5));
        drop(second);
        clock.advance(Duration::from_secs(1));
        assert_eq!(questions.end_call(&outer).waited, Duration::from_secs(9));
    }

    #[tokio::test(start_paused = true)]
    async fn each_call_is_told_what_was_asked_during_it() {
        let questions = QuestionQueue::new(Arc::new(Slow::default()), Masker::default());
        let (call, other) = (CallId("1".into()), CallId("2".into()));
        questions.begin_call(&call, None, Duration::from_mins(5));
        questions.ask(question(Some(&call))).await;
        let taken_back =
            tokio::time::timeout(Duration::from_millis(10), questions.ask(question(Some(&call))));
        assert!(taken_back.await.is_err());
        // Of a call that is not under way nothing is kept.
        questions.ask(question(Some(&other))).await;
        let verdicts: Vec<QuestionOutcome> =
            questions.end_call(&call).questions.iter().map(|record| record.verdict).collect();
        assert_eq!(verdicts, [QuestionOutcome::Declined, QuestionOutcome::Cancelled]);
        assert_eq!(questions.end_call(&other), CallQuestions::default());
        assert_eq!(questions.end_call(&call), CallQuestions::default());
    }
}
