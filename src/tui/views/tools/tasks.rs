//! Work for the tools view.

use std::path::Path;

use crate::config::saved_calls::{SavedCall, SavedCalls};
use crate::host::breakpoints::{Breakpoint, BreakpointChange};
use crate::host::command;
use crate::host::content::{self, ContentPayload};
use crate::host::request::{CallArguments, CallRequest};
use crate::model::ToolResult;
use crate::tui::prelude::*;
use crate::tui::tasks::{blocking, error_message, write};
use crate::tui::views::result::presentation::{
    self, CallResult, FilterInput, PresentationRequest, ResultFormat,
};
use crate::util::{jq, json, output_paths};

/// Finds out exactly what a call would send, and sends nothing.
pub fn dry_run(tool: String, arguments: JsonObject) -> Task {
    let name = ("dry run", tool.clone(), arguments.clone());
    let request = CallRequest::new(tool.clone(), CallArguments::Object(arguments));
    let work = async move |context: TaskContext| context.deps.host.dry_run(&request).await;
    Task::new(name, work, |state, dry_run| {
        state.context.message = None;
        state.tools.viewer.dry_run = Some((tool, presentation::dry_run_document(&dry_run)));
    })
}

pub fn query(filter: String, input: Arc<FilterInput>) -> Task {
    let work = {
        let (filter, input) = (filter.clone(), Arc::clone(&input));
        move || {
            let result = presentation::result_of(&input.outcome);
            let value = || result.map(content::filter_value).unwrap_or_default().into_owned();
            let results = jq::query(&filter, input.value.get_or_init(value));
            results.map(|values| (presentation::filtered(&values), values.len()))
        }
    };
    Task::compute(("jq", filter.clone()), work, move |state, results| match results {
        Some(results) => state.tools.filtered(filter, &input, results, &mut state.context),
        None => state.context.show_error("the filter stopped unexpectedly"),
    })
}

/// Makes a large result ready to be shown.
pub fn present(request: PresentationRequest) -> Task {
    let generation = request.generation;
    let work = move || request.build();
    Task::compute(("present", generation), work, move |state, made| {
        state.tools.viewer.presented(generation, made);
    })
}

/// Stops calls of a tool in the attached host from now on, or lets them go on again.
pub fn set_breakpoint(tool: String, stops: bool) -> Task {
    let what = ("breakpoint", tool.clone(), stops);
    Task::message(what, async move |context: TaskContext| {
        let change = if stops {
            BreakpointChange::Set(Breakpoint::before(&tool))
        } else {
            BreakpointChange::Remove(Some(tool.clone()))
        };
        let changed = context.deps.host.change_breakpoints(change).await;
        changed.ok_or("the background host does not answer")?;
        Ok(if stops {
            format!("calls of {tool} stop here from now on")
        } else {
            format!("calls of {tool} stop no more")
        })
    })
}

/// Keeps a call under a name, for `toolhost run NAME`.
pub fn save_call(name: String, tool: String, arguments: JsonObject) -> Task {
    let what = ("save call", name.clone(), tool.clone(), arguments.clone());
    Task::message(what, async move |context: TaskContext| {
        let words = command::argument_words(&arguments);
        let call = SavedCall { tool, words, ..SavedCall::default() };
        store_call(&name, call, context.deps.saved_calls.as_deref())
            .map_err(|error| error_message(&error))
    })
}

/// Writes a result to files that were not there before; their names begin with `stem`. Text saves the
/// bytes of its blocks, a file each; tree and table its value as JSON, raw all of it as JSON.
pub fn save(stem: String, outcome: Arc<CallResult>, format: ResultFormat) -> Task {
    Task::message(("save result", stem.clone(), format), async move |context: TaskContext| {
        let payloads = move || payloads(&outcome, format);
        write_payloads(&stem, payloads, &context.deps.cwd).await
    })
}

/// Saves a call to the file in the user's configuration directory; returns the status message.
fn store_call(name: &str, call: SavedCall, directory: Option<&Path>) -> Result<String, Error> {
    if directory.is_none() {
        return Err(Error::usage("only calls of servers and tools in config files can be saved")
            .with_hint("add the server to one: toolhost add NAME -- COMMAND"));
    }
    let before = SavedCalls::open(directory)?.save(name, call)?;
    let place = before.map_or("", |_before| ", replacing the earlier one");
    Ok(format!("saved{place}: toolhost run {name}"))
}

fn payloads(outcome: &CallResult, format: ResultFormat) -> Result<Vec<ContentPayload>, Error> {
    let Some(result) = presentation::result_of(outcome) else { return Ok(Vec::new()) };
    let json = |value| {
        let bytes = (json::pretty(&value) + "\n").into_bytes();
        Ok(vec![ContentPayload { bytes, media_type: "application/json".to_owned() }])
    };
    match format {
        ResultFormat::Best | ResultFormat::Text => block_payloads(result),
        ResultFormat::Tree | ResultFormat::Table => json(content::filter_input(result)),
        ResultFormat::Raw => json(presentation::whole(result)),
    }
}

/// The bytes of the blocks of a result.
pub fn block_payloads(result: &ToolResult) -> Result<Vec<ContentPayload>, Error> {
    content::payloads(result)
        .map_err(|block| Error::protocol(format!("cannot decode the binary data of block {block}")))
}

/// Writes payloads to files that were not there before; their names begin with `stem`.
pub async fn write_payloads(
    stem: &str,
    payloads: impl FnOnce() -> Result<Vec<ContentPayload>, Error> + Send + 'static,
    cwd: &Path,
) -> Result<String, String> {
    let payloads = blocking(payloads).await.map_err(|error| error.message().to_owned())?;
    if payloads.is_empty() {
        return Err("nothing to save in this result".to_owned());
    }
    let has_several = payloads.len() > 1;
    let (mut failure, mut names) = (None, Vec::new());
    for (at, payload) in payloads.into_iter().enumerate() {
        let number = if has_several { format!("-{}", at + 1) } else { String::new() };
        let essence = payload.media_type.split(';').next().unwrap_or_default().trim();
        let extension = match essence {
            "application/json" => "json",
            other => output_paths::extension(other).unwrap_or("txt"),
        };
        let name = format!("{stem}{number}.{extension}");
        match write(&cwd.join(&name), &payload.bytes).await {
            Ok(_) => names.push(name),
            Err(error) => failure = Some(error),
        }
    }
    let wrote = format!("wrote {}", names.join(", "));
    match failure {
        None => Ok(wrote),
        Some(error) if names.is_empty() => Err(error),
        Some(error) => Err(format!("{error}; {wrote}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_that_were_written_are_named_where_another_could_not_be() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("call-2.txt"), "mine").unwrap();
        let payload = |bytes: &[u8]| ContentPayload {
            bytes: bytes.to_vec(),
            media_type: "text/plain".to_owned(),
        };
        let payloads = vec![payload(b"one"), payload(b"two"), payload(b"three")];
        let saved = write_payloads("call", || Ok(payloads), directory.path()).await;
        let error = saved.unwrap_err();
        assert!(error.starts_with("cannot write "), "{error}");
        assert!(error.ends_with("; wrote call-1.txt, call-3.txt"), "{error}");
        assert_eq!(std::fs::read(directory.path().join("call-2.txt")).unwrap(), b"mine");
    }
}
