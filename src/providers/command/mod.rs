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

use crate::config::node::Node;
use crate::config::spec::{Claim, KindWords, Site};
use crate::provider::Kind;
use crate::providers::confinement;
use crate::providers::surroundings::variables;

/// The row of the registry of kinds.
pub fn kind() -> Kind {
    Kind {
        words: KindWords {
            key: "command",
            aliases: &["program"],
            keys: entry::KEYS,
            expand: &[],
            claims: |node, _| Claim::certain_if(node.get("command").is_some()),
            starts: Some(starts),
        },
        build: provider::build,
    }
}

/// What a person is asked to trust: the program, each argument, the directory, and every variable
/// by name. Values of variables may be secrets and are not shown, but for those that decide which
/// code runs: trust has to end when one of them changes.
fn starts(entry: &Node, site: &Site<'_>) -> Vec<String> {
    let base_dir = site.base_dir;
    let mut lines = Vec::new();
    match entry::command(entry) {
        Ok((program, elements)) => {
            lines.push(format!("program: {program}"));
            lines.extend(elements.iter().map(|(text, _)| format!("argument: {text}")));
            if program.contains('/') {
                lines.push(format!("found from: {}", base_dir.display()));
            }
        }
        Err(problem) => lines.push(format!("command: {}", problem.message)),
    }
    lines.push(match entry.get("cwd").and_then(|node| node.as_text().ok()) {
        Some(cwd) => format!("directory: {}", base_dir.join(cwd).display()),
        None => "directory: the one toolhost is called in".to_owned(),
    });
    lines.extend(variables(entry));
    if entry.get("allow_dash").is_some_and(|node| matches!(node.as_bool(), Ok(true))) {
        lines.push("values may start an argument with '-'".to_owned());
    }
    lines.extend(confinement::trust_lines(entry, base_dir));
    lines
}
