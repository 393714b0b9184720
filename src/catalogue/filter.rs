//! Stand-in for choosing tools.
use crate::config::spec::ProfileSpec;
use crate::model::{Source, ToolDefinition};

/// What is wanted; every part that is empty allows everything.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Words that must all occur in the name, title or description, whatever their case.
    pub words: Vec<String>,
    /// Internal or MCP.
    pub source: Option<Source>,
    /// Only tools of one of these components or servers.
    pub servers: Vec<String>,
    /// Only these kinds of provider.
    pub kinds: Vec<String>,
    /// Only these categories.
    pub categories: Vec<String>,
    /// Only these safety levels.
    pub safety: Vec<String>,
    /// Only what this profile shows.
    pub profile: Option<ProfileSpec>,
}

impl Query {
    /// The places of the wanted tools in `tools`.
    pub fn select(&self, tools: &[ToolDefinition]) -> Vec<usize> {
        (0..tools.len()).collect()
    }
}
