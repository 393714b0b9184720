//! The state of a form: the arguments of a call, or the answer to a server's question.

pub mod actions;
pub mod draw;
#[cfg(test)]
pub mod draw_tests;
#[cfg(test)]
pub mod tests;

use serde_json::Value;

use crate::host::example;
use crate::host::form::{FieldInput, FieldKind, FieldRow, FormNode, ResolvedSchema, RowPart};
use crate::host::validate::Violation;
use crate::model::ToolDefinition;
use crate::tui::keys::KeyPress::{
    Alt, AltEnter, BackTab, Backspace, Char, Ctrl, Delete, Down, Enter, Esc, F, Left, PageDown,
    PageUp, Right, Tab, Up,
};
use crate::tui::prelude::*;
use crate::tui::user_program::EditorDraft;
use crate::tui::widgets::list::step_around;

/// How much of what would be sent is shown, in characters.
const MAX_PREVIEW_CHARS: usize = 2_000;

#[derive(Debug, Clone)]
pub struct SchemaForm {
    /// Whose arguments these are: a tool's full name, as a rule.
    pub tool: String,
    /// The lines that are shown: required fields first, else as the schema has them.
    pub fields: Vec<FormRow>,
    pub at: usize,
    /// The error of the form, after a check.
    pub problem: Option<String>,
    /// Whether what it is filled with is from an earlier call.
    pub is_remembered: bool,
    /// Whether something was changed since it was opened, or since its call was made.
    pub is_edited: bool,
    root: FormNode,
    schema: Arc<Value>,
    is_call: bool,
    command_end: String,
    /// The text of the chosen field, once something was typed there.
    written: Option<TextInput>,
    /// The error in the text being typed, as far as it can be known while typing.
    draft_problem: Option<String>,
    /// The whole as a text, while it is written so.
    pub json: Option<TextInput>,
    violations: Vec<Violation>,
    pub summary: FormSummary,
}

/// The summary below the fields, updated with every change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormSummary {
    /// Exactly what will be sent, but for secrets; its beginning when it is long.
    pub preview: String,
    pub command: Option<String>,
    /// How many fields have to be filled in.
    pub required: usize,
    pub filled: usize,
    pub is_valid: bool,
}

impl SchemaForm {
    pub fn of(tool: &ToolDefinition, earlier: Option<&JsonObject>) -> Self {
        let mut form = Self::of_schema(tool.name.full(), tool.input_schema.whole(), earlier);
        form.is_call = true;
        form.command_end = tool.command_end();
        form.show();
        form
    }

    /// The form of an object with this schema, filled with the known values. `title` says whose
    /// it is.
    pub fn of_schema(
        title: impl Into<String>,
        schema: &Arc<Value>,
        earlier: Option<&JsonObject>,
    ) -> Self {
        let mut form = Self {
            tool: title.into(),
            fields: Vec::new(),
            at: 0,
            problem: None,
            is_remembered: false,
            is_edited: false,
            root: FormNode::of_object(ResolvedSchema::of(schema), earlier),
            schema: Arc::clone(schema),
            is_call: false,
            command_end: String::new(),
            written: None,
            draft_problem: None,
            json: None,
            violations: Vec::new(),
            summary: FormSummary::default(),
        };
        if matches!(form.root.input, FieldInput::Json(_)) {
            form.write_json();
        }
        form.changed();
        form.is_edited = false;
        form
    }

    /// Whether it asks for what this tool takes.
    pub fn is_of(&self, tool: &ToolDefinition) -> bool {
        self.tool == tool.name.full() && self.schema == *tool.input_schema.whole()
    }

    /// The text that is being written, if the line takes one.
    pub fn line(&mut self) -> Option<&mut TextInput> {
        if self.json.is_some() {
            return self.json.as_mut();
        }
        let node = self.node().filter(|_| self.part() == RowPart::Field)?;
        (node.is_text_input() || node.is_picked()).then(|| self.draft())
    }

    /// The text of several lines that is being written: the whole as JSON, or a field that takes
    /// them.
    pub fn text(&mut self) -> Option<&mut TextInput> {
        if self.json.is_none() && self.takes_lines() {
            return Some(self.draft());
        }
        self.json.as_mut()
    }

    pub fn on_text_changed(&mut self) {
        if self.json.is_some() {
            return self.changed();
        }
        let Some(text) = self.written.as_ref().map(|written| written.text().to_owned()) else {
            return;
        };
        let Some(node) = self.node_mut() else { return };
        if node.is_picked() {
            return self.pick_typed(&text);
        }
        if node.text() != Some(text.as_str()) {
            node.set_text(&text);
            self.changed();
        }
    }

    pub fn key_contexts(&self) -> Vec<KeyContext> {
        if self.json.is_some() {
            return vec![&LINES];
        }
        let Some(node) = self.node().filter(|_| self.part() == RowPart::Field) else {
            return [self.last(), vec![&FORM_ITEMS, &FORM]].concat();
        };
        let own: &[KeyContext] = match node.field.kind {
            _ if self.takes_lines() => &[&FIELD_LINES],
            FieldKind::Choice(_) => &[&CHOICE],
            FieldKind::Boolean | FieldKind::Variants(_) => &[&CHOICE, &FORM_ITEMS],
            _ if node.is_text_input() => &[],
            _ => &[&FORM_ITEMS],
        };
        [self.last(), own.to_vec(), vec![&FORM]].concat()
    }

    fn last(&self) -> Vec<KeyContext> {
        let is_last = self.at + 1 >= self.fields.len();
        is_last.then_some(&FORM_LAST).into_iter().collect()
    }

    /// Whether the chosen field takes text of several lines.
    pub fn takes_lines(&self) -> bool {
        let takes = |node: &FormNode| {
            matches!(node.input, FieldInput::Json(_))
                || matches!(node.field.kind, FieldKind::Text | FieldKind::Any | FieldKind::Json)
        };
        self.part() == RowPart::Field && self.node().is_some_and(takes)
    }

    /// Selects the only choice that starts with what was typed.
    pub fn complete_choice(&mut self) {
        let Some(node) = self.node_mut() else { return };
        let (FieldInput::Text(text), FieldKind::Choice(all)) = (&node.input, &node.field.kind)
        else {
            return;
        };
        let begun = text.to_lowercase();
        let mut choices =
            (0..all.len()).filter(|at| all[*at].title.to_lowercase().starts_with(&begun));
        if let (false, Some(only), None) = (begun.is_empty(), choices.next(), choices.next()) {
            node.input = FieldInput::Choice(only);
            self.written = None;
            self.changed();
        }
    }

    pub fn arguments(&self) -> JsonObject {
        if let Some(text) = &self.json {
            return object(text.text()).unwrap_or_default();
        }
        match self.root.value() {
            Some(Value::Object(object)) => object,
            _ => JsonObject::new(),
        }
    }

    /// The first line that has to be filled in and is not.
    pub fn missing(&self) -> Option<usize> {
        if let Some(text) = &self.json {
            return object(text.text()).is_err().then_some(self.at);
        }
        let required = self.root.required_fields();
        let way = required.missing.first()?;
        // What is folded is asked for where it is folded.
        let is_on_the_way = |row: &FormRow| {
            row.place.part == RowPart::Field && way.starts_with(&row.place.index_path)
        };
        let last = self.fields.iter().rposition(is_on_the_way);
        Some(last.unwrap_or(0))
    }

    /// The first field that is not written as its type is, and why.
    fn syntax_problem(&self) -> Option<(usize, String)> {
        self.fields.iter().enumerate().find_map(|(at, row)| {
            let why = self.node_of(row)?.syntax_error()?;
            Some((at, format!("{} {why}", row.place.path)))
        })
    }

    /// Whether it can be sent, judging by a quick check; if not, goes to the first problem and
    /// says so.
    pub fn is_ready(&mut self) -> bool {
        self.complete_choice();
        if let Some(Err(why)) = self.json.as_ref().map(|text| object(text.text())) {
            self.problem = Some(why.message().to_owned());
            return false;
        }
        let missing = self
            .missing()
            .and_then(|at| Some((at, format!("{} is required", self.fields.get(at)?.place.path))));
        let first = missing.into_iter().chain(self.syntax_problem()).min_by_key(|(at, _)| *at);
        let Some((at, problem)) = first else { return true };
        self.go_to(at);
        self.problem = Some(problem);
        false
    }

    /// What is to be done to check the form, or else to write it in an editor.
    pub fn action_effect(&mut self, action: Action) -> Option<AppEffect> {
        if action == Action::Validate {
            return self.is_ready().then(|| self.check());
        }
        if self.root.holds_secret() {
            self.problem = Some(SECRET_NOT_SHOWN.to_owned());
            return None;
        }
        let draft = EditorDraft { name: "arguments.json", text: self.whole() };
        Some(AppEffect::OpenEditor(draft))
    }

    pub fn check(&self) -> AppEffect {
        AppEffect::ValidateArguments {
            schema: Arc::clone(&self.schema),
            arguments: self.arguments(),
        }
    }

    /// Takes in the findings of a check if they match the current input; returns whether they did.
    pub fn checked(
        &mut self,
        schema: &Arc<Value>,
        arguments: &JsonObject,
        found: &[Violation],
    ) -> bool {
        if !Arc::ptr_eq(schema, &self.schema) || *arguments != self.arguments() {
            return false;
        }
        self.violations = found.to_vec();
        self.summary.is_valid = found.is_empty() && self.syntax_problem().is_none();
        self.problem = match found {
            [] => self.problem.take(),
            [one] => Some(one.to_string()),
            [first, ..] => Some(format!("{} problems; {first}", found.len())),
        };
        self.rebuild_rows();
        let first = self.fields.iter().position(|row| !row.problems.is_empty());
        self.go_to(first.unwrap_or(self.at));
        true
    }

    /// Takes in what was written elsewhere, or why nothing was.
    pub fn apply_editor_result(&mut self, outcome: Result<String, Error>) {
        match outcome {
            Ok(text) => self.take_text(&text),
            Err(error) => self.problem = Some(error.to_string()),
        }
    }

    pub fn node_of(&self, row: &FormRow) -> Option<&FormNode> {
        self.root.at(&row.place.index_path)
    }

    /// The error in the text being typed, as far as it can be known while typing.
    pub fn draft_problem(&self) -> Option<&str> {
        let problem = self.draft_problem.as_deref().filter(|_| self.written.is_some())?;
        // A check may have found the same.
        let is_marked = self.fields.get(self.at)?.problems.iter().any(|own| own == problem);
        (!is_marked).then_some(problem)
    }

    /// Whether items can be added to the chosen line, or removed with it.
    pub fn has_items(&self) -> bool {
        self.list_here(false).is_some()
    }

    pub fn asks_for_secret(&self) -> bool {
        self.root.asks_for_secret()
    }

    fn go_to(&mut self, at: usize) {
        if at != self.at {
            self.written = None;
        }
        self.at = at;
    }

    fn part(&self) -> RowPart {
        self.fields.get(self.at).map_or(RowPart::Field, |row| row.place.part)
    }

    fn node(&self) -> Option<&FormNode> {
        self.root.at(&self.fields.get(self.at)?.place.index_path)
    }

    fn node_mut(&mut self) -> Option<&mut FormNode> {
        self.root.at_mut(&self.fields.get(self.at)?.place.index_path)
    }

    fn step(&mut self, by: isize) {
        let at = step_around(self.at, by, self.fields.len());
        self.complete_choice();
        (self.at, self.written) = (at, None);
        self.rebuild_rows();
    }

    fn whole(&self) -> String {
        match &self.json {
            Some(text) => text.text().to_owned(),
            None => format!("{:#}", Value::Object(self.arguments())),
        }
    }

    fn write_json(&mut self) {
        let text = match &self.root.input {
            FieldInput::Json(text) => text.clone(),
            _ => self.whole(),
        };
        self.json = Some(TextInput::at_start(text));
    }

    /// Takes a text for the whole: into the fields, or unchanged when it is not an object.
    fn take_text(&mut self, text: &str) {
        let was_json = self.json.take().is_some();
        self.written = None;
        match object(text) {
            Ok(object) if !was_json => self.fill(&object),
            other => {
                self.problem = other.err().map(|why| why.message().to_owned());
                self.json = Some(TextInput::at_start(text));
            }
        }
        let problem = self.problem.take();
        self.changed();
        self.problem = problem;
    }

    fn fill(&mut self, object: &JsonObject) {
        self.root = FormNode::of_object(ResolvedSchema::of(&self.schema), Some(object));
        if matches!(self.root.input, FieldInput::Json(_)) {
            self.write_json();
        }
    }

    /// The input changed: rebuilds the lines and what is below them.
    fn changed(&mut self) {
        (self.problem, self.is_edited) = (None, true);
        self.draft_problem = self.node().and_then(FormNode::draft_problem);
        if let Some(here) = self.fields.get(self.at).map(|row| &row.place.path.0) {
            self.violations.retain(|found| !found.path.0.starts_with(here));
        }
        self.rebuild_rows();
        self.show();
    }

    fn rebuild_rows(&mut self) {
        let before =
            self.fields.get(self.at).map(|row| (row.place.index_path.clone(), row.place.part));
        let written = before.as_ref().filter(|_| self.written.is_some());
        self.fields = rows(&self.root, &self.violations, written.map(|(path, _)| path.as_slice()));
        let same = |row: &FormRow| {
            before.as_ref() == Some(&(row.place.index_path.clone(), row.place.part))
        };
        let same = self.fields.iter().position(same);
        self.written.take_if(|_| same.is_none());
        self.at = same.unwrap_or(self.at).min(self.fields.len().saturating_sub(1));
    }

    fn show(&mut self) {
        let whole = match &self.json {
            Some(_) => Value::Object(self.arguments()),
            None => self.root.masked_value().unwrap_or_default(),
        };
        let required = self.root.required_fields();
        let object = whole.as_object().filter(|_| self.is_call);
        let command = object
            .map(|it| example::format_command(&self.tool, &self.schema, it) + &self.command_end);
        self.summary = FormSummary {
            preview: cut(whole.to_string()),
            command: command.map(cut),
            required: required.total,
            filled: required.total.saturating_sub(required.missing.len()),
            is_valid: false,
        };
    }
}

const SECRET_NOT_SHOWN: &str = "holds a secret, which is not shown; Del unsets the field";

/// The object that a text is.
pub fn object(text: &str) -> Result<JsonObject, Error> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Error::usage("must be a JSON object: { … }")),
        Err(why) => {
            // The parser puts the place last; here it comes first.
            let message = why.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            let (line, column) = (why.line(), why.column());
            Err(Error::usage(format!("{line}:{column}: not JSON: {message}")))
        }
    }
}

fn cut(text: String) -> String {
    if text.len() <= MAX_PREVIEW_CHARS {
        return text;
    }
    let (shown, rest) = text.split_at(text.floor_char_boundary(MAX_PREVIEW_CHARS));
    format!("{shown}… {} more bytes", rest.len())
}

/// Whether a line can be unfolded.
pub fn folds(kind: &FieldKind) -> bool {
    matches!(kind, FieldKind::Object | FieldKind::List | FieldKind::MultiChoice(_))
}

/// How many problems are shown beside one field.
const PROBLEMS: usize = 3;

#[derive(Debug, Clone)]
pub struct FormRow {
    /// The property, or what else the line is called.
    pub key: String,
    pub place: FieldRow,
    /// The violations at this location.
    pub problems: Vec<String>,
}

/// The lines, and beside each what was found there or in something that is folded in it.
/// What does not read as a value is marked, too, but for the field that is being written.
pub fn rows(root: &FormNode, found: &[Violation], written: Option<&[usize]>) -> Vec<FormRow> {
    let mut rows: Vec<FormRow> = root
        .rows()
        .into_iter()
        .map(|place| FormRow { key: key(root, &place), place, problems: Vec::new() })
        .collect();
    for row in rows.iter_mut().filter(|row| row.place.part == RowPart::Field) {
        let node = root
            .at(&row.place.index_path)
            .filter(|_| written != Some(row.place.index_path.as_slice()));
        row.problems.extend(node.and_then(FormNode::syntax_error));
    }
    for problem in found {
        let holds = |row: &&mut FormRow| {
            row.place.part == RowPart::Field && problem.path.0.starts_with(&row.place.path.0)
        };
        // The last that holds it is the nearest one: what is inside stands below.
        let Some(row) = rows.iter_mut().filter(holds).max_by_key(|row| row.place.path.0.len())
        else {
            continue;
        };
        let inside = problem.path.0.len() > row.place.path.0.len();
        let is_said =
            !inside && root.at(&row.place.index_path).and_then(FormNode::syntax_error).is_some();
        if row.problems.len() < PROBLEMS && !is_said {
            let text = if inside { problem.to_string() } else { problem.message.clone() };
            row.problems.push(text);
        }
    }
    rows
}

fn key(root: &FormNode, place: &FieldRow) -> String {
    let Some(node) = root.at(&place.index_path) else { return String::new() };
    match (place.part, &node.field.kind) {
        (RowPart::Choice(at), FieldKind::MultiChoice(choices)) => {
            choices.get(at).map(|choice| choice.title.clone()).unwrap_or_default()
        }
        _ if node.field.key.is_empty() && place.index_path.is_empty() => "form".to_owned(),
        _ if node.field.key.is_empty() => "value".to_owned(),
        _ => node.field.key.clone(),
    }
}

#[rustfmt::skip]
pub const FORM: KeyTable = KeyTable { name: "form", title: "Arguments", rows: &[
    row(&[Enter, Tab, Down], Action::NextField, "next", "next field; on the last one run"),
    row(&[F(5), AltEnter, Ctrl('j'), Ctrl('r')], Action::Run, "run", "run the call"),
    row(&[BackTab, Up], Action::PreviousField, "", "previous field"),
    row(&[Left], Action::PreviousChoice, "", "previous choice, fold, or cursor left"),
    row(&[Right], Action::NextChoice, "", "next choice, unfold, or cursor right"),
    row(&[F(6), Alt('v')], Action::Validate, "dry run",
        "show what would be sent, without sending it"),
    row(&[Delete], Action::Unset, "", "unset the field"),
    row(&[Ctrl('n')], Action::Null, "", "send null for the field"),
    row(&[Ctrl('t')], Action::SwitchForm, "JSON", "switch between JSON and fields"),
    row(&[Ctrl('e')], Action::Editor, "", "edit in $VISUAL or $EDITOR"),
    row(&[Ctrl('s')], Action::SaveCall, "", "save the call under a name, for 'toolhost run NAME'"),
    row(&[Alt('+')], Action::Add, "", "add an item"),
    row(&[Alt('-')], Action::Remove, "", "remove the item"),
    row(&[Esc], Action::Back, "back", "back to the list"),
] };

#[rustfmt::skip]
pub const FORM_LAST: KeyTable = KeyTable { name: "last-field", title: "The last field of arguments", rows: &[
    row(&[Enter], Action::Run, "run", "run the call"),
] };

#[rustfmt::skip]
pub const FORM_ITEMS: KeyTable = KeyTable { name: "items", title: "Arguments without text", rows: &[
    row(&[Char('+')], Action::Add, "add", "add an item"),
    row(&[Char('-')], Action::Remove, "remove", "remove the item"),
    row(&[Char(' ')], Action::NextChoice, "", "next choice, unfold or select"),
] };

#[rustfmt::skip]
pub const FIELD_LINES: KeyTable = KeyTable { name: "field-lines", title: "Text in arguments", rows: &[
    row(&[Ctrl('g')], Action::NewLine, "new line", "start a new line"),
    row(&[Up], Action::Up, "", "line up, or previous field"),
    row(&[Down], Action::Down, "", "line down, or next field"),
] };

#[rustfmt::skip]
pub const CHOICE: KeyTable = KeyTable { name: "field-choice", title: "Choices in arguments", rows: &[
    row(&[Right], Action::NextChoice, "next choice", "next choice"),
    row(&[Left], Action::PreviousChoice, "", "previous choice (or type its start)"),
] };

#[rustfmt::skip]
pub const LINES: KeyTable = KeyTable { name: "lines", title: "Multi-line text", rows: &[
    row(&[F(5), AltEnter, Ctrl('j'), Ctrl('r')], Action::Run, "run",
        "run the call or send the answer"),
    row(&[Enter], Action::Add, "", "new line"),
    row(&[Backspace], Action::Remove, "", "delete the character before the cursor"),
    row(&[Up], Action::Up, "", "line up"),
    row(&[Down], Action::Down, "", "line down"),
    row(&[PageUp], Action::PageUp, "", "page up"),
    row(&[PageDown], Action::PageDown, "", "page down"),
    row(&[F(6), Alt('v')], Action::Validate, "check", "check without sending"),
    row(&[Ctrl('t')], Action::SwitchForm, "fields", "back to the fields"),
    row(&[Ctrl('e')], Action::Editor, "editor", "edit in $VISUAL or $EDITOR"),
    row(&[Esc], Action::Back, "back", "back to the list"),
] };
