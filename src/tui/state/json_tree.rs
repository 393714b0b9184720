//! A JSON value as a foldable tree.
//!
//! Owns: the value in lines, made once; which branches are open; the chosen line. Bounded; what is
//! left out is said.

use serde_json::Value;

use super::ListCursor;
use crate::util::text::shorten;

/// The most lines of a tree.
const NODES: usize = 200_000;
/// The greatest depth of nested values.
const DEPTH: usize = 64;
/// The most characters of a value.
const LONGEST: usize = 300;
/// A tree of up to so many lines is open at first; of a larger one only the top is.
const OPEN: usize = 500;

/// One line of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonTreeNode {
    /// The nesting depth, 0 for the whole value.
    pub depth: usize,
    /// The key, or the index in a list; empty at the top.
    pub key: String,
    /// A value as JSON, or how much a branch holds.
    pub text: String,
    /// Whether something hangs on it.
    pub is_branch: bool,
    /// Whether what hangs on it is shown.
    pub is_open: bool,
    /// The line behind all that hangs on it.
    end: usize,
}

/// A JSON value as foldable lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonTree {
    nodes: Vec<JsonTreeNode>,
    /// The lines that are seen.
    visible: Vec<usize>,
    /// The chosen one of those.
    pub list: ListCursor,
    is_cut: bool,
}

impl JsonTree {
    /// The tree of a value.
    pub fn of(value: &Value) -> Self {
        let mut tree = Self::default();
        tree.add(0, String::new(), value);
        if tree.nodes.len() > OPEN {
            for node in &mut tree.nodes {
                node.is_open = node.depth == 0;
            }
        }
        tree.update_visible();
        tree
    }

    fn add(&mut self, depth: usize, key: String, value: &Value) {
        if self.nodes.len() >= NODES {
            self.is_cut = true;
            return;
        }
        let (text, is_branch) = match value {
            Value::Object(map) if map.is_empty() => ("{}".to_owned(), false),
            Value::Array(items) if items.is_empty() => ("[]".to_owned(), false),
            Value::Object(map) => (format!("{{{}}}", map.len()), true),
            Value::Array(items) => (format!("[{}]", items.len()), true),
            Value::String(text) => (Value::from(shorten(text, LONGEST)).to_string(), false),
            other => (other.to_string(), false),
        };
        let at = self.nodes.len();
        self.nodes.push(JsonTreeNode { depth, key, text, is_branch, is_open: true, end: at + 1 });
        if depth >= DEPTH {
            self.is_cut |= is_branch;
            return;
        }
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    self.add(depth + 1, shorten(key, LONGEST).into_owned(), value);
                }
            }
            Value::Array(items) => {
                for (number, value) in items.iter().enumerate() {
                    self.add(depth + 1, number.to_string(), value);
                }
            }
            _ => {}
        }
        let end = self.nodes.len();
        if let Some(node) = self.nodes.get_mut(at) {
            node.end = end;
        }
    }

    /// Finds out anew what is seen.
    fn update_visible(&mut self) {
        self.visible.clear();
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            self.visible.push(at);
            at = if node.is_open { at + 1 } else { node.end };
        }
        self.list.choose(self.list.chosen(), self.visible.len());
    }

    /// Opens the chosen branch, or closes it; of a leaf the branch it hangs on is closed.
    pub fn fold(&mut self) {
        let Some(&at) = self.visible.get(self.list.chosen()) else { return };
        let depth = self.nodes.get(at).map_or(0, |node| node.depth);
        let is_branch = self.nodes.get(at).is_some_and(|node| node.is_branch);
        let branch = if is_branch {
            Some(at)
        } else {
            (0..at).rev().find(|above| self.nodes.get(*above).is_some_and(|n| n.depth < depth))
        };
        let Some(node) = branch.and_then(|branch| self.nodes.get_mut(branch)) else { return };
        node.is_open = !node.is_open;
        let line = branch.and_then(|branch| self.visible.iter().position(|seen| *seen == branch));
        self.update_visible();
        self.list.choose(line.unwrap_or(0), self.visible.len());
    }

    /// The number of visible lines.
    pub fn len(&self) -> usize {
        self.visible.len()
    }

    /// Whether there is no value to show.
    pub fn is_empty(&self) -> bool {
        self.visible.is_empty()
    }

    /// Whether something was left out.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Moves the cursor by so many visible lines, up when negative.
    pub fn step(&mut self, by: isize) {
        let length = self.visible.len();
        self.list.step(by, length);
    }

    /// The lines that are seen, from this one on.
    pub fn from(&self, first: usize) -> impl Iterator<Item = &JsonTreeNode> + '_ {
        let seen = self.visible.get(first..).unwrap_or_default();
        seen.iter().filter_map(|at| self.nodes.get(*at))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(tree: &JsonTree) -> Vec<String> {
        let line =
            |node: &JsonTreeNode| format!("{}{}={}", " ".repeat(node.depth), node.key, node.text);
        tree.from(0).map(line).collect()
    }

    #[test]
    fn branches_are_folded_and_opened_again() {
        let mut tree = JsonTree::of(&json!({ "a": [1, { "b": null }], "c": {} }));
        let all = ["={2}", " a=[2]", "  0=1", "  1={1}", "   b=null", " c={}"];
        assert_eq!(shown(&tree), all);
        tree.step(2);
        tree.fold();
        // A leaf closes what it hangs on, and that is chosen then.
        assert_eq!(shown(&tree), ["={2}", " a=[2]", " c={}"]);
        assert_eq!(tree.list.chosen(), 1);
        tree.fold();
        assert_eq!(shown(&tree), all);
    }

    #[test]
    fn a_large_one_is_closed_at_first_and_a_deep_one_ends() {
        let tree = JsonTree::of(&json!(vec![vec![1; 10]; 100]));
        assert_eq!(tree.len(), 101);
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        assert!(JsonTree::of(&deep).is_cut());
    }
}
