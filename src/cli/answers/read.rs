//! Parsing the file of `--answers` into rules.

use std::path::Path;

use serde_json::Value;

use super::{AnswerRule, RuleAnswer};
use crate::config::node::{ConfigKey, ConfigNode, NodeValue};
use crate::config::parse::parse;
use crate::config::read::read as read_file;
use crate::model::{Diagnostic, Error, ErrorKind};
use crate::util::spelling::did_you_mean;

const RULES: usize = 1_000;
const KEYS: [&str; 9] =
    ["server", "message", "kind", "content", "accept", "text", "decline", "cancel", "uses"];
const KINDS: [&str; 3] = ["form", "url", "sampling"];

/// Reads the value of `--answers`: a keyword, or a file of rules.
pub(super) fn read_rules(given: &Path) -> Result<Vec<AnswerRule>, Error> {
    if let Some(answer) = given.to_str().and_then(parse_keyword) {
        return Ok(vec![AnswerRule::of(answer, "--answers")]);
    }
    let rules = read_file(given, true).and_then(|(source, text)| {
        let parsed = parse(&source, &text)?;
        match parsed.duplicates.into_iter().next() {
            Some(duplicate) => Err(duplicate.diagnostic),
            None => parse_file(&parsed.root),
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
