//! Asking for the fields of a server's form, one by one.

use serde_json::Value;

use super::choice::{InboxChoice, choices, choose};
use super::terminal_session::{TerminalInput, TerminalSession};
use crate::cli::questionnaire::{self, FormField, Questionnaire};
use crate::model::{JsonObject, QuestionReply};
use crate::present::{Line, Page, Role, question};

/// Maximum number of attempts per field, and of edits of the whole form.
const MAX_ATTEMPTS: usize = 20;

pub(super) async fn fill_in(session: &TerminalSession, who: &str, schema: &Value) -> QuestionReply {
    let form = match Questionnaire::of(schema) {
        Ok(form) => form,
        Err(why) => {
            let message = format!("Declined, because the form cannot be shown: {why}.");
            session.show(&Page::from(Line::styled(Role::Warning, message)));
            return QuestionReply::Decline;
        }
    };
    if form.fields.iter().any(|field| field.secret) {
        session.show(&question::secret_warning(who));
    }
    if !form.fields.is_empty() {
        let count = form.fields.len();
        let fields = if count == 1 { "1 field".to_owned() } else { format!("{count} fields") };
        let begin = choices(
            &format!("Answer '{who}'? It asks for {fields}."),
            "Enter to fill in, d to decline, c to cancel",
        );
        match choose(session, &begin, &[], true).await {
            InboxChoice::Continue | InboxChoice::Edit => {}
            InboxChoice::Decline => return QuestionReply::Decline,
            InboxChoice::Cancel => return QuestionReply::Cancel,
        }
    }
    let mut answer = JsonObject::new();
    let mut fill = true;
    for _ in 0..MAX_ATTEMPTS {
        if fill {
            match ask_all(session, &form, &answer).await {
                Some(filled) => answer = filled,
                None => return QuestionReply::Cancel,
            }
        }
        let errors = form.violations(&answer).await;
        session.show(&question::review(&form.fields, &answer, &errors));
        let rest = if errors.is_empty() {
            "s to send, e to edit, d to decline, c to cancel"
        } else {
            "e to edit, d to decline, c to cancel"
        };
        let send = choices(&format!("Send this to '{who}'?"), rest);
        fill = match choose(session, &send, &["s", "send"], false).await {
            InboxChoice::Continue if errors.is_empty() => {
                return QuestionReply::Accept(Value::Object(answer));
            }
            InboxChoice::Continue => false,
            InboxChoice::Edit => true,
            InboxChoice::Decline => return QuestionReply::Decline,
            InboxChoice::Cancel => return QuestionReply::Cancel,
        };
    }
    QuestionReply::Cancel
}

/// Asks for each field; `None` when the person cancels.
async fn ask_all(
    session: &TerminalSession,
    form: &Questionnaire,
    before: &JsonObject,
) -> Option<JsonObject> {
    let mut answer = JsonObject::new();
    for field in &form.fields {
        // In an edit, Enter keeps the earlier input.
        let mut field = field.clone();
        if let Some(earlier) = before.get(&field.key) {
            field.default = Some(earlier.clone());
        }
        if let Some(value) = ask(session, &field).await? {
            answer.insert(field.key, value);
        }
    }
    Some(answer)
}

async fn ask(session: &TerminalSession, field: &FormField) -> Option<Option<Value>> {
    let mut page = question::field(field);
    for _ in 0..MAX_ATTEMPTS {
        let typed =
            if field.secret { session.ask_hidden(page).await } else { session.ask(page).await };
        let TerminalInput::Line(typed) = typed else { return None };
        match questionnaire::read(field, &typed).await {
            Ok(value) => return Some(value),
            Err(why) => {
                page = Page::from(Line::styled(Role::Warning, format!("{}: {why}.", field.title)));
                page.push(question::entry(field));
            }
        }
    }
    None
}
