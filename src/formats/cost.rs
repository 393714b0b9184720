//! What definitions of tools cost a model, dialect by dialect.

use super::token_estimate::estimate_tokens;
use super::{ExportedTool, ModelFormat};
use crate::model::ToolDefinition;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DefinitionCost {
    pub bytes: u64,
    /// About how many tokens that is, see [`estimate_tokens`].
    pub tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCost {
    pub name: String,
    pub component: Option<String>,
    /// In the order of [`ModelFormat::ALL`].
    pub costs: [DefinitionCost; ModelFormat::ALL.len()],
}

impl DefinitionCost {
    fn of(tool: &ExportedTool) -> Self {
        let text = tool.definition.to_string();
        Self { bytes: text.len() as u64, tokens: estimate_tokens(&text) }
    }
}

impl std::iter::Sum for DefinitionCost {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, cost| Self {
            bytes: sum.bytes + cost.bytes,
            tokens: sum.tokens + cost.tokens,
        })
    }
}

/// What each of these tools costs, as `export` writes it.
pub fn tool_costs(tools: &[&ToolDefinition]) -> Vec<ToolCost> {
    let exported = ModelFormat::ALL.map(|format| format.export(tools.iter().copied()).tools);
    let cost = |at: usize, tool: &ToolDefinition| ToolCost {
        name: tool.name.full(),
        component: tool.name.component().map(str::to_owned),
        costs: exported
            .each_ref()
            .map(|tools| tools.get(at).map(DefinitionCost::of).unwrap_or_default()),
    };
    tools.iter().enumerate().map(|(at, tool)| cost(at, tool)).collect()
}
