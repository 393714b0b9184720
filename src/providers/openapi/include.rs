//! `include`: which operations of a document become tools.
//!
//! It is a list of what is allowed, and required: a document may hold hundreds of operations, and
//! new ones must not appear by themselves. `operations` names them, `tags` and `paths` choose all
//! that carry one of the tags or match one of the patterns.

use super::document::{Document, Operation};
use crate::config::keys::suggestion;
use crate::config::node::Node;
use crate::config::spec::ToolSpec;
use crate::model::{Place, Problem};
use crate::util::pattern;

const KEYS: [&str; 3] = ["operations", "tags", "paths"];

/// The operations that an entry includes, each once and with the place that asked for it; what is
/// wrong is added to `problems`.
pub(super) fn choose(
    spec: &ToolSpec,
    document: &Document,
    problems: &mut Vec<Problem>,
) -> Vec<(Operation, Place)> {
    let all = document.operations();
    let mut chosen: Vec<(Operation, Place)> = Vec::new();
    let Some(include) = spec.entry.get("include").filter(|node| !node.entries().is_empty()) else {
        let place = spec.entry.get("include").map_or_else(|| spec.place.clone(), Node::place);
        let some: Vec<&str> = all.iter().take(8).map(|operation| operation.id.as_str()).collect();
        problems.push(
            Problem::error("'include' has to say which operations become tools")
                .hint(format!("write include: {{ operations: [{}] }}", some.join(", ")))
                .at(place),
        );
        return chosen;
    };
    for (key, list) in include.entries() {
        let word = key.text.as_str();
        if !KEYS.contains(&word) {
            let problem = Problem::error(format!("unknown key '{word}'"));
            let problem = match suggestion(word, KEYS.into_iter()) {
                Some(meant) => problem.hint(format!("did you mean '{meant}'?")),
                None => problem.hint(format!("there are {}", KEYS.join(", "))),
            };
            problems.push(problem.at(include.place_of(key)));
            continue;
        }
        let items = match list.as_list() {
            Ok(items) => items,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        for item in items {
            let text = match item.as_text() {
                Ok(text) => text,
                Err(problem) => {
                    problems.push(problem);
                    continue;
                }
            };
            let found: Vec<&Operation> =
                all.iter().filter(|one| matches(one, word, text)).collect();
            if found.is_empty() {
                problems.push(unknown(&all, word, text).at(item.place()));
            }
            for operation in found {
                if !chosen.iter().any(|(other, _)| same(other, operation)) {
                    chosen.push((operation.clone(), item.place()));
                }
            }
        }
    }
    chosen
}

fn same(a: &Operation, b: &Operation) -> bool {
    a.method == b.method && a.path == b.path
}

fn matches(operation: &Operation, key: &str, text: &str) -> bool {
    match key {
        "operations" => operation.id == text,
        "tags" => operation.tags.iter().any(|tag| tag == text),
        _ => pattern::matches(text, &operation.path),
    }
}

fn unknown(all: &[Operation], key: &str, text: &str) -> Problem {
    let known: Vec<&str> = match key {
        "operations" => all.iter().map(|operation| operation.id.as_str()).collect(),
        "tags" => all.iter().flat_map(|operation| &operation.tags).map(String::as_str).collect(),
        _ => all.iter().map(|operation| operation.path.as_str()).collect(),
    };
    let what = match key {
        "operations" => "operation",
        "tags" => "operation with the tag",
        _ => "path like",
    };
    let problem = Problem::error(format!("the document has no {what} '{text}'"));
    if let Some(meant) = suggestion(text, known.iter().copied()) {
        return problem.hint(format!("did you mean '{meant}'?"));
    }
    let mut some: Vec<&str> = known.into_iter().take(12).collect();
    some.dedup();
    problem.hint(format!("there are {}", some.join(", ")))
}
