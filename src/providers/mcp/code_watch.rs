//! Restarting a server whose code changed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::McpProvider;
use crate::config::spec::{Endpoint, ServerSpec};
use crate::config::watched_files::{CodePatterns, CodeState};
use crate::model::{HostEvent, ListKind, ListOwner, LogLevel, ServerState};
use crate::provider::ManagedServer as _;

/// Poll interval of the files. A burst of changes is waited for.
const INTERVAL: Duration = Duration::from_millis(500);

pub(super) struct CodeWatch {
    patterns: CodePatterns,
    directory: PathBuf,
    /// As the files were last looked at; `None` before the first start.
    state: Mutex<Option<CodeState>>,
}

impl CodeWatch {
    pub(super) fn of(spec: &ServerSpec) -> Option<Self> {
        let Endpoint::Stdio { cwd, .. } = &spec.endpoint else { return None };
        let (patterns, directory) = (spec.watch.clone()?, cwd.clone());
        Some(Self { patterns, directory, state: Mutex::default() })
    }

    /// Notes what the first process is started from. Returns whether that was too much to see all.
    pub(super) async fn begin(&self) -> bool {
        if self.has_begun() {
            return false;
        }
        self.look_again().await;
        self.state().as_ref().is_some_and(|state| state.is_partial)
    }

    fn state(&self) -> MutexGuard<'_, Option<CodeState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_begun(&self) -> bool {
        self.state().is_some()
    }

    /// Whether the files have changed since they were last looked at.
    async fn look_again(&self) -> bool {
        let (patterns, directory) = (self.patterns.clone(), self.directory.clone());
        let looked = tokio::task::spawn_blocking(move || patterns.state_in(&directory)).await;
        let Ok(now) = looked else { return false };
        let mut state = self.state();
        let has_changed = state.as_ref().is_some_and(|before| *before != now);
        *state = Some(now);
        has_changed
    }
}

/// Watches the code of a server while it exists, if its entry says so.
pub(super) fn follow(server: &Arc<McpProvider>) {
    let (true, Ok(runtime)) = (server.watch.is_some(), tokio::runtime::Handle::try_current())
    else {
        return;
    };
    let server = Arc::downgrade(server);
    runtime.spawn(async move {
        let mut has_changed = false;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let Some(server) = server.upgrade() else { return };
            let Some(watch) = server.watch.as_ref().filter(|watch| watch.has_begun()) else {
                continue;
            };
            if watch.look_again().await {
                has_changed = true;
            } else if std::mem::take(&mut has_changed) {
                server.restart_with_new_code().await;
            }
        }
    });
}

impl McpProvider {
    async fn restart_with_new_code(&self) {
        self.log("info", "the code changed: restarting as soon as no call is running".to_owned());
        let _no_call = self.calls.write().await;
        // One that a person stopped stays so.
        if matches!(self.status().state, ServerState::Closed) {
            return;
        }
        if let ServerState::Failed(error) = self.restart().await.state {
            self.log("error", format!("not restarted: {error}"));
        }
        let owner = ListOwner::Server(self.spec.name.clone());
        for list in ListKind::ALL {
            self.setup.events.emit(HostEvent::ListChanged { owner: owner.clone(), list });
        }
    }

    pub(super) fn log(&self, level: &str, text: String) {
        let (origin, level) = (self.spec.name.clone(), LogLevel(level.to_owned()));
        self.setup.events.emit(HostEvent::Log { origin, call_id: None, level, text });
    }
}
