//! File tools: a directory as tools, from `FileManagementToolkit` entries and components of type
//! files.
//!
//! Owns: the keys of an entry and replacements for other toolkits (`entry`), the
//! directory and what leads out of it (`root`), the operations under their two sets
//! of names (`operation`), one file for each group of operations, and replacing a file
//! as a whole (`replace`). Never does: touch anything outside the directory, follow a link when it
//! writes, open anything but regular files, or run a program.

mod entry;
mod job;
mod operation;
mod provider;
mod read;
mod replace;
mod root;
mod search;
mod transfer;
mod walk;
mod write;

use crate::config::spec::{KindClaim, KindDescriptor};
use crate::config::typed::Keys;
use crate::provider::ProviderKind;
use crate::providers::toolkit::ToolkitKeys;

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "files",
            aliases: &["langchain_toolkit", "toolkit", "file_management", "FileManagementToolkit"],
            keys: const { &[Keys::of::<ToolkitKeys>(), Keys::of::<entry::FilesKeys>()] },
            expand: &[],
            claims: |node, _| {
                let keys = ["toolkit", "toolkit_class", "root_dir"];
                KindClaim::certain_if(node.get_any(&keys).is_some())
            },
            effects: entry::effects,
            code: None,
        },
        build: provider::build,
    }
}

#[cfg(test)]
mod tests;
