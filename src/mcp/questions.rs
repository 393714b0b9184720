//! The open questions of one server: which of our requests wait for each, and when one is over.
//!
//! Owns: the bookkeeping, without any waiting. A question is over when it is answered, when the
//! server takes it back, or when every request that may be waiting for its answer has ended.

use std::collections::{HashMap, VecDeque};

use tokio_util::sync::CancellationToken;

use super::respondent::is_for_a_person;
use crate::model::CallId;

/// How many questions of a server may wait for their answers to be taken.
const MOST: usize = 100;
/// The longest id of a question, as JSON.
const LONGEST_ID: usize = 1024;
/// How many pages are remembered that a server asked to open.
const PAGES: usize = 64;

/// One open question.
#[derive(Debug, Clone)]
pub struct OpenQuestion {
    /// The call that waits for the answer, when it is certain which.
    pub call: Option<CallId>,
    /// Fires when nobody waits for the answer any more.
    pub over: CancellationToken,
    /// Whether no request of ours was waiting when it came.
    pub alone: bool,
    /// Whether the server took it back.
    pub withdrawn: bool,
    /// The requests that may be waiting for it.
    requests: Vec<i64>,
    /// Whether those who wait for it wait for a person.
    takes_time: bool,
}

impl OpenQuestion {
    /// A question that came while `requests` were waiting.
    pub fn new(method: &str, requests: Vec<i64>, call: Option<CallId>) -> Self {
        Self {
            call,
            over: CancellationToken::new(),
            alone: requests.is_empty(),
            withdrawn: false,
            requests,
            takes_time: is_for_a_person(method),
        }
    }
}

/// All open questions, by their ids as JSON.
#[derive(Debug, Default)]
pub struct Questions {
    open: HashMap<String, OpenQuestion>,
    /// Ids of the pages that the server asked to open, oldest first.
    pages: VecDeque<String>,
}

impl Questions {
    /// Takes note of a question.
    ///
    /// # Errors
    /// Why it is not taken: a server that asks without listening must not cost more and more.
    pub fn open(&mut self, key: String, question: OpenQuestion) -> Result<(), &'static str> {
        if key.len() > LONGEST_ID {
            return Err("its id is too long");
        }
        if self.open.len() >= MOST {
            return Err("too many are waiting for the server to read their answers");
        }
        if self.open.contains_key(&key) {
            return Err("its id is in use");
        }
        self.open.insert(key, question);
        Ok(())
    }

    /// The question with this id.
    pub fn get(&self, key: &str) -> Option<OpenQuestion> {
        self.open.get(key).cloned()
    }

    /// Forgets a question; the requests that were waiting for it.
    pub fn close(&mut self, key: &str) -> Vec<i64> {
        self.open.remove(key).map(|question| question.requests).unwrap_or_default()
    }

    /// The server does not want the answer any more.
    pub fn withdraw(&mut self, key: &str) {
        if let Some(question) = self.open.get_mut(key) {
            question.withdrawn = true;
            question.over.cancel();
        }
    }

    /// A request of ours has ended, and with it what only that request was waiting for.
    pub fn ended(&mut self, request: i64) {
        for question in self.open.values_mut() {
            let before = question.requests.len();
            question.requests.retain(|id| *id != request);
            if before > 0 && question.requests.is_empty() {
                question.over.cancel();
            }
        }
    }

    /// The connection has ended.
    pub fn end(&mut self) {
        for question in self.open.values() {
            question.over.cancel();
        }
    }

    /// Whether a request may be waiting for a person.
    pub fn delay(&self, request: i64) -> bool {
        self.open.values().any(|q| q.takes_time && q.requests.contains(&request))
    }

    /// Remembers a page.
    pub fn remember_page(&mut self, id: &str) {
        if id.len() <= LONGEST_ID {
            self.pages.push_back(id.to_owned());
            if self.pages.len() > PAGES {
                self.pages.pop_front();
            }
        }
    }

    /// Whether a page that is said to be done is one of those remembered; it is not any more then.
    pub fn is_page_done(&mut self, id: &str) -> bool {
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
        let mut questions = Questions::default();
        questions.open("1".into(), question(&[7, 8])).unwrap();
        questions.open("2".into(), question(&[])).unwrap();
        let over =
            |questions: &Questions, key: &str| questions.get(key).unwrap().over.is_cancelled();
        assert!(questions.delay(7) && questions.delay(8) && !questions.delay(9));
        questions.ended(7);
        assert!(!over(&questions, "1"));
        questions.ended(8);
        assert!(over(&questions, "1") && !over(&questions, "2"));
        assert!(!questions.delay(8));
        questions.end();
        assert!(over(&questions, "2"));
    }

    #[test]
    fn what_the_server_takes_back_is_over() {
        let mut questions = Questions::default();
        questions.open("\"a\"".into(), question(&[7])).unwrap();
        questions.withdraw("\"b\"");
        questions.withdraw("\"a\"");
        let asked = questions.get("\"a\"").unwrap();
        assert!(asked.withdrawn && asked.over.is_cancelled());
        assert_eq!(questions.close("\"a\""), [7]);
        assert!(questions.get("\"a\"").is_none());
    }

    #[test]
    fn a_ping_is_no_reason_to_wait_longer() {
        let mut questions = Questions::default();
        questions.open("1".into(), OpenQuestion::new("ping", vec![7], None)).unwrap();
        assert!(!questions.delay(7));
    }

    #[test]
    fn questions_and_pages_are_bounded() {
        let mut questions = Questions::default();
        for n in 0..MOST {
            questions.open(n.to_string(), question(&[])).unwrap();
        }
        assert!(questions.open("more".into(), question(&[])).is_err());
        assert!(questions.open("0".into(), question(&[])).is_err());
        for n in 0..1000 {
            questions.remember_page(&n.to_string());
        }
        assert!(questions.is_page_done("999") && !questions.is_page_done("999"));
        assert!(!questions.is_page_done("0"));
    }
}
