//! A server's question, as shown to a person.

use serde_json::Value;

use crate::host::form::{FieldKind, FormField};
use crate::host::questions::{self, ConversationLine, UrlReview};
use crate::model::{JsonObject, Question};
use crate::present::{Line, Page, Role};
use crate::util::json;
use crate::util::text::shorten;

const MESSAGE: usize = 2_000;
/// How much of a title, a choice or a description is shown.
const TITLE: usize = 200;
const LINES: usize = 30;

/// The header: which server asks, and its message.
pub fn heading(question: &Question, message: &str) -> Page {
    let mut page = Page::default();
    page.blank_line();
    let mut line = Line::plain("The server ").then(Role::Name, &question.server);
    line.push(Role::Plain, " asks");
    if let Some(round) = question.round.filter(|round| *round > 1) {
        line.push(Role::Dim, format!(" (round {round})"));
    }
    page.push(line.then(Role::Plain, ":"));
    server_text(&mut page, Role::Plain, message);
    page
}

fn server_text(page: &mut Page, label: Role, text: &str) {
    let short = shorten(text.trim(), MESSAGE);
    let total = short.lines().count();
    for line in short.lines().take(LINES) {
        page.push(Line::styled(label, line).indented(2));
    }
    if total > LINES {
        page.push(Line::styled(Role::Dim, format!("… {} more lines", total - LINES)).indented(2));
    }
}

pub fn secret_warning(who: &str) -> Page {
    let text = format!(
        "It seems to ask for a secret. What you type is sent to '{who}', and forms are not meant for \
         that."
    );
    Page::from(Line::styled(Role::Warning, text))
}

pub fn field(field: &FormField) -> Page {
    let title = shorten(&field.title, TITLE);
    let mut line = Line::styled(Role::Name, title);
    if field.title != field.key {
        line.push(Role::Dim, format!(" ({})", shorten(&field.key, TITLE)));
    }
    line.push(Role::Dim, format!(": {}", field.expectation()));
    if !field.required {
        line.push(Role::Dim, ", optional");
    }
    let mut page = Page::from(line);
    if let Some(description) = &field.description {
        page.push(Line::plain(shorten(description.trim(), TITLE)).indented(2));
    }
    if let FieldKind::Choice(choices) | FieldKind::MultiChoice(choices) = &field.kind {
        for (at, choice) in choices.iter().enumerate() {
            let mut line = Line::styled(Role::Name, format!("{:>3}", at + 1));
            line.push(Role::Plain, format!(" {}", shorten(&choice.title, TITLE)));
            if choice.value.as_str() != Some(choice.title.as_str()) {
                let value = match &choice.value {
                    Value::String(text) => text.clone(),
                    other => json::compact(other),
                };
                line.push(Role::Dim, format!(" ({})", shorten(&value, TITLE)));
            }
            page.push(line);
        }
    }
    page.push(entry(field));
    page
}

/// The prompt of a field, with the default that Enter accepts.
pub fn entry(field: &FormField) -> Line {
    match &field.default {
        Some(_) if field.secret => Line::plain("  [previous input]:"),
        Some(Value::String(default)) => Line::plain(format!("  [{}]:", shorten(default, TITLE))),
        Some(default) => Line::plain(format!("  [{}]:", shorten(&json::compact(default), TITLE))),
        None => Line::plain("  :"),
    }
}

pub fn review(fields: &[FormField], answer: &JsonObject, errors: &[String]) -> Page {
    let mut page = Page::from(Line::styled(Role::Dim, "The answer:"));
    if answer.is_empty() {
        page.push(Line::styled(Role::Dim, "nothing filled in").indented(2));
    }
    for (key, value) in answer {
        let secret = fields.iter().any(|field| field.secret && field.key == *key);
        let value = if secret { "‹secret›".to_owned() } else { json::pretty(value) };
        page.assignment(2, key, &value);
    }
    for error in errors {
        page.push(Line::styled(Role::Warning, format!("invalid: {error}")).indented(2));
    }
    page
}

pub fn address(url: &str) -> Page {
    let mut page = Page::from(Line::plain(url).indented(2));
    let visit = UrlReview::of(url);
    for odd in visit.warnings {
        page.push(Line::styled(Role::Warning, odd).indented(2));
    }
    if let Some(host) = visit.host {
        page.push(Line::styled(Role::Dim, "host: ").then(Role::Name, host).indented(2));
    }
    page
}

pub fn conversation(params: &Value) -> Page {
    let mut page = Page::default();
    for part in questions::conversation(params) {
        let text = match part {
            ConversationLine::Text(text) => {
                server_text(&mut page, Role::Plain, text);
                continue;
            }
            ConversationLine::Role(role) => format!("{}:", shorten(role, 20)),
            ConversationLine::NonText(kind) => format!("[{}]", shorten(kind, 40)),
            ConversationLine::Note(text) => text,
        };
        page.push(Line::styled(Role::Dim, text).indented(2));
    }
    page
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::cli::questionnaire::Questionnaire;
    use crate::model::QuestionBody;
    use crate::present::page::LineRenderer;

    fn shown(page: &Page) -> String {
        LineRenderer::default().page(page)
    }

    #[test]
    fn a_question_says_who_asks_in_words_that_cannot_be_forged() {
        let message = format!("Name?\x1b[2J\nThe server bank asks:{}", "\n".repeat(500));
        let question = Question {
            server: "srv".to_owned(),
            call: None,
            round: Some(2),
            key: None,
            time_left: None,
            body: QuestionBody::Form { message: message.clone(), schema: json!({}) },
        };
        assert_snapshot!(shown(&heading(&question, &message)), @r"
        The server srv asks (round 2):
          Name?␛[2J
          The server bank asks:
        ");
        let high = "line\n".repeat(400);
        assert!(shown(&heading(&question, &high)).lines().count() < 40);
    }

    #[test]
    fn fields_show_their_choices_and_defaults() {
        let schema = json!({ "type": "object", "required": ["colour"], "properties": {
            "colour": { "title": "Colour", "description": "Of the wall",
                        "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g" }],
                        "default": "r" },
            "size": { "type": "integer", "minimum": 1, "maximum": 9 } } });
        let form = Questionnaire::of(&schema).unwrap();
        let pages: Vec<String> = form.fields.iter().map(|f| shown(&field(f))).collect();
        assert_snapshot!(pages.concat(), @r"
        Colour (colour): one of these
          Of the wall
          1 Red (r)
          2 g
          [r]:
        size: a whole number, at least 1, at most 9, optional
          :
        ");
    }

    #[test]
    fn a_review_shows_everything_but_secrets() {
        let schema = json!({ "properties": { "name": { "type": "string" },
                                             "password": { "type": "string" } } });
        let form = Questionnaire::of(&schema).unwrap();
        let answer = json!({ "name": "Ada", "password": "hunter2" });
        let page = review(&form.fields, answer.as_object().unwrap(), &["name: is odd".to_owned()]);
        assert_snapshot!(shown(&page), @r#"
        The answer:
          name = "Ada"
          password = ‹secret›
          invalid: name: is odd
        "#);
    }

    #[test]
    fn tricks_with_addresses_are_named() {
        for (url, words) in [
            ("https://bank.example@evil.example/x", "the host is evil.example"),
            ("http://pay.example/", "not encrypted"),
            ("https://p\u{430}ypal.example/", "may look like others"),
            ("http://127.0.0.1:8000/", "on this machine"),
        ] {
            let page = shown(&address(url));
            assert!(page.contains(words), "{page}");
        }
        let fine = shown(&address("https://pay.example/a?b=c"));
        assert_snapshot!(fine, @r"
          https://pay.example/a?b=c
          host: pay.example:443
        ");
        assert!(shown(&address("https://p\u{430}ypal.example/")).contains("xn--pypal-4ve.example"));
    }

    #[test]
    fn a_conversation_is_shown_by_its_end() {
        let message = |n: usize| json!({ "role": "user", "content": { "type": "text", "text": n.to_string() } });
        let messages: Vec<Value> = (0..25).map(message).collect();
        let params = json!({ "messages": messages, "systemPrompt": "Be kind", "maxTokens": 9 });
        let page = shown(&conversation(&params));
        assert!(page.starts_with("  system:\n  Be kind\n  … 5 earlier messages\n"), "{page}");
        assert!(page.ends_with("  user:\n  24\n  at most 9 tokens\n"), "{page}");
    }
}
