//! Command tools: a program with an argument template, JSON or text in and out, without a shell.
//!
//! Owns: what an entry may say (`entry`), filling an element of the template (`argument`), the
//! environment (`call_env`), one run (`run`, `events`) and its result (`result`). Never does:
//! split or quote anything; an argument of a call becomes at most one argument of the program.

mod argument;
mod call_env;
mod entry;
mod events;
mod provider;
mod result;
mod run;

use crate::config::consent::{EntryEffect, EntrySite, ProgramEffect};
use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor};
use crate::provider::ProviderKind;
use crate::providers::confinement;

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "command",
            aliases: &["program"],
            keys: entry::KEYS,
            expand: &[],
            claims: |node, _| KindClaim::certain_if(node.get("command").is_some()),
            effects,
            code: None,
        },
        build: provider::build,
    }
}

/// The effects of an entry: it starts its program.
fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let argv = match entry::command(entry) {
        Ok((program, elements)) => {
            std::iter::once(program).chain(elements.into_iter().map(|(text, _)| text)).collect()
        }
        Err(_) => entry.get("command").and_then(|node| node.as_texts().ok()).unwrap_or_default(),
    };
    let runs = ProgramEffect {
        argv,
        cwd: entry.get("cwd").and_then(|node| node.as_text().ok()).map(str::to_owned),
        env: crate::providers::program_env::env_as_written(entry),
        found_from: Some(site.base_dir.to_path_buf()),
        usual_cwd: site.cwd(),
    };
    let mut effects = vec![EntryEffect::Runs(runs)];
    if entry.get("allow_dash").is_some_and(|node| matches!(node.as_bool(), Ok(true))) {
        effects
            .push(EntryEffect::Other("allows values that start an argument with '-'".to_owned()));
    }
    effects.extend(confinement::effects(entry, site.base_dir));
    effects
}
