//! Statistics of one host, in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::recorder::{RecordError, Recorder};
use crate::model::{CallPlace, CallRecord, RecordedOutcome, ToolResult};
use crate::stats::count::{CallCounts, ToolKey};

/// A recorder that counts calls and keeps nothing else: no arguments, no results, no file.
///
/// Pass it to [`ToolHostBuilder::recorder`](super::builder::ToolHostBuilder::recorder) and keep a
/// second handle to read it.
#[derive(Debug, Default)]
pub struct UsageCounter {
    tools: Mutex<BTreeMap<ToolKey, CallCounts>>,
}

impl UsageCounter {
    /// The counts so far, by tool.
    pub fn tools(&self) -> Vec<(ToolKey, CallCounts)> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.iter().map(|(tool, counts)| (tool.clone(), counts.clone())).collect()
    }

    /// The counts of all tools together.
    pub fn total(&self) -> CallCounts {
        let mut total = CallCounts::default();
        for (_, counts) in self.tools() {
            total.merge(&counts);
        }
        total
    }
}

impl Recorder for UsageCounter {
    fn is_switched_on(&self) -> bool {
        // Counts are not an audit log.
        false
    }

    fn record_intent(&self, _call: &CallRecord) -> Result<(), RecordError> {
        Ok(())
    }

    fn record_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
        _result: Option<&ToolResult>,
    ) -> Result<(), RecordError> {
        if call.is_counted(outcome) {
            let place = CallPlace { program: call.program(), ..CallPlace::default() };
            let tool = ToolKey { name: call.tool.clone(), server: call.server.clone(), place };
            let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            tools.entry(tool).or_default().add_call(outcome);
        }
        Ok(())
    }

    fn record_batch_outcome(
        &self,
        _call: &CallRecord,
        _outcome: &RecordedOutcome,
    ) -> Result<(), RecordError> {
        Ok(())
    }
}
