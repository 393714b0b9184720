//! Whether a tool is slower than it declares to be.

use std::time::Duration;

use super::Usage;
use crate::model::{Speed, ToolDefinition};

/// The fewest successful calls that say how fast a tool is.
pub const MIN_CALLS: u64 = 5;

const QUANTILE: f64 = 0.95;

/// A tool that is slower than it declares to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceededSpeed {
    pub speed: Speed,
    /// The time within which 95 of 100 successful calls end.
    pub p95: Duration,
}

impl ExceededSpeed {
    /// Compares what a tool declares with what was measured; `None` when it is as fast as that,
    /// declares nothing, or had fewer than [`MIN_CALLS`] successful calls.
    pub fn of(tool: &ToolDefinition, usage: &Usage) -> Option<Self> {
        let speed = tool.declared_speed()?;
        let durations = &usage.counts.durations;
        if durations.count() < MIN_CALLS {
            return None;
        }
        let p95 = durations.quantile(QUANTILE)?;
        (p95 > speed.default_timeout()).then_some(Self { speed, p95 })
    }
}
