//! Statistics beside something else that was asked for.
//!
//! Owns: reading them within a brief time; what cannot be had at once is left out.

use super::context::CommandContext;
use crate::assembly::{self, Assembly};
use crate::model::CallFilter;
use crate::stats::{ReadBudget, Statistics, Usage};
use crate::util::clock::{Clock as _, SystemClock};

/// What was counted of these tools, or of all.
pub fn usages(
    tools: Option<Vec<String>>,
    context: &CommandContext,
    assembly: &Assembly,
) -> Vec<Usage> {
    read(tools, context, assembly).unwrap_or_default()
}

fn read(
    tools: Option<Vec<String>>,
    context: &CommandContext,
    assembly: &Assembly,
) -> Option<Vec<Usage>> {
    let spec = &assembly.configuration.stats;
    let state_dir = context.environment.state_dir();
    let place = assembly::stats_place(spec, state_dir.as_deref()).filter(|_| spec.enabled)?;
    let mut statistics = Statistics::new(place, spec.retention, ReadBudget::BRIEF);
    let now = SystemClock.unix();
    statistics.refresh(now).ok()?;
    let found = statistics.summary(&CallFilter { tools, ..CallFilter::default() }, now).ok()?.tools;
    for note in statistics.take_notes() {
        context.output.warn(&note);
    }
    Some(found)
}
