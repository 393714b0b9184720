//! Work for the history view.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::config::suite;
use crate::history::compare::CallComparison;
use crate::history::json::HistoryDetailJson;
use crate::history::read::{HistoryLookup, HistoryPage};
use crate::history::{HistoryEntry, read as records};
use crate::host::rerun;
use crate::model::CallFilter;
use crate::tui::prelude::*;
use crate::tui::tasks::{self, ConsoleDeps, blocking};
use crate::util::segments::ReverseLines;
use crate::util::timestamp::{Since, file_name_timestamp, local_time};
use crate::util::{json, private_file};

const SUITE: &str = "tests.yaml";

/// Which calls are read from the file; an empty filter reads all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistoryReadFilter {
    pub tool: Option<String>,
    /// Only calls that failed, or only calls that did not.
    pub failed: Option<bool>,
    /// The earliest time; `None` reads from the start.
    pub since: Option<Since>,
    /// The identity of a session, or `this` for the console's own.
    pub session: Option<String>,
    /// Calls of all projects instead of only the console's own.
    pub all_projects: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PastCall {
    /// The identity of the call, as `history show` takes it.
    pub id: String,
    /// When it began, for people: local, to the second.
    pub time: String,
    pub tool: String,
    /// The server, or what else it is from.
    pub source: String,
    /// The client of a host that made it; `None` for one that this program made itself.
    pub client: Option<String>,
    /// The word of the failure's kind, when it failed.
    pub error: Option<String>,
    pub duration: Duration,
    pub arguments: String,
}

#[derive(Debug, Default)]
pub struct PastCalls {
    pub calls: Vec<PastCall>,
    /// Lines that could not be read.
    pub damaged: usize,
    pub has_more: bool,
    pub is_recording: bool,
}

pub fn read(filter: HistoryReadFilter, limit: usize) -> Task {
    let name = ("read history", filter.clone(), limit);
    let work = async move |context: TaskContext| {
        blocking(move || newest(&context.deps, &filter, limit)).await
    };
    Task::new(name, work, |state, calls| state.history.read(calls, &mut state.context))
}

/// Reads this call, whole; then finds out whether its tool is still what it was.
pub fn open(id: String) -> Task {
    let work = {
        let id = id.clone();
        async move |context: TaskContext| blocking(move || entry(&context.deps, &id)).await
    };
    Task::new(("open call", id.clone()), work, move |state, entry| match entry {
        Ok(entry) => {
            // It is shown before a server is asked for the tool's present definition.
            state.context.emit(check_definition(entry.clone()));
            state.history.opened(entry, &mut state.context);
        }
        Err(error) => state.history.not_opened(&id, &error, &mut state.context),
    })
}

/// Finds out whether the tool of a call changed since.
pub fn check_definition(entry: HistoryEntry) -> Task {
    let id = entry.id.clone();
    let work = async move |context: TaskContext| context.deps.host.has_changed_since(&entry).await;
    Task::new(("check definition", id.clone()), work, move |state, changed| {
        state.history.definition_checked(&id, changed);
    })
}

/// Compares two calls; which of them is older does not matter.
pub fn compare(one: String, other: String) -> Task {
    let name = ("compare calls", one.clone(), other.clone());
    let work = async move |context: TaskContext| {
        blocking(move || {
            let deps = &context.deps;
            Ok(CallComparison::of(&entry(deps, &one)?, &entry(deps, &other)?))
        })
        .await
    };
    Task::new(name, work, |state, compared| state.history.compared(compared, &mut state.context))
}

/// Writes these calls to a file, a line each.
pub fn export(ids: Vec<String>) -> Task {
    Task::message(("export calls", ids.clone()), async move |context: TaskContext| {
        let deps = context.deps;
        let name = format!("history-{}.jsonl", file_name_timestamp(deps.clock.unix()));
        let path = deps.cwd.join(name);
        let target = path.clone();
        let written = blocking(move || write_calls(&deps, &ids, &target)).await;
        tasks::file_message(&path, written.map_err(|error| error.message().to_owned()))
    })
}

/// Adds a call to the suite of this directory.
pub fn save_test(id: String) -> Task {
    Task::message(("save test", id.clone()), async move |context: TaskContext| {
        let save = move || {
            let (test, missing) = rerun::as_test(&entry(&context.deps, &id)?)?;
            suite::append(&context.deps.cwd.join(SUITE), &[test])?;
            Ok(missing)
        };
        match blocking(save).await {
            Ok(missing) if missing.is_empty() => Ok(format!("added: toolhost test {SUITE}")),
            Ok(missing) => Ok(format!("added to {SUITE} without secrets: {}", missing.join(", "))),
            Err(error) => Err(tasks::error_message(&error)),
        }
    })
}

pub fn lines(deps: &ConsoleDeps) -> Result<ReverseLines, Error> {
    let nowhere = || {
        Error::internal("no home directory for the history")
            .with_hint("set history: { path: FILE } in tools.yaml")
    };
    let place = deps.history.as_ref().ok_or_else(nowhere)?;
    ReverseLines::all(place).map_err(Error::unreadable_records)
}

/// What the tool last answered by the history, with the same arguments if it ever did.
pub fn newest_result(
    deps: &ConsoleDeps,
    tool: String,
    arguments: &JsonObject,
) -> Result<Option<Value>, Error> {
    const LOOKED_AT: usize = 100;
    let filter = CallFilter {
        tools: Some(vec![tool]),
        failed: Some(false),
        project: deps.project_root.clone(),
        ..CallFilter::default()
    };
    let page = records::newest(lines(deps)?, &filter, LOOKED_AT);
    let calls = page.map_err(Error::unreadable_records)?.entries.into_iter();
    let results: Vec<(bool, Value)> = calls
        .filter_map(|entry| {
            let result = entry.result.filter(|result| !result.cut)?;
            Some((entry.arguments.as_ref() == Some(arguments), result.output))
        })
        .collect();
    let best = results.iter().position(|(is_same, _)| *is_same).unwrap_or(0);
    Ok(results.into_iter().nth(best).map(|(_, output)| output))
}

fn newest(deps: &ConsoleDeps, query: &HistoryReadFilter, limit: usize) -> Result<PastCalls, Error> {
    let filter = CallFilter {
        since: query.since.map(|since| since.time(deps.clock.unix())),
        tools: query.tool.clone().map(|tool| vec![tool]),
        failed: query.failed,
        session: query.session.as_deref().map(|session| match session {
            "this" => deps.host.session().to_owned(),
            other => other.to_owned(),
        }),
        project: deps.project_root.clone().filter(|_| !query.all_projects),
        ..CallFilter::default()
    };
    let summary = |entry| call_summary(entry, deps.host.session());
    let page = records::select(lines(deps)?, &filter, limit, summary)
        .map_err(Error::unreadable_records)?;
    let HistoryPage { entries: calls, damaged, has_more } = page;
    Ok(PastCalls { calls, damaged, has_more, is_recording: deps.keeps_history })
}

/// `session` is that of this console: its own calls need no mark.
fn call_summary(entry: HistoryEntry, session: &str) -> PastCall {
    let (time, duration) = (local_time(entry.unix), entry.duration());
    let arguments = match &entry.arguments {
        Some(arguments) => json::short(arguments),
        None => "(too large to keep)".to_owned(),
    };
    let is_own = entry.session.as_deref() == Some(session);
    PastCall {
        time,
        duration,
        arguments,
        client: entry.caller.filter(|_| !is_own).and_then(|caller| caller.client),
        id: entry.id,
        tool: entry.tool,
        source: entry.server.or(entry.source).unwrap_or_default(),
        error: entry.error.map(|error| error.kind),
    }
}

fn entry(deps: &ConsoleDeps, id: &str) -> Result<HistoryEntry, Error> {
    match records::find(lines(deps)?, id, None).map_err(Error::unreadable_records)? {
        HistoryLookup::One(entry) if entry.id == id => Ok(*entry),
        _ => Err(Error::usage("this call is no longer in the history")),
    }
}

fn write_calls(deps: &ConsoleDeps, ids: &[String], path: &Path) -> Result<(), Error> {
    let mut left: HashSet<&str> = ids.iter().map(String::as_str).collect();
    let mut file = private_file::create_new(path).map_err(|error| write_error(&error))?;
    let mut failed = None;
    // One at a time: together they may be more than there is room for.
    for line in lines(deps)? {
        if left.is_empty() || failed.is_some() {
            break;
        }
        let only = std::iter::once(line);
        let each = |entry: HistoryEntry| {
            if left.remove(entry.id.as_str()) {
                let line = json::compact(&HistoryDetailJson::from(&entry));
                failed = io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).err();
            }
        };
        records::select(only, &CallFilter::default(), 1, each)
            .map_err(Error::unreadable_records)?;
    }
    failed.map_or(Ok(()), |error| Err(write_error(&error)))
}

fn write_error(error: &io::Error) -> Error {
    Error::internal(error.to_string())
}
