//! Commands and events of the tools view.

use std::sync::Arc;

use crate::host::request::DryRun;
use crate::model::{Error, JsonObject};
use crate::tui::presentation::scroll_text::ScrollText;
use crate::tui::presentation::{
    CallResult, FilterInput, Presentation, PresentationRequest, ResultFormat,
};
use crate::util::jq::JqError;

#[derive(Debug, Clone, PartialEq)]
pub enum ToolsEffect {
    /// Find out exactly what a call would send, and send nothing.
    DryRun {
        tool: String,
        arguments: JsonObject,
    },
    Query {
        filter: String,
        input: Arc<FilterInput>,
    },
    /// Make a large result ready to be shown.
    Present(PresentationRequest),
    /// Keep a call under a name, for `toolhost run NAME`.
    SaveCall {
        name: String,
        tool: String,
        arguments: JsonObject,
    },
    /// Write a result to files that were not there before.
    Save {
        /// The file name prefix, made safe.
        stem: String,
        what: ResultExport,
    },
}

#[derive(Debug, Clone)]
pub struct ResultExport {
    pub outcome: Arc<CallResult>,
    /// Text saves the bytes of its blocks, a file each; tree and table its value as JSON, raw all of
    /// it as JSON.
    pub format: ResultFormat,
}

impl PartialEq for ResultExport {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.outcome, &other.outcome) && self.format == other.format
    }
}

#[derive(Debug)]
pub enum ToolsEvent {
    /// What a jq filter gave, and what of.
    QueryFinished {
        filter: String,
        /// The result it was run over.
        input: Arc<FilterInput>,
        results: Result<(ScrollText, usize), JqError>,
    },
    /// A result is ready to be shown.
    Presented {
        /// The number of the request.
        generation: u64,
        /// What was made of the result; `None` when making it failed.
        presentation: Option<Presentation>,
    },
    /// What a call would send.
    DryRunFinished { tool: String, dry_run: Result<DryRun, Error> },
}
