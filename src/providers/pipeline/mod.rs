//! Pipelines: a tool made of other tools, of any kind and of any server.
//!
//! Owns: what an entry may say (`entry`, `step`), templates (`template`, `condition`), the values
//! they see (`scope`), what can be told before a call (`check`), and one run (`run`). Never does:
//! find, check or permit the tools it calls; each step goes through the host like any call.

mod check;
mod condition;
mod entry;
mod provider;
mod run;
mod scope;
mod step;
mod template;

use crate::config::node::Node;
use crate::config::spec::{Claim, KindWords, Site};
use crate::provider::Kind;

/// The row of the registry of kinds.
pub fn kind() -> Kind {
    Kind {
        words: KindWords {
            key: "pipeline",
            aliases: &["composite"],
            keys: &["steps", "result"],
            expand: &[],
            claims: |node, _| Claim::certain_if(node.get("steps").is_some()),
            starts: Some(starts),
        },
        build: provider::build,
    }
}

/// What a person is asked to trust: each tool that is called, and with what. A pipeline starts
/// nothing itself, but it hands the output of one of the user's tools to another.
fn starts(entry: &Node, _site: &Site<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let steps = entry.get("steps").and_then(|node| node.as_list().ok()).unwrap_or_default();
    for step in steps {
        let group = step.get("parallel").and_then(|node| node.as_list().ok());
        for step in group.unwrap_or(std::slice::from_ref(step)) {
            let tool = step.get("tool").and_then(|node| node.as_text().ok()).unwrap_or("?");
            let args = step.get_any(&["args", "arguments"]).map(|(_, node)| node.to_json());
            lines.push(match args {
                Some(args) => format!("calls: {tool} with {args}"),
                None => format!("calls: {tool}"),
            });
        }
    }
    lines
}
