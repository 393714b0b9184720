//! From an entry to the answer of its worker.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::definition::{OfferedTool, OfferedTools, PythonClass};
use super::description_cache::DescriptionCache;
use super::entry::{PythonEntry, Selection};
use super::pool::{KeyWorkers, WorkerKey, WorkerPool};
use super::{installation, module, result};
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::mcp::message::RawJson;
use crate::model::{CallId, Error, ErrorPhase, EventSink, JsonObject, ToolContext, ToolResult};
use crate::provider::{ProviderDeps, verify_trust};
use crate::providers::confinement::Sandbox;
use crate::providers::program_env;
use crate::util::units::show_duration;

const DESCRIBE_TIMEOUT: Duration = Duration::from_mins(1);

/// What the entries of one reading of the files share.
pub(super) struct SharedPython {
    pool: Arc<WorkerPool>,
    events: EventSink,
    pub(super) environment: Arc<dyn Environment>,
    expanded: ExpandedValues,
    descriptions: DescriptionCache,
}

impl SharedPython {
    pub(super) fn new(context: &ProviderDeps) -> Self {
        Self {
            pool: context.shared.get_or_init(WorkerPool::default),
            events: context.events.clone(),
            descriptions: DescriptionCache::new(context.environment.cache_dir()),
            environment: Arc::clone(&context.environment),
            expanded: context.expanded.clone(),
        }
    }
}

/// Finds or starts the worker of an entry and sends it requests.
pub(super) struct PythonRunner {
    pub(super) entry: PythonEntry,
    shared: Arc<SharedPython>,
    /// Found once: looking for the interpreter would be most of what a call costs.
    workers: Mutex<Option<Arc<KeyWorkers>>>,
}

impl PythonRunner {
    /// A runner without a worker; the first request starts one, unless it runs already.
    pub(super) fn new(mut entry: PythonEntry, shared: Arc<SharedPython>) -> Self {
        let interpreter = installation::find(&entry, shared.environment.as_ref());
        // What no Python works without: its modules and its library.
        if let Some(sandbox) = &mut entry.sandbox {
            sandbox.require_readable([entry.root.clone()]);
            sandbox.require_readable(
                interpreter.iter().flat_map(|path| installation::interpreter_paths(path)),
            );
        }
        let runner = Self { entry, shared, workers: Mutex::default() };
        if runner.shared.pool.is_used() {
            // Those of the files as they were read before are kept. The first call reports problems.
            let _unused = runner.workers();
        }
        runner
    }

    pub(super) fn interpreter(&self) -> Result<PathBuf, Error> {
        installation::find(&self.entry, self.shared.environment.as_ref())
    }

    pub(super) fn workers(&self) -> Result<Arc<KeyWorkers>, Error> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(workers) = workers.as_ref() {
            return Ok(Arc::clone(workers));
        }
        let (entry, shared) = (&self.entry, &self.shared);
        let interpreter = self.interpreter()?;
        let confined = |sandbox: &Sandbox| sandbox.confinement(&interpreter, &entry.root);
        let confinement = entry.sandbox.as_ref().map(confined).transpose()?;
        let (environment, expanded) = (shared.environment.as_ref(), &shared.expanded);
        let key = WorkerKey {
            interpreter,
            root: entry.root.clone(),
            env: program_env::build_env(&entry.env, &entry.env_keys, environment, expanded),
            confinement,
            sealed: entry.sealed.clone(),
        };
        Ok(Arc::clone(workers.insert(shared.pool.of(key, &shared.events))))
    }

    /// What would prevent a call, as far as can be told without starting anything.
    pub(super) fn obstacle(&self) -> Option<Error> {
        let checks = [self.interpreter().map(drop), self.require_root()];
        checks.into_iter().find_map(Result::err).or_else(|| self.entry.sandbox.as_ref()?.obstacle())
    }

    /// Calls a tool by the name it has among those of the entry.
    pub(super) async fn call(
        &self,
        tool: (&str, &JsonObject),
        by_session: bool,
        context: &ToolContext,
        origin: &str,
    ) -> Result<ToolResult, Error> {
        let session = by_session.then_some(&*context.session_id);
        let answer = self.request(Some(tool), session, context, origin).await?;
        result::read(&answer, self.entry.sandbox.as_ref())
    }

    pub(super) async fn list(&self) -> Result<OfferedTools, Error> {
        let context = ToolContext::empty(CallId("describe".into()));
        let session = self.entry.by_session.then_some("");
        let work = self.request(None, session, &context, &self.entry.module);
        tokio::pin!(work);
        let answer = tokio::select! {
            answer = &mut work => answer?,
            () = tokio::time::sleep(DESCRIBE_TIMEOUT) => {
                // A module that hangs while it is imported would hang in the next call too: it is
                // ended.
                context.cancel.cancel();
                let _stopped = work.await;
                return Err(Error::timeout(format!(
                    "'{}' could not be imported and described within {}",
                    self.entry.module,
                    show_duration(DESCRIBE_TIMEOUT)
                )));
            }
        };
        serde_json::from_str(answer.get())
            .map_err(|error| Error::internal(format!("a description cannot be read: {error}")))
    }

    /// What a function of the entry said about itself, unless its code has changed.
    pub(super) fn recall(&self, function: &str) -> Option<OfferedTool> {
        let workers = self.workers().ok()?;
        self.shared.descriptions.recall(&workers.key, &self.entry.module, function)
    }

    pub(super) fn remember(&self, described: &OfferedTool) {
        if let Ok(workers) = self.workers() {
            let (module, expanded) = (&self.entry.module, &self.shared.expanded);
            self.shared.descriptions.remember(&workers.key, module, described, expanded);
        }
    }

    async fn request(
        &self,
        tool: Option<(&str, &JsonObject)>,
        session: Option<&str>,
        context: &ToolContext,
        origin: &str,
    ) -> Result<RawJson, Error> {
        #[derive(Serialize)]
        struct Target<'a> {
            module: &'a str,
            /// The file the module must come from, if it is below the root.
            file: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            function: Option<&'a str>,
            #[serde(flatten)]
            class: Option<&'a PythonClass>,
        }
        let entry = &self.entry;
        verify_trust(&entry.seal)?;
        self.require_root()?;
        let worker = {
            // Not held while the call runs, so that it does not keep its worker from being closed.
            let workers = self.workers()?;
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => {
                    return Err(Error::interrupted("stopped before Python was ready"));
                }
                worker = workers.worker(session) => worker?,
            }
        };
        let (function, class) = match &entry.selection {
            Selection::Function(name) => (Some(name.as_str()), None),
            Selection::Class(class) => (None, Some(class)),
            Selection::Offered => (None, None),
        };
        let file = module::file_of(&entry.root, &entry.module);
        let file = file.map(|file| file.to_string_lossy().into_owned());
        let target = Target { module: &entry.module, file, function, class };
        // Texts and trees of JSON can always be written.
        let target = serde_json::to_value(target).unwrap_or_default();
        worker.request(tool, target, context, origin).await
    }

    /// The system reports a missing directory as a missing program; this tells them apart.
    fn require_root(&self) -> Result<(), Error> {
        let root = &self.entry.root;
        if !root.is_dir() {
            return Err(Error::unreachable(format!(
                "the root '{}' is not a directory",
                root.display()
            ))
            .with_phase(ErrorPhase::Start)
            .with_hint("'root' in the entry is relative to its file"));
        }
        if self.entry.sandbox.as_ref().is_none_or(|sandbox| sandbox.reads(root)) {
            return Ok(());
        }
        Err(Error::denied(format!(
            "the root '{}' contains your home, which its sandbox does not expose",
            root.display()
        ))
        .with_phase(ErrorPhase::Start)
        .with_hint("set 'root' to a separate directory, or list it under 'read' of 'sandbox'"))
    }

    /// Ends the workers if no other entry uses them, and waits for that, bounded in time.
    pub(super) async fn close(&self) {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(last) = workers.and_then(Arc::into_inner) {
            last.close().await;
        }
    }
}
