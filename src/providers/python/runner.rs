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
use crate::config::expanded::ExpandedValues;
use crate::model::fault::Signal;
use crate::model::{Fault, FaultKind, JsonObject, Phase, ToolContext};
use crate::provider::{KindContext, permit};
use crate::providers::confinement::Sandbox;
use crate::providers::surroundings;

/// Runs what entries name.
pub(super) struct Runner {
    workers: Workers,
    environment: Arc<dyn Environment>,
    pub(super) expanded: ExpandedValues,
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
            expanded: context.expanded.clone(),
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
        let interpreter = self.interpreter(entry)?;
        let confined = |sandbox: &Sandbox| sandbox.confinement(&interpreter, &entry.root);
        let confinement = entry.sandbox.as_ref().map(confined).transpose()?;
        let key = Key {
            interpreter,
            root: entry.root.clone(),
            env: surroundings::inherited(&entry.env, &entry.env_keys, environment, &self.expanded),
            confinement,
            sealed: entry.sealed.clone(),
            session: None,
        };
        Ok(entry.key.get_or_init(|| key))
    }

    /// What stands between a call and the function, as far as it shows without starting anything.
    pub(super) fn obstacle(&self, entry: &Entry) -> Option<Fault> {
        let checks = [self.interpreter(entry).map(drop), require_root(entry)];
        checks.into_iter().find_map(Result::err).or_else(|| entry.sandbox.as_ref()?.obstacle())
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
        permit(&entry.seal)?;
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
        let reply = worker.ask(request, context, origin).await?;
        Ok(match &entry.sandbox {
            Some(sandbox) => explained(reply, sandbox),
            None => reply,
        })
    }

    /// Ends all workers.
    pub(super) async fn close(&self) {
        self.workers.close().await;
    }
}

/// Adds to an exception what the sandbox has to do with it.
fn explained(mut reply: Reply, sandbox: &Sandbox) -> Reply {
    let Some(complaint) = reply.error.as_mut() else { return reply };
    let is = |exception: &str| complaint.message.split(':').next() == Some(exception);
    if let (true, Some(limit)) = (is("MemoryError"), sandbox.memory_limit()) {
        complaint.message = format!("{} ({limit})", complaint.message);
        let hint = "'memory' of 'sandbox' in the entry says how much it may use";
        complaint.hint.get_or_insert_with(|| hint.to_owned());
    } else if is("PermissionError") && sandbox.confines() {
        let hint = "its sandbox may be why: 'toolhost inspect' shows what it may touch";
        complaint.hint.get_or_insert_with(|| hint.to_owned());
    }
    reply
}

/// The system reports a missing directory as a missing program; this tells them apart.
fn require_root(entry: &Entry) -> Result<(), Fault> {
    if entry.root.is_dir() {
        let reads = |sandbox: &Sandbox| sandbox.reads(&entry.root);
        if entry.sandbox.as_ref().is_none_or(reads) {
            return Ok(());
        }
        let root = entry.root.display();
        return Err(Fault::denied(format!(
            "the root '{root}' holds your home, which its sandbox does not give away"
        ))
        .phase(Phase::Start)
        .hint("let 'root' name a directory of its own, or list it under 'read' of 'sandbox'"));
    }
    Err(Fault::unreachable(format!("the root '{}' is no directory", entry.root.display()))
        .phase(Phase::Start)
        .hint("'root' in the entry is relative to its file"))
}
