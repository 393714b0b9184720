//! The form for the arguments of a template or a prompt.

use serde_json::{Value, json};

use crate::model::{Completion, CompletionQuery, CompletionReference, PromptArgument};
use crate::tui::prelude::*;
use crate::tui::views::offerings::tasks;
use crate::tui::views::offerings::tree::{OfferingId, OfferingKind, OfferingTree};
use crate::util::uri_template::{self, expand};

const MAX_SUGGESTIONS: usize = 100;

/// The form of a template or prompt while it is filled in.
#[derive(Debug)]
pub struct OfferingForm {
    /// The template or prompt that is filled in.
    pub item: OfferingId,
    pub form: SchemaForm,
    pub suggestions: Suggestions,
    pending_query: Option<CompletionQuery>,
    /// The newest query that was answered, so that it is not sent again.
    last_query: Option<CompletionQuery>,
    is_unsupported: bool,
}

#[derive(Debug, Default, PartialEq)]
pub struct Suggestions {
    pub values: Vec<String>,
    pub accepted: Option<usize>,
    /// How many more there are, when the server says.
    pub more: Option<u64>,
    pub error: Option<String>,
}

impl OfferingForm {
    /// The form of an item; `None` when it takes no arguments.
    pub fn of(
        tree: &OfferingTree,
        item: &OfferingId,
        earlier: Option<&JsonObject>,
    ) -> Option<Self> {
        let offering = tree.offering(item)?;
        let schema = match item.kind {
            OfferingKind::Resource => return None,
            OfferingKind::Template => of_template(&offering.id),
            OfferingKind::Prompt => of_prompt(&offering.arguments),
        };
        let is_empty = schema["properties"].as_object().is_none_or(serde_json::Map::is_empty);
        (!is_empty).then(|| Self {
            item: item.clone(),
            form: SchemaForm::of_schema(&*item.name, &Arc::new(schema), earlier),
            suggestions: Suggestions::default(),
            pending_query: None,
            last_query: None,
            is_unsupported: false,
        })
    }

    /// The arguments; all of them are texts.
    pub fn text_arguments(&self) -> JsonObject {
        let text = |value: Value| match value {
            Value::String(text) => Value::String(text),
            Value::Null => Value::String(String::new()),
            other => Value::String(other.to_string()),
        };
        self.form.arguments().into_iter().map(|(key, value)| (key, text(value))).collect()
    }

    /// The address that the template makes of them; `None` for a prompt.
    pub fn address(&self) -> Option<String> {
        let texts = self.text_arguments();
        let value = |name: &str| texts.get(name).and_then(Value::as_str);
        (self.item.kind == OfferingKind::Template).then(|| expand(&self.item.name, value))
    }

    /// Asks what the field may be, unless that is known or being asked.
    pub fn complete(&mut self, context: &mut AppContext) {
        let Some(query) = self.query() else { return };
        let is_about = |other: &Option<CompletionQuery>| {
            other.as_ref().is_some_and(|other| other.argument == query.argument)
        };
        let accepted = self.suggestions.accepted.and_then(|at| self.suggestions.values.get(at));
        if is_about(&self.last_query) && accepted == Some(&query.value) {
            return;
        }
        if !is_about(&self.last_query) {
            self.suggestions = Suggestions::default();
        }
        self.suggestions.accepted = None;
        // Until the server answers, what cannot be meant any more is not suggested.
        self.suggestions.values.retain(|value| value.starts_with(&query.value));
        let is_same = self.last_query.as_ref() == Some(&query);
        if !self.is_unsupported && self.pending_query.is_none() && !is_same {
            self.pending_query = Some(query.clone());
            context.emit(tasks::complete(self.item.server.clone(), query));
        }
    }

    /// Takes in suggestions of the server, which may be outdated by now.
    pub fn completed(
        &mut self,
        query: CompletionQuery,
        done: Result<Completion, Error>,
        context: &mut AppContext,
    ) {
        if self.pending_query.as_ref() != Some(&query) {
            return;
        }
        self.pending_query = None;
        let is_current = self.query().is_some_and(|now| now.argument == query.argument);
        self.last_query = Some(query);
        match done {
            Ok(done) if is_current => {
                let shown = done.values.len() as u64;
                let more = done.total.map(|total| total.saturating_sub(shown));
                let values = done.values.into_iter().take(MAX_SUGGESTIONS).collect();
                let more = more.filter(|more| *more > 0);
                self.suggestions = Suggestions { values, more, ..Suggestions::default() };
            }
            Ok(_) => {}
            Err(error) => {
                // It says the same to every letter.
                self.is_unsupported = true;
                let error = Some(error.message().to_owned());
                self.suggestions = Suggestions { error, ..Suggestions::default() };
            }
        }
        self.complete(context);
    }

    /// Takes the next suggestion, when the cursor stands at the end; `false` when there is none.
    pub fn take_suggestion(&mut self) -> bool {
        let Suggestions { values, accepted, .. } = &mut self.suggestions;
        if values.is_empty() {
            return false;
        }
        let next = accepted.map_or(0, |at| (at + 1) % values.len());
        let Some(line) = self.form.line() else { return false };
        if !line.split().1.is_empty() {
            return false;
        }
        *line = TextInput::of(values[next].clone());
        *accepted = Some(next);
        self.form.on_text_changed();
        true
    }

    /// What would be asked about the field that is being written.
    pub fn query(&self) -> Option<CompletionQuery> {
        let key = self.form.fields.get(self.form.at)?.key.clone();
        let mut texts = self.text_arguments();
        let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
        let value = texts.shift_remove(&key).map(text).unwrap_or_default();
        Some(CompletionQuery {
            reference: match self.item.kind {
                OfferingKind::Prompt => CompletionReference::Prompt(self.item.name.clone()),
                _ => CompletionReference::Template(self.item.name.clone()),
            },
            argument: key,
            value,
            context: texts.into_iter().map(|(key, value)| (key, text(value))).collect(),
        })
    }
}

fn of_prompt(arguments: &[PromptArgument]) -> Value {
    let property = |about: Option<&str>| json!({ "type": "string", "description": about });
    let properties: JsonObject = arguments
        .iter()
        .map(|argument| {
            let about = argument.description.as_deref().or(argument.title.as_deref());
            (argument.name.clone(), property(about))
        })
        .collect();
    let required = arguments.iter().filter(|argument| argument.required);
    let required: Vec<&str> = required.map(|argument| argument.name.as_str()).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn of_template(template: &str) -> Value {
    let variables = uri_template::variables(template);
    let properties: JsonObject =
        variables.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    let required = uri_template::required_variables(template);
    json!({ "type": "object", "properties": properties, "required": required })
}
