//! What all providers of this kind share: from an entry to an answer of a worker.

use std::path::PathBuf;
use std::sync::Arc;

use super::entry::Entry;
use super::memory::Memory;
use super::wire::{Op, Request};
use super::worker::Reply;
use super::workers::{Key, Workers};
use super::{interpreter, sources};
use crate::config::environment::Environment;
use crate::model::fault::Signal;
use crate::model::{Fault, FaultKind, JsonObject, Phase, ToolContext};
use crate::provider::{KindContext, permit};
use crate::providers::surroundings;

/// Runs what entries name.
pub(super) struct Runner {
    workers: Workers,
    environment: Arc<dyn Environment>,
    /// What functions said about themselves.
    pub(super) memory: Memory,
}

impl Runner {
    /// A runner without workers; nothing is started before it is asked for something.
    pub(super) fn new(context: &KindContext) -> Self {
        Self {
            workers: Workers::new(context.events.clone()),
            memory: Memory::new(context.environment.cache_dir()),
            environment: Arc::clone(&context.environment),
        }
    }

    /// The interpreter of an entry.
    ///
    /// # Errors
    /// Where it was looked for.
    pub(super) fn interpreter(&self, entry: &Entry) -> Result<PathBuf, Fault> {
        interpreter::find(entry, self.environment.as_ref())
    }

    /// What the worker of an entry is made for, sessions aside. Found out once: looking for the
    /// interpreter would be most of what a call costs.
    ///
    /// # Errors
    /// When there is no interpreter.
    pub(super) fn key<'e>(&self, entry: &'e Entry) -> Result<&'e Key, Fault> {
        if let Some(key) = entry.key.get() {
            return Ok(key);
        }
        let environment = self.environment.as_ref();
        let key = Key {
            interpreter: self.interpreter(entry)?,
            root: entry.root.clone(),
            env: surroundings::inherited(&entry.env, &entry.env_keys, environment),
            session: None,
        };
        Ok(entry.key.get_or_init(|| key))
    }

    /// What stands between a call and the function, as far as it shows without starting anything.
    pub(super) fn obstacle(&self, entry: &Entry) -> Option<Fault> {
        let checks = [permit(&entry.trust), self.interpreter(entry).map(drop), require_root(entry)];
        checks.into_iter().find_map(Result::err)
    }

    /// Asks the worker of an entry, starting it when there is none.
    ///
    /// # Errors
    /// When it is not trusted, cannot be started, dies, or the call is cancelled.
    pub(super) async fn ask(
        &self,
        entry: &Entry,
        (op, function, args): (Op, Option<&str>, Option<&JsonObject>),
        context: &ToolContext,
        origin: &str,
    ) -> Result<Reply, Fault> {
        permit(&entry.trust)?;
        require_root(entry)?;
        let shared = self.key(entry)?;
        let own = entry
            .by_session
            .then(|| Key { session: Some(context.session_id.clone()), ..shared.clone() });
        let worker = tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                return Err(Fault::new(
                    FaultKind::Interrupted(Signal::Interrupt),
                    "stopped before Python was ready",
                ));
            }
            worker = self.workers.get(own.as_ref().unwrap_or(shared)) => worker?,
        };
        let file = sources::file_of(&entry.root, &entry.module);
        let request = Request { op, module: &entry.module, function, file: file.as_deref(), args };
        worker.ask(request, context, origin).await
    }

    /// Ends all workers.
    pub(super) async fn close(&self) {
        self.workers.close().await;
    }
}

/// The system reports a missing directory as a missing program; this tells them apart.
fn require_root(entry: &Entry) -> Result<(), Fault> {
    if entry.root.is_dir() {
        return Ok(());
    }
    Err(Fault::unreachable(format!("the root '{}' is no directory", entry.root.display()))
        .phase(Phase::Start)
        .hint("'root' in the entry is relative to its file"))
}
