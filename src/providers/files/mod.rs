//! Files: a directory as tools, from `FileManagementToolkit` entries and components of type files.
//!
//! Owns: what an entry may say (`entry`), the directory and what leads out of it (`root`,
//! `inside`), the operations under their two sets of names (`table`, `arguments`), one file for
//! each group of operations, and replacing a file as a whole (`replace`). Never does: touch
//! anything outside of the directory, follow a link when it writes, open what is no regular file,
//! or run a program.

mod arguments;
mod entry;
mod fill;
mod info;
mod inside;
mod job;
mod list;
mod open;
mod provider;
mod read;
mod replace;
mod root;
mod search;
mod table;
mod transfer;
mod trouble;
mod walk;
mod write;

use crate::config::spec::{Claim, KindWords};
use crate::provider::Kind;

/// The row of the registry of kinds.
pub fn kind() -> Kind {
    Kind {
        words: KindWords {
            key: "files",
            aliases: &["langchain_toolkit", "toolkit", "file_management", "FileManagementToolkit"],
            keys: entry::KEYS,
            expand: &[],
            claims: |node, _| {
                let keys = ["toolkit", "toolkit_class", "root_dir"];
                Claim::certain_if(node.get_any(&keys).is_some())
            },
            effects: entry::effects,
            code: None,
        },
        build: provider::build,
    }
}

#[cfg(test)]
mod tests;
