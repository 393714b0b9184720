//! The file of `--answers`: text to rules.
//!
//! Owns: its keys and its findings, each with its place. Nothing is sent while one is open.

use std::path::Path;

use serde_json::Value;

use super::{Answer, Rule};
use crate::catalogue::naming;
use crate::config::node::{Key, Node, NodeValue};
use crate::config::parse::parse;
use crate::config::read::read as read_file;
use crate::model::{Fault, Problem};

/// How many rules a file may have.
const RULES: usize = 1_000;
/// The keys of a rule.
const KEYS: [&str; 9] =
    ["server", "message", "kind", "content", "accept", "text", "decline", "cancel", "uses"];
/// The kinds of questions.
const KINDS: [&str; 3] = ["form", "url", "sampling"];

/// Reads what was given to `--answers`: a word that stands for rules, or a file of them.
///
/// # Errors
/// A usage fault that points at the first thing wrong in the file.
pub(super) fn rules(given: &Path) -> Result<Vec<Rule>, Fault> {
    if let Some(answer) = given.to_str().and_then(word) {
        return Ok(vec![Rule::of(answer, "--answers")]);
    }
    let rules = read_file(given, true).and_then(|(source, text)| {
        let parsed = parse(&source, &text)?;
        match parsed.duplicates.into_iter().next() {
            Some(duplicate) => Err(duplicate.problem),
            None => of_file(&parsed.root),
        }
    });
    rules.map_err(|problem| {
        let fault = Fault::usage(format!("--answers: {}", problem.message));
        let fault = match problem.place {
            Some(place) => fault.place(place),
            None => fault,
        };
        match problem.hint {
            Some(hint) => fault.hint(hint),
            None => fault.hint("nothing was sent; the README shows a file of answers"),
        }
    })
}

/// The words that stand for a whole answer.
fn word(word: &str) -> Option<Answer> {
    match word {
        "defaults" => Some(Answer::Defaults),
        "decline" => Some(Answer::Decline),
        "cancel" => Some(Answer::Cancel),
        _ => None,
    }
}

fn of_file(root: &Node) -> Result<Vec<Rule>, Problem> {
    let list = match &root.value {
        NodeValue::Map(_) => {
            known_keys(root, &["answers"])?;
            let missing = || Problem::error("the key 'answers' is missing").at(root.place());
            root.get("answers").ok_or_else(missing)?
        }
        _ => root,
    };
    let rules = list.as_list()?;
    if rules.len() > RULES {
        return Err(Problem::error(format!("more than {RULES} rules")).at(list.place()));
    }
    rules.iter().map(rule).collect()
}

fn rule(node: &Node) -> Result<Rule, Problem> {
    let place = node.place();
    let told = format!("{}:{}", place.file.display(), place.line);
    if let NodeValue::Text(text) = &node.value {
        let answer = word(text).ok_or_else(|| node.expected("defaults, decline or cancel"))?;
        return Ok(Rule::of(answer, &told));
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
    let mut rule = Rule::of(answer(node)?, &told);
    (rule.server, rule.message) = (pattern("server")?, pattern("message")?);
    (rule.kind, rule.uses) = (kind, uses);
    Ok(rule)
}

fn kind(node: &Node) -> Result<&'static str, Problem> {
    let text = node.as_text()?;
    let known = KINDS.into_iter().find(|kind| *kind == text);
    known.ok_or_else(|| node.expected("form, url or sampling"))
}

/// The one answer of a rule.
fn answer(node: &Node) -> Result<Answer, Problem> {
    const ANSWERS: [&str; 5] = ["content", "accept", "text", "decline", "cancel"];
    let said: Vec<&(Key, Node)> =
        node.entries().iter().filter(|(key, _)| ANSWERS.contains(&key.text.as_str())).collect();
    let (key, value) = match said.as_slice() {
        [one] => one,
        [] => {
            let words = "the rule has no answer: content, accept, text, decline or cancel";
            return Err(Problem::error(words).at(node.place()));
        }
        [_, (key, _), ..] => {
            let words = format!("the rule has a second answer, '{}'", key.text);
            return Err(Problem::error(words).at(node.place_of(key)));
        }
    };
    let yes = |answer: Answer| {
        if value.as_bool()? { Ok(answer) } else { Err(value.expected("true")) }
    };
    match key.text.as_str() {
        "content" => match value.to_json() {
            Value::Object(content) => Ok(Answer::Content(content)),
            _ => Err(value.expected("a mapping")),
        },
        "text" => Ok(Answer::Text(value.as_scalar_text()?)),
        "decline" => yes(Answer::Decline),
        "cancel" => yes(Answer::Cancel),
        _ => match &value.value {
            NodeValue::Text(text) if text == "defaults" => Ok(Answer::Defaults),
            NodeValue::Bool(true) => Ok(Answer::Opened),
            _ => Err(value.expected("defaults, or true for a page")),
        },
    }
}

fn known_keys(node: &Node, known: &[&str]) -> Result<(), Problem> {
    let unknown = node.entries().iter().find(|(key, _)| !known.contains(&key.text.as_str()));
    let Some((key, _)) = unknown else { return Ok(()) };
    let problem = Problem::error(format!("unknown key '{}'", key.text)).at(node.place_of(key));
    Err(match naming::nearest(&key.text, known.iter().copied()) {
        Some(near) => problem.hint(format!("did you mean '{near}'?")),
        None => problem.hint(format!("known are {}", known.join(", "))),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(text: &str) -> Result<Vec<Rule>, Fault> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers.yaml");
        std::fs::write(&path, text).unwrap();
        rules(&path)
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
        let answers: Vec<&Answer> = rules.iter().map(|rule| &rule.answer).collect();
        assert_eq!(
            answers,
            [
                &Answer::Content(content),
                &Answer::Defaults,
                &Answer::Opened,
                &Answer::Text("hello".to_owned()),
                &Answer::Decline,
                &Answer::Cancel,
            ]
        );
        assert_eq!((rules[0].server.as_deref(), rules[0].uses), (Some("git*"), Some(2)));
        assert_eq!(of("[decline]").unwrap().len(), 1);
        assert_eq!(super::rules(Path::new("defaults")).unwrap()[0].answer, Answer::Defaults);
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        for (text, line, words) in [
            ("- { contents: {} }", 1, "unknown key 'contents'"),
            ("- decline\n- { server: x }", 2, "has no answer"),
            ("- { content: {}, decline: true }", 1, "second answer, 'decline'"),
            ("- { content: 3 }", 1, "expected a mapping"),
            ("- { accept: perhaps }", 1, "expected defaults"),
            ("- { decline: false }", 1, "expected true"),
            ("- { kind: dream, decline: true }", 1, "expected form, url or sampling"),
            ("- { decline: true, uses: 0 }", 1, "1 or more"),
            ("- maybe", 1, "expected defaults, decline or cancel"),
            ("answer: []", 1, "unknown key 'answer'"),
            ("- { decline: true, decline: true }", 1, "twice"),
            ("- [", 1, "bracket"),
        ] {
            let fault = of(text).unwrap_err();
            assert_eq!(fault.kind().exit_code(), 2, "{text}");
            assert!(fault.message().contains(words), "{text}: {fault}");
            assert_eq!(fault.at_place().map(|place| place.line), Some(line), "{text}: {fault}");
        }
        let missing = rules(Path::new("/nowhere/answers.yaml")).unwrap_err();
        assert_eq!(missing.kind().exit_code(), 2);
    }
}
