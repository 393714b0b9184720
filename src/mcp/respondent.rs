//! The answers to what a server asks, in whichever form it asks.
//!
//! Owns: reading a question from its raw parameters, putting it to the [`Inbox`], and the shape of
//! the answer. The same question comes as a request of the server (up to 2025-11-25) or inside of
//! an answer (`inputRequests`, from 2026-07-28). Nothing passes through the SDK's types, which
//! know fewer schemas than servers send. Never does: wait for anything but the inbox, or open an
//! address.

use std::sync::Arc;

use serde_json::{Value, json};
use url::Url;

use super::message::head;
use crate::model::{Ask, CallId, Event, EventSink, Inbox, Question, Reply, Verdict};

/// How much of a server's words is told to viewers, in characters.
const TOLD: usize = 500;

/// Answers the questions of one server.
pub struct Respondent {
    /// The server's name in the files.
    pub server: String,
    /// The roots it may know, as URIs.
    pub roots: Vec<String>,
    /// Where questions and their answers are told, without what was answered.
    pub events: EventSink,
    /// Who answers.
    pub inbox: Arc<dyn Inbox>,
}

/// What a question belongs to.
#[derive(Debug, Clone, Default)]
pub struct Occasion {
    /// The call that waits for the answer, when that is known.
    pub call: Option<CallId>,
    /// The round of questions of that call, from 1.
    pub round: Option<u32>,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody declined a request that has no answer for that (sampling); or nobody was there.
    Declined(Verdict),
    /// The method is unknown, or was not offered.
    Unknown(String),
    /// The parameters are not what the method takes.
    Malformed(String),
}

impl Refusal {
    /// The JSON-RPC error: code and message.
    pub fn error(&self) -> (i32, String) {
        match self {
            Self::Declined(_) => (-1, "User rejected sampling request".to_owned()),
            Self::Unknown(what) => (-32601, what.clone()),
            Self::Malformed(what) => (-32602, what.clone()),
        }
    }
}

/// An answer, and what it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The `result` of the question.
    pub result: Value,
    /// What was decided; `None` when no person is asked such things.
    pub verdict: Option<Verdict>,
}

impl Respondent {
    /// Answers one question.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn answer(
        &self,
        method: &str,
        params: &Value,
        occasion: &Occasion,
    ) -> Result<Answered, Refusal> {
        match method {
            "ping" => Ok(Answered { result: json!({}), verdict: None }),
            "roots/list" => self.list_roots(occasion),
            _ => {
                let ask = read(method, params)?;
                let verdict = self.put(ask, occasion).await?;
                Ok(verdict)
            }
        }
    }

    async fn put(&self, ask: Ask, occasion: &Occasion) -> Result<Answered, Refusal> {
        let (kind, words) = (ask.kind(), told(&ask));
        let tell = |verdict| self.tell(kind, words.clone(), occasion, verdict);
        if let Ask::Open { url, .. } = &ask
            && !is_web(url)
        {
            tell(Verdict::Refused);
            return Ok(Answered {
                result: json!({ "action": "decline" }),
                verdict: Some(Verdict::Refused),
            });
        }
        let question = Question {
            server: self.server.clone(),
            call: occasion.call.clone(),
            round: occasion.round,
            left: None,
            ask: ask.clone(),
        };
        let mut unheard = Unheard { tell: Some(&tell) };
        let reply = self.inbox.ask(question).await;
        unheard.tell = None;
        let verdict = reply.verdict();
        tell(verdict);
        shaped(&ask, reply).map(|result| Answered { result, verdict: Some(verdict) })
    }

    fn list_roots(&self, occasion: &Occasion) -> Result<Answered, Refusal> {
        if self.roots.is_empty() {
            return Err(Refusal::Unknown("no roots are offered".to_owned()));
        }
        self.tell("roots", String::new(), occasion, Verdict::Accepted);
        let roots: Vec<Value> = self.roots.iter().map(|uri| json!({ "uri": uri })).collect();
        Ok(Answered { result: json!({ "roots": roots }), verdict: None })
    }

    fn tell(&self, kind: &'static str, words: String, occasion: &Occasion, verdict: Verdict) {
        self.events.emit(Event::Asked {
            server: self.server.clone(),
            call_id: occasion.call.clone(),
            round: occasion.round,
            kind,
            words,
            verdict,
        });
    }
}

/// Tells that a question was taken back when its asking is dropped.
struct Unheard<'a> {
    tell: Option<&'a (dyn Fn(Verdict) + Sync)>,
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        if let Some(tell) = self.tell {
            tell(Verdict::Cancelled);
        }
    }
}

/// The answer to a question that nobody waits for any more.
///
/// # Errors
/// As [`Respondent::answer`] of a question that was turned away from.
pub fn too_late(method: &str) -> Result<Value, Refusal> {
    match method {
        "elicitation/create" => Ok(json!({ "action": "cancel" })),
        _ => Err(Refusal::Declined(Verdict::Cancelled)),
    }
}

/// Whether a method is a question to a person, who may take their time.
pub fn is_for_a_person(method: &str) -> bool {
    matches!(method, "elicitation/create" | "sampling/createMessage")
}

/// Reads a question to a person from its parameters.
fn read(method: &str, params: &Value) -> Result<Ask, Refusal> {
    let text =
        |key: &str| {
            params.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
                Refusal::Malformed(format!("{method}: {key} is missing or is not text"))
            })
        };
    match method {
        "elicitation/create" => match params.get("mode").and_then(Value::as_str) {
            // Before 2025-11-25 there was one mode without a name.
            None | Some("form") => {
                let schema = params.get("requestedSchema").filter(|schema| schema.is_object());
                let missing = || {
                    Refusal::Malformed(format!("{method}: requestedSchema is missing or no object"))
                };
                let schema = schema.cloned().ok_or_else(missing)?;
                Ok(Ask::Form { message: text("message")?, schema })
            }
            Some("url") => Ok(Ask::Open { message: text("message")?, url: text("url")? }),
            Some(other) => {
                Err(Refusal::Malformed(format!("{method}: unknown mode {}", head(other, 40))))
            }
        },
        "sampling/createMessage" if params.get("messages").is_some_and(Value::is_array) => {
            Ok(Ask::Sample { params: params.clone() })
        }
        "sampling/createMessage" => {
            Err(Refusal::Malformed(format!("{method}: messages is missing or no list")))
        }
        other => Err(Refusal::Unknown(format!("no method is called {}", head(other, 100)))),
    }
}

/// A reply in the shape its question wants.
fn shaped(ask: &Ask, reply: Reply) -> Result<Value, Refusal> {
    let verdict = reply.verdict();
    Ok(match (ask, reply) {
        (Ask::Form { .. }, Reply::Accept(content)) => {
            json!({ "action": "accept", "content": content })
        }
        (Ask::Open { .. }, Reply::Accept(_)) => json!({ "action": "accept" }),
        (Ask::Sample { .. }, Reply::Accept(result)) => result,
        (Ask::Sample { .. }, _) => return Err(Refusal::Declined(verdict)),
        (_, Reply::Cancel) => json!({ "action": "cancel" }),
        (_, Reply::Decline | Reply::Nobody) => json!({ "action": "decline" }),
    })
}

/// Whether a browser would show an address and do nothing else with it.
fn is_web(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn told(ask: &Ask) -> String {
    let words = head(ask.words(), TOLD);
    match ask {
        Ask::Open { url, .. } => format!("{words} ({})", head(url, TOLD)),
        Ask::Form { .. } | Ask::Sample { .. } => words,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;

    /// Says the same to everything, and keeps what it was asked.
    struct Says(Reply, Mutex<Vec<Question>>);

    #[async_trait]
    impl Inbox for Says {
        async fn ask(&self, question: Question) -> Reply {
            self.1.lock().unwrap().push(question);
            self.0.clone()
        }
    }

    async fn answer(reply: Reply, method: &str, params: &Value) -> Result<Value, Refusal> {
        let inbox = Arc::new(Says(reply, Mutex::default()));
        let respondent = Respondent {
            server: "srv".to_owned(),
            roots: vec!["file:///srv".to_owned()],
            events: EventSink::nowhere(),
            inbox: Arc::clone(&inbox) as _,
        };
        let answered = respondent.answer(method, params, &Occasion::default()).await;
        answered.map(|answered| answered.result)
    }

    fn form() -> Value {
        // Nested objects are beyond the SDK's types, and travel all the same.
        json!({ "message": "Who?", "requestedSchema": { "type": "object",
                "properties": { "who": { "type": "object", "properties": {} } } } })
    }

    #[tokio::test]
    async fn each_reply_has_its_shape() {
        let content = json!({ "who": { "name": "Ada" } });
        for (reply, expected) in [
            (Reply::Accept(content.clone()), json!({ "action": "accept", "content": content })),
            (Reply::Decline, json!({ "action": "decline" })),
            (Reply::Nobody, json!({ "action": "decline" })),
            (Reply::Cancel, json!({ "action": "cancel" })),
        ] {
            assert_eq!(answer(reply, "elicitation/create", &form()).await, Ok(expected));
        }
        let open = json!({ "mode": "url", "message": "Pay", "url": "https://pay.example/x" });
        let yes = answer(Reply::Accept(json!({})), "elicitation/create", &open).await;
        assert_eq!(yes, Ok(json!({ "action": "accept" })));
    }

    #[tokio::test]
    async fn a_declined_sample_is_an_error_and_an_answered_one_is_the_result() {
        let params = json!({ "messages": [], "maxTokens": 9 });
        let no = answer(Reply::Decline, "sampling/createMessage", &params).await.unwrap_err();
        assert_eq!(no.error(), (-1, "User rejected sampling request".to_owned()));
        let result = json!({ "role": "assistant", "model": "human",
                             "content": { "type": "text", "text": "hi" } });
        let yes = answer(Reply::Accept(result.clone()), "sampling/createMessage", &params).await;
        assert_eq!(yes, Ok(result));
    }

    #[tokio::test]
    async fn roots_and_pings_need_nobody() {
        assert_eq!(answer(Reply::Nobody, "ping", &Value::Null).await, Ok(json!({})));
        let roots = answer(Reply::Nobody, "roots/list", &Value::Null).await;
        assert_eq!(roots, Ok(json!({ "roots": [{ "uri": "file:///srv" }] })));
    }

    #[tokio::test]
    async fn what_is_no_web_address_is_never_put_to_anybody() {
        for url in
            ["javascript:alert(1)", "file:///etc/passwd", "$(reboot)", "data:text/html,x", ""]
        {
            let open = json!({ "mode": "url", "message": "Pay", "url": url });
            let inbox = Arc::new(Says(Reply::Accept(json!({})), Mutex::default()));
            let respondent = Respondent {
                server: "srv".to_owned(),
                roots: Vec::new(),
                events: EventSink::nowhere(),
                inbox: Arc::clone(&inbox) as _,
            };
            let answered =
                respondent.answer("elicitation/create", &open, &Occasion::default()).await;
            let answered = answered.unwrap();
            assert_eq!(answered.result, json!({ "action": "decline" }), "{url}");
            assert_eq!(answered.verdict, Some(Verdict::Refused), "{url}");
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
            let refusal = answer(Reply::Decline, method, &params).await.unwrap_err();
            assert_eq!(refusal.error().0, code, "{method} {params}");
        }
    }
}
