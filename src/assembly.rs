//! The only place that names every provider kind: specifications in, a [`ToolHost`] out.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::environment::Environment;
use crate::config::spec::Configuration;
use crate::host::ToolHost;
use crate::host::approval::Approver;
use crate::model::{EventSink, Fault};
use crate::provider::Kind;
use crate::providers;

/// What the command line says about the whole run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--tools`.
    pub tools: Vec<PathBuf>,
    /// `--mcp`.
    pub servers: Vec<PathBuf>,
    /// `--profile`.
    pub profile: Option<String>,
    /// `--trust`, or `TOOLHOST_TRUST=1`.
    pub trust_all: bool,
    /// `--insecure`.
    pub insecure: bool,
    /// `--require-record`.
    pub require_record: bool,
    /// `--strict`.
    pub strict: bool,
}

/// A host and what it was built from.
pub struct Assembly {
    /// The gateway to all tools.
    pub host: Arc<ToolHost>,
    /// What was loaded.
    pub configuration: Configuration,
    /// Variables and directories.
    pub environment: Arc<dyn Environment>,
}

/// Every kind of internal tool. The order is that in which an entry without a kind is offered.
pub fn kinds() -> Vec<Kind> {
    vec![providers::builtin::kind(), providers::command::kind()]
}

/// Reads the configuration and builds the host. Starts nothing.
///
/// # Errors
/// What is wrong with the configuration as a whole.
pub fn assemble(
    _options: &Options,
    _environment: Arc<dyn Environment>,
    _approver: Arc<dyn Approver>,
    _events: EventSink,
) -> Result<Assembly, Fault> {
    Err(Fault::internal("the assembly is not part of this branch"))
}
