//! Commands of the trace view.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::Traffic;

#[derive(Debug, Clone, PartialEq)]
pub enum TraceEffect {
    /// Write a trace file that was not there before; relative to where the console was opened.
    Export {
        /// The path to write; an existing file is not overwritten.
        path: PathBuf,
        /// The messages to write.
        trace_export: TraceExport,
    },
}

/// The content of a trace file. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TraceExport {
    /// The messages in their order.
    pub items: Arc<Vec<Traffic>>,
    /// How many were left out because only their start was kept.
    pub cut: usize,
}

impl TraceExport {
    /// An export of these messages, without `cut` more that were too large to keep.
    pub fn new(items: Vec<Traffic>, cut: usize) -> Self {
        Self { items: Arc::new(items), cut }
    }
}

impl PartialEq for TraceExport {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.items, &other.items) && self.cut == other.cut
    }
}
