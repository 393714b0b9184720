//! What has to be filled in, and what of it is.

use super::{Entry, Kind, Node};

/// How much of what has to be there is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Required {
    /// How many fields have to be filled in.
    pub all: usize,
    /// The ways to those that are not.
    pub missing: Vec<Vec<usize>>,
}

impl Node {
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
}
