//! Commands and events of the tools view.

use std::path::Path;
use std::sync::Arc;

use crate::config::saved_calls::{SavedCall, SavedCalls};
use crate::host::content::ContentPayload;
use crate::host::request::{CallArguments, CallRequest, DryRun};
use crate::host::{ToolHost, command, content};
use crate::model::{Error, JsonObject};
use crate::tui::event::AppEvent;
use crate::tui::tasks;
use crate::tui::views::result::documents;
use crate::tui::views::result::presentation::{
    self, CallResult, FilterInput, Presentation, PresentationRequest, ResultFormat,
};
use crate::tui::widgets::scroll_text::ScrollText;
use crate::util::jq::JqError;
use crate::util::{jq, json, output_paths};

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

pub async fn perform(
    effect: ToolsEffect,
    host: &ToolHost,
    cwd: &Path,
    saved_calls: Option<&Path>,
) -> AppEvent {
    match effect {
        ToolsEffect::DryRun { tool, arguments } => {
            let request = CallRequest::new(tool.clone(), CallArguments::Object(arguments));
            let dry_run = host.dry_run(&request).await;
            AppEvent::Tools(Box::new(ToolsEvent::DryRunFinished { tool, dry_run }))
        }
        ToolsEffect::Present(request) => {
            let generation = request.generation;
            let made = tokio::task::spawn_blocking(move || request.build()).await;
            let presentation = made.ok();
            AppEvent::Tools(Box::new(ToolsEvent::Presented { generation, presentation }))
        }
        ToolsEffect::Query { filter, input } => {
            let work = move || {
                let results = jq::query(&filter, input.value());
                let results = results.map(|values| (presentation::filtered(&values), values.len()));
                AppEvent::Tools(Box::new(ToolsEvent::QueryFinished { filter, input, results }))
            };
            let lost = |_panicked| AppEvent::failed("the filter thread stopped unexpectedly");
            tokio::task::spawn_blocking(work).await.unwrap_or_else(lost)
        }
        ToolsEffect::SaveCall { name, tool, arguments } => {
            let call = SavedCall {
                words: command::argument_words(&arguments),
                tool,
                ..SavedCall::default()
            };
            match save_call(&name, call, saved_calls) {
                Ok(text) => AppEvent::said(text),
                Err(error) => {
                    let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                    AppEvent::failed(format!("{error}{hint}"))
                }
            }
        }
        ToolsEffect::Save { stem, what } => match decoded(what).await {
            Ok(payloads) if payloads.is_empty() => {
                AppEvent::failed("nothing to save in this result")
            }
            Ok(payloads) => save(&stem, payloads, cwd).await,
            Err(error) => AppEvent::failed(error.message().to_owned()),
        },
    }
}

/// Saves a call to the file in the user's configuration directory; returns the status message.
fn save_call(name: &str, call: SavedCall, directory: Option<&Path>) -> Result<String, Error> {
    if directory.is_none() {
        return Err(Error::usage("only calls of servers and tools in config files can be saved")
            .with_hint("add the server to one: toolhost add NAME -- COMMAND"));
    }
    let before = SavedCalls::open(directory)?.save(name, call)?;
    let place = before.map_or("", |_before| ", replacing the earlier one");
    Ok(format!("saved{place}: toolhost run {name}"))
}

async fn decoded(what: ResultExport) -> Result<Vec<ContentPayload>, Error> {
    let decoded = tokio::task::spawn_blocking(move || payloads(&what)).await;
    decoded.unwrap_or_else(|_panicked| Err(Error::internal("cannot read the result")))
}

fn payloads(what: &ResultExport) -> Result<Vec<ContentPayload>, Error> {
    let Some(result) = presentation::result_of(&what.outcome) else { return Ok(Vec::new()) };
    let json = |value| {
        let bytes = (json::pretty(&value) + "\n").into_bytes();
        Ok(vec![ContentPayload { bytes, media_type: "application/json".to_owned() }])
    };
    match what.format {
        ResultFormat::Text => content::payloads(result).map_err(|block| {
            Error::protocol(format!("cannot decode the binary data of block {block}"))
        }),
        ResultFormat::Tree | ResultFormat::Table => json(content::filter_input(result)),
        ResultFormat::Raw => json(documents::whole(result)),
    }
}

async fn save(stem: &str, payloads: Vec<ContentPayload>, cwd: &Path) -> AppEvent {
    let many = payloads.len() > 1;
    let mut last = None;
    let mut names = Vec::new();
    for (at, payload) in payloads.into_iter().enumerate() {
        let number = if many { format!("-{}", at + 1) } else { String::new() };
        let essence = payload.media_type.split(';').next().unwrap_or_default().trim();
        let end = match essence {
            "application/json" => "json",
            other => output_paths::extension(other).unwrap_or("txt"),
        };
        let name = format!("{stem}{number}.{end}");
        match tasks::write(cwd.join(&name), &payload.bytes).await {
            AppEvent::StatusText { is_bad: false, .. } => names.push(name),
            failed => last = Some(failed),
        }
    }
    last.unwrap_or_else(|| AppEvent::said(format!("wrote {}", names.join(", "))))
}
