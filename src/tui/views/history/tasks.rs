//! Commands and events of the history view.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::history::compare::CallComparison;
use crate::history::json::HistoryDetailJson;
use crate::history::read::{HistoryLookup, HistoryPage};
use crate::history::{HistoryEntry, read};
use crate::model::{CallFilter, Error};
use crate::tui::event::AppEvent;
use crate::tui::tasks::{self, ConsoleDeps, EffectRunner};
use crate::util::append::RecordLocation;
use crate::util::segments::ReverseLines;
use crate::util::timestamp::{Since, file_name_timestamp, local_time};
use crate::util::{json, private_file};

#[derive(Debug, Clone, PartialEq)]
pub enum HistoryEffect {
    Read {
        /// Calls that do not pass are not read.
        filter: HistoryReadFilter,
        /// The maximum number of calls to read.
        limit: usize,
    },
    /// Read this call, whole; then say whether its tool is still what it was.
    Open(String),
    /// Compare two calls, by their identities; which of them is older does not matter.
    Compare(String, String),
    /// Write these calls to a file, a line each.
    Export(Vec<String>),
}

/// Which calls are read from the file; an empty filter reads all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistoryReadFilter {
    pub tool: Option<String>,
    /// Only calls that failed, or only calls that did not.
    pub failed: Option<bool>,
    /// The earliest time; `None` reads from the start.
    pub since: Option<Since>,
    pub session: Option<SessionFilter>,
    /// Calls of all projects instead of only the console's own.
    pub all_projects: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionFilter {
    Current,
    Id(String),
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

#[derive(Debug)]
pub enum HistoryEvent {
    /// These are the newest calls.
    Read {
        calls: Vec<PastCall>,
        /// Lines that could not be read.
        damaged: usize,
        /// Whether there are older ones.
        more: bool,
        /// Whether calls are kept at the moment.
        is_recording: bool,
    },
    /// The history could not be read.
    Unreadable(Error),
    /// One call with its arguments and result.
    Entry(Box<HistoryEntry>),
    /// The call of this identity is not there, and why.
    NotFound(String, Error),
    /// Whether the tool of this call changed since; `None` when that was not kept.
    DefinitionChecked(String, Result<Option<bool>, Error>),
    Compared(Box<CallComparison>),
    /// The two calls could not be compared.
    CompareFailed(Error),
}

impl EffectRunner {
    pub fn history(&self, effect: HistoryEffect) {
        let deps = self.deps.clone();
        match effect {
            HistoryEffect::Open(id) => {
                let send = self.event_tx.clone();
                self.spawn(async move {
                    let (asked, place) = (id.clone(), deps.clone());
                    let found = blocking(move || entry(&place, &asked)).await;
                    let entry = match found {
                        Ok(entry) => entry,
                        Err(error) => return AppEvent::History(HistoryEvent::NotFound(id, error)),
                    };
                    // It is shown before a server is asked for the tool's present definition.
                    let shown = AppEvent::History(HistoryEvent::Entry(Box::new(entry.clone())));
                    let _gone = send.send(shown).await;
                    AppEvent::History(HistoryEvent::DefinitionChecked(
                        id,
                        deps.host.has_changed_since(&entry).await,
                    ))
                });
            }
            HistoryEffect::Read { filter: wanted, limit } => self.spawn(async move {
                let found = blocking(move || newest(&deps, &wanted, limit)).await;
                AppEvent::History(found.unwrap_or_else(HistoryEvent::Unreadable))
            }),
            HistoryEffect::Compare(one, other) => self.spawn(async move {
                let compared = blocking(move || {
                    Ok(CallComparison::of(&entry(&deps, &one)?, &entry(&deps, &other)?))
                });
                AppEvent::History(match compared.await {
                    Ok(comparison) => HistoryEvent::Compared(Box::new(comparison)),
                    Err(error) => HistoryEvent::CompareFailed(error),
                })
            }),
            HistoryEffect::Export(ids) => self.spawn(async move {
                let name = format!("history-{}.jsonl", file_name_timestamp(deps.clock.unix()));
                let path = deps.cwd.join(name);
                let target = path.clone();
                let written = blocking(move || export(&deps, &ids, &target)).await;
                tasks::write_result_event(
                    &path,
                    written.map_err(|error| error.message().to_owned()),
                )
            }),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::internal(format!("the read was cancelled: {error}"))))
}

fn place(deps: &ConsoleDeps) -> Result<&RecordLocation, Error> {
    deps.history.as_ref().ok_or_else(|| {
        Error::internal("no home directory for the history")
            .with_hint("set history: { path: FILE } in tools.yaml")
    })
}

pub fn lines(deps: &ConsoleDeps) -> Result<ReverseLines, Error> {
    ReverseLines::all(place(deps)?).map_err(Error::unreadable_records)
}

fn newest(
    deps: &ConsoleDeps,
    wanted: &HistoryReadFilter,
    limit: usize,
) -> Result<HistoryEvent, Error> {
    let filter = CallFilter {
        since: wanted.since.map(|since| since.time(deps.clock.unix())),
        tools: wanted.tool.clone().map(|tool| vec![tool]),
        failed: wanted.failed,
        session: wanted.session.as_ref().map(|session| match session {
            SessionFilter::Current => deps.host.session().to_owned(),
            SessionFilter::Id(id) => id.clone(),
        }),
        project: deps.project_root.clone().filter(|_| !wanted.all_projects),
        ..CallFilter::default()
    };
    let summary = |entry| call_summary(entry, deps.host.session());
    let found =
        read::select(lines(deps)?, &filter, limit, summary).map_err(Error::unreadable_records)?;
    let HistoryPage { entries: calls, damaged, has_more: more } = found;
    Ok(HistoryEvent::Read { calls, damaged, more, is_recording: deps.keeps_history })
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
    match read::find(lines(deps)?, id, None).map_err(Error::unreadable_records)? {
        HistoryLookup::One(entry) if entry.id == id => Ok(*entry),
        _ => Err(Error::usage("this call is no longer in the history")),
    }
}

fn export(deps: &ConsoleDeps, ids: &[String], path: &Path) -> Result<(), Error> {
    let mut wanted: HashSet<&str> = ids.iter().map(String::as_str).collect();
    let mut file = private_file::create_new(path).map_err(|error| write_error(&error))?;
    let mut failed = None;
    // One at a time: together they may be more than there is room for.
    for line in lines(deps)? {
        if wanted.is_empty() || failed.is_some() {
            break;
        }
        let only = std::iter::once(line);
        let each = |entry: HistoryEntry| {
            if wanted.remove(entry.id.as_str()) {
                let line = json::compact(&HistoryDetailJson::from(&entry));
                failed = io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).err();
            }
        };
        read::select(only, &CallFilter::default(), 1, each).map_err(Error::unreadable_records)?;
    }
    failed.map_or(Ok(()), |error| Err(write_error(&error)))
}

fn write_error(error: &io::Error) -> Error {
    Error::internal(error.to_string())
}
