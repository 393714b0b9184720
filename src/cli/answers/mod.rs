//! Prepared answers to servers' questions (`--answers`).
//!
//! Parsing the file of `--answers` into rules.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::output::Output;
use super::questionnaire::{FormSchemaError, Questionnaire};
use crate::config::node::{ConfigKey, ConfigNode, NodeValue};
use crate::config::parse::parse;
use crate::config::read::read as read_file;
use crate::host::questions;
use crate::model::{
    Diagnostic, Error, ErrorKind, JsonObject, Question, QuestionBody, QuestionHandler,
    QuestionReply,
};
use crate::util::pattern;
use crate::util::spelling::did_you_mean;

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
        Ok(Self(read_rules(given)?))
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

const RULES: usize = 1_000;
const KEYS: [&str; 9] =
    ["server", "message", "kind", "content", "accept", "text", "decline", "cancel", "uses"];
const KINDS: [&str; 3] = ["form", "url", "sampling"];

/// Reads the value of `--answers`: a keyword, or a file of rules.
fn read_rules(given: &Path) -> Result<Vec<AnswerRule>, Error> {
    if let Some(answer) = given.to_str().and_then(parse_keyword) {
        return Ok(vec![AnswerRule::of(answer, "--answers")]);
    }
    let rules = read_file(given, true).and_then(|(source, text)| {
        let root = parse(&source, &text)?;
        match root.repeated_keys().into_iter().next() {
            Some(repeated) => Err(repeated),
            None => parse_file(&root),
        }
    });
    rules.map_err(|problem| {
        // A problem inside the file has a line; without one, the file could not be read.
        let is_unread = problem.location.as_ref().is_some_and(|place| place.line == 0);
        let kind = if is_unread { ErrorKind::Config } else { ErrorKind::Usage };
        let usual = || "nothing was sent; docs/guide.md has an example".to_owned();
        let hint = problem.hint.or_else(|| Some(usual()));
        let message = format!("--answers: {}", problem.message);
        Error::of_diagnostic(kind, Diagnostic { message, hint, ..problem })
    })
}

fn parse_keyword(word: &str) -> Option<RuleAnswer> {
    match word {
        "defaults" => Some(RuleAnswer::Defaults),
        "decline" => Some(RuleAnswer::Decline),
        "cancel" => Some(RuleAnswer::Cancel),
        _ => None,
    }
}

fn parse_file(root: &ConfigNode) -> Result<Vec<AnswerRule>, Diagnostic> {
    let list = match &root.value {
        NodeValue::Map(_) => {
            known_keys(root, &["answers"])?;
            let missing =
                || Diagnostic::error("the key 'answers' is missing").with_location(root.location());
            root.get("answers").ok_or_else(missing)?
        }
        _ => root,
    };
    let rules = list.as_list()?;
    if rules.len() > RULES {
        return Err(
            Diagnostic::error(format!("more than {RULES} rules")).with_location(list.location())
        );
    }
    rules.iter().map(rule).collect()
}

fn rule(node: &ConfigNode) -> Result<AnswerRule, Diagnostic> {
    let place = node.location();
    let place_text = format!("{}:{}", place.file.display(), place.line);
    if let NodeValue::Text(text) = &node.value {
        let answer =
            parse_keyword(text).ok_or_else(|| node.expected("defaults, decline or cancel"))?;
        return Ok(AnswerRule::of(answer, &place_text));
    }
    node.as_map()?;
    known_keys(node, &KEYS)?;
    let pattern = |key: &str| node.get(key).map(|n| n.as_text().map(str::to_owned)).transpose();
    let kind = node.get("kind").map(kind).transpose()?;
    let uses = match node.get("uses") {
        None => None,
        Some(count) => match count.as_count()? {
            0 => return Err(count.expected("a whole number, 1 or more")),
            uses => Some(uses),
        },
    };
    let mut rule = AnswerRule::of(answer(node)?, &place_text);
    (rule.server, rule.message) = (pattern("server")?, pattern("message")?);
    (rule.kind, rule.uses) = (kind, uses);
    Ok(rule)
}

fn kind(node: &ConfigNode) -> Result<&'static str, Diagnostic> {
    let text = node.as_text()?;
    let kind = KINDS.into_iter().find(|kind| *kind == text);
    kind.ok_or_else(|| node.expected("form, url or sampling"))
}

fn answer(node: &ConfigNode) -> Result<RuleAnswer, Diagnostic> {
    const ANSWERS: [&str; 5] = ["content", "accept", "text", "decline", "cancel"];
    let answer_keys: Vec<&(ConfigKey, ConfigNode)> =
        node.entries().iter().filter(|(key, _)| ANSWERS.contains(&&*key.text)).collect();
    let (key, value) = match answer_keys.as_slice() {
        [one] => one,
        [] => {
            let message = "the rule has no answer: content, accept, text, decline or cancel";
            return Err(Diagnostic::error(message).with_location(node.location()));
        }
        [_, (key, _), ..] => {
            let message = format!("the rule has a second answer, '{}'", key.text);
            return Err(Diagnostic::error(message).with_location(node.location_of(key)));
        }
    };
    let yes = |answer: RuleAnswer| {
        if value.as_bool()? { Ok(answer) } else { Err(value.expected("true")) }
    };
    match &*key.text {
        "content" => match value.to_json() {
            Value::Object(content) => Ok(RuleAnswer::Content(content)),
            _ => Err(value.expected("a mapping")),
        },
        "text" => Ok(RuleAnswer::Text(value.as_scalar_text()?)),
        "decline" => yes(RuleAnswer::Decline),
        "cancel" => yes(RuleAnswer::Cancel),
        _ => match &value.value {
            NodeValue::Text(text) if text == "defaults" => Ok(RuleAnswer::Defaults),
            NodeValue::Bool(true) => Ok(RuleAnswer::Opened),
            _ => Err(value.expected("defaults, or true for a page")),
        },
    }
}

/// Every other key is refused: a rule that was read in part would answer what it was not meant for.
fn known_keys(node: &ConfigNode, keys: &[&str]) -> Result<(), Diagnostic> {
    let unknown = node.entries().iter().find(|(key, _)| !keys.contains(&&*key.text));
    let Some((key, _)) = unknown else { return Ok(()) };
    let near = did_you_mean(&key.text, keys.iter().copied());
    Err(Diagnostic::error(format!("unknown key '{}'", key.text))
        .with_location(node.location_of(key))
        .with_hint(near.unwrap_or_else(|| format!("known keys: {}", keys.join(", ")))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::output::streams::OutputOptions;
    use crate::cli::output::streams::tests::captured;
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

    fn of(text: &str) -> Result<Vec<AnswerRule>, Error> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers.yaml");
        std::fs::write(&path, text).unwrap();
        read_rules(&path)
    }

    #[test]
    fn a_file_of_each_answer_is_read() {
        let rules = of("answers:\n\
             - { server: 'git*', message: '*name*', kind: form, content: { name: Ada }, uses: 2 }\n\
             - { accept: defaults }\n\
             - { kind: url, accept: true }\n\
             - { kind: sampling, text: hello }\n\
             - { decline: true }\n\
             - cancel\n")
        .unwrap();
        let content = json!({ "name": "Ada" }).as_object().unwrap().clone();
        let answers: Vec<&RuleAnswer> = rules.iter().map(|rule| &rule.answer).collect();
        assert_eq!(
            answers,
            [
                &RuleAnswer::Content(content),
                &RuleAnswer::Defaults,
                &RuleAnswer::Opened,
                &RuleAnswer::Text("hello".to_owned()),
                &RuleAnswer::Decline,
                &RuleAnswer::Cancel,
            ]
        );
        assert_eq!((rules[0].server.as_deref(), rules[0].uses), (Some("git*"), Some(2)));
        assert_eq!(of("[decline]").unwrap().len(), 1);
        assert_eq!(
            super::read_rules(Path::new("defaults")).unwrap()[0].answer,
            RuleAnswer::Defaults
        );
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        for (text, line, words) in [
            ("- { contents: {} }", 1, "unknown key 'contents'"),
            ("- { x-server: a, decline: true }", 1, "unknown key 'x-server'"),
            ("- decline\n- { server: x }", 2, "has no answer"),
            ("- { content: {}, decline: true }", 1, "second answer, 'decline'"),
            ("- { content: 3 }", 1, "expected a mapping"),
            ("- { accept: perhaps }", 1, "expected defaults"),
            ("- { decline: false }", 1, "expected true"),
            ("- { kind: dream, decline: true }", 1, "expected form, url or sampling"),
            ("- { decline: true, uses: 0 }", 1, "1 or more"),
            ("- maybe", 1, "expected defaults, decline or cancel"),
            ("answer: []", 1, "unknown key 'answer'"),
            ("- { decline: true, decline: true }", 1, "duplicate key"),
            ("- [", 1, "bracket"),
        ] {
            let error = of(text).unwrap_err();
            assert_eq!(error.kind().exit_code(), 2, "{text}");
            assert!(error.message().contains(words), "{text}: {error}");
            assert_eq!(error.location().map(|place| place.line), Some(line), "{text}: {error}");
        }
        let missing = read_rules(Path::new("/nowhere/answers.yaml")).unwrap_err();
        assert_eq!(missing.kind().exit_code(), 9);
    }
}
