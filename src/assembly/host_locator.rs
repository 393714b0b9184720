//! The background host of a configuration: where it listens, and who answers its questions.

use std::path::PathBuf;
use std::sync::Arc;

use super::runtime_directory::RuntimeDirectory;
use crate::assembly::host_identity::host_identity;
use crate::assembly::{AssemblyOptions, FrontEnd, LoadedConfiguration};
use crate::audit::Masker;
use crate::config::environment::Environment;
use crate::host::questions::QuestionQueue;
use crate::serve::background::client::AttachedFrontEnd;

/// Finds the sockets of hosts, for a run with certain options.
#[derive(Clone)]
pub struct HostLocator {
    pub options: AssemblyOptions,
    pub environment: Arc<dyn Environment>,
    /// The run starts its servers itself, even if a host is running.
    pub is_fresh: bool,
}

impl HostLocator {
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

/// The front end as a background host sees it.
pub fn attached_front_end(front_end: &FrontEnd, masker: &Masker) -> AttachedFrontEnd {
    // Here too, a person is asked one thing at a time.
    let inbox = QuestionQueue::new(Arc::clone(&front_end.inbox), masker.clone());
    AttachedFrontEnd {
        approver: Arc::clone(&front_end.approver),
        inbox: Arc::new(inbox),
        events: masker.events(front_end.events.clone()),
    }
}
