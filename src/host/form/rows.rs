//! The display rows of a tree of form fields.

use super::{FieldInput, FieldKind, FormNode};
use crate::host::validate::ValuePath;

/// A line of the form as it is shown.
#[derive(Debug, Clone)]
pub struct FieldRow {
    /// Which children lead to it, from the whole.
    pub index_path: Vec<usize>,
    pub part: RowPart,
    /// How many objects and lists it stands in, for indentation.
    pub depth: usize,
    pub path: ValuePath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPart {
    Field,
    Choice(usize),
}

impl FormNode {
    pub fn rows(&self) -> Vec<FieldRow> {
        let mut rows = Vec::new();
        if matches!(self.field.kind, FieldKind::Variants(_)) {
            let (index_path, path) = (Vec::new(), ValuePath::default());
            rows.push(FieldRow { index_path, part: RowPart::Field, depth: 0, path });
        }
        self.collect_rows(&mut Vec::new(), &ValuePath::default(), 0, &mut rows);
        rows
    }

    fn collect_rows(
        &self,
        index_path: &mut Vec<usize>,
        path: &ValuePath,
        depth: usize,
        rows: &mut Vec<FieldRow>,
    ) {
        if !self.is_open || matches!(self.input, FieldInput::Null | FieldInput::Json(_)) {
            return;
        }
        if let FieldKind::MultiChoice(choices) = &self.field.kind {
            rows.extend((0..choices.len()).map(|at| FieldRow {
                index_path: index_path.clone(),
                part: RowPart::Choice(at),
                depth,
                path: path.clone(),
            }));
        }
        for (at, child) in self.children.iter().enumerate() {
            let path = match self.field.kind {
                FieldKind::List => path.index(at),
                FieldKind::Variants(_) => path.clone(),
                _ => path.key(&child.field.key),
            };
            index_path.push(at);
            // The fields of a chosen form stand where the form would.
            let is_bare = child.field.key.is_empty() && child.field.kind == FieldKind::Object;
            let deeper = if is_bare && !matches!(child.input, FieldInput::Json(_)) {
                depth
            } else {
                let (index_path, path) = (index_path.clone(), path.clone());
                rows.push(FieldRow { index_path, part: RowPart::Field, depth, path });
                depth + 1
            };
            child.collect_rows(index_path, &path, deeper, rows);
            index_path.pop();
        }
    }
}
