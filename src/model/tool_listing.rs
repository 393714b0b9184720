//! The tools a provider lists at one moment.

use std::sync::Arc;

use super::definition::ToolDefinition;
use super::diagnostic::Diagnostic;
use super::permissions::WithheldItem;

/// Tools, with the problems of those that were left out.
#[derive(Debug, Clone, Default)]
pub struct ToolListing {
    /// The tools, in their owner's order.
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Skipped items, and warnings. One bad item does not affect the others.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether something is missing from `tools` (a page, an item, a limit reached).
    pub is_partial: bool,
    /// Tools that the server offers and the entry withholds.
    pub withheld: Vec<WithheldItem>,
}
