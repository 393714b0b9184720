//! The host's side of a front end's connection while its request runs.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use bytes::BytesMut;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio_util::sync::CancellationToken;

use crate::model::QuestionReply;
use crate::serve::background::connection::{LineConnection, MessageParts, answer, message};
use crate::serve::background::protocol;
use crate::serve::catalogue_server::{ClientQuestion, questions};

/// How long a front end may take to read that its request was cut off.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A front end's connection during its request.
pub(super) struct Conversation {
    lines: LineConnection,
    unsent: BytesMut,
    end: CancellationToken,
}

impl Conversation {
    pub(super) fn new(lines: LineConnection, end: CancellationToken) -> Self {
        Self { lines, unsent: BytesMut::new(), end }
    }

    pub(super) fn end(&self) -> &CancellationToken {
        &self.end
    }

    /// The next answer of the front end, with the number of the question. `None` when it is gone or has
    /// given up its request, or the request has to end. May be dropped while it waits.
    pub(super) async fn next(&mut self) -> Option<(u64, Value)> {
        loop {
            self.flush().await?;
            let line = self.end.run_until_cancelled(self.lines.next()).await??.ok()?;
            let Some(parts) = MessageParts::read(&line) else { continue };
            match (parts.method.as_deref(), parts.number(), parts.result) {
                (Some("ping"), Some(id), _) => self.add(&answer(id, &json!({}))),
                (Some("notifications/cancelled"), ..) => return None,
                (None, Some(number), Some(result)) => {
                    return Some((number, serde_json::from_str(result.get()).ok()?));
                }
                _ => {}
            }
        }
    }

    /// Sends a line; `None` when the front end is gone, or the request has to end.
    pub(super) async fn send(&mut self, line: &str) -> Option<()> {
        self.add(line);
        self.flush().await
    }

    pub(super) async fn send_last(&mut self, line: &str) {
        self.add(line);
        let last = self.lines.output.write_all_buf(&mut self.unsent);
        let _slow_front_end = tokio::time::timeout(LAST_WORDS, last).await;
    }

    fn add(&mut self, line: &str) {
        self.unsent.extend_from_slice(line.as_bytes());
    }

    /// Sends what is unsent. May be dropped while it waits: no line is cut.
    async fn flush(&mut self) -> Option<()> {
        while !self.unsent.is_empty() {
            let writing = self.lines.output.write_buf(&mut self.unsent);
            self.end.run_until_cancelled(writing).await?.ok()?;
        }
        Some(())
    }

    /// Waits for `work`; `None` when the front end leaves before, or the request has to end.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return Some(outcome),
                reply = self.next() => drop(reply?),
            }
        }
    }
}

/// The questions that a front end has not answered yet, by their numbers.
#[derive(Default)]
pub(super) struct OpenQuestions {
    open: HashMap<u64, ClientQuestion>,
    /// How many were asked.
    count: u64,
}

impl OpenQuestions {
    /// Adds a question, as the line that asks it; `None` for one that front ends are not asked.
    pub(super) fn add(&mut self, question: ClientQuestion) -> Option<String> {
        let whole = question.whole.as_ref().and_then(|whole| serde_json::to_string(whole).ok());
        let Some(whole) = whole else {
            let _gone = question.reply.send(QuestionReply::Unattended);
            return None;
        };
        let (method, mut params) = questions::request(&question.body);
        params.as_object_mut()?.insert("_meta".into(), json!({ protocol::QUESTION: whole }));
        self.count += 1;
        // What no server waits for any more needs no answer.
        self.open.retain(|_, question| !question.reply.is_closed());
        self.open.insert(self.count, question);
        Some(message(&json!({ "id": self.count, "method": method, "params": params })))
    }

    pub(super) fn answer(&mut self, number: u64, answer: Value) {
        if let Some(question) = self.open.remove(&number) {
            questions::answer_question(question, answer);
        }
    }
}
