//! The check of whole answers in a run of many calls.
//!
//! Owns: nothing but the way to the check that every ordinary call goes through.

use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::host::listings::Tool;
use crate::host::output;
use crate::model::{Fault, ToolResult};
use crate::provider::repeat::Inspector;

/// Checks answers against the tool's output schema.
pub(super) struct Examiner(Arc<Tool>);

impl Examiner {
    /// Readies the check, which may take a moment the first time.
    pub(super) async fn new(tool: &Arc<Tool>) -> Self {
        let _compiled = tool.output().await;
        Self(Arc::clone(tool))
    }
}

impl Inspector for Examiner {
    fn inspect(&self, result: &ToolResult) -> Option<Fault> {
        let mut result = result.clone();
        // A schema whose check could take long is left to ordinary calls.
        output::examine(&self.0, &mut result, true).now_or_never()?;
        result.fault
    }
}
