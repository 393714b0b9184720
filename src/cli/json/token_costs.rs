//! The JSON of `list --tokens`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::formats::{DefinitionCost, ModelFormat, ToolCost};

/// The cost of tool definitions in tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TokenCostsJson<'a> {
    /// All tools together, by format of `export`.
    total: CostsJson,
    /// By component or server.
    servers: Vec<ServerCostJson<'a>>,
    /// Tool by tool, in the order of the catalogue.
    tools: Vec<ToolCostJson<'a>>,
}

type CostsJson = BTreeMap<&'static str, CostJson>;

/// The size of definitions in one format.
#[derive(Debug, Serialize, JsonSchema)]
struct CostJson {
    /// The bytes of compact JSON, exactly.
    bytes: u64,
    /// The approximate number of tokens; an estimate, since models differ.
    tokens_estimate: u64,
}

/// The total cost of the tools of a component or server.
#[derive(Debug, Serialize, JsonSchema)]
struct ServerCostJson<'a> {
    /// The component or server; null for tools that belong to neither.
    name: Option<&'a str>,
    /// The number of its tools.
    tools: usize,
    /// By format.
    costs: CostsJson,
}

/// The cost of one tool.
#[derive(Debug, Serialize, JsonSchema)]
struct ToolCostJson<'a> {
    /// The tool's full name.
    name: &'a str,
    /// The component or server that it belongs to.
    server: Option<&'a str>,
    /// By format.
    costs: CostsJson,
}

impl<'a> TokenCostsJson<'a> {
    pub fn new(tools: &'a [ToolCost], servers: &[(Option<&'a str>, Vec<&'a ToolCost>)]) -> Self {
        let servers = servers.iter().map(|(name, tools)| ServerCostJson {
            name: *name,
            tools: tools.len(),
            costs: costs(tools),
        });
        let of_tool = |tool: &'a ToolCost| ToolCostJson {
            name: &tool.name,
            server: tool.component.as_deref(),
            costs: costs(&[tool]),
        };
        Self {
            total: costs(&tools.iter().collect::<Vec<_>>()),
            servers: servers.collect(),
            tools: tools.iter().map(of_tool).collect(),
        }
    }
}

fn costs(tools: &[&ToolCost]) -> CostsJson {
    let formats = ModelFormat::ALL.iter().enumerate();
    formats
        .map(|(at, format)| {
            let cost: DefinitionCost =
                tools.iter().filter_map(|tool| tool.costs.get(at).copied()).sum();
            (format.as_str(), CostJson { bytes: cost.bytes, tokens_estimate: cost.tokens })
        })
        .collect()
}
