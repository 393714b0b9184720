//! Pipelines: tools composed of calls of other tools, of any kind and server.
//!
//! Owns: the keys of an entry and what can be checked of them before a call (`entry`, `step`),
//! templates and the values they see (`template`), and one run (`run`). Never
//! does: find, check or permit the tools it calls; each step goes through the host like any call.

mod entry;
mod provider;
mod run;
mod step;
mod template;

use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor};
use crate::config::typed::{self, Keys, Located};
use crate::provider::ProviderKind;
use entry::PipelineKeys;
use step::StepKeys;

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "pipeline",
            aliases: &["composite"],
            keys: const { &[Keys::of::<PipelineKeys>()] },
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
    let steps = typed::peek::<PipelineKeys>(entry).and_then(|keys| keys.steps);
    let steps = steps.iter().flat_map(|steps| &steps.value).flat_map(Located::members);
    let call = |step: &Located<StepKeys>| EntryEffect::Calls {
        tool: step.tool.as_ref().map_or("?", |tool| tool).to_owned(),
        arguments: step.args.as_ref().map(|node| node.to_json().to_string()),
    };
    steps.map(call).collect()
}
