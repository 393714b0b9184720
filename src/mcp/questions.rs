//! The open questions of one server: which requests wait on each, and when one ends.

use std::collections::{HashMap, VecDeque};

use tokio_util::sync::CancellationToken;

use super::responder::needs_person;
use crate::model::CallId;

/// How many questions of a server may wait for their answers to be taken.
const MAX_OPEN: usize = 100;
const LONGEST_ID: usize = 1024;
const MAX_PAGES: usize = 64;

/// A question of the server whose answer is not handed over yet.
#[derive(Debug, Clone)]
pub struct OpenQuestion {
    pub call: Option<CallId>,
    pub cancelled: CancellationToken,
    /// Whether no request of ours was waiting when it came.
    pub is_unrelated: bool,
    pub is_withdrawn: bool,
    requests: Vec<i64>,
    waits_for_person: bool,
}

impl OpenQuestion {
    /// A question that came while `requests` were waiting.
    pub fn new(method: &str, requests: Vec<i64>, call: Option<CallId>) -> Self {
        Self {
            call,
            cancelled: CancellationToken::new(),
            is_unrelated: requests.is_empty(),
            is_withdrawn: false,
            requests,
            waits_for_person: needs_person(method),
        }
    }
}

#[derive(Debug, Default)]
pub struct QuestionTable {
    open: HashMap<String, OpenQuestion>,
    pages: VecDeque<String>,
}

impl QuestionTable {
    /// Takes a question in, or says why not.
    pub fn open(&mut self, key: String, question: OpenQuestion) -> Result<(), &'static str> {
        if key.len() > LONGEST_ID {
            return Err("its id is too long");
        }
        if self.open.len() >= MAX_OPEN {
            return Err("too many are waiting for the server to read their responses");
        }
        if self.open.contains_key(&key) {
            return Err("its id is in use");
        }
        self.open.insert(key, question);
        Ok(())
    }

    pub fn get(&self, key: &str) -> Option<OpenQuestion> {
        self.open.get(key).cloned()
    }

    /// Forgets a question; the requests that were waiting for it.
    pub fn close(&mut self, key: &str) -> Vec<i64> {
        self.open.remove(key).map(|question| question.requests).unwrap_or_default()
    }

    pub fn requests(&self, key: &str) -> &[i64] {
        self.open.get(key).map_or(&[], |question| &question.requests)
    }

    /// Whether a call that may be waiting for the answer to this question waits for the answer to
    /// another one, of which it is certain.
    pub fn is_behind_another(&self, key: &str) -> bool {
        let requests = self.requests(key);
        let is_certain = |question: &OpenQuestion| {
            question.call.is_some() && question.requests.iter().any(|id| requests.contains(id))
        };
        self.open.iter().any(|(other, question)| other != key && is_certain(question))
    }

    /// The server does not want the answer any more.
    pub fn withdraw(&mut self, key: &str) {
        if let Some(question) = self.open.get_mut(key) {
            question.is_withdrawn = true;
            question.cancelled.cancel();
        }
    }

    pub fn request_ended(&mut self, request: i64) {
        for question in self.open.values_mut() {
            let before = question.requests.len();
            question.requests.retain(|id| *id != request);
            if before > 0 && question.requests.is_empty() {
                question.cancelled.cancel();
            }
        }
    }

    /// Cancels all open questions, because the connection has ended.
    pub fn close_all(&mut self) {
        for question in self.open.values() {
            question.cancelled.cancel();
        }
    }

    pub fn waits_for_person(&self, request: i64) -> bool {
        self.open.values().any(|q| q.waits_for_person && q.requests.contains(&request))
    }

    pub fn remember_page(&mut self, id: &str) {
        if id.len() <= LONGEST_ID {
            self.pages.push_back(id.to_owned());
            if self.pages.len() > MAX_PAGES {
                self.pages.pop_front();
            }
        }
    }

    /// Whether a page that is reported as done is one of those remembered; forgets it.
    pub fn take_page(&mut self, id: &str) -> bool {
        let before = self.pages.len();
        self.pages.retain(|page| page != id);
        self.pages.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(requests: &[i64]) -> OpenQuestion {
        OpenQuestion::new("elicitation/create", requests.to_vec(), None)
    }

    #[test]
    fn a_question_is_over_when_all_that_wait_for_it_have_ended() {
        let mut questions = QuestionTable::default();
        questions.open("1".into(), question(&[7, 8])).unwrap();
        questions.open("2".into(), question(&[])).unwrap();
        let over = |questions: &QuestionTable, key: &str| {
            questions.get(key).unwrap().cancelled.is_cancelled()
        };
        assert!(
            questions.waits_for_person(7)
                && questions.waits_for_person(8)
                && !questions.waits_for_person(9)
        );
        questions.request_ended(7);
        assert!(!over(&questions, "1"));
        questions.request_ended(8);
        assert!(over(&questions, "1") && !over(&questions, "2"));
        assert!(!questions.waits_for_person(8));
        questions.close_all();
        assert!(over(&questions, "2"));
    }

    #[test]
    fn what_the_server_takes_back_is_over() {
        let mut questions = QuestionTable::default();
        questions.open("\"a\"".into(), question(&[7])).unwrap();
        questions.withdraw("\"b\"");
        questions.withdraw("\"a\"");
        let pending = questions.get("\"a\"").unwrap();
        assert!(pending.is_withdrawn && pending.cancelled.is_cancelled());
        assert_eq!(questions.close("\"a\""), [7]);
        assert!(questions.get("\"a\"").is_none());
    }

    #[test]
    fn a_question_comes_after_that_of_a_call_it_may_belong_to() {
        let mut questions = QuestionTable::default();
        let call = Some(CallId("a".into()));
        questions.open("1".into(), OpenQuestion::new("elicitation/create", vec![7], call)).unwrap();
        questions.open("2".into(), question(&[7, 8])).unwrap();
        questions.open("3".into(), question(&[8, 9])).unwrap();
        assert!(questions.is_behind_another("2"));
        assert!(!questions.is_behind_another("1") && !questions.is_behind_another("3"));
        questions.close("1");
        assert!(!questions.is_behind_another("2"));
        questions.request_ended(7);
        assert_eq!(questions.requests("2"), [8]);
    }

    #[test]
    fn a_ping_is_no_reason_to_wait_longer() {
        let mut questions = QuestionTable::default();
        questions.open("1".into(), OpenQuestion::new("ping", vec![7], None)).unwrap();
        assert!(!questions.waits_for_person(7));
    }

    #[test]
    fn questions_and_pages_are_bounded() {
        let mut questions = QuestionTable::default();
        for n in 0..MAX_OPEN {
            questions.open(n.to_string(), question(&[])).unwrap();
        }
        assert!(questions.open("more".into(), question(&[])).is_err());
        assert!(questions.open("0".into(), question(&[])).is_err());
        for n in 0..1000 {
            questions.remember_page(&n.to_string());
        }
        assert!(questions.take_page("999") && !questions.take_page("999"));
        assert!(!questions.take_page("0"));
    }
}
