//! Statistics beside something else that was asked for.
//!
//! Owns: reading them within a brief time; what cannot be had at once is left out.

use std::collections::HashMap;

use super::context::CommandContext;
use crate::assembly::{self, Assembly};
use crate::model::{CallFilter, ToolDefinition};
use crate::stats::{ReadBudget, Statistics, Usage};
use crate::util::clock::{Clock as _, SystemClock};

/// What was counted of these tools in this project, while they were the programs they are now.
pub fn usages<'t>(
    tools: impl IntoIterator<Item = &'t ToolDefinition>,
    context: &CommandContext,
    assembly: &Assembly,
) -> Vec<Usage> {
    let mut found = read(context, assembly).unwrap_or_default();
    let tools = tools.into_iter().map(|tool| (tool.name.full(), tool));
    let tools: HashMap<String, &ToolDefinition> = tools.collect();
    found.retain(|usage| tools.get(&usage.tool.name).is_some_and(|tool| usage.tool.is_of(tool)));
    found
}

fn read(context: &CommandContext, assembly: &Assembly) -> Option<Vec<Usage>> {
    let spec = &assembly.configuration.stats;
    let state_dir = context.environment.state_dir();
    let place = assembly::stats_place(spec, state_dir.as_deref()).filter(|_| spec.enabled)?;
    let mut statistics = Statistics::new(place, spec.retention, ReadBudget::BRIEF);
    let now = SystemClock.unix();
    statistics.refresh(now).ok()?;
    let filter = CallFilter { project: assembly.configuration.project(), ..CallFilter::default() };
    let found = statistics.summary(&filter, now).ok()?.tools;
    for note in statistics.take_notes() {
        context.output.warn(&note);
    }
    Some(found)
}
