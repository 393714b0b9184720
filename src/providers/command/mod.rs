//! Command tools: a program with an argument template, JSON or text in and out, and no shell.
//!
//! Owns: what an entry may say (`entry`), filling the template (`template`), the environment
//! (`surroundings`), one run (`run`, `events`, `tail`) and its result (`result`). Never does:
//! split or quote anything; an argument of a call becomes one argument of the program or none.

mod entry;
mod events;
mod provider;
mod result;
mod run;
mod surroundings;
mod tail;
mod template;

use crate::config::consent::{Effect, ProgramEffect, Site};
use crate::config::node::Node;
use crate::config::spec::{Claim, KindWords};
use crate::provider::Kind;
use crate::providers::confinement;

/// The row of the registry of kinds.
pub fn kind() -> Kind {
    Kind {
        words: KindWords {
            key: "command",
            aliases: &["program"],
            keys: entry::KEYS,
            expand: &[],
            claims: |node, _| Claim::certain_if(node.get("command").is_some()),
            effects,
            code: None,
        },
        build: provider::build,
    }
}

/// What an entry would do: start its program.
fn effects(entry: &Node, site: &Site<'_>) -> Vec<Effect> {
    let argv = match entry::command(entry) {
        Ok((program, elements)) => {
            std::iter::once(program).chain(elements.into_iter().map(|(text, _)| text)).collect()
        }
        Err(_) => entry.get("command").and_then(|node| node.as_texts().ok()).unwrap_or_default(),
    };
    let runs = ProgramEffect {
        argv,
        cwd: entry.get("cwd").and_then(|node| node.as_text().ok()).map(str::to_owned),
        env: crate::providers::surroundings::set(entry),
        found_from: Some(site.base_dir.to_path_buf()),
        usual_cwd: site.cwd(),
    };
    let mut effects = vec![Effect::Runs(runs)];
    if entry.get("allow_dash").is_some_and(|node| matches!(node.as_bool(), Ok(true))) {
        effects.push(Effect::Other("lets values start an argument with '-'".to_owned()));
    }
    effects.extend(confinement::effects(entry, site.base_dir));
    effects
}
