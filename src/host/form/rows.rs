//! The lines in which a tree of fields is shown.

use super::{Entry, Kind, Node};
use crate::host::validate::Path;

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
}
