//! The tools a provider lists at one moment.

use std::sync::Arc;

use super::definition::ToolDefinition;
use super::diagnostic::Diagnostic;
use super::permissions::WithheldItem;

/// Tools with what was wrong about the others.
#[derive(Debug, Clone, Default)]
pub struct ToolListing {
    /// The tools, in their owner's order.
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Items that had to be left out, and doubts; one bad item costs only itself.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether something is missing from `tools` (a page, an item, a limit reached).
    pub is_partial: bool,
    /// Tools that are there and that the entry keeps back.
    pub withheld: Vec<WithheldItem>,
}
