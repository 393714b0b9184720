//! Command tools: a program with an argument template, JSON or text in and out, without a shell.
//!
//! Owns: what an entry may say and filling an element of its template (`entry`), one run with its
//! environment and events (`run`), and its result (`result`). Never does:
//! split or quote anything; an argument of a call becomes at most one argument of the program.

mod entry;
mod provider;
mod result;
mod run;

use crate::config::consent::{EntryEffect, EntrySite, ProgramEffect};
use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor};
use crate::config::typed::{self, Keys};
use crate::provider::ProviderKind;
use crate::providers::confinement;
use crate::providers::program_env::ProgramKeys;
use entry::CommandKeys;

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "command",
            aliases: &["program"],
            keys: const { &[Keys::of::<CommandKeys>(), Keys::of::<ProgramKeys>()] },
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
    let keys = typed::peek::<CommandKeys>(entry).zip(typed::peek::<ProgramKeys>(entry));
    let Some((keys, program)) = keys else { return Vec::new() };
    let argv = match keys.program(&entry.location()) {
        Ok((program, elements)) => {
            std::iter::once(program).chain(elements.into_iter().map(|text| text.value)).collect()
        }
        Err(_) => keys.elements().into_iter().map(|text| text.value).collect(),
    };
    let mut effects = vec![EntryEffect::Runs(ProgramEffect {
        argv,
        env: program.env_as_written(),
        found_from: Some(site.base_dir.to_path_buf()),
        usual_cwd: site.cwd(),
        cwd: keys.cwd,
    })];
    if keys.allow_dash == Some(true) {
        effects
            .push(EntryEffect::Other("allows values that start an argument with '-'".to_owned()));
    }
    effects.extend(confinement::effects(entry, site.base_dir));
    effects
}
