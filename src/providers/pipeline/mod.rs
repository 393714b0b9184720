//! Pipelines: tools composed of calls of other tools, of any kind and server.
//!
//! Owns: the keys of an entry (`entry`, `step`), templates (`template`, `condition`), the values
//! they see (`scope`), what can be checked before a call (`check`), and one run (`run`). Never
//! does: find, check or permit the tools it calls; each step goes through the host like any call.

mod check;
mod condition;
mod entry;
mod provider;
mod reference;
mod run;
mod scope;
mod step;
mod template;

use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor};
use crate::provider::ProviderKind;

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "pipeline",
            aliases: &["composite"],
            keys: &["steps", "result"],
            expand: &[],
            claims: |node, _| KindClaim::certain_if(node.get("steps").is_some()),
            effects,
            code: None,
        },
        build: provider::build,
    }
}

/// The effects of an entry: it calls its tools, whose own effects are listed at their entries.
fn effects(entry: &ConfigNode, _site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let mut effects = Vec::new();
    let steps = entry.get("steps").and_then(|node| node.as_list().ok()).unwrap_or_default();
    for step in steps {
        let group = step.get("parallel").and_then(|node| node.as_list().ok());
        for step in group.unwrap_or(std::slice::from_ref(step)) {
            let tool = step.get("tool").and_then(|node| node.as_text().ok()).unwrap_or("?");
            let arguments = step.get_any(&["args", "arguments"]);
            effects.push(EntryEffect::Calls {
                tool: tool.to_owned(),
                arguments: arguments.map(|(_, node)| node.to_json().to_string()),
            });
        }
    }
    effects
}
