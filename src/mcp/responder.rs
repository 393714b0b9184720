//! Answering a server's requests, in the form its revision uses.

use std::sync::Arc;

use serde_json::{Value, json};
use url::Url;

use super::message::{INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::model::{
    CallId, EventSink, HostEvent, Question, QuestionAbilities, QuestionBody, QuestionHandler,
    QuestionOutcome, QuestionReply, Root,
};
use crate::util::text::truncate;

const SUMMARY_CHARS: usize = 500;

pub struct QuestionResponder {
    pub server: String,
    pub roots: Vec<Root>,
    /// Where events about questions go; they never hold an answer.
    pub events: EventSink,
    /// Answers the questions; a front end decides by whom.
    pub inbox: Arc<dyn QuestionHandler>,
}

#[derive(Debug, Clone, Default)]
pub struct QuestionContext {
    /// The call that waits for the answer, when that is known.
    pub call: Option<CallId>,
    pub round: Option<u32>,
    /// The server's own name of the question in its round.
    pub key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionRefusal {
    /// A person declined sampling, which has no answer for that; or there was no person to ask.
    Declined(QuestionOutcome),
    /// The method is unknown, or was not offered.
    Unknown(String),
    /// The parameters are not what the method takes.
    Malformed(String),
}

impl QuestionRefusal {
    /// The JSON-RPC error: code and message.
    pub fn error(&self) -> (i64, String) {
        match self {
            Self::Declined(_) => (-1, "User rejected sampling request".to_owned()),
            Self::Unknown(what) => (METHOD_NOT_FOUND, what.clone()),
            Self::Malformed(what) => (INVALID_PARAMS, what.clone()),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct QuestionAnswer {
    pub result: Value,
    /// What was decided; `None` when no person is asked such things.
    pub verdict: Option<QuestionOutcome>,
}

/// The questions we declare that a server may ask: `roots` are those of its entry.
pub fn answerable(roots: &[Root], inbox: &dyn QuestionHandler) -> QuestionAbilities {
    let roots = !roots.is_empty() || inbox.offers_roots();
    QuestionAbilities { forms: true, urls: true, sampling: true, roots }
}

impl QuestionResponder {
    /// What the server was told that it may ask.
    pub fn abilities(&self) -> QuestionAbilities {
        answerable(&self.roots, &*self.inbox)
    }

    /// The same of a client behind a request: what the entry has needs no client.
    pub fn abilities_for(&self, client: QuestionAbilities) -> QuestionAbilities {
        let roots = client.roots || !self.roots.is_empty();
        self.abilities().and(QuestionAbilities { roots, ..client })
    }

    /// Answers one question.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn answer(
        &self,
        method: &str,
        params: &Value,
        occasion: &QuestionContext,
    ) -> Result<QuestionAnswer, QuestionRefusal> {
        match method {
            "ping" => Ok(QuestionAnswer { result: json!({}), verdict: None }),
            "roots/list" => self.list_roots(occasion).await,
            _ => {
                let ask = parse_question(method, params)?;
                let verdict = self.ask_inbox(ask, occasion).await?;
                Ok(verdict)
            }
        }
    }

    async fn ask_inbox(
        &self,
        ask: QuestionBody,
        occasion: &QuestionContext,
    ) -> Result<QuestionAnswer, QuestionRefusal> {
        let (kind, message) = (ask.kind(), summary(&ask));
        let tell = |verdict| self.emit_event(kind, message.clone(), occasion, verdict);
        if let QuestionBody::Url { url, .. } = &ask
            && !is_web_url(url)
        {
            tell(QuestionOutcome::Refused);
            return Ok(QuestionAnswer {
                result: json!({ "action": "decline" }),
                verdict: Some(QuestionOutcome::Refused),
            });
        }
        let question = Question {
            server: self.server.clone(),
            call: occasion.call.clone(),
            round: occasion.round,
            key: occasion.key.clone(),
            time_left: None,
            body: ask.clone(),
        };
        let mut unheard = WithdrawalGuard { report: Some(&tell) };
        let reply = self.inbox.ask(question).await;
        unheard.report = None;
        let verdict = reply.outcome();
        tell(verdict);
        reply_to_result(&ask, reply).map(|result| QuestionAnswer { result, verdict: Some(verdict) })
    }

    /// The roots of the entry; a client's own where the entry leaves them to it.
    async fn list_roots(
        &self,
        occasion: &QuestionContext,
    ) -> Result<QuestionAnswer, QuestionRefusal> {
        let roots: Vec<Value> = if !self.roots.is_empty() {
            self.roots.iter().map(|root| json!(root)).collect()
        } else if self.inbox.offers_roots() {
            self.inbox.list_roots(occasion.call.as_ref(), occasion.key.as_deref()).await
        } else {
            return Err(QuestionRefusal::Unknown("no roots are offered".to_owned()));
        };
        self.emit_event("roots", String::new(), occasion, QuestionOutcome::Accepted);
        Ok(QuestionAnswer { result: json!({ "roots": roots }), verdict: None })
    }

    fn emit_event(
        &self,
        kind: &'static str,
        message: String,
        occasion: &QuestionContext,
        verdict: QuestionOutcome,
    ) {
        self.events.emit(HostEvent::QuestionAnswered {
            server: self.server.clone(),
            call_id: occasion.call.clone(),
            round: occasion.round,
            kind: kind.into(),
            message,
            outcome: verdict,
        });
    }
}

/// Reports that a question was withdrawn when its asking is dropped.
struct WithdrawalGuard<'a> {
    report: Option<&'a (dyn Fn(QuestionOutcome) + Sync)>,
}

impl Drop for WithdrawalGuard<'_> {
    fn drop(&mut self) {
        if let Some(tell) = self.report {
            tell(QuestionOutcome::Cancelled);
        }
    }
}

/// The answer to a question whose request has ended.
///
/// # Errors
/// As [`QuestionResponder::answer`] of a question that was turned away from.
pub fn withdrawn_answer(method: &str) -> Result<Value, QuestionRefusal> {
    match method {
        "elicitation/create" => Ok(json!({ "action": "cancel" })),
        _ => Err(QuestionRefusal::Declined(QuestionOutcome::Cancelled)),
    }
}

/// Whether a method is a question to a person, who may take their time.
pub fn needs_person(method: &str) -> bool {
    matches!(method, "elicitation/create" | "sampling/createMessage")
}

fn parse_question(method: &str, params: &Value) -> Result<QuestionBody, QuestionRefusal> {
    let text = |key: &str| {
        params.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
            QuestionRefusal::Malformed(format!("{method}: {key} is missing or is not text"))
        })
    };
    match method {
        "elicitation/create" => match params.get("mode").and_then(Value::as_str) {
            // Before 2025-11-25 there was one mode without a name.
            None | Some("form") => {
                let schema = params.get("requestedSchema").filter(|schema| schema.is_object());
                let missing = || {
                    QuestionRefusal::Malformed(format!(
                        "{method}: requestedSchema is missing or not an object"
                    ))
                };
                let schema = schema.cloned().ok_or_else(missing)?;
                Ok(QuestionBody::Form { message: text("message")?, schema })
            }
            Some("url") => Ok(QuestionBody::Url { message: text("message")?, url: text("url")? }),
            Some(other) => Err(QuestionRefusal::Malformed(format!(
                "{method}: unknown mode {}",
                truncate(other, 40)
            ))),
        },
        "sampling/createMessage" if params.get("messages").is_some_and(Value::is_array) => {
            Ok(QuestionBody::Sampling { params: params.clone() })
        }
        "sampling/createMessage" => Err(QuestionRefusal::Malformed(format!(
            "{method}: messages is missing or not an array"
        ))),
        other => {
            Err(QuestionRefusal::Unknown(format!("no method is called {}", truncate(other, 100))))
        }
    }
}

fn reply_to_result(ask: &QuestionBody, reply: QuestionReply) -> Result<Value, QuestionRefusal> {
    let verdict = reply.outcome();
    Ok(match (ask, reply) {
        (QuestionBody::Form { .. }, QuestionReply::Accept(content)) => {
            json!({ "action": "accept", "content": content })
        }
        (QuestionBody::Url { .. }, QuestionReply::Accept(_)) => json!({ "action": "accept" }),
        (QuestionBody::Sampling { .. }, QuestionReply::Accept(result)) => result,
        (QuestionBody::Sampling { .. }, _) => return Err(QuestionRefusal::Declined(verdict)),
        (_, QuestionReply::Cancel) => json!({ "action": "cancel" }),
        (_, QuestionReply::Decline | QuestionReply::Unattended) => json!({ "action": "decline" }),
    })
}

/// Whether a browser would show an address and do nothing else with it.
fn is_web_url(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn summary(ask: &QuestionBody) -> String {
    let message = truncate(ask.message(), SUMMARY_CHARS);
    match ask {
        QuestionBody::Url { url, .. } => format!("{message} ({})", truncate(url, SUMMARY_CHARS)),
        QuestionBody::Form { .. } | QuestionBody::Sampling { .. } => message,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;

    /// Says the same to everything, and keeps what it was asked.
    struct Says(QuestionReply, Mutex<Vec<Question>>);

    #[async_trait]
    impl QuestionHandler for Says {
        async fn ask(&self, question: Question) -> QuestionReply {
            self.1.lock().unwrap().push(question);
            self.0.clone()
        }
    }

    async fn answer(
        reply: QuestionReply,
        method: &str,
        params: &Value,
    ) -> Result<Value, QuestionRefusal> {
        let inbox = Arc::new(Says(reply, Mutex::default()));
        let respondent = QuestionResponder {
            server: "srv".to_owned(),
            roots: vec!["file:///srv".into()],
            events: EventSink::discard(),
            inbox: Arc::clone(&inbox) as _,
        };
        let answered = respondent.answer(method, params, &QuestionContext::default()).await;
        answered.map(|answered| answered.result)
    }

    fn form() -> Value {
        // The specification has no nested objects here; they travel all the same.
        json!({ "message": "Who?", "requestedSchema": { "type": "object",
                "properties": { "who": { "type": "object", "properties": {} } } } })
    }

    #[tokio::test]
    async fn each_reply_has_its_shape() {
        let content = json!({ "who": { "name": "Ada" } });
        for (reply, expected) in [
            (
                QuestionReply::Accept(content.clone()),
                json!({ "action": "accept", "content": content }),
            ),
            (QuestionReply::Decline, json!({ "action": "decline" })),
            (QuestionReply::Unattended, json!({ "action": "decline" })),
            (QuestionReply::Cancel, json!({ "action": "cancel" })),
        ] {
            assert_eq!(answer(reply, "elicitation/create", &form()).await, Ok(expected));
        }
        let open = json!({ "mode": "url", "message": "Pay", "url": "https://pay.example/x" });
        let yes = answer(QuestionReply::Accept(json!({})), "elicitation/create", &open).await;
        assert_eq!(yes, Ok(json!({ "action": "accept" })));
    }

    #[tokio::test]
    async fn a_declined_sample_is_an_error_and_an_answered_one_is_the_result() {
        let params = json!({ "messages": [], "maxTokens": 9 });
        let no =
            answer(QuestionReply::Decline, "sampling/createMessage", &params).await.unwrap_err();
        assert_eq!(no.error(), (-1, "User rejected sampling request".to_owned()));
        let result = json!({ "role": "assistant", "model": "human",
                             "content": { "type": "text", "text": "hi" } });
        let yes =
            answer(QuestionReply::Accept(result.clone()), "sampling/createMessage", &params).await;
        assert_eq!(yes, Ok(result));
    }

    #[tokio::test]
    async fn roots_and_pings_need_no_person() {
        assert_eq!(answer(QuestionReply::Unattended, "ping", &Value::Null).await, Ok(json!({})));
        let roots = answer(QuestionReply::Unattended, "roots/list", &Value::Null).await;
        assert_eq!(roots, Ok(json!({ "roots": [{ "uri": "file:///srv" }] })));
    }

    #[tokio::test]
    async fn what_is_no_web_address_is_never_put_to_a_person() {
        for url in
            ["javascript:alert(1)", "file:///etc/passwd", "$(reboot)", "data:text/html,x", ""]
        {
            let open = json!({ "mode": "url", "message": "Pay", "url": url });
            let inbox = Arc::new(Says(QuestionReply::Accept(json!({})), Mutex::default()));
            let respondent = QuestionResponder {
                server: "srv".to_owned(),
                roots: Vec::new(),
                events: EventSink::discard(),
                inbox: Arc::clone(&inbox) as _,
            };
            let answered =
                respondent.answer("elicitation/create", &open, &QuestionContext::default()).await;
            let answered = answered.unwrap();
            assert_eq!(answered.result, json!({ "action": "decline" }), "{url}");
            assert_eq!(answered.verdict, Some(QuestionOutcome::Refused), "{url}");
            assert!(inbox.1.lock().unwrap().is_empty(), "{url}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_says_why() {
        for (method, params, code) in [
            ("elicitation/create", json!({}), -32602),
            ("elicitation/create", json!({ "message": 1, "requestedSchema": {} }), -32602),
            ("elicitation/create", json!({ "message": "x", "requestedSchema": true }), -32602),
            ("elicitation/create", json!({ "mode": "dream", "message": "x" }), -32602),
            ("sampling/createMessage", json!({ "messages": "hi" }), -32602),
            ("nonsense/ask", json!({}), -32601),
        ] {
            let refusal = answer(QuestionReply::Decline, method, &params).await.unwrap_err();
            assert_eq!(refusal.error().0, code, "{method} {params}");
        }
    }
}
