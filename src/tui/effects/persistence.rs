//! Reads settings and remembered state once, and saves them in intervals.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::ConsoleDeps;
use crate::config::read;
use crate::host::ToolHost;
use crate::model::Diagnostic;
use crate::tui::event::AppEvent;
use crate::tui::event::persistence::{PersistenceEffect, PersistenceEvent};
use crate::tui::persisted_state::{PersistedState, ReadStateError};
use crate::tui::settings::{self, ConsoleSettings};
use crate::util::atomic_file::{self, FileMode};

/// The file of remembered state, in the state directory.
const STATE_FILE: &str = "console.json";
/// The least time between two writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(3);
/// How long the end of the console may wait for the last write.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// The largest file of memory: far more than its bounds allow.
const MAX_STATE_BYTES: u64 = 4 << 20;

pub(super) async fn perform(effect: PersistenceEffect, deps: ConsoleDeps) -> AppEvent {
    let PersistenceEffect::Load = effect;
    let event = tokio::task::spawn_blocking(move || {
        let mut event = PersistenceEvent::default();
        if let Some(directory) = &deps.settings {
            settings(&directory.join(settings::FILE), &mut event);
        }
        if let Some(directory) = &deps.state {
            memory(&directory.join(STATE_FILE), &deps.project, &mut event);
        }
        event
    });
    AppEvent::Persistence(Box::new(event.await.unwrap_or_default()))
}

fn settings(path: &Path, event: &mut PersistenceEvent) {
    if !path.exists() {
        return;
    }
    let read = read::read(path, false).map(|(source, text)| settings::read(&source, &text));
    let (settings, problems) =
        read.unwrap_or_else(|problem| (ConsoleSettings::default(), vec![problem]));
    event.settings = settings;
    event.problems.extend(problems.iter().map(one_line_problem));
}

/// A problem on one line, its location first.
fn one_line_problem(problem: &Diagnostic) -> String {
    let place = problem.location.as_ref().filter(|place| place.line > 0);
    let place = place.map_or_else(
        || settings::FILE.to_owned(),
        |place| format!("{}:{}:{}", settings::FILE, place.line, place.column),
    );
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{place}: {}{hint}", problem.message)
}

fn memory(path: &Path, project: &str, event: &mut PersistenceEvent) {
    if !path.exists() {
        return;
    }
    match read_bounded(path).and_then(|text| PersistedState::read(&text, project)) {
        Ok(memory) => event.persisted = Some(memory),
        Err(error) => {
            let aside = path.with_extension("json.old");
            let moved = std::fs::rename(path, &aside);
            let what = if moved.is_ok() { "moved to console.json.old" } else { "left in place" };
            event.problems.push(format!("cannot restore the last session: {error}; {what}"));
        }
    }
}

fn read_bounded(path: &Path) -> Result<String, ReadStateError> {
    let about = std::fs::metadata(path)?;
    if !about.is_file() || about.len() > MAX_STATE_BYTES {
        return Err(ReadStateError::NotOurs(MAX_STATE_BYTES));
    }
    Ok(std::fs::read_to_string(path)?)
}

/// Writes the state to remember to its file.
pub(super) struct StateWriter {
    file: Option<PathBuf>,
    project: String,
    /// The state to remember, and the host that knows which parts are secret.
    latest: watch::Sender<Option<(PersistedState, Arc<ToolHost>)>>,
    writer: Option<JoinHandle<()>>,
}

impl StateWriter {
    /// A writer with nothing to write yet.
    pub(super) fn new(deps: &ConsoleDeps) -> Self {
        let (latest, mut changes) = watch::channel::<Option<(PersistedState, Arc<ToolHost>)>>(None);
        let file = deps.state.as_ref().map(|state| state.join(STATE_FILE));
        let project = deps.project.clone();
        let writer = file.clone().map(|path| {
            let project = project.clone();
            tokio::spawn(async move {
                while changes.changed().await.is_ok() {
                    let latest = changes.borrow_and_update().clone();
                    if let Some((memory, host)) = latest {
                        write(path.clone(), project.clone(), host, memory).await;
                    }
                    tokio::time::sleep(WRITE_INTERVAL).await;
                }
            })
        });
        Self { file, project, latest, writer }
    }

    /// Schedules the state to be written; `host` masks the secrets in it.
    pub(super) fn remember(&self, memory: PersistedState, host: &Arc<ToolHost>) {
        self.latest.send_replace(Some((memory, Arc::clone(host))));
    }

    /// The last thing to be remembered, if something is new. Waits for a while until it is written.
    pub(super) async fn finish(&mut self, memory: Option<PersistedState>, host: &Arc<ToolHost>) {
        if let Some(writer) = self.writer.take() {
            writer.abort();
        }
        let before = self.latest.send_replace(None);
        let latest = memory.map(|memory| (memory, Arc::clone(host))).or(before);
        if let (Some((memory, host)), Some(path)) = (latest, self.file.take()) {
            let written = write(path, self.project.clone(), host, memory);
            // Quitting does not wait for a slow disk.
            let _too_slow = tokio::time::timeout(SHUTDOWN_TIMEOUT, written).await;
        }
    }
}

/// Write errors are ignored: nothing that the user asked for is lost.
async fn write(path: PathBuf, project: String, host: Arc<ToolHost>, memory: PersistedState) {
    let write = move || {
        let harmless =
            memory.without_secrets(|arguments, schema| host.mask_arguments(arguments, schema));
        let _turn = atomic_file::lock(&path)?;
        let before = read_bounded(&path).ok();
        let text = harmless.text(&project, before.as_deref());
        atomic_file::replace(&path, text.as_bytes(), FileMode::Private)
    };
    let _lost = tokio::task::spawn_blocking(write).await;
}
