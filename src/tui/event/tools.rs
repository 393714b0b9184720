//! Commands and events of the tools view.

use std::sync::Arc;

use crate::host::request::DryRun;
use crate::model::{Error, JsonObject};
use crate::tui::presentation::scroll_text::ScrollText;
use crate::tui::presentation::{
    CallResult, FilterInput, Presentation, PresentationRequest, ResultFormat,
};
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
        input: Arc<FilterInput>,
    },
    /// Make a large result ready to be shown.
    Present(PresentationRequest),
    /// Keep a call under a name, for `toolhost run NAME`.
    SaveCall {
        /// The name that the user typed.
        name: String,
        /// The full name of the tool, with the component in front.
        tool: String,
        /// The arguments, secrets included.
        arguments: JsonObject,
    },
    /// Write a result to files that were not there before.
    Save {
        /// The file name prefix, made safe.
        stem: String,
        /// The result, and what of it.
        what: ResultExport,
    },
}

/// The part of a result that is saved.
#[derive(Debug, Clone)]
pub struct ResultExport {
    /// How the call ended.
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

/// What the effects report to the tools view.
#[derive(Debug)]
pub enum ToolsEvent {
    /// What a jq filter gave, and what of.
    QueryFinished {
        /// The filter as it was typed.
        filter: String,
        /// The result it was run over.
        input: Arc<FilterInput>,
        /// The values it gave as text and their number, or why it gave none.
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
    DryRunFinished {
        /// The full name of the tool, with the component in front.
        tool: String,
        /// The request that would be sent, or the error that prevents it.
        dry_run: Result<DryRun, Error>,
    },
}
