//! `toolhost list --tokens`: the size of tool definitions.

use std::collections::{BTreeMap, BTreeSet};

use super::prelude::*;
use crate::catalogue::Catalogue;
use crate::formats::{DefinitionCost, ModelFormat, ToolCost, tool_costs};
use crate::model::{ToolDefinition, ToolName};
use crate::serve::catalogue_server::lean;
use crate::util::units::show_count;

/// Prints the size of the tools in `shown` that may be offered to a model.
pub(super) fn print(
    host: &ToolHost,
    catalogue: &Catalogue,
    shown: &[&ToolDefinition],
    dialect: ModelFormat,
    (format, context): (Format, &CommandContext),
) -> CommandResult {
    let names: BTreeSet<&ToolName> = shown.iter().map(|tool| &tool.name).collect();
    let offered = host.offerable_tools(catalogue);
    let definitions = offered.iter().map(|tool| tool.definition.as_ref());
    let selected: Vec<&ToolDefinition> =
        definitions.filter(|tool| names.contains(&tool.name)).collect();
    let costs = tool_costs(&selected);
    let mut servers: BTreeMap<Option<&str>, Vec<&ToolCost>> = BTreeMap::new();
    for tool in &costs {
        servers.entry(tool.component.as_deref()).or_default().push(tool);
    }
    let servers: Vec<_> = servers.into_iter().collect();
    let output = &context.output;
    let value = TokenCostsJson::from((&costs[..], &servers[..]));
    let names = costs.iter().map(|tool| &tool.name);
    let page = || present::token_costs::page(&costs, &servers, dialect, output.width());
    if output.listing(format, &value, names, page)? {
        output.note(format!(
            "servers and tools in the {} format; tokens are estimated, bytes are exact",
            dialect.as_str()
        ));
        let lean = lean::definitions();
        let lean = tool_costs(&lean.iter().collect::<Vec<_>>());
        let total = |costs: &[ToolCost]| present::token_costs::total(costs, dialect).tokens;
        let (lean, all) = (total(&lean), total(&costs));
        if lean < all {
            let (lean, all) = (show_count(lean), show_count(all));
            output
                .note(format!("'serve --lean' lists 3 tools of ~{lean} tokens instead of ~{all}"));
        }
    }
    Ok(())
}

type CostsOfServer<'a> = (Option<&'a str>, Vec<&'a ToolCost>);

shape! {
    /// The cost of tool definitions in tokens.
    pub TokenCostsJson<'a> of (all, by_server): (&'a [ToolCost], &[CostsOfServer<'a>]) {
        /// All tools together, by format of `export`.
        total: CostsJson = costs(&all.iter()),
        /// By component or server.
        servers: Vec<ServerCostJson<'a>> = by_server.iter().map(Into::into).collect(),
        /// Tool by tool, in the order of the catalogue.
        tools: Vec<ToolCostJson<'a>> = all.iter().map(Into::into).collect(),
    }
}

shape! {
    /// The total cost of the tools of a component or server.
    pub ServerCostJson<'a> of (server, all): &CostsOfServer<'a> {
        /// The component or server; null for tools that belong to neither.
        name: Option<&'a str> = *server,
        /// The number of its tools.
        tools: usize = all.len(),
        /// By format.
        costs: CostsJson = costs(&all.iter().copied()),
    }
}

shape! {
    /// The cost of one tool.
    pub ToolCostJson<'a> of tool: &'a ToolCost {
        /// The tool's full name.
        name: &'a str = &tool.name,
        /// The component or server that it belongs to.
        server: Option<&'a str> = tool.component.as_deref(),
        /// By format.
        costs: CostsJson = costs(&std::iter::once(tool)),
    }
}

type CostsJson = BTreeMap<&'static str, CostJson>;

shape! {
    /// The size of definitions in one format.
    pub CostJson of cost: DefinitionCost {
        /// The bytes of compact JSON, exactly.
        bytes: u64 = cost.bytes,
        /// The approximate number of tokens; an estimate, since models differ.
        tokens_estimate: u64 = cost.tokens,
    }
}

fn costs<'t>(tools: &(impl Iterator<Item = &'t ToolCost> + Clone)) -> CostsJson {
    let sum = |at: usize| -> DefinitionCost {
        tools.clone().filter_map(|tool| tool.costs.get(at).copied()).sum()
    };
    let formats = ModelFormat::ALL.iter().enumerate();
    formats.map(|(at, format)| (format.as_str(), sum(at).into())).collect()
}
