//! Checking complete results during a benchmark.

use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::host::listings::ListedTool;
use crate::host::output_check;
use crate::model::{Error, ToolResult};
use crate::provider::load::Inspector;

pub(super) struct OutputInspector(Arc<ListedTool>);

impl OutputInspector {
    /// Readies the check, which may take a moment the first time.
    pub(super) async fn new(tool: &Arc<ListedTool>) -> Self {
        let _compiled = tool.output_checker().await;
        Self(Arc::clone(tool))
    }
}

impl Inspector for OutputInspector {
    fn inspect(&self, result: &ToolResult) -> Option<Error> {
        let mut result = result.clone();
        // A schema whose check could take long is left to ordinary calls.
        output_check::check_output(&self.0, &mut result, true).now_or_never()?;
        result.error
    }
}
