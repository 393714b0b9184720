//! What the trace wants done.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::Traffic;

/// What the trace view asks the effects to do.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceEffect {
    /// Write a trace file that was not there before; relative to where the console was opened.
    Export {
        /// The path to write; an existing file is not overwritten.
        path: PathBuf,
        /// What it is to hold.
        trace_export: TraceExport,
    },
}

/// What a trace file is to hold. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TraceExport {
    /// What crossed the wires, in order.
    pub items: Arc<Vec<Traffic>>,
    /// How many were left out, because only their beginning was kept.
    pub cut: usize,
}

impl TraceExport {
    /// An export of these messages, of which `cut` more were too large to be kept.
    pub fn new(items: Vec<Traffic>, cut: usize) -> Self {
        Self { items: Arc::new(items), cut }
    }
}

impl PartialEq for TraceExport {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.items, &other.items) && self.cut == other.cut
    }
}
