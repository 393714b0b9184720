//! What the tools want done, and what comes of it.

use serde_json::Value;

use crate::host::request::DryRun;
use crate::model::{Error, JsonObject};

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolsEffect {
    /// Find out exactly what a call would send, and send nothing.
    DryRun {
        /// The tool's full name.
        tool: String,
        /// Its arguments.
        arguments: JsonObject,
    },
    /// Write a result to files that were not there before.
    Save {
        /// What their names begin with; harmless.
        stem: String,
        /// What is to be saved.
        what: Box<ResultExport>,
    },
}

/// What of a result is saved.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultExport {
    /// The bytes of its blocks, a file each.
    Blocks {
        /// The blocks.
        content: Vec<Value>,
        /// The structured result.
        structured: Option<Value>,
        /// The result as one value.
        output: Value,
    },
    /// A value, as JSON.
    Json(Value),
}

/// What came of it.
#[derive(Debug)]
pub enum ToolsEvent {
    /// What a call would send.
    DryRunFinished {
        /// The tool's full name.
        tool: String,
        /// What would be sent, or why that cannot be said.
        rehearsal: Result<DryRun, Error>,
    },
}
