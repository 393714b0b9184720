//! The rows of a form, each with its validation error.

use crate::host::form::{FormNode, RowPart};
use crate::host::validate::{ValuePath, Violation};

/// How many problems are shown beside one field.
const PROBLEMS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormRow {
    /// The property, or what else the line is called.
    pub key: String,
    /// The indices of the children that lead to the field.
    pub node_path: Vec<usize>,
    pub part: RowPart,
    /// The nesting depth, 0 at the top.
    pub depth: usize,
    pub path: ValuePath,
    /// The violations at this location.
    pub problems: Vec<String>,
}

/// The lines, and beside each what was found there or in something that is folded in it.
/// What does not read as a value is marked, too, but for the field that is being written.
pub(super) fn rows(
    root: &FormNode,
    found: &[Violation],
    written: Option<&[usize]>,
) -> Vec<FormRow> {
    let mut rows: Vec<FormRow> = root
        .rows()
        .into_iter()
        .map(|row| FormRow {
            key: key(root, &row.index_path, row.part),
            node_path: row.index_path,
            part: row.part,
            depth: row.depth,
            path: row.path,
            problems: Vec::new(),
        })
        .collect();
    for row in rows.iter_mut().filter(|row| row.part == RowPart::Field) {
        let node = root.at(&row.node_path).filter(|_| written != Some(row.node_path.as_slice()));
        row.problems.extend(node.and_then(FormNode::syntax_error));
    }
    for problem in found {
        let holds = |row: &&mut FormRow| {
            row.part == RowPart::Field && problem.path.0.starts_with(&row.path.0)
        };
        // The last that holds it is the nearest one: what is inside stands below.
        let Some(row) = rows.iter_mut().filter(holds).max_by_key(|row| row.path.0.len()) else {
            continue;
        };
        if row.problems.len() < PROBLEMS {
            let inside = problem.path.0.len() > row.path.0.len();
            let text = if inside { problem.to_string() } else { problem.message.clone() };
            row.problems.push(text);
        }
    }
    rows
}

fn key(root: &FormNode, way: &[usize], part: RowPart) -> String {
    let Some(node) = root.at(way) else { return String::new() };
    match (part, &node.field.kind) {
        (RowPart::Choice(at), crate::host::form::FieldKind::MultiChoice(choices)) => {
            choices.get(at).map(|choice| choice.title.clone()).unwrap_or_default()
        }
        _ if node.field.key.is_empty() && way.is_empty() => "form".to_owned(),
        _ if node.field.key.is_empty() => "value".to_owned(),
        _ => node.field.key.clone(),
    }
}
