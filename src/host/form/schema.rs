//! A location in a schema, merged with everything that also applies there.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::util::schema;

const PARTS: usize = 16;

/// A place in a schema: what stands there, what it refers to, and what `allOf` adds. Only
/// references within the schema are followed.
#[derive(Debug, Clone)]
pub struct ResolvedSchema {
    root: Arc<Value>,
    /// JSON pointers into the root; what stands first says it first.
    parts: Vec<String>,
    /// How many of them, at the end, are those whose alternatives were decided between.
    common: usize,
}

impl ResolvedSchema {
    pub fn of(root: &Arc<Value>) -> Self {
        Self::at(root, String::new())
    }

    fn at(root: &Arc<Value>, place: String) -> Self {
        let mut schema = Self { root: Arc::clone(root), parts: Vec::new(), common: 0 };
        schema.gather(place);
        schema
    }

    /// Takes in a place and what it leads to. What leads nowhere, or back, adds nothing.
    fn gather(&mut self, place: String) {
        let root = Arc::clone(&self.root);
        let mut pending = vec![place];
        while let Some(place) = pending.pop() {
            if self.parts.len() >= PARTS || self.parts.contains(&place) {
                continue;
            }
            let Some(here) = root.pointer(&place) else { continue };
            let all = here.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
            pending.extend((0..all.min(PARTS)).rev().map(|at| format!("{place}/allOf/{at}")));
            let reference = here.get("$ref").and_then(Value::as_str);
            let target = reference.and_then(|reference| schema::place(&root, reference));
            pending.extend(target.map(Cow::into_owned));
            self.parts.push(place);
        }
    }

    fn places(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> + '_ {
        self.parts.iter().filter_map(|place| Some((place.as_str(), self.root.pointer(place)?)))
    }

    /// All that it is part of, for references.
    pub fn root(&self) -> &Value {
        &self.root
    }

    pub fn value(&self) -> &Value {
        self.places().next().map_or(&Value::Null, |(_, here)| here)
    }

    pub fn parts_where<'s>(
        &'s self,
        is_so: impl Fn(&Value) -> bool + 's,
    ) -> impl Iterator<Item = &'s Value> + 's {
        self.places().map(|(_, here)| here).filter(move |here| is_so(here))
    }

    pub fn get(&self, keyword: &str) -> Option<&Value> {
        self.places().find_map(|(_, here)| here.get(keyword))
    }

    pub fn text(&self, keyword: &str) -> Option<&str> {
        self.get(keyword).and_then(Value::as_str)
    }

    /// The types it names or implies, `null` among them.
    pub fn types(&self) -> Vec<&str> {
        let mut types = self.places().map(|(_, here)| schema::types(here));
        types.find(|types| !types.is_empty()).unwrap_or_default()
    }

    /// The properties of the object it describes, each once, in order, up to a maximum.
    pub fn properties(&self, most: usize) -> Vec<(&str, Self)> {
        let mut entries: Vec<(&str, Self)> = Vec::new();
        for (place, here) in self.places() {
            let Some(properties) = here.get("properties").and_then(Value::as_object) else {
                continue;
            };
            for key in properties.keys() {
                if entries.len() >= most {
                    return entries;
                }
                if self.parts.len() > 1 && entries.iter().any(|(name, _)| name == key) {
                    continue;
                }
                let escaped = key.replace('~', "~0").replace('/', "~1");
                entries.push((key, Self::at(&self.root, format!("{place}/properties/{escaped}"))));
            }
        }
        entries
    }

    /// How many properties the object has, without reading them.
    pub fn property_count(&self) -> usize {
        let properties = self.places().filter_map(|(_, here)| here.get("properties")?.as_object());
        properties.map(serde_json::Map::len).sum()
    }

    /// Whether the object has to have this property.
    pub fn requires(&self, key: &str) -> bool {
        self.places()
            .filter_map(|(_, here)| here.get("required")?.as_array())
            .any(|names| names.iter().any(|name| name.as_str() == Some(key)))
    }

    /// What the items of the list at this position look like.
    #[must_use]
    pub fn item(&self, at: usize) -> Self {
        for (place, here) in self.places() {
            for tuple in ["prefixItems", "items"] {
                if here.get(tuple).and_then(|items| items.get(at)).is_some_and(Value::is_object) {
                    return Self::at(&self.root, format!("{place}/{tuple}/{at}"));
                }
            }
            if here.get("items").is_some_and(Value::is_object) {
                return Self::at(&self.root, format!("{place}/items"));
            }
        }
        Self { root: Arc::clone(&self.root), parts: Vec::new(), common: 0 }
    }

    /// The forms of which a value has one (`oneOf`, `anyOf`), at most so many, each together with
    /// what holds for all of them. Nothing when they are no forms, but conditions, and when one of
    /// them leads back here.
    pub fn alternatives(&self, most: usize) -> Vec<Self> {
        if self.parts.len() > PARTS {
            return Vec::new();
        }
        for (place, here) in self.places().take(self.parts.len() - self.common) {
            for keyword in ["oneOf", "anyOf"] {
                let Some(all) = here.get(keyword).and_then(Value::as_array) else { continue };
                let forms = ["properties", "type", "$ref", "const", "enum", "allOf", "items"];
                let is_form = |branch: &Value| forms.iter().any(|key| branch.get(key).is_some());
                if all.len() > most || !all.iter().all(is_form) {
                    continue;
                }
                let alternative = |at: usize| {
                    let mut one = Self::at(&self.root, format!("{place}/{keyword}/{at}"));
                    let leads_back = self.parts.iter().any(|part| one.parts.contains(part));
                    one.common = self.parts.len();
                    // What is special says it before what is common.
                    one.parts.extend(self.parts.iter().cloned());
                    (!leads_back).then_some(one)
                };
                let all: Option<Vec<Self>> = (0..all.len()).map(alternative).collect();
                return all.unwrap_or_default();
            }
        }
        Vec::new()
    }
}
