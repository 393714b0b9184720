//! Commands and events of project trust.

use std::sync::Arc;

use crate::config::consent::ProjectRecord;
use crate::config::consent::TrustRequest;
use crate::config::spec::Configuration;
use crate::model::{Diagnostic, Error};

/// How far the project is trusted, as one look at its configuration found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustStatus {
    /// The stored answer under which the project acts; `None` when no answer covers it as it is.
    pub record: Option<Arc<ProjectRecord>>,
    /// The request the user would be asked to trust; `None` when there is nothing to trust.
    pub request: Option<Arc<TrustRequest>>,
    /// How many entries do nothing until that is answered.
    pub untrusted: usize,
    /// What that look found wrong with the files.
    pub diagnostics: Vec<Diagnostic>,
}

impl TrustStatus {
    pub fn of(configuration: &Configuration) -> Self {
        Self {
            record: configuration.trust_record.clone(),
            request: configuration.trust_request.clone().map(Arc::new),
            untrusted: configuration.untrusted.len(),
            diagnostics: configuration.diagnostics.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustEffect {
    /// Load the configuration and tell how far it is trusted; the host stays as it is.
    Check,
    /// Store the user's yes to exactly this request, and offer what it allows.
    Trust {
        /// Exactly the request that was on the screen; nothing else is trusted.
        request: Arc<TrustRequest>,
        /// Whether code below the root may change from now on without asking.
        as_author: bool,
    },
    /// Store the user's no to this content.
    Refuse(Arc<TrustRequest>),
    Reload {
        may_end_calls: bool,
    },
    /// Go on with what was read last; a host that it replaces is closed.
    SwitchHost,
}

#[derive(Debug)]
pub enum TrustEvent {
    /// The trust store changed: this process or another one wrote it.
    StoreChanged,
    /// These configuration files are not what the host was built from, by their names.
    FilesChanged(Vec<String>),
    Checked(TrustStatus),
    /// The refusal is stored and holds until the project changes.
    Refused,
    HostReady(TrustStatus),
    /// The project is not what was trusted any more, and the host offers what it offered before.
    HostKept(TrustStatus),
    HostSwitched,
    /// The answer was not stored, or no host could be built.
    Failed(Error),
}
