//! Which fields are required, and which of them are filled in.

use super::{FieldInput, FieldKind, FormNode};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredFields {
    pub total: usize,
    /// The ways to those that are not.
    pub missing: Vec<Vec<usize>>,
}

impl FormNode {
    /// What has to be there, and what of it is not.
    pub fn required_fields(&self) -> RequiredFields {
        let mut required = RequiredFields::default();
        self.collect_required(&mut Vec::new(), &mut required);
        required
    }

    fn collect_required(&self, index_path: &mut Vec<usize>, required: &mut RequiredFields) {
        if matches!(self.input, FieldInput::Null | FieldInput::Json(_)) {
            return;
        }
        let is_variants = matches!(self.field.kind, FieldKind::Variants(_));
        for (at, child) in self.children.iter().enumerate() {
            index_path.push(at);
            // The fields of a chosen form are asked for, not the form.
            if child.field.required && !(is_variants && child.field.kind == FieldKind::Object) {
                required.total += 1;
                if !child.has_value() {
                    required.missing.push(index_path.clone());
                }
            }
            if child.has_value() {
                child.collect_required(index_path, required);
            }
            index_path.pop();
        }
        if index_path.is_empty() && is_variants && !self.has_value() {
            required.total += 1;
            required.missing.push(Vec::new());
        }
    }

    /// Whether it makes a value, or would if what is in it did.
    fn has_value(&self) -> bool {
        self.is_present() || matches!(self.input, FieldInput::Choice(_))
    }
}
