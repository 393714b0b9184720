//! The arguments of a call while they are filled in.
//!
//! Owns: fields made from a tool's schema, each unset, null or a value; what the object is that they
//! make; what does not fit. Never does: send anything.

use std::sync::Arc;

use serde_json::Value;

use super::Line;
use crate::host::coerce;
use crate::host::example::{resolve, type_of};
use crate::host::request::ArgumentWord;
use crate::model::{JsonObject, ToolDefinition};
use crate::tui::keys::Action;

/// How many fields are shown; what a tool takes beyond is typed as JSON on the command line.
const FIELDS: usize = 200;

/// A form.
#[derive(Debug, Clone)]
pub struct Form {
    /// Whose arguments these are: a tool's full name, as a rule.
    pub tool: String,
    /// The fields: required ones first, else as the schema has them.
    pub fields: Vec<Field>,
    /// The one that is being filled in.
    pub at: usize,
    /// What is wrong with the arguments, when that was found out.
    pub problem: Option<String>,
    schema: Arc<Value>,
}

/// One argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The property.
    pub key: String,
    /// What it takes, in a word or two.
    pub kind: String,
    /// What is said about it.
    pub about: Option<String>,
    /// Whether the tool wants it.
    pub is_required: bool,
    /// What it is when it is left out.
    pub default: Option<Value>,
    /// What it may be, when that is a list.
    pub choices: Vec<Value>,
    /// What it is.
    pub state: FieldState,
    /// What was written, if that is what it is. The schema says what it means.
    pub line: Line,
}

/// What a field is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldState {
    /// Left out: the tool never hears of it.
    #[default]
    Unset,
    /// `null`.
    Null,
    /// What was written, be it nothing.
    Written,
}

impl Form {
    /// The form of a tool, filled with the arguments of an earlier call.
    pub fn of(tool: &ToolDefinition, earlier: Option<&JsonObject>) -> Self {
        Self::of_schema(tool.name.full(), &tool.input_schema, earlier)
    }

    /// The form of an object with this schema, filled with what is known of it. `title` says whose
    /// it is.
    pub fn of_schema(
        title: impl Into<String>,
        schema: &Arc<Value>,
        earlier: Option<&JsonObject>,
    ) -> Self {
        let top = resolve(schema, schema, 0);
        let required: Vec<&str> = top
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = top.get("properties").and_then(Value::as_object);
        let mut fields: Vec<Field> = properties
            .into_iter()
            .flatten()
            .take(FIELDS)
            .map(|(key, property)| {
                let property = resolve(schema, property, 0);
                let mut field = Field::of(key, property, required.contains(&key.as_str()));
                if let Some(value) = earlier.and_then(|earlier| earlier.get(key)) {
                    field.hold(value);
                }
                field
            })
            .collect();
        fields.sort_by_key(|field| !field.is_required);
        Self { tool: title.into(), fields, at: 0, problem: None, schema: Arc::clone(schema) }
    }

    /// Does what a key stands for, when it is about the fields.
    pub fn act(&mut self, action: Action) -> bool {
        match action {
            Action::PreviousField => self.step(-1),
            Action::NextField => self.step(1),
            Action::PreviousChoice => self.choose(-1),
            Action::NextChoice => self.choose(1),
            Action::Unset => self.set(FieldState::Unset),
            Action::Null => self.set(FieldState::Null),
            _ => return false,
        }
        true
    }

    /// The text that is being written.
    pub fn line(&mut self) -> Option<&mut Line> {
        self.field().map(Field::write)
    }

    /// That text was changed.
    pub fn rewritten(&mut self) {
        self.problem = None;
    }

    fn choose(&mut self, by: isize) {
        let Some(field) = self.field() else { return };
        if !field.choices.is_empty() {
            field.choose(by);
        } else if by < 0 {
            field.line.left();
        } else {
            field.line.right();
        }
    }

    fn set(&mut self, state: FieldState) {
        if let Some(field) = self.field() {
            field.state = state;
            field.line.clear();
        }
    }

    /// The field that is being filled in.
    pub fn field(&mut self) -> Option<&mut Field> {
        self.fields.get_mut(self.at)
    }

    /// Another field; beyond the last one is the first.
    pub fn step(&mut self, by: isize) {
        let length = isize::try_from(self.fields.len().max(1)).unwrap_or(1);
        let at = isize::try_from(self.at).unwrap_or(0) + by;
        self.at = usize::try_from(at.rem_euclid(length)).unwrap_or(0);
    }

    /// The arguments, exactly as they will be sent.
    pub fn arguments(&self) -> JsonObject {
        let words: Vec<ArgumentWord> = self.fields.iter().filter_map(Field::word).collect();
        // No key is there twice, and nothing else is refused.
        coerce::coerce(&words, &self.schema).unwrap_or_default()
    }

    /// The first field that the tool wants and nobody filled in.
    pub fn missing(&self) -> Option<usize> {
        self.fields.iter().position(|f| f.is_required && f.state == FieldState::Unset)
    }
}

impl Field {
    fn of(key: &str, property: &Value, is_required: bool) -> Self {
        let choices = property.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let kind = type_of(property).map_or("any", |kind| kind).to_owned();
        let about = property.get("description").and_then(Value::as_str).map(str::to_owned);
        Self {
            key: key.to_owned(),
            choices: if choices.is_empty() && kind == "boolean" {
                vec![Value::Bool(false), Value::Bool(true)]
            } else {
                choices
            },
            kind,
            about,
            is_required,
            default: property.get("default").cloned(),
            state: FieldState::Unset,
            line: Line::default(),
        }
    }

    /// Fills it in.
    pub fn hold(&mut self, value: &Value) {
        if value.is_null() {
            self.state = FieldState::Null;
        } else {
            self.line = Line::of(written(value));
            self.state = FieldState::Written;
        }
    }

    fn word(&self) -> Option<ArgumentWord> {
        let key = self.key.clone();
        match self.state {
            FieldState::Unset => None,
            FieldState::Null => Some(ArgumentWord::Json { key, value: Value::Null }),
            FieldState::Written => {
                Some(ArgumentWord::Text { key, value: self.line.text().to_owned() })
            }
        }
    }

    /// Takes the next of its choices, or the one before.
    pub fn choose(&mut self, by: isize) {
        let length = isize::try_from(self.choices.len()).unwrap_or(0);
        if length == 0 {
            return;
        }
        let is_written = self.state == FieldState::Written;
        let now = self.choices.iter().position(|choice| written(choice) == self.line.text());
        let now = now.filter(|_| is_written).and_then(|at| isize::try_from(at).ok());
        let next = match now {
            Some(now) => (now + by).rem_euclid(length),
            None if by < 0 => length - 1,
            None => 0,
        };
        let choice = usize::try_from(next).ok().and_then(|next| self.choices.get(next));
        if let Some(choice) = choice.cloned() {
            self.hold(&choice);
        }
    }

    /// The line, to be written in.
    pub fn write(&mut self) -> &mut Line {
        if self.state != FieldState::Written {
            self.line.clear();
            self.state = FieldState::Written;
        }
        &mut self.line
    }
}

/// A value as somebody would write it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
