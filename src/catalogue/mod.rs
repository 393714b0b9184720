//! One immutable, versioned list of all tools.
//!
//! Owns: naming, building, filtering, searching, fingerprints, drift, pins and the scan for
//! suspicious definitions. Never does: contact a server, read a file or run anything.

pub mod build;
pub mod changes;
pub mod drift;
pub mod fingerprint;
pub mod naming;
pub mod pins;
pub mod query;
pub mod scan;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{Diagnostic, Error, ToolDefinition};

/// One list of everything, as it was at one moment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Catalogue {
    /// Incremented with every change of the list.
    pub version: u64,
    /// The tools: internal ones in file order, then each server's in the server's order.
    pub tools: Vec<Arc<ToolDefinition>>,
    /// The servers that were asked, and what came of it.
    pub servers: Vec<ServerListing>,
    /// Why internal tools that others have to tell could not be listed.
    pub failures: Vec<LocalFailure>,
    /// What is wrong with single tools; one bad tool costs only itself.
    pub diagnostics: Vec<Diagnostic>,
}

/// Internal tools that could not be listed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LocalFailure {
    /// The provider kind of the tools, such as `python`.
    pub kind: Cow<'static, str>,
    /// Why the provider could not list them.
    pub error: Error,
}

/// What came of asking one server for its tools.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerListing {
    /// The server's name in `mcp.yaml`.
    pub name: String,
    /// Why nothing could be listed.
    pub error: Option<Error>,
    /// Whether tools are missing from the list: a page, an item, a limit reached.
    pub is_partial: bool,
}
