//! A JSON value as a foldable tree.

use serde_json::Value;

use crate::tui::widgets::list::ListCursor;
use crate::tui::widgets::table::ResultTable;
use crate::util::text::shorten;

const NODES: usize = 200_000;
const DEPTH: usize = 64;
const LONGEST: usize = 300;
/// A value of at most so many characters is seen whole in every pane.
const WHOLE: usize = 40;
/// A tree with at most this many lines starts expanded; a larger one shows only its top level.
const OPEN: usize = 500;

/// The longest text that is read as JSON, in bytes: a longer one is shown as the text that it is.
pub const LONGEST_JSON: usize = 4 << 20;

/// The object or list that a text holds.
pub fn parse(text: &str) -> Option<Value> {
    if text.len() > LONGEST_JSON || !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonTreeNode {
    /// The nesting depth, 0 for the whole value.
    pub depth: usize,
    /// The key, or the index in a list; empty at the top.
    pub key: String,
    pub text: String,
    pub is_branch: bool,
    pub is_open: bool,
    /// The line behind all that hangs on it.
    end: usize,
    is_json_text: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonTree {
    nodes: Vec<JsonTreeNode>,
    visible: Vec<usize>,
    pub list: ListCursor,
    pub is_cut: bool,
    /// Whether a table can be made of the value.
    pub has_table: bool,
}

impl JsonTree {
    pub fn of(value: &Value) -> Self {
        let mut tree = Self { has_table: ResultTable::is_table(value), ..Self::default() };
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
        let inside = value.as_str().and_then(parse);
        let is_json_text = inside.is_some();
        let value = inside.as_ref().unwrap_or(value);
        let (text, is_branch) = match value {
            Value::Object(map) if map.is_empty() => ("{}".to_owned(), false),
            Value::Array(items) if items.is_empty() => ("[]".to_owned(), false),
            Value::Object(map) => (format!("{{{}}}", map.len()), true),
            Value::Array(items) => (format!("[{}]", items.len()), true),
            Value::String(text) => (Value::from(shorten(text, LONGEST)).to_string(), false),
            other => (other.to_string(), false),
        };
        let text = if is_json_text { format!("{text} (JSON as text)") } else { text };
        let (at, end) = (self.nodes.len(), self.nodes.len() + 1);
        let node = JsonTreeNode { depth, key, text, is_branch, is_open: true, end, is_json_text };
        self.nodes.push(node);
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

    fn update_visible(&mut self) {
        self.visible.clear();
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            self.visible.push(at);
            at = if node.is_open { at + 1 } else { node.end };
        }
        self.list.choose(self.list.chosen(), self.visible.len());
    }

    /// Whether the chosen line is a text that may not be seen whole here.
    pub fn is_long_text(&self) -> bool {
        let node = self.visible.get(self.list.chosen()).and_then(|at| self.nodes.get(*at));
        node.is_some_and(|node| !node.is_branch && node.text.len() > WHOLE)
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

    /// The indices of the nodes whose key or value matches the predicate.
    pub fn find(&self, is_match: impl Fn(&str) -> bool) -> Vec<usize> {
        let nodes = self.nodes.iter().enumerate();
        let has = |node: &JsonTreeNode| is_match(&node.key) || is_match(&node.text);
        nodes.filter(|(_, node)| has(node)).map(|(at, _)| at).collect()
    }

    pub fn chosen_node(&self) -> usize {
        self.visible.get(self.list.chosen()).copied().unwrap_or(0)
    }

    /// Opens what a node hangs on, and chooses it.
    pub fn reveal(&mut self, number: usize) {
        for node in self.nodes.iter_mut().take(number).filter(|node| node.end > number) {
            node.is_open = true;
        }
        self.update_visible();
        let line = self.visible.partition_point(|seen| *seen < number);
        self.list.choose(line, self.visible.len());
    }

    /// Chooses the node that these keys and numbers lead to, with all it holds open; the last one on
    /// the way where they lead nowhere.
    pub fn reveal_path(&mut self, path: &[String]) {
        let mut number = 0;
        for key in path {
            let Some(parent) = self.nodes.get(number) else { break };
            let (depth, end) = (parent.depth + 1, parent.end);
            let is_next = |at: &usize| {
                self.nodes.get(*at).is_some_and(|node| node.depth == depth && node.key == *key)
            };
            let Some(next) = (number + 1..end).find(is_next) else { break };
            number = next;
        }
        if let Some(node) = self.nodes.get_mut(number) {
            node.is_open = true;
        }
        self.reveal(number);
    }

    /// The jq path of the chosen line: `.items[3].name`; what is inside a text that holds JSON is
    /// behind `fromjson`.
    pub fn chosen_path(&self) -> String {
        const PIPE: &str = " | ";
        let chosen = self.chosen_node();
        let above = self.nodes.iter().take(chosen + 1).enumerate();
        let mut path = String::new();
        let mut is_in_list = false;
        for (at, node) in above.filter(|(_, node)| node.end > chosen) {
            if node.depth > 0 {
                let step = step(&node.key, is_in_list);
                // Brackets alone would be a list to jq.
                if step.starts_with('[') && (path.is_empty() || path.ends_with(PIPE)) {
                    path.push('.');
                }
                path.push_str(&step);
            }
            if node.is_json_text && at < chosen {
                path.push_str(if path.is_empty() { "." } else { "" });
                path.push_str(" | fromjson");
                path.push_str(PIPE);
            }
            is_in_list = node.text.starts_with('[');
        }
        if path.is_empty() { ".".to_owned() } else { path }
    }

    pub fn len(&self) -> usize {
        self.visible.len()
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

pub fn step(key: &str, is_index: bool) -> String {
    let mut letters = key.chars();
    let begins = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if is_index {
        format!("[{key}]")
    } else if begins && letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        format!(".{key}")
    } else {
        format!(".[{}]", Value::from(key))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_path_leads_jq_to_its_value() {
        let value = json!({ "a b": [{ "c": 1 }, [2]], "text": "[{\"deep\":[\"x\"]}]", "n": null });
        let mut tree = JsonTree::of(&value);
        for number in 0..tree.nodes.len() {
            tree.reveal(number);
            let path = tree.chosen_path();
            let found = crate::util::jq::query(&path, &value).unwrap();
            let node = &tree.nodes[number];
            if !node.is_branch {
                assert_eq!(found, [serde_json::from_str::<Value>(&node.text).unwrap()], "{path}");
            }
        }
        tree.reveal(tree.nodes.iter().position(|node| node.text == "\"x\"").unwrap());
        assert_eq!(tree.chosen_path(), ".text | fromjson | .[0].deep[0]");
    }

    #[test]
    fn a_key_that_looks_like_a_pipe_stays_as_it_is_in_the_path() {
        let value = json!({ "a | [b": 1, "c | ": [2] });
        let mut tree = JsonTree::of(&value);
        for (number, result) in [(1, 1), (3, 2)] {
            tree.reveal(number);
            let path = tree.chosen_path();
            assert_eq!(crate::util::jq::query(&path, &value).unwrap(), [json!(result)], "{path}");
        }
    }

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
        assert!(JsonTree::of(&deep).is_cut);
    }
}
