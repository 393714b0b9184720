//! Statistics shown beside other output.

use std::collections::HashMap;

use tokio::task::JoinHandle;

use super::context::CommandContext;
use crate::assembly::{self, Assembly};
use crate::model::{CallFilter, ToolDefinition};
use crate::stats::{ReadBudget, Statistics, Usage};
use crate::util::clock::{Clock as _, SystemClock};

/// Statistics, and what is to be known about them.
type UsagesRead = (Vec<Usage>, Vec<String>);

pub struct UsageReading(Option<JoinHandle<Option<UsagesRead>>>);

impl UsageReading {
    pub fn none() -> Self {
        Self(None)
    }

    pub fn begin(context: &CommandContext, assembly: &Assembly) -> Self {
        let spec = &assembly.configuration.stats;
        let state_dir = context.environment.state_dir();
        let place = assembly::stats_place(spec, state_dir.as_deref()).filter(|_| spec.enabled);
        let (retention, project) = (spec.retention, assembly.configuration.project());
        let filter = CallFilter { project, ..CallFilter::default() };
        Self(place.map(|place| {
            tokio::task::spawn_blocking(move || {
                read(Statistics::new(place, retention, ReadBudget::BRIEF), &filter)
            })
        }))
    }

    /// The statistics of these tools for their current definitions.
    pub async fn of<'t>(
        self,
        tools: impl IntoIterator<Item = &'t ToolDefinition>,
        context: &CommandContext,
    ) -> Vec<Usage> {
        let Some(reading) = self.0 else { return Vec::new() };
        let Some((mut usages, notes)) = reading.await.ok().flatten() else {
            return Vec::new();
        };
        for note in notes {
            context.output.warn(&note);
        }
        let tools = tools.into_iter().map(|tool| (tool.name.full(), tool));
        let tools: HashMap<String, &ToolDefinition> = tools.collect();
        usages
            .retain(|usage| tools.get(&usage.tool.name).is_some_and(|tool| usage.tool.is_of(tool)));
        usages
    }
}

fn read(mut statistics: Statistics, filter: &CallFilter) -> Option<UsagesRead> {
    let now = SystemClock.unix();
    statistics.refresh(now).ok()?;
    Some((statistics.summary(filter, now).ok()?.tools, statistics.take_notes()))
}
