//! `toolhost list --tokens`: the size of tool definitions.

use std::collections::{BTreeMap, BTreeSet};

use super::export::FormatArg;
use super::prelude::*;
use crate::catalogue::Catalogue;
use crate::cli::json::token_costs::TokenCostsJson;
use crate::formats::{ToolCost, tool_costs};
use crate::host::ToolHost;
use crate::model::{ToolDefinition, ToolName};
use crate::serve::catalogue_server::lean;
use crate::util::units::show_count;

/// Prints the size of the tools in `shown` that may be offered to a model.
pub(super) fn print(
    host: &ToolHost,
    catalogue: &Catalogue,
    shown: &[&ToolDefinition],
    dialect: FormatArg,
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
    let (output, dialect) = (&context.output, dialect.format());
    let value = TokenCostsJson::new(&costs, &servers);
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
