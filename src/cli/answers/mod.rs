//! Answers to the questions of servers that were written down before (`--answers`).
//!
//! Owns: which rule answers which question, how often, and that nothing is sent which does not fit
//! what was asked. A question that no rule answers goes on to a person, or to nobody.

mod read;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::output::Door;
use super::questionnaire::Questionnaire;
use crate::host::questions::sample;
use crate::model::{Ask, Fault, Inbox, JsonObject, Question, Reply};
use crate::util::pattern;

/// One rule.
#[derive(Debug, Clone, PartialEq)]
struct Rule {
    /// Only questions of servers whose names match this pattern.
    server: Option<String>,
    /// Only questions whose words match this pattern.
    message: Option<String>,
    /// Only questions of this kind.
    kind: Option<&'static str>,
    /// How often it answers.
    uses: Option<u64>,
    answer: Answer,
    /// Where it stands, for messages.
    place: String,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq)]
enum Answer {
    /// These fields of a form, and the defaults of the others.
    Content(JsonObject),
    /// The defaults of a form.
    Defaults,
    /// A page was visited.
    Opened,
    /// What a model would say.
    Text(String),
    Decline,
    Cancel,
}

impl Rule {
    fn of(answer: Answer, place: &str) -> Self {
        let place = place.to_owned();
        Self { server: None, message: None, kind: None, uses: None, answer, place }
    }

    fn is_for(&self, question: &Question) -> bool {
        let matches = |pattern: &Option<String>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern::matches(pattern, text))
        };
        // A rule without a kind is for whatever its answer is an answer to.
        let fits = matches!(
            (&self.answer, &question.ask),
            (Answer::Content(_) | Answer::Defaults, Ask::Form { .. })
                | (Answer::Opened, Ask::Open { .. })
                | (Answer::Text(_), Ask::Sample { .. })
                | (Answer::Decline | Answer::Cancel, _)
        );
        fits && self.kind.is_none_or(|kind| kind == question.ask.kind())
            && matches(&self.server, &question.server)
            && matches(&self.message, question.ask.words())
    }
}

/// The rules of a run.
#[derive(Debug)]
pub struct Answers {
    rules: Vec<Rule>,
    /// How often each rule has answered.
    used: Mutex<Vec<u64>>,
}

impl Answers {
    /// Reads the rules: the words `defaults`, `decline` and `cancel`, or a file.
    ///
    /// # Errors
    /// A usage fault that points at what is wrong in the file.
    pub fn read(given: &Path) -> Result<Self, Fault> {
        Ok(Self::of(read::rules(given)?))
    }

    fn of(rules: Vec<Rule>) -> Self {
        let used = Mutex::new(vec![0; rules.len()]);
        Self { rules, used }
    }

    /// The first rule for a question that is not used up; it counts as used.
    fn take(&self, question: &Question, after: usize) -> Option<(usize, &Rule)> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut candidates = self.rules.iter().enumerate().skip(after);
        let (at, rule) = candidates.find(|(at, rule)| {
            let spent = used.get(*at).copied().unwrap_or_default();
            rule.uses.is_none_or(|uses| spent < uses) && rule.is_for(question)
        })?;
        if let Some(count) = used.get_mut(at) {
            *count += 1;
        }
        Some((at, rule))
    }
}

/// Answers by rules, and asks `next` where there is none.
pub struct AnsweringInbox {
    /// The rules.
    pub answers: Arc<Answers>,
    /// Who is asked what no rule answers.
    pub next: Arc<dyn Inbox>,
    /// Where a rule is named whose answer does not fit.
    pub door: Arc<Door>,
}

#[async_trait]
impl Inbox for AnsweringInbox {
    async fn ask(&self, question: Question) -> Reply {
        let mut after = 0;
        while let Some((at, rule)) = self.answers.take(&question, after) {
            match reply(&rule.answer, &question.ask).await {
                Ok(reply) => return reply,
                Err(why) => self.door.warn(&format!(
                    "the answer at {} does not fit what '{}' asks: {why}",
                    rule.place, question.server
                )),
            }
            after = at + 1;
        }
        self.next.ask(question).await
    }
}

/// What an answer comes to; why it does not fit, when it does not.
async fn reply(answer: &Answer, ask: &Ask) -> Result<Reply, String> {
    match (answer, ask) {
        (Answer::Decline, _) => Ok(Reply::Decline),
        (Answer::Cancel, _) => Ok(Reply::Cancel),
        (Answer::Content(_) | Answer::Defaults, Ask::Form { schema, .. }) => {
            let form = Questionnaire::of(schema)?;
            let mut content = form.defaults();
            if let Answer::Content(own) = answer {
                content.extend(own.clone());
            }
            match form.faults(&content).await.as_slice() {
                [] => Ok(Reply::Accept(Value::Object(content))),
                faults => Err(faults.join("; ")),
            }
        }
        (Answer::Opened, Ask::Open { .. }) => Ok(Reply::Accept(json!({}))),
        (Answer::Text(text), Ask::Sample { .. }) => Ok(Reply::Accept(sample::reply(text))),
        _ => Err("it is an answer to something else".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::door::Wishes;
    use crate::cli::output::door::tests::captured;
    use crate::model::NoInbox;

    fn form() -> Ask {
        let schema = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" }, "size": { "type": "integer", "default": 3 } } });
        Ask::Form { message: "Your name?".to_owned(), schema }
    }

    fn rule(content: &Value) -> Rule {
        Rule::of(Answer::Content(content.as_object().unwrap().clone()), "answers.yaml:1")
    }

    async fn asked(rules: Vec<Rule>, asks: &[Ask]) -> (Vec<Reply>, String) {
        let (door, _, err) = captured(Wishes::default(), false);
        let answers = Arc::new(Answers::of(rules));
        let inbox = AnsweringInbox { answers, next: Arc::new(NoInbox), door: Arc::new(door) };
        let mut replies = Vec::new();
        for ask in asks {
            let question = Question {
                server: "srv".to_owned(),
                call: None,
                round: None,
                left: None,
                ask: ask.clone(),
            };
            replies.push(inbox.ask(question).await);
        }
        (replies, err.text())
    }

    #[tokio::test]
    async fn the_first_rule_that_is_left_answers_with_defaults_filled_in() {
        let once = Rule { uses: Some(1), ..rule(&json!({ "name": "Ada" })) };
        let elsewhere =
            Rule { server: Some("other*".to_owned()), ..rule(&json!({ "name": "Eve" })) };
        let rest = Rule { message: Some("*name*".to_owned()), ..rule(&json!({ "name": "Bob" })) };
        let (replies, _) = asked(vec![elsewhere, once, rest], &[form(), form(), form()]).await;
        let expected = |name: &str| Reply::Accept(json!({ "size": 3, "name": name }));
        assert_eq!(replies, [expected("Ada"), expected("Bob"), expected("Bob")]);
    }

    #[tokio::test]
    async fn an_answer_that_does_not_fit_is_not_sent() {
        let (replies, told) = asked(vec![rule(&json!({ "size": "big" }))], &[form()]).await;
        assert_eq!(replies, [Reply::Nobody]);
        assert!(told.contains("answers.yaml:1") && told.contains("name: is required"), "{told}");
        let (replies, told) = asked(vec![Rule::of(Answer::Defaults, "--answers")], &[form()]).await;
        assert_eq!(replies, [Reply::Nobody]);
        assert!(told.contains("name: is required"), "{told}");
    }

    #[tokio::test]
    async fn each_kind_of_question_has_its_kind_of_answer() {
        let open = Ask::Open { message: "Pay".to_owned(), url: "https://x.example".to_owned() };
        let sample = Ask::Sample { params: json!({ "messages": [] }) };
        let rules = || {
            vec![
                Rule::of(Answer::Opened, "a:1"),
                Rule::of(Answer::Text("hi".to_owned()), "a:2"),
                Rule::of(Answer::Decline, "a:3"),
            ]
        };
        let (replies, _) = asked(rules(), &[form(), open, sample]).await;
        assert_eq!(
            replies,
            [Reply::Decline, Reply::Accept(json!({})), Reply::Accept(sample::reply("hi"))]
        );
    }
}
