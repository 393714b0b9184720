//! The references an entry holds, wherever they stand in it.

use std::collections::BTreeMap;

use crate::config::expand::{ReferencePiece, pieces};
use crate::config::node::{ConfigNode, NodeValue};

/// Whether nothing in the value depends on where it is loaded: no reference, no `~`.
pub fn is_literal(node: &ConfigNode) -> bool {
    match &node.value {
        NodeValue::Text(text) => !text.contains("${") && !text.starts_with('~'),
        NodeValue::List(items) => items.iter().all(is_literal),
        NodeValue::Map(pairs) => pairs.iter().all(|(_, value)| is_literal(value)),
        _ => true,
    }
}

/// Every reference at or below `node` with the paths of the keys it stands in. Names of variables
/// that stand without `${}` (`…_env_var`, `env_keys`) are among them.
pub(super) fn of(node: &ConfigNode) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    walk(node, &mut String::new(), &mut found);
    found
}

fn walk(node: &ConfigNode, path: &mut String, found: &mut BTreeMap<String, Vec<String>>) {
    match &node.value {
        NodeValue::Text(text) => {
            let mut add = |reference: String| {
                let places = found.entry(reference).or_default();
                if places.last().is_none_or(|last| last != path) {
                    places.push(path.clone());
                }
            };
            for piece in pieces(text) {
                if let ReferencePiece::Reference(reference) = piece {
                    add(format!("${{{reference}}}"));
                }
            }
            let key = path.rsplit('.').next().unwrap_or_default();
            if key.ends_with("_env_var") || key == "env_keys" {
                add(format!("${{{text}}}"));
            }
        }
        NodeValue::List(items) => items.iter().for_each(|item| walk(item, path, found)),
        NodeValue::Map(pairs) => {
            for (key, value) in pairs {
                let before = path.len();
                if before > 0 {
                    path.push('.');
                }
                path.push_str(&key.text);
                walk(value, path, found);
                path.truncate(before);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    #[test]
    fn references_are_found_wherever_they_stand() {
        let text = "roots: ['https://x/${A}']\nauth: { token_env_var: B }\nenv_keys: [C, D]\n\
                    x: { y: { z: 'a${A}b${file:f}' } }\nplain: '$${E}'\n";
        let node = parse(&SourceText::new("f", text), text).unwrap().root;
        let found: Vec<(String, String)> =
            of(&node).into_iter().map(|(name, places)| (name, places.join(" "))).collect();
        let expected = [
            ("${A}", "roots x.y.z"),
            ("${B}", "auth.token_env_var"),
            ("${C}", "env_keys"),
            ("${D}", "env_keys"),
            ("${file:f}", "x.y.z"),
        ];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert!(!is_literal(&node));
    }
}
