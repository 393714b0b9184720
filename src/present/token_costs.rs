//! `list --tokens`: the cost of tool definitions in tokens, as tables.

use crate::formats::{DefinitionCost, ModelFormat, ToolCost};
use crate::present::{Line, Page, Role, Table, TableColumn};
use crate::util::units::show_count;

/// The costs in each format; then in `format` by component and by tool, most expensive first.
pub fn page(
    tools: &[ToolCost],
    servers: &[(Option<&str>, Vec<&ToolCost>)],
    format: ModelFormat,
    width: Option<usize>,
) -> Page {
    let mut table = new_table("FORMAT");
    let tools: Vec<&ToolCost> = tools.iter().collect();
    for format in ModelFormat::ALL {
        row(&mut table, format.as_str(), Some(tools.len()), sum(&tools, format));
    }
    let mut page = table.layout(width);
    page.blank_line();
    let mut table = new_table("SERVER");
    for (name, tools) in sorted(servers, |(_, tools)| sum(tools, format)) {
        row(&mut table, name.unwrap_or("(own tools)"), Some(tools.len()), sum(tools, format));
    }
    page.append(table.layout(width));
    page.blank_line();
    let mut table = new_table("TOOL");
    for tool in sorted(&tools, |tool| sum(std::slice::from_ref(tool), format)) {
        row(&mut table, &tool.name, None, sum(std::slice::from_ref(tool), format));
    }
    page.append(table.layout(width));
    page
}

pub fn total(tools: &[ToolCost], format: ModelFormat) -> DefinitionCost {
    sum(&tools.iter().collect::<Vec<_>>(), format)
}

fn new_table(first: &str) -> Table {
    Table::new([
        TableColumn::new(first).shrinks_to(16),
        TableColumn::new("TOOLS").right(),
        TableColumn::new("BYTES").right(),
        TableColumn::new("~TOKENS").right(),
    ])
}

fn row(table: &mut Table, name: &str, tools: Option<usize>, cost: DefinitionCost) {
    table.row([
        Line::styled(Role::Name, name),
        Line::plain(tools.map(|tools| show_count(tools as u64)).unwrap_or_default()),
        Line::plain(show_count(cost.bytes)),
        Line::plain(show_count(cost.tokens)),
    ]);
}

fn sum(tools: &[&ToolCost], format: ModelFormat) -> DefinitionCost {
    let place = ModelFormat::ALL.iter().position(|known| *known == format).unwrap_or_default();
    tools.iter().filter_map(|tool| tool.costs.get(place).copied()).sum()
}

fn sorted<T>(all: &[T], cost: impl Fn(&T) -> DefinitionCost) -> Vec<&T> {
    let mut sorted: Vec<&T> = all.iter().collect();
    sorted.sort_by_key(|item| std::cmp::Reverse(cost(item).tokens));
    sorted
}
