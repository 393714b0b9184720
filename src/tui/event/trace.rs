//! What the trace wants done.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::Traffic;

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// Write a trace file that was not there before; relative to where the console was opened.
    Export {
        /// Its name.
        path: PathBuf,
        /// What it is to hold.
        tape: Tape,
    },
}

/// What a trace file is to hold. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tape {
    /// What crossed the wires, in order.
    pub items: Arc<Vec<Traffic>>,
    /// How many were left out, because only their beginning was kept.
    pub cut: usize,
}

impl Tape {
    /// One of these.
    pub fn new(items: Vec<Traffic>, cut: usize) -> Self {
        Self { items: Arc::new(items), cut }
    }
}

impl PartialEq for Tape {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.items, &other.items) && self.cut == other.cut
    }
}
