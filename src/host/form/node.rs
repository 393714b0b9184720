//! The tree of fields, with what was put into each.

use serde_json::Value;

use super::{DEPTH, FIELDS, Field, HELD, ITEMS, Kind, Schema, VARIANTS, field};
use crate::host::coerce;
use crate::host::validate::Path;
use crate::model::JsonObject;

/// A field, what was put into it, and the fields in it.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it takes.
    pub field: Field,
    /// What was put into it.
    pub entry: Entry,
    /// Its own fields, its items, or the form that was chosen; made when they are first needed.
    pub children: Vec<Node>,
    /// Whether what is in it is shown.
    pub is_open: bool,
    depth: usize,
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

/// How much of what has to be there is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Required {
    /// How many fields have to be filled in.
    pub all: usize,
    /// The ways to those that are not.
    pub missing: Vec<Vec<usize>>,
}

/// A line of the form as it is shown.
#[derive(Debug, Clone)]
pub struct Row {
    /// Which children lead to it, from the whole.
    pub way: Vec<usize>,
    /// What of that field it is.
    pub part: Part,
    /// How deep it stands.
    pub depth: usize,
    /// Where in the value.
    pub path: Path,
}

/// What of a field a line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The field itself.
    Whole,
    /// The choice with this number, which can be ticked.
    Choice(usize),
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
            root.hold(&Value::Object(known.clone()), &mut left);
        }
        root
    }

    fn new(field: Field, depth: usize) -> Self {
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

    /// The value it makes; `None` when it is left out.
    pub fn value(&self) -> Option<Value> {
        let schema = &self.field.schema;
        match (&self.entry, &self.field.kind) {
            (Entry::Null, _) => Some(Value::Null),
            (Entry::Json(text), _) => {
                Some(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())))
            }
            (Entry::Text(text), Kind::One(choices)) => {
                let titled = choices.iter().find(|choice| choice.title == *text);
                let read = || coerce::text(text, schema.value(), schema.root());
                Some(titled.map_or_else(read, |choice| choice.value.clone()))
            }
            (Entry::Text(text), _) => Some(coerce::text(text, schema.value(), schema.root())),
            (Entry::Chosen(at), Kind::One(choices)) => {
                choices.get(*at).map(|choice| choice.value.clone())
            }
            (Entry::Chosen(at), Kind::Flag) => Some(Value::Bool(*at == 1)),
            (Entry::Chosen(_), Kind::Constant(value)) => Some(value.clone()),
            (Entry::Chosen(_), _) => self.children.first().and_then(Self::value),
            (Entry::Ticked(ticked), Kind::Many(choices)) => {
                let values = ticked.iter().filter_map(|at| Some(choices.get(*at)?.value.clone()));
                Some(values.collect())
            }
            (Entry::Ticked(_), _) => None,
            (Entry::Made, _) => Some(self.gathered()),
            (Entry::Unset, Kind::Object | Kind::List) => {
                self.children.iter().any(Self::is_present).then(|| self.gathered())
            }
            (Entry::Unset, _) => None,
        }
    }

    /// Whether it makes a value.
    pub fn is_present(&self) -> bool {
        match (&self.entry, &self.field.kind) {
            (Entry::Unset, Kind::Object | Kind::List) => self.children.iter().any(Self::is_present),
            (Entry::Unset, _) => false,
            (Entry::Chosen(_), Kind::Variants(_)) => self.children.iter().any(Self::is_present),
            _ => true,
        }
    }

    fn gathered(&self) -> Value {
        let present = self.children.iter().filter_map(|child| Some((child, child.value()?)));
        match self.field.kind {
            Kind::List => present.map(|(_, value)| value).collect(),
            _ => Value::Object(
                present.map(|(child, value)| (child.field.key.clone(), value)).collect(),
            ),
        }
    }

    /// Puts a value into it. What no field of a kind can hold exactly is held as JSON. `left` is how
    /// many fields may still be made for it.
    pub fn hold(&mut self, value: &Value, left: &mut usize) {
        *left = left.saturating_sub(1);
        if *left > 0 {
            self.take(value, left);
        }
        if self.value().as_ref() != Some(value) {
            self.children.clear();
            self.is_open = false;
            self.entry = Entry::Json(value.to_string());
        }
    }

    fn take(&mut self, value: &Value, left: &mut usize) {
        self.clear();
        self.entry = match (&self.field.kind, value) {
            (_, Value::Null) => Entry::Null,
            (Kind::Object, Value::Object(object)) => {
                self.take_object(object, left);
                Entry::Made
            }
            (Kind::List, Value::Array(items)) if items.len() <= ITEMS => {
                for item in items {
                    let at = self.children.len();
                    let mut node = self.item(at);
                    node.hold(item, left);
                    self.children.push(node);
                }
                self.is_open = true;
                Entry::Made
            }
            (Kind::Variants(_), value) => {
                let forms = self.field.schema.alternatives(VARIANTS);
                let Some(at) = forms.iter().position(|form| suits(form, value)) else { return };
                self.choose_form(at);
                if let Some(form) = self.children.first_mut() {
                    form.hold(value, left);
                }
                Entry::Chosen(at)
            }
            (Kind::One(choices), value) => {
                let at = choices.iter().position(|choice| choice.value == *value);
                at.map_or_else(|| Entry::Text(written(value)), Entry::Chosen)
            }
            (Kind::Many(choices), Value::Array(values)) => {
                let at = |value: &Value| choices.iter().position(|choice| choice.value == *value);
                let ticked: Option<Vec<usize>> = values.iter().map(at).collect();
                self.is_open = ticked.is_some();
                ticked.map_or(Entry::Unset, Entry::Ticked)
            }
            (Kind::Flag, Value::Bool(value)) => Entry::Chosen(usize::from(*value)),
            (Kind::Constant(_), _) => Entry::Chosen(0),
            (_, value) => Entry::Text(written(value)),
        };
    }

    fn take_object(&mut self, object: &JsonObject, left: &mut usize) {
        self.open();
        for child in &mut self.children {
            match object.get(&child.field.key) {
                Some(value) => child.hold(value, left),
                None => child.clear(),
            }
        }
        // What the schema does not speak of is not lost.
        let known = self.children.len();
        for (key, value) in object {
            let is_new = !self.children[..known].iter().any(|child| child.field.key == *key);
            if is_new && self.children.len() < known + FIELDS {
                let nowhere = Schema::of(&std::sync::Arc::default());
                let mut extra = Self::new(Field::of(key, nowhere, false), self.depth + 1);
                extra.entry = Entry::Json(value.to_string());
                self.children.push(extra);
            }
        }
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

    fn item(&self, at: usize) -> Self {
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

    fn choose_form(&mut self, at: usize) {
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

    /// Why its text cannot mean anything, when that is plain.
    pub fn fault(&self) -> Option<String> {
        match (&self.entry, &self.field.kind) {
            (Entry::Json(text), _) => {
                let why = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
                Some(format!("is not JSON: {why}"))
            }
            (Entry::Text(text), Kind::Number { .. }) if !text.trim().is_empty() => {
                self.value().filter(|value| !value.is_number()).map(|_| "is no number".to_owned())
            }
            _ => None,
        }
    }

    /// What has to be there, and what of it is not.
    pub fn required(&self) -> Required {
        let mut found = Required::default();
        self.require(&mut Vec::new(), &mut found);
        found
    }

    fn require(&self, way: &mut Vec<usize>, found: &mut Required) {
        if matches!(self.entry, Entry::Null | Entry::Json(_)) {
            return;
        }
        let is_variants = matches!(self.field.kind, Kind::Variants(_));
        for (at, child) in self.children.iter().enumerate() {
            way.push(at);
            // The fields of a chosen form are asked for, not the form.
            if child.field.required && !(is_variants && child.field.kind == Kind::Object) {
                found.all += 1;
                if !child.is_decided() {
                    found.missing.push(way.clone());
                }
            }
            if child.is_decided() {
                child.require(way, found);
            }
            way.pop();
        }
        if way.is_empty() && is_variants && !self.is_decided() {
            found.all += 1;
            found.missing.push(Vec::new());
        }
    }

    /// Whether it makes a value, or would if what is in it did.
    fn is_decided(&self) -> bool {
        self.is_present() || matches!(self.entry, Entry::Chosen(_))
    }

    /// Whether anything in it that looks like a secret was filled in.
    pub fn holds_secret(&self) -> bool {
        (self.field.secret && self.is_present()) || self.children.iter().any(Self::holds_secret)
    }

    /// Whether anything that is shown of it asks for a secret.
    pub fn asks_for_secret(&self) -> bool {
        self.field.secret || self.children.iter().any(Self::asks_for_secret)
    }

    /// The value it makes, with a mark in the place of what looks like a secret.
    pub fn shown_value(&self) -> Option<Value> {
        if !self.holds_secret() {
            return self.value();
        }
        let mut whole = self.value()?;
        self.cover(&mut whole);
        Some(whole)
    }

    fn cover(&self, value: &mut Value) {
        if self.field.secret {
            *value = Value::from("‹secret›");
            return;
        }
        match self.field.kind {
            Kind::Variants(_) => {
                self.children.iter().for_each(|child| child.cover(value));
            }
            Kind::List => {
                let present = self.children.iter().filter(|child| child.is_present());
                for (at, child) in present.enumerate() {
                    value.get_mut(at).into_iter().for_each(|item| child.cover(item));
                }
            }
            _ => {
                for child in &self.children {
                    let inside = value.get_mut(&child.field.key);
                    inside.into_iter().for_each(|inside| child.cover(inside));
                }
            }
        }
    }

    /// The lines that are shown.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        if matches!(self.field.kind, Kind::Variants(_)) {
            let whole = Part::Whole;
            rows.push(Row { way: Vec::new(), part: whole, depth: 0, path: Path::default() });
        }
        self.lay_out(&mut Vec::new(), &Path::default(), 0, &mut rows);
        rows
    }

    fn lay_out(&self, way: &mut Vec<usize>, path: &Path, depth: usize, rows: &mut Vec<Row>) {
        if !self.is_open || matches!(self.entry, Entry::Null | Entry::Json(_)) {
            return;
        }
        if let Kind::Many(choices) = &self.field.kind {
            rows.extend((0..choices.len()).map(|at| Row {
                way: way.clone(),
                part: Part::Choice(at),
                depth,
                path: path.clone(),
            }));
        }
        for (at, child) in self.children.iter().enumerate() {
            let path = match self.field.kind {
                Kind::List => path.index(at),
                Kind::Variants(_) => path.clone(),
                _ => path.key(&child.field.key),
            };
            way.push(at);
            // The fields of a chosen form stand where the form would.
            let is_bare = child.field.key.is_empty() && child.field.kind == Kind::Object;
            let deeper = if is_bare && !matches!(child.entry, Entry::Json(_)) {
                depth
            } else {
                let part = Part::Whole;
                rows.push(Row { way: way.clone(), part, depth, path: path.clone() });
                depth + 1
            };
            child.lay_out(way, &path, deeper, rows);
            way.pop();
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

/// Whether a value looks as if it had this form: its type, and what tells forms apart.
fn suits(form: &Schema, value: &Value) -> bool {
    let types = form.types();
    let is_type =
        |name: &&str| coerce::is_a(value, name) || (*name == "string" && value.is_string());
    if !types.is_empty() && !types.iter().any(is_type) {
        return false;
    }
    if let Some(constant) = form.get("const") {
        return constant == value;
    }
    let Some(object) = value.as_object() else { return true };
    form.properties(FIELDS).iter().all(|(key, field)| match object.get(*key) {
        None => !form.requires(key),
        Some(value) => {
            field.get("const").is_none_or(|constant| constant == value)
                && field
                    .get("enum")
                    .and_then(Value::as_array)
                    .is_none_or(|values| values.contains(value))
        }
    })
}

/// A value as somebody would write it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
