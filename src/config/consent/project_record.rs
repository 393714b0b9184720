//! The stored record of a trusted project.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::bundle::Bundle;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectRecord {
    pub root: PathBuf,
    /// When the user agreed, as RFC 3339 in UTC.
    #[serde(rename = "when")]
    pub trusted_at: String,
    /// Whether code below the root may change without asking: its author said so.
    #[serde(rename = "author", default)]
    pub allows_code_changes: bool,
    pub bundle: Bundle,
}
