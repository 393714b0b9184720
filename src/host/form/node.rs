//! The tree of fields, and what a person does to it.

use super::{DEPTH, FIELDS, Field, HELD, ITEMS, Kind, Schema, VARIANTS, field};
use crate::model::JsonObject;

/// A field, what was put into it, and the fields in it.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it takes.
    pub field: Field,
    /// What was put into it.
    pub entry: Entry,
    /// Its own fields, its items, or the form that was chosen; made when they are first needed.
    pub children: Vec<Self>,
    /// Whether what is in it is shown.
    pub is_open: bool,
    pub(super) depth: usize,
}

/// What was put into a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Entry {
    /// Nothing: it is left out, unless something was put into a field in it.
    #[default]
    Unset,
    /// `null`.
    Null,
    /// This text. The schema says what it means.
    Text(String),
    /// This text, which is JSON whatever the schema says.
    Json(String),
    /// The choice, or the form, with this number.
    Chosen(usize),
    /// These choices, in this order.
    Ticked(Vec<usize>),
    /// An object or a list, be it empty.
    Made,
}

impl Node {
    /// The form of an object with this schema, holding what is known of it.
    pub fn of_object(schema: Schema, known: Option<&JsonObject>) -> Self {
        let mut field = Field::of("", schema, true);
        if !matches!(field.kind, Kind::Object | Kind::Variants(_)) {
            field.kind = Kind::Object;
        }
        field.secret = false;
        let mut root = Self::new(field, 0);
        root.entry = if root.field.kind == Kind::Object { Entry::Made } else { Entry::Unset };
        root.open();
        if let Some(known) = known {
            let mut left = HELD;
            root.hold(&serde_json::Value::Object(known.clone()), &mut left);
        }
        root
    }

    pub(super) fn new(field: Field, depth: usize) -> Self {
        let mut node =
            Self { field, entry: Entry::Unset, children: Vec::new(), is_open: false, depth };
        let nests = matches!(node.field.kind, Kind::Object | Kind::List | Kind::Variants(_));
        if nests && depth >= DEPTH {
            node.field.kind = Kind::Json;
        }
        if node.field.required && matches!(node.field.kind, Kind::Constant(_)) {
            node.entry = Entry::Chosen(0);
        }
        node
    }

    /// Leaves it out, and everything in it.
    pub fn clear(&mut self) {
        self.entry = Entry::Unset;
        match self.field.kind {
            Kind::Object => self.children.iter_mut().for_each(Self::clear),
            _ => self.children.clear(),
        }
        if matches!(self.field.kind, Kind::Constant(_)) && self.field.required {
            self.entry = Entry::Chosen(0);
        }
    }

    /// Shows what is in it, and makes it when it is an object.
    fn begin(&mut self) {
        if self.field.kind == Kind::Object {
            self.entry = Entry::Made;
        }
        self.open();
    }

    /// Shows what is in it.
    pub fn open(&mut self) {
        if matches!(self.entry, Entry::Null | Entry::Json(_)) {
            return;
        }
        match &self.field.kind {
            Kind::Object if self.children.is_empty() => {
                let mut fields = field::fields(&self.field.schema, FIELDS);
                fields.sort_by_key(|field| !field.required);
                let depth = self.depth + 1;
                self.children = fields.into_iter().map(|field| Self::new(field, depth)).collect();
                // What has to be filled in is shown, as far as that ends.
                for child in &mut self.children {
                    let opens = matches!(child.field.kind, Kind::Object | Kind::Many(_));
                    if child.field.required && opens && depth < 4 {
                        child.begin();
                    }
                }
            }
            Kind::Object | Kind::List | Kind::Many(_) | Kind::Variants(_) => {}
            _ => return,
        }
        self.is_open = true;
    }

    /// Adds an item to a list, at this position; makes an object, or an empty choice of many.
    /// Whether there was anything to add.
    pub fn add(&mut self, at: usize) -> bool {
        let takes_more = match self.field.kind {
            Kind::List => self.children.len() < ITEMS,
            Kind::Object | Kind::Many(_) => true,
            _ => false,
        };
        if !takes_more || matches!(self.entry, Entry::Json(_)) {
            return false;
        }
        if self.entry == Entry::Null {
            self.clear();
        }
        match self.field.kind {
            Kind::List => {
                let at = at.min(self.children.len());
                let mut item = self.item(at);
                item.begin();
                self.children.insert(at, item);
                self.entry = Entry::Made;
                self.number();
            }
            Kind::Object => self.entry = Entry::Made,
            _ if self.entry == Entry::Unset => self.entry = Entry::Ticked(Vec::new()),
            _ => {}
        }
        self.open();
        true
    }

    /// Takes an item away. Whether there was one.
    pub fn remove(&mut self, at: usize) -> bool {
        let is_there = self.field.kind == Kind::List && at < self.children.len();
        if is_there {
            self.children.remove(at);
            self.number();
        }
        is_there
    }

    pub(super) fn item(&self, at: usize) -> Self {
        let name = (at + 1).to_string();
        Self::new(Field::of(&name, self.field.schema.item(at), true), self.depth + 1)
    }

    fn number(&mut self) {
        for (at, item) in self.children.iter_mut().enumerate() {
            item.field.key = (at + 1).to_string();
        }
    }

    /// Takes the next of its choices, or one before. Whether it has any.
    pub fn choose(&mut self, by: isize) -> bool {
        let length = match &self.field.kind {
            Kind::One(choices) => choices.len(),
            Kind::Flag => 2,
            Kind::Constant(_) => 1,
            Kind::Variants(titles) => titles.len(),
            _ => return false,
        };
        let length = isize::try_from(length).unwrap_or(isize::MAX);
        let next = match (&self.entry, &self.field.kind) {
            (Entry::Chosen(at), _) => (isize::try_from(*at).unwrap_or(0) + by).rem_euclid(length),
            // What was begun to be written leads to what begins so.
            (Entry::Text(text), Kind::One(choices)) => {
                let begun = text.to_lowercase();
                let begins = |title: &str| title.to_lowercase().starts_with(&begun);
                let at = choices.iter().position(|choice| begins(&choice.title));
                at.and_then(|at| isize::try_from(at).ok()).unwrap_or(0)
            }
            _ if by < 0 => length - 1,
            _ => 0,
        };
        let next = usize::try_from(next).unwrap_or(0);
        if matches!(self.field.kind, Kind::Variants(_)) {
            self.choose_form(next);
        }
        self.entry = Entry::Chosen(next);
        true
    }

    pub(super) fn choose_form(&mut self, at: usize) {
        let Some(form) = self.field.schema.alternatives(VARIANTS).into_iter().nth(at) else {
            return;
        };
        let mut node = Self::new(Field::of("", form, true), self.depth + 1);
        node.begin();
        self.children = vec![node];
        self.is_open = true;
    }

    /// Ticks a choice, or takes the tick away.
    pub fn tick(&mut self, choice: usize) {
        let Kind::Many(choices) = &self.field.kind else { return };
        if choice >= choices.len() {
            return;
        }
        let mut ticked = match std::mem::take(&mut self.entry) {
            Entry::Ticked(ticked) => ticked,
            _ => Vec::new(),
        };
        match ticked.iter().position(|at| *at == choice) {
            Some(at) => drop(ticked.remove(at)),
            None => ticked.push(choice),
        }
        self.entry = Entry::Ticked(ticked);
    }

    /// The text it is written as, when it is one that a person writes.
    pub fn text(&self) -> Option<&str> {
        match (&self.entry, &self.field.kind) {
            (Entry::Text(text) | Entry::Json(text), _) => Some(text),
            (Entry::Chosen(at), Kind::One(choices)) => {
                choices.get(*at).map(|choice| choice.title.as_str())
            }
            (Entry::Unset | Entry::Null, _) if self.is_written() => Some(""),
            _ => None,
        }
    }

    /// Whether a person writes it.
    pub fn is_written(&self) -> bool {
        let kind = &self.field.kind;
        matches!(self.entry, Entry::Json(_))
            || matches!(
                kind,
                Kind::Text | Kind::Number { .. } | Kind::One(_) | Kind::Any | Kind::Json
            )
    }

    /// Writes it.
    pub fn write(&mut self, text: &str) {
        if self.is_written() {
            self.entry = match self.entry {
                Entry::Json(_) => Entry::Json(text.to_owned()),
                _ => Entry::Text(text.to_owned()),
            };
        }
    }

    /// The field that a way leads to.
    pub fn at(&self, way: &[usize]) -> Option<&Self> {
        way.iter().try_fold(self, |node, at| node.children.get(*at))
    }

    /// The same, to be changed.
    pub fn at_mut(&mut self, way: &[usize]) -> Option<&mut Self> {
        way.iter().try_fold(self, |node, at| node.children.get_mut(*at))
    }
}
