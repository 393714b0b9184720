//! Python tools: functions, classes and definitions of the user, called in a worker that stays.
//!
//! Owns: what an entry may say (`entry`) and what a worker says of tools (`definition`,
//! `description_cache`), the interpreter and what belongs to it (`installation`), the
//! code that trust is bound to (`code`) and comparing it (`sealed`, `shim/guard.py`), the worker, an MCP
//! server (`worker`, `pool`) that runs a program in Python (`shim`), its answers (`result`), and the
//! provider of an entry (`provider`, `runner`).
//! Never does: read or run Python code itself, or start an interpreter to list an entry that has its
//! schema in the file.

mod code;
mod definition;
mod description_cache;
mod entry;
mod installation;
mod module;
mod pool;
mod provider;
mod result;
mod runner;
mod sealed;
mod shim;
mod worker;

use std::path::Path;

use self::code::code_files;
use self::entry::PythonKeys;
use crate::config::consent::{EntryEffect, EntrySite, ProgramEffect};
use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor};
use crate::config::typed::{self, Keys};
use crate::provider::ProviderKind;
use crate::providers::confinement;
use crate::providers::program_env::ProgramKeys;

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "python",
            aliases: &["function", "class", "custom_local", "custom_local_tool"],
            keys: const { &[Keys::of::<PythonKeys>(), Keys::of::<ProgramKeys>()] },
            expand: &["python", "root", "config"],
            claims,
            effects,
            code: Some(code_files),
        },
        build: provider::build,
    }
}

/// A file of tools, as text, with one entry: all that `module` offers, looked for in the
/// directory relative paths are relative to.
pub fn file_of_module(module: &str) -> String {
    let entry = serde_json::json!({
        "name": module, "kind": "python", "module": module, "functions": "typed",
    });
    serde_json::json!({ "tools": [entry] }).to_string()
}

/// Entries that name a module: for certain when its file is there, otherwise unless another kind
/// claims the module, as it may be installed.
fn claims(node: &ConfigNode, base_dir: &Path) -> KindClaim {
    let Some(PythonKeys { module: Some(module), root, function, class, .. }) = typed::peek(node)
    else {
        return KindClaim::No;
    };
    let root = base_dir.join(root.as_ref().map_or(".", |root| root));
    let names_target = function.is_some() || class.is_some();
    if names_target && module::file_of(&root, &module).is_some() {
        KindClaim::Certain
    } else {
        KindClaim::Fallback
    }
}

/// The effects of an entry: it starts an interpreter and runs a module's code in it.
fn effects(node: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let keys = typed::peek::<PythonKeys>(node).zip(typed::peek::<ProgramKeys>(node));
    let Some((keys, program)) = keys else { return Vec::new() };
    let module = keys.module.as_ref().map_or("", |module| module);
    let written_root = keys.root.as_ref().map(|root| root.as_str());
    let root = site.path(written_root.unwrap_or("."));
    let python = keys.python.as_ref().map(|python| python.as_str());
    let mut effects = vec![EntryEffect::Runs(ProgramEffect {
        argv: vec![installation::named(python, root.as_deref(), site.base_dir)],
        cwd: written_root.map(str::to_owned),
        env: program.env_as_written(),
        found_from: Some(site.base_dir.to_path_buf()),
        usual_cwd: site.base_dir.to_path_buf(),
    })];
    let what = match (&keys.function, &keys.class) {
        (Some(function), _) => format!("{module}.{}", function.value),
        (None, Some(class)) => format!("the class {module}.{}", class.value),
        (None, None) => format!("the tools that {module} offers"),
    };
    let is_there = root.as_deref().is_some_and(|root| module::file_of(root, module).is_some());
    effects.push(EntryEffect::Loads(if is_there {
        what
    } else {
        format!("{what}, from wherever the interpreter finds it")
    }));
    effects.extend(confinement::effects(node, site.base_dir));
    effects
}
