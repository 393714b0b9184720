//! The tree of form fields and the edits a person makes to it.

use super::{
    FieldKind, FormField, MAX_DEPTH, MAX_FIELDS, MAX_ITEMS, MAX_VALUE_FIELDS, MAX_VARIANTS,
    ResolvedSchema, field,
};
use crate::model::JsonObject;

/// A field, its input, and the fields in it.
#[derive(Debug, Clone)]
pub struct FormNode {
    pub field: FormField,
    pub input: FieldInput,
    /// Its own fields, its items, or the form that was chosen; made when they are first needed.
    pub children: Vec<Self>,
    pub is_open: bool,
    pub(super) depth: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FieldInput {
    /// Nothing: it is left out, unless a field in it has input.
    #[default]
    Unset,
    /// The value `null`, chosen explicitly.
    Null,
    Text(String),
    Json(String),
    Choice(usize),
    Choices(Vec<usize>),
    /// An object or a list, which may be empty.
    Container,
}

impl FormNode {
    pub fn of_object(schema: ResolvedSchema, initial: Option<&JsonObject>) -> Self {
        let mut field = FormField::of("", schema, true);
        if !matches!(field.kind, FieldKind::Object | FieldKind::Variants(_)) {
            field.kind = FieldKind::Object;
        }
        field.secret = false;
        let mut root = Self::new(field, 0);
        root.input = if root.field.kind == FieldKind::Object {
            FieldInput::Container
        } else {
            FieldInput::Unset
        };
        root.open();
        if let Some(initial) = initial {
            let mut left = MAX_VALUE_FIELDS;
            root.set_value(&serde_json::Value::Object(initial.clone()), &mut left);
        }
        root
    }

    pub(super) fn new(field: FormField, depth: usize) -> Self {
        let mut node =
            Self { field, input: FieldInput::Unset, children: Vec::new(), is_open: false, depth };
        let nests =
            matches!(node.field.kind, FieldKind::Object | FieldKind::List | FieldKind::Variants(_));
        if nests && depth >= MAX_DEPTH {
            node.field.kind = FieldKind::Json;
        }
        node.clear();
        node
    }

    /// Leaves it out, and everything in it.
    pub fn clear(&mut self) {
        self.input = FieldInput::Unset;
        match self.field.kind {
            FieldKind::Object => self.children.iter_mut().for_each(Self::clear),
            _ => self.children.clear(),
        }
        if matches!(self.field.kind, FieldKind::Constant(_)) && self.field.required {
            self.input = FieldInput::Choice(0);
        }
    }

    fn create(&mut self) {
        if self.field.kind == FieldKind::Object {
            self.input = FieldInput::Container;
        }
        self.open();
    }

    pub fn open(&mut self) {
        if matches!(self.input, FieldInput::Null | FieldInput::Json(_)) {
            return;
        }
        match &self.field.kind {
            FieldKind::Object if self.children.is_empty() => {
                let mut fields = field::fields(&self.field.schema, MAX_FIELDS);
                fields.sort_by_key(|field| !field.required);
                let depth = self.depth + 1;
                self.children = fields.into_iter().map(|field| Self::new(field, depth)).collect();
                // What has to be filled in is shown, as far as that ends.
                for child in &mut self.children {
                    let opens =
                        matches!(child.field.kind, FieldKind::Object | FieldKind::MultiChoice(_));
                    if child.field.required && opens && depth < 4 {
                        child.create();
                    }
                }
            }
            FieldKind::Object
            | FieldKind::List
            | FieldKind::MultiChoice(_)
            | FieldKind::Variants(_) => {}
            _ => return,
        }
        self.is_open = true;
    }

    /// Adds an item to a list, at this position; makes an object, or an empty choice of many.
    /// Whether there was anything to add.
    pub fn add(&mut self, at: usize) -> bool {
        let takes_more = match self.field.kind {
            FieldKind::List => self.children.len() < MAX_ITEMS,
            FieldKind::Object | FieldKind::MultiChoice(_) => true,
            _ => false,
        };
        if !takes_more || matches!(self.input, FieldInput::Json(_)) {
            return false;
        }
        if self.input == FieldInput::Null {
            self.clear();
        }
        match self.field.kind {
            FieldKind::List => {
                let at = at.min(self.children.len());
                let mut item = self.item(at);
                item.create();
                self.children.insert(at, item);
                self.input = FieldInput::Container;
                self.number();
            }
            FieldKind::Object => self.input = FieldInput::Container,
            _ if self.input == FieldInput::Unset => self.input = FieldInput::Choices(Vec::new()),
            _ => {}
        }
        self.open();
        true
    }

    /// Takes an item away. Whether there was one.
    pub fn remove(&mut self, at: usize) -> bool {
        let is_there = self.field.kind == FieldKind::List && at < self.children.len();
        if is_there {
            self.children.remove(at);
            self.number();
        }
        is_there
    }

    pub(super) fn item(&self, at: usize) -> Self {
        let name = (at + 1).to_string();
        Self::new(FormField::of(&name, self.field.schema.item(at), true), self.depth + 1)
    }

    fn number(&mut self) {
        for (at, item) in self.children.iter_mut().enumerate() {
            item.field.key = (at + 1).to_string();
        }
    }

    /// Takes the next of its choices, or one before. Whether it has any.
    pub fn cycle_choice(&mut self, by: isize) -> bool {
        let length = match &self.field.kind {
            FieldKind::Choice(choices) => choices.len(),
            FieldKind::Boolean => 2,
            FieldKind::Constant(_) => 1,
            FieldKind::Variants(titles) => titles.len(),
            _ => return false,
        };
        let next = match (&self.input, &self.field.kind) {
            (FieldInput::Choice(at), _) => (at + length).saturating_add_signed(by) % length,
            // Typed text selects the choice that starts with it.
            (FieldInput::Text(text), FieldKind::Choice(choices)) => {
                choices.iter().position(|choice| begins_with(&choice.title, text)).unwrap_or(0)
            }
            _ if by < 0 => length - 1,
            _ => 0,
        };
        self.choose(next);
        true
    }

    /// Takes the first choice of a field without text that starts like this; a truth value also by
    /// `y`, `n`, `1` and `0`. Whether there was one.
    pub fn pick_choice(&mut self, beginning: &str) -> bool {
        let begins = |title: &str| !beginning.is_empty() && begins_with(title, beginning);
        let at = match &self.field.kind {
            FieldKind::Boolean => [["false", "no", "0"], ["true", "yes", "1"]]
                .iter()
                .position(|names| names.iter().any(|name| begins(name))),
            FieldKind::Variants(titles) => titles.iter().position(|title| begins(title)),
            _ => None,
        };
        let Some(at) = at else { return false };
        if self.input != FieldInput::Choice(at) {
            self.choose(at);
        }
        true
    }

    fn choose(&mut self, at: usize) {
        if matches!(self.field.kind, FieldKind::Variants(_)) {
            self.select_variant(at);
        }
        self.input = FieldInput::Choice(at);
    }

    /// Whether one of its choices is taken by typing its beginning, and no text is kept.
    pub fn is_picked(&self) -> bool {
        !matches!(self.input, FieldInput::Json(_))
            && matches!(self.field.kind, FieldKind::Boolean | FieldKind::Variants(_))
    }

    pub(super) fn select_variant(&mut self, at: usize) {
        let Some(form) = self.field.schema.alternatives(MAX_VARIANTS).into_iter().nth(at) else {
            return;
        };
        let mut node = Self::new(FormField::of("", form, true), self.depth + 1);
        node.create();
        self.children = vec![node];
        self.is_open = true;
    }

    pub fn toggle_choice(&mut self, choice: usize) {
        let FieldKind::MultiChoice(choices) = &self.field.kind else { return };
        if choice >= choices.len() {
            return;
        }
        let mut ticked = match std::mem::take(&mut self.input) {
            FieldInput::Choices(ticked) => ticked,
            _ => Vec::new(),
        };
        match ticked.iter().position(|at| *at == choice) {
            Some(at) => drop(ticked.remove(at)),
            None => ticked.push(choice),
        }
        self.input = FieldInput::Choices(ticked);
    }

    pub fn text(&self) -> Option<&str> {
        match (&self.input, &self.field.kind) {
            (FieldInput::Text(text) | FieldInput::Json(text), _) => Some(text),
            (FieldInput::Choice(at), FieldKind::Choice(choices)) => {
                choices.get(*at).map(|choice| choice.title.as_str())
            }
            (FieldInput::Unset | FieldInput::Null, _) if self.is_text_input() => Some(""),
            _ => None,
        }
    }

    pub fn is_text_input(&self) -> bool {
        let kind = &self.field.kind;
        matches!(self.input, FieldInput::Json(_))
            || matches!(
                kind,
                FieldKind::Text
                    | FieldKind::Number { .. }
                    | FieldKind::Choice(_)
                    | FieldKind::Any
                    | FieldKind::Json
            )
    }

    /// Replaces the text of the field; a field that is not a text input is unchanged. A choice
    /// without text is left out.
    pub fn set_text(&mut self, text: &str) {
        if text.is_empty()
            && matches!(self.field.kind, FieldKind::Choice(_))
            && !matches!(self.input, FieldInput::Json(_))
        {
            return self.clear();
        }
        if self.is_text_input() {
            self.input = match self.input {
                FieldInput::Json(_) => FieldInput::Json(text.to_owned()),
                _ => FieldInput::Text(text.to_owned()),
            };
        }
    }

    pub fn at(&self, index_path: &[usize]) -> Option<&Self> {
        index_path.iter().try_fold(self, |node, at| node.children.get(*at))
    }

    pub fn at_mut(&mut self, index_path: &[usize]) -> Option<&mut Self> {
        index_path.iter().try_fold(self, |node, at| node.children.get_mut(*at))
    }
}

pub(super) fn begins_with(title: &str, typed: &str) -> bool {
    title.to_lowercase().starts_with(&typed.to_lowercase())
}
