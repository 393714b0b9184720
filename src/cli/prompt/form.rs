//! Filling in a server's form, field by field.
//!
//! Owns: the order of the talk: fill in or not, each field until it fits, the whole answer shown,
//! and only then a word that sends it.

use serde_json::Value;

use super::inbox::{Choice, choices, choose};
use super::talk::{Talk, Typed};
use crate::cli::output::{Label, Line, Page};
use crate::cli::questionnaire::{self, Field, Questionnaire};
use crate::cli::views::question as view;
use crate::model::{JsonObject, Reply};

/// How often one field may be filled in wrongly, and how often the whole may be edited.
const PATIENCE: usize = 20;

/// Asks for a form.
pub(super) async fn fill_in(talk: &Talk, who: &str, schema: &Value) -> Reply {
    let form = match Questionnaire::of(schema) {
        Ok(form) => form,
        Err(why) => {
            let words = format!("This cannot be asked, so it is declined: {why}.");
            talk.show(&Page::from(Line::of(Label::Warning, words)));
            return Reply::Decline;
        }
    };
    if form.fields.iter().any(|field| field.secret) {
        talk.show(&view::secret_warning(who));
    }
    if !form.fields.is_empty() {
        let count = form.fields.len();
        let fields = if count == 1 { "1 field".to_owned() } else { format!("{count} fields") };
        let begin = choices(
            &format!("Answer '{who}'? It asks for {fields}."),
            "Enter to fill in, d to decline, c to cancel",
        );
        match choose(talk, &begin, &[], true).await {
            Choice::Go | Choice::Edit => {}
            Choice::Decline => return Reply::Decline,
            Choice::Cancel => return Reply::Cancel,
        }
    }
    let mut answer = JsonObject::new();
    let mut fill = true;
    for _ in 0..PATIENCE {
        if fill {
            match ask_all(talk, &form, &answer).await {
                Some(filled) => answer = filled,
                None => return Reply::Cancel,
            }
        }
        let faults = form.faults(&answer).await;
        talk.show(&view::review(&form, &answer, &faults));
        let rest = if faults.is_empty() {
            "s to send, e to edit, d to decline, c to cancel"
        } else {
            "e to edit, d to decline, c to cancel"
        };
        let send = choices(&format!("Send this to '{who}'?"), rest);
        fill = match choose(talk, &send, &["s", "send"], false).await {
            Choice::Go if faults.is_empty() => return Reply::Accept(Value::Object(answer)),
            Choice::Go => false,
            Choice::Edit => true,
            Choice::Decline => return Reply::Decline,
            Choice::Cancel => return Reply::Cancel,
        };
    }
    Reply::Cancel
}

/// Asks for each field; `None` when somebody has had enough.
async fn ask_all(talk: &Talk, form: &Questionnaire, before: &JsonObject) -> Option<JsonObject> {
    let mut answer = JsonObject::new();
    for field in &form.fields {
        // What was typed before an edit is what Enter takes.
        let mut field = field.clone();
        if let Some(earlier) = before.get(&field.key) {
            field.default = Some(earlier.clone());
        }
        if let Some(value) = ask(talk, &field).await? {
            answer.insert(field.key, value);
        }
    }
    Some(answer)
}

async fn ask(talk: &Talk, field: &Field) -> Option<Option<Value>> {
    let mut page = view::field(field);
    for _ in 0..PATIENCE {
        let typed = if field.secret { talk.ask_hidden(page).await } else { talk.ask(page).await };
        let Typed::Line(typed) = typed else { return None };
        match questionnaire::read(field, &typed).await {
            Ok(value) => return Some(value),
            Err(why) => {
                page = Page::from(Line::of(Label::Warning, format!("{}: {why}.", field.title)));
                page.push(view::entry(field));
            }
        }
    }
    None
}
