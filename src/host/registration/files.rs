//! Entries of a text in config file format, registered while the host runs.
//!
//! Owns: that an entry which cannot be registered does not affect the others, and that each is
//! reported with its line. Never does: parse; the builder of the host brings the factory.

use std::path::Path;
use std::sync::Arc;

use super::RegistrationError;
use crate::config::spec::FileRole;
use crate::host::ToolHost;
use crate::host::listings::RegisteredProvider;
use crate::model::{Diagnostic, Error};

/// The outcome of registering a text.
#[derive(Debug, Clone, Default)]
pub struct FileRegistration {
    /// The names of the entries that were registered, in the order of the text. Each is removed by its
    /// name: an internal one with [`ToolHost::unregister_provider`], an MCP server with
    /// [`ToolHost::unregister_client`].
    pub sources: Vec<String>,
    /// Problems with the text and its entries, with line and column; if there are no errors, every
    /// entry was registered.
    pub diagnostics: Vec<Diagnostic>,
}

impl ToolHost {
    /// Adds all entries of a text in the format of `tools.yaml` or `mcp.yaml`, as `role` says;
    /// `name` is used as the file name in messages. Other sections of the text (`policy`,
    /// `profiles`) are ignored. Starts and contacts nothing.
    ///
    /// # Errors
    /// A host without the built-in entry kinds. Problems with the text are in the diagnostics.
    pub fn register_file(
        &self,
        role: FileRole,
        name: &Path,
        text: &str,
    ) -> Result<FileRegistration, RegistrationError> {
        let factory = self.directory.roster().file_factory.clone();
        let factory = factory.ok_or(RegistrationError::NoFiles)?;
        // Not under the lock: it may read files.
        let built = factory.build(role, name, text);
        let mut done = FileRegistration { sources: Vec::new(), diagnostics: built.diagnostics };
        for entry in built.providers {
            let mut new = RegisteredProvider::new(entry.provider, Arc::default());
            new.source = Some(entry.name.clone());
            match self.insert_provider(new) {
                Ok(()) => done.sources.push(entry.name),
                Err(error) => {
                    let diagnostic = Diagnostic::error(Error::from(error).message().to_owned());
                    let diagnostic = diagnostic.with_location(entry.location);
                    done.diagnostics.push(diagnostic.with_entry(entry.name));
                }
            }
        }
        Ok(done)
    }
}
