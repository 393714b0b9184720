//! The identity of a configuration entry: the layer and the directory of its file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use strum::IntoStaticStr;

use crate::util::hex::hex;

/// How a file was found. This decides whether it needs trust and which settings it may contain.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
pub enum Layer {
    /// Named with `--tools` or `--mcp`.
    Flag,
    /// Named with `TOOLHOST_TOOLS` or `TOOLHOST_MCP`.
    Variable,
    /// Found upwards from the working directory.
    Project,
    User,
    /// The tutorial that is built into the binary.
    Embedded,
}

impl Layer {
    /// Whether the command line or the environment named the file for this run.
    pub fn is_named(self) -> bool {
        matches!(self, Self::Flag | Self::Variable)
    }
}

/// The identity of an entry: where it is declared, and what it says it starts or contacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryOrigin {
    pub layer: Layer,
    /// The root of the project for a project's entry, links resolved; otherwise the directory of
    /// its file.
    pub directory: PathBuf,
    /// The command line, the address or the function, as the file writes it: with references
    /// instead of their values.
    pub declaration: String,
    /// The end of a command line that names the server again, such as `-- python3 server.py`; only
    /// for a server that is not in any config file. Values that look like secrets are omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_end: Option<String>,
}

impl EntryOrigin {
    #[cfg(test)]
    pub(crate) fn of(layer: Layer, directory: &str) -> std::sync::Arc<Self> {
        let (directory, written) = (directory.into(), String::new());
        std::sync::Arc::new(Self { layer, directory, declaration: written, command_end: None })
    }

    /// Distinguishes the programs behind one name in statistics and history: 12 hexadecimal digits
    /// of a hash of the declaration. It is hashed because the declaration may contain a secret.
    pub fn program_id(&self) -> String {
        hex(&Sha256::digest(self.declaration.as_bytes())[..6])
    }

    /// The root of the project whose file declares the entry; `None` for every other layer.
    pub fn project(&self) -> Option<&Path> {
        (self.layer == Layer::Project).then_some(&*self.directory)
    }
}
