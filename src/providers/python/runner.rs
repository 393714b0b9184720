//! Shared code of all Python providers: from an entry to a worker's answer.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::description_cache::DescriptionCache;
use super::entry::PythonEntry;
use super::wire::WorkerReply;
use super::wire::{WorkerOp, WorkerRequest, WorkerTarget};
use super::worker_pool::{WorkerKey, WorkerPool};
use super::{interpreter, module_file};
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::model::error::Signal;
use crate::model::{Error, ErrorKind, ErrorPhase, JsonObject, ToolContext};
use crate::provider::{ProviderDeps, verify_trust};
use crate::providers::confinement::Sandbox;
use crate::providers::program_env;

/// Finds or starts the worker of an entry and sends it requests.
pub(super) struct PythonRunner {
    workers: Arc<WorkerPool>,
    claimed: Mutex<Vec<WorkerKey>>,
    environment: Arc<dyn Environment>,
    pub(super) expanded: ExpandedValues,
    pub(super) descriptions: DescriptionCache,
}

impl PythonRunner {
    /// A runner without workers; the first request of an entry starts one.
    pub(super) fn new(context: &ProviderDeps) -> Self {
        Self {
            workers: context.shared.get_or_init(|| WorkerPool::new(context.events.clone())),
            claimed: Mutex::default(),
            descriptions: DescriptionCache::new(context.environment.cache_dir()),
            environment: Arc::clone(&context.environment),
            expanded: context.expanded.clone(),
        }
    }

    pub(super) fn interpreter(&self, entry: &PythonEntry) -> Result<PathBuf, Error> {
        interpreter::find(&entry.interpreter_choice(), self.environment.as_ref())
    }

    /// The key of the worker of an entry, sessions aside. Computed once: looking for the
    /// interpreter would be most of what a call costs.
    pub(super) fn key<'e>(&self, entry: &'e PythonEntry) -> Result<&'e WorkerKey, Error> {
        if let Some(key) = entry.worker_key.get() {
            return Ok(key);
        }
        let environment = self.environment.as_ref();
        let interpreter = self.interpreter(entry)?;
        let confined = |sandbox: &Sandbox| sandbox.confinement(&interpreter, &entry.root);
        let confinement = entry.sandbox.as_ref().map(confined).transpose()?;
        let key = WorkerKey {
            interpreter,
            root: entry.root.clone(),
            env: program_env::build_env(&entry.env, &entry.env_keys, environment, &self.expanded),
            confinement,
            sealed: entry.sealed.clone(),
            session: None,
        };
        Ok(entry.worker_key.get_or_init(|| {
            self.workers.claim(&key);
            self.claimed.lock().unwrap_or_else(PoisonError::into_inner).push(key.clone());
            key
        }))
    }

    pub(super) fn keep_worker(&self, entry: &PythonEntry) {
        if self.workers.has_claims() {
            // Any problem is reported by the first call.
            let _unused = self.key(entry);
        }
    }

    /// What would prevent a call, as far as can be told without starting anything.
    pub(super) fn obstacle(&self, entry: &PythonEntry) -> Option<Error> {
        let checks = [self.interpreter(entry).map(drop), require_root(entry)];
        checks.into_iter().find_map(Result::err).or_else(|| entry.sandbox.as_ref()?.obstacle())
    }

    /// Sends a request to the worker of an entry, starting one if there is none.
    pub(super) async fn request(
        &self,
        entry: &PythonEntry,
        (op, target, args): (WorkerOp, WorkerTarget<'_>, Option<&JsonObject>),
        context: &ToolContext,
        origin: &str,
    ) -> Result<WorkerReply, Error> {
        verify_trust(&entry.seal)?;
        require_root(entry)?;
        let shared = self.key(entry)?;
        let own = entry
            .by_session
            .then(|| WorkerKey { session: Some(context.session_id.clone()), ..shared.clone() });
        let worker = tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                return Err(Error::new(
                    ErrorKind::Interrupted(Signal::Interrupt),
                    "stopped before Python was ready",
                ));
            }
            worker = self.workers.get(own.as_ref().unwrap_or(shared)) => worker?,
        };
        let file = module_file::file_of(&entry.root, &entry.module);
        let request =
            WorkerRequest { op, module: &entry.module, target, file: file.as_deref(), args };
        let reply = worker.request(request, context, origin).await?;
        Ok(match &entry.sandbox {
            Some(sandbox) => with_sandbox_hint(reply, sandbox),
            None => reply,
        })
    }

    /// Ends the workers that no entry of another runner uses, and waits for them, bounded in time.
    pub(super) async fn close(&self) {
        self.release().await;
    }

    fn release(&self) -> impl Future<Output = ()> + use<> {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        self.workers.release(std::mem::take(&mut *claimed))
    }
}

impl Drop for PythonRunner {
    fn drop(&mut self) {
        // After a reading of the files that was refused there are claims left.
        drop(self.release());
    }
}

fn with_sandbox_hint(mut reply: WorkerReply, sandbox: &Sandbox) -> WorkerReply {
    let Some(error) = reply.error.as_mut() else { return reply };
    match (error.exception.as_deref(), sandbox.memory_limit()) {
        (Some("MemoryError"), Some(limit)) => {
            error.message = format!("{} ({limit})", error.message);
            let hint = "'memory' of 'sandbox' in the entry sets how much it may use";
            error.hint.get_or_insert_with(|| hint.to_owned());
        }
        (Some("PermissionError"), _) if sandbox.confines() => {
            let hint = "its sandbox may be the reason: 'toolhost inspect' shows what it may access";
            error.hint.get_or_insert_with(|| hint.to_owned());
        }
        _ => {}
    }
    reply
}

/// The system reports a missing directory as a missing program; this tells them apart.
fn require_root(entry: &PythonEntry) -> Result<(), Error> {
    if entry.root.is_dir() {
        let reads = |sandbox: &Sandbox| sandbox.reads(&entry.root);
        if entry.sandbox.as_ref().is_none_or(reads) {
            return Ok(());
        }
        let root = entry.root.display();
        return Err(Error::denied(format!(
            "the root '{root}' contains your home, which its sandbox does not expose"
        ))
        .with_phase(ErrorPhase::Start)
        .with_hint("set 'root' to a separate directory, or list it under 'read' of 'sandbox'"));
    }
    Err(Error::unreachable(format!("the root '{}' is not a directory", entry.root.display()))
        .with_phase(ErrorPhase::Start)
        .with_hint("'root' in the entry is relative to its file"))
}
