//! Which tools may be offered to others: a client of the catalogue, or a model.

use std::sync::Arc;

use super::ToolHost;
use super::policy::Decision;
use crate::catalogue::Catalogue;
use crate::model::{PinState, ToolDefinition, ToolStatus};

/// A tool that may be offered.
#[derive(Debug, Clone)]
pub struct OfferableTool {
    /// Its definition, with known secrets masked.
    pub definition: Arc<ToolDefinition>,
    /// Whether a person has to approve each call.
    pub needs_approval: bool,
}

impl ToolHost {
    /// The tools of a catalogue that may be offered, in its order.
    pub fn offerable_tools(&self, catalogue: &Catalogue) -> Vec<OfferableTool> {
        let usable = catalogue.tools.iter().filter(|tool| is_usable(tool));
        let offered = usable.filter_map(|tool| {
            let needs_approval = match self.decision(tool) {
                Decision::Allow(_) => false,
                Decision::Ask(_) => true,
                Decision::Deny(_) => return None,
            };
            let mut definition = Arc::clone(tool);
            self.pipeline.masker.definition(&mut definition);
            Some(OfferableTool { definition, needs_approval })
        });
        offered.collect()
    }
}

fn is_usable(tool: &ToolDefinition) -> bool {
    tool.unavailable_reason.is_none()
        && !matches!(tool.status, ToolStatus::Unavailable | ToolStatus::Untrusted)
        && !matches!(tool.pin_state, PinState::Changed(_))
}
