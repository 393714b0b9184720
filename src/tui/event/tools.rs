//! Commands and events of the tools view.

use std::sync::Arc;

use serde_json::Value;

use crate::host::request::DryRun;
use crate::model::{Error, JsonObject};
use crate::util::jq::JqError;

/// What the tools view asks the effects to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolsEffect {
    /// Find out exactly what a call would send, and send nothing.
    DryRun {
        /// The full name of the tool, with the component in front.
        tool: String,
        /// The arguments as the person filled them in, secrets included.
        arguments: JsonObject,
    },
    /// Run a jq filter over a result.
    Query {
        /// The filter as it was typed.
        filter: String,
        /// The result.
        value: Arc<Value>,
    },
    /// Keep a call under a name, for `toolhost run NAME`.
    SaveCall {
        /// The name that a person typed.
        name: String,
        /// The full name of the tool, with the component in front.
        tool: String,
        /// The arguments, secrets included.
        arguments: JsonObject,
    },
    /// Write a result to files that were not there before.
    Save {
        /// The beginning of the file names, made safe.
        stem: String,
        /// The content to save.
        what: Box<ResultExport>,
    },
}

/// The part of a result that is saved.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultExport {
    /// The bytes of its blocks, a file each.
    Blocks {
        /// The content blocks, each for a file of its own.
        content: Vec<Value>,
        /// The structured result, written as JSON when there is one.
        structured: Option<Value>,
        /// The result as one value.
        output: Value,
    },
    /// One value, written as indented JSON.
    Json(Value),
}

/// What the effects report to the tools view.
#[derive(Debug)]
pub enum ToolsEvent {
    /// What a jq filter gave, and what of.
    QueryFinished {
        /// The filter as it was typed.
        filter: String,
        /// The result it was run over.
        value: Arc<Value>,
        /// The values it gave, or why it gave none.
        results: Result<Vec<Value>, JqError>,
    },
    /// What a call would send.
    DryRunFinished {
        /// The full name of the tool, with the component in front.
        tool: String,
        /// The request that would be sent, or the error that prevents it.
        dry_run: Result<DryRun, Error>,
    },
}
