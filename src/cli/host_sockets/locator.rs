//! Location of the socket of a configuration's background host.

use std::path::PathBuf;
use std::sync::Arc;

use super::runtime_directory::RuntimeDirectory;
use crate::assembly::host_identity::host_identity;
use crate::assembly::{AssemblyOptions, LoadedConfiguration};
use crate::config::environment::Environment;

/// Finds the sockets of hosts, for a run with certain options.
#[derive(Clone)]
pub struct HostLocator {
    options: AssemblyOptions,
    environment: Arc<dyn Environment>,
    /// The run starts its servers itself, even if a host is running.
    is_fresh: bool,
}

impl HostLocator {
    /// For a run with these options; with `is_fresh` it uses no host.
    pub fn new(
        options: AssemblyOptions,
        environment: Arc<dyn Environment>,
        is_fresh: bool,
    ) -> Self {
        Self { options, environment, is_fresh }
    }

    /// The socket of the host for exactly this configuration, whether it exists or not; `None` if
    /// no host was ever started, or none is to be used.
    pub fn socket(&self, loaded: &LoadedConfiguration) -> Option<PathBuf> {
        if self.is_fresh {
            return None;
        }
        let environment = self.environment.as_ref();
        let directory = RuntimeDirectory::of(environment)?;
        let identity = host_identity(loaded, &self.options, environment, &directory.key()?);
        Some(directory.socket(&identity))
    }
}
