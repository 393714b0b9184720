//! The host's own inbox: what servers ask passes here on its way to whoever answers.
//!
//! Owns: that one person is asked one thing at a time, whether it is a question of a server or the
//! approval of a call, unless whoever answers takes many at once; how long each call waited for answers; and what the records tell of them —
//! who asked, what kind of thing, and what came of it, never what was said.

pub mod sample;
pub mod visit;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::audit::Masker;
use crate::model::{Ask, CallId, Inbox, NoInbox, Question, Reply, Verdict, map_json};
use crate::util::clock::{Clock, SystemClock};

/// How many questions of one call are recorded.
const RECORDED: usize = 64;

/// Passes questions on, one at a time.
pub struct Questions {
    inbox: Arc<dyn Inbox>,
    masker: Masker,
    clock: Arc<dyn Clock>,
    /// Held while a person is asked.
    floor: tokio::sync::Mutex<()>,
    calls: Mutex<HashMap<CallId, Asked>>,
}

/// What was asked during one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// How long answers were waited for, all together.
    pub waited: Duration,
    /// The questions, in order; the first 64.
    pub questions: Vec<AskedOnce>,
    /// When the call is out of time.
    until: Option<Instant>,
}

/// One question, as the records tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedOnce {
    /// `form`, `url` or `sampling`.
    pub kind: &'static str,
    /// What came of it.
    pub verdict: Verdict,
}

impl Default for Questions {
    fn default() -> Self {
        Self::new(Arc::new(NoInbox), Masker::default())
    }
}

impl Questions {
    /// Passes questions on to `inbox`; known secrets in what a server says are masked.
    pub fn new(inbox: Arc<dyn Inbox>, masker: Masker) -> Self {
        Self {
            inbox,
            masker,
            clock: Arc::new(SystemClock),
            floor: tokio::sync::Mutex::default(),
            calls: Mutex::default(),
        }
    }

    /// The right to ask a person; nobody else does as long as it is held, unless many may.
    pub(super) async fn floor(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if self.inbox.takes_many() { None } else { Some(self.floor.lock().await) }
    }

    /// Takes note of what is asked during a call, which may take so long, until
    /// [`Questions::ended`].
    pub(super) fn begun(&self, call: &CallId, total: Duration) {
        let until = self.clock.now().checked_add(total);
        self.calls().insert(call.clone(), Asked { until, ..Asked::default() });
    }

    /// What was asked during a call, which has ended.
    pub(super) fn ended(&self, call: &CallId) -> Asked {
        self.calls().remove(call).unwrap_or_default()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<CallId, Asked>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn masked(&self, ask: Ask) -> Ask {
        let mask = |text: &str| self.masker.text(text);
        match ask {
            // The choices of a form and an address have to stay what they are to be of use.
            Ask::Form { message, schema } => Ask::Form { message: mask(&message), schema },
            Ask::Open { message, url } => Ask::Open { message: mask(&message), url },
            Ask::Sample { params } => Ask::Sample { params: map_json(&params, &mask) },
        }
    }
}

#[async_trait]
impl Inbox for Questions {
    async fn ask(&self, question: Question) -> Reply {
        let mut note = Note {
            questions: self,
            call: question.call.clone(),
            kind: question.ask.kind(),
            since: self.clock.now(),
            verdict: Verdict::Cancelled,
        };
        let _the_floor = self.floor().await;
        let until = question.call.as_ref().and_then(|call| self.calls().get(call)?.until);
        let left = until.map(|until| until.saturating_duration_since(self.clock.now()));
        let question = Question { ask: self.masked(question.ask), left, ..question };
        let reply = self.inbox.ask(question).await;
        note.verdict = reply.verdict();
        reply
    }
}

/// Written down when it is dropped: a question may also be taken back.
struct Note<'a> {
    questions: &'a Questions,
    call: Option<CallId>,
    kind: &'static str,
    since: Instant,
    verdict: Verdict,
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        let Some(call) = &self.call else { return };
        let waited = self.questions.clock.now().saturating_duration_since(self.since);
        if let Some(asked) = self.questions.calls().get_mut(call) {
            asked.waited += waited;
            if asked.questions.len() < RECORDED {
                asked.questions.push(AskedOnce { kind: self.kind, verdict: self.verdict });
            }
        }
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
    impl Inbox for Slow {
        async fn ask(&self, _question: Question) -> Reply {
            let enter = |asking: &mut (usize, usize)| {
                asking.0 += 1;
                asking.1 = asking.1.max(asking.0);
            };
            enter(&mut self.asking.lock().unwrap());
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.asking.lock().unwrap().0 -= 1;
            Reply::Decline
        }
    }

    fn question(call: Option<&CallId>) -> Question {
        Question {
            server: "s".to_owned(),
            call: call.cloned(),
            round: None,
            left: None,
            ask: Ask::Form { message: "who?".to_owned(), schema: json!({}) },
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_question_is_asked_at_a_time() {
        let slow = Arc::new(Slow::default());
        let questions = Questions::new(Arc::clone(&slow) as _, Masker::default());
        let asked = (0..3).map(|_| questions.ask(question(None)));
        futures_util::future::join_all(asked).await;
        assert_eq!(slow.asking.lock().unwrap().1, 1);
    }

    /// Takes as many as come.
    #[derive(Default)]
    struct Wide(Mutex<Vec<Option<Duration>>>);

    #[async_trait]
    impl Inbox for Wide {
        async fn ask(&self, question: Question) -> Reply {
            self.0.lock().unwrap().push(question.left);
            std::future::pending().await
        }

        fn takes_many(&self) -> bool {
            true
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_takes_many_is_asked_at_once_and_told_how_long_there_is() {
        let wide = Arc::new(Wide::default());
        let questions = Questions::new(Arc::clone(&wide) as _, Masker::default());
        let call = CallId("1".to_owned());
        questions.begun(&call, Duration::from_hours(1));
        let asked = [question(Some(&call)), question(None)].map(|one| questions.ask(one));
        let all = futures_util::future::join_all(asked);
        assert!(tokio::time::timeout(Duration::from_millis(1), all).await.is_err());
        let left = wide.0.lock().unwrap().clone();
        assert!(left[0].is_some_and(|left| left > Duration::from_mins(50)), "{left:?}");
        assert_eq!(left[1..], [None]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_call_is_told_what_was_asked_during_it() {
        let questions = Questions::new(Arc::new(Slow::default()), Masker::default());
        let (call, other) = (CallId("1".to_owned()), CallId("2".to_owned()));
        questions.begun(&call, Duration::from_mins(5));
        questions.ask(question(Some(&call))).await;
        let taken_back =
            tokio::time::timeout(Duration::from_millis(10), questions.ask(question(Some(&call))));
        assert!(taken_back.await.is_err());
        // Of a call that is not under way nothing is kept.
        questions.ask(question(Some(&other))).await;
        let verdicts: Vec<Verdict> =
            questions.ended(&call).questions.iter().map(|asked| asked.verdict).collect();
        assert_eq!(verdicts, [Verdict::Declined, Verdict::Cancelled]);
        assert_eq!(questions.ended(&other), Asked::default());
        assert_eq!(questions.ended(&call), Asked::default());
    }
}
