//! Prepared answers to servers' questions (`--answers`).

mod read;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::output::Output;
use super::questionnaire::{FormSchemaError, Questionnaire};
use crate::host::questions;
use crate::model::{Error, JsonObject, Question, QuestionBody, QuestionHandler, QuestionReply};
use crate::util::pattern;

#[derive(Debug)]
struct AnswerRule {
    /// Only questions of servers whose names match this pattern.
    server: Option<String>,
    /// Only questions whose message matches this pattern.
    message: Option<String>,
    kind: Option<&'static str>,
    uses: Option<u64>,
    /// How often it was used.
    used: AtomicU64,
    answer: RuleAnswer,
    place: String,
}

#[derive(Debug, Clone, PartialEq)]
enum RuleAnswer {
    /// These fields of a form, and the defaults for the others.
    Content(JsonObject),
    Defaults,
    Opened,
    /// The reply in place of a model.
    Text(String),
    Decline,
    Cancel,
}

impl AnswerRule {
    fn of(answer: RuleAnswer, place: &str) -> Self {
        let (place, used) = (place.to_owned(), AtomicU64::new(0));
        Self { server: None, message: None, kind: None, uses: None, used, answer, place }
    }

    fn matches(&self, question: &Question) -> bool {
        let matches = |pattern: &Option<String>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern::matches(pattern, text))
        };
        // A rule without a kind applies to the kind that its answer fits.
        let fits = matches!(
            (&self.answer, &question.body),
            (RuleAnswer::Content(_) | RuleAnswer::Defaults, QuestionBody::Form { .. })
                | (RuleAnswer::Opened, QuestionBody::Url { .. })
                | (RuleAnswer::Text(_), QuestionBody::Sampling { .. })
                | (RuleAnswer::Decline | RuleAnswer::Cancel, _)
        );
        fits && self.kind.is_none_or(|kind| kind == question.body.kind())
            && matches(&self.server, &question.server)
            && matches(&self.message, question.body.message())
    }
}

#[derive(Debug)]
pub struct AnswerRules(Vec<AnswerRule>);

impl AnswerRules {
    /// Reads the rules: a keyword (`defaults`, `decline` or `cancel`) or a file.
    ///
    /// # Errors
    /// A usage error with the location of the problem in the file.
    pub fn read(given: &Path) -> Result<Self, Error> {
        Ok(Self(read::read_rules(given)?))
    }

    /// The first matching rule that is not used up; this counts as a use.
    fn take_rule(&self, question: &Question, after: usize) -> Option<(usize, &AnswerRule)> {
        let take_use = |rule: &AnswerRule| {
            let next = |used| rule.uses.is_none_or(|uses| used < uses).then_some(used + 1);
            rule.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
        };
        let mut rules = self.0.iter().enumerate().skip(after);
        rules.find(|(_, rule)| rule.matches(question) && take_use(rule))
    }
}

/// Answers by rules; without a matching rule it asks `next`.
pub struct AnsweringInbox {
    pub answers: Arc<AnswerRules>,
    /// Answers questions without a matching rule.
    pub next: Arc<dyn QuestionHandler>,
    /// Receives a warning for each rule whose answer does not fit.
    pub output: Arc<Output>,
}

#[async_trait]
impl QuestionHandler for AnsweringInbox {
    async fn ask(&self, question: Question) -> QuestionReply {
        let mut after = 0;
        while let Some((at, rule)) = self.answers.take_rule(&question, after) {
            match reply(&rule.answer, &question.body).await {
                Ok(reply) => return reply,
                Err(why) => self.output.warn(&format!(
                    "the answer at {} does not fit the question of '{}': {why}",
                    rule.place, question.server
                )),
            }
            after = at + 1;
        }
        self.next.ask(question).await
    }
}

/// Why a rule's answer does not fit a question.
#[derive(Debug, thiserror::Error)]
enum AnswerMismatch {
    #[error("it answers another kind of question")]
    OtherQuestion,
    #[error(transparent)]
    Form(#[from] FormSchemaError),
    #[error("{}", .0.join("; "))]
    Content(Vec<String>),
}

/// The reply made from an answer, or why the answer does not fit.
async fn reply(answer: &RuleAnswer, ask: &QuestionBody) -> Result<QuestionReply, AnswerMismatch> {
    match (answer, ask) {
        (RuleAnswer::Decline, _) => Ok(QuestionReply::Decline),
        (RuleAnswer::Cancel, _) => Ok(QuestionReply::Cancel),
        (RuleAnswer::Content(_) | RuleAnswer::Defaults, QuestionBody::Form { schema, .. }) => {
            let form = Questionnaire::of(schema)?;
            let mut content = form.defaults();
            if let RuleAnswer::Content(own) = answer {
                content.extend(own.clone());
            }
            match form.violations(&content).await.as_slice() {
                [] => Ok(QuestionReply::Accept(Value::Object(content))),
                errors => Err(AnswerMismatch::Content(errors.to_vec())),
            }
        }
        (RuleAnswer::Opened, QuestionBody::Url { .. }) => Ok(QuestionReply::Accept(json!({}))),
        (RuleAnswer::Text(text), QuestionBody::Sampling { .. }) => {
            Ok(QuestionReply::Accept(questions::text_result(text)))
        }
        _ => Err(AnswerMismatch::OtherQuestion),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::{streams::OutputOptions, streams::tests::captured};
    use crate::model::NoQuestionHandler;

    fn form() -> QuestionBody {
        let schema = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" }, "size": { "type": "integer", "default": 3 } } });
        QuestionBody::Form { message: "Your name?".to_owned(), schema }
    }

    fn rule(content: &Value) -> AnswerRule {
        AnswerRule::of(RuleAnswer::Content(content.as_object().unwrap().clone()), "answers.yaml:1")
    }

    async fn asked(rules: Vec<AnswerRule>, asks: &[QuestionBody]) -> (Vec<QuestionReply>, String) {
        let (output, _, err) = captured(OutputOptions::default(), false);
        let answers = Arc::new(AnswerRules(rules));
        let inbox =
            AnsweringInbox { answers, next: Arc::new(NoQuestionHandler), output: Arc::new(output) };
        let mut replies = Vec::new();
        for ask in asks {
            let question = Question {
                server: "srv".to_owned(),
                call: None,
                round: None,
                key: None,
                time_left: None,
                body: ask.clone(),
            };
            replies.push(inbox.ask(question).await);
        }
        (replies, err.text())
    }

    #[tokio::test]
    async fn the_first_rule_that_is_left_answers_with_defaults_filled_in() {
        let once = AnswerRule { uses: Some(1), ..rule(&json!({ "name": "Ada" })) };
        let elsewhere =
            AnswerRule { server: Some("other*".to_owned()), ..rule(&json!({ "name": "Eve" })) };
        let rest =
            AnswerRule { message: Some("*name*".to_owned()), ..rule(&json!({ "name": "Bob" })) };
        let (replies, _) = asked(vec![elsewhere, once, rest], &[form(), form(), form()]).await;
        let expected = |name: &str| QuestionReply::Accept(json!({ "size": 3, "name": name }));
        assert_eq!(replies, [expected("Ada"), expected("Bob"), expected("Bob")]);
    }

    #[tokio::test]
    async fn an_answer_that_does_not_fit_is_not_sent() {
        let (replies, told) = asked(vec![rule(&json!({ "size": "big" }))], &[form()]).await;
        assert_eq!(replies, [QuestionReply::Unattended]);
        assert!(told.contains("answers.yaml:1") && told.contains("name: is required"), "{told}");
        let (replies, told) =
            asked(vec![AnswerRule::of(RuleAnswer::Defaults, "--answers")], &[form()]).await;
        assert_eq!(replies, [QuestionReply::Unattended]);
        assert!(told.contains("name: is required"), "{told}");
    }

    #[tokio::test]
    async fn each_kind_of_question_has_its_kind_of_answer() {
        let open =
            QuestionBody::Url { message: "Pay".to_owned(), url: "https://x.example".to_owned() };
        let sample = QuestionBody::Sampling { params: json!({ "messages": [] }) };
        let rules = || {
            vec![
                AnswerRule::of(RuleAnswer::Opened, "a:1"),
                AnswerRule::of(RuleAnswer::Text("hi".to_owned()), "a:2"),
                AnswerRule::of(RuleAnswer::Decline, "a:3"),
            ]
        };
        let (replies, _) = asked(rules(), &[form(), open, sample]).await;
        assert_eq!(
            replies,
            [
                QuestionReply::Decline,
                QuestionReply::Accept(json!({})),
                QuestionReply::Accept(questions::text_result("hi"))
            ]
        );
    }
}
