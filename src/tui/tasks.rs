//! Work that takes time: done outside of the event loop, and what it came to is given to the state.
//!
//! A [`Task`] is made by the view that wants it. Its name says all that it is about, so that a test can
//! see what is asked for without running it. Its outcome is a change of the state, which makes it in its
//! own turn. Never does: decide anything.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::user_program::ExternalEditor;
use crate::config::read;
use crate::history::HistoryEntry;
use crate::history::read::select;
use crate::host::arguments::unknown_keys;
use crate::host::request::{CallArguments, CallRequest, ListScope};
use crate::host::{ToolHost, form, rerun};
use crate::model::{CallFilter, Diagnostic, TraceGate};
use crate::tui::bridge::HostBridge;
use crate::tui::event::ConsoleCallId;
use crate::tui::prelude::*;
use crate::tui::settings::{self, ConsoleSettings};
use crate::tui::theme::Appearance;
use crate::tui::views::history::tasks::lines;
use crate::tui::views::stats::tasks::{OpenStatistics, SharedStatistics};
use crate::tui::views::trust;
use crate::tui::views::trust::tasks::HostFactory;
use crate::util::append::RecordLocation;
use crate::util::clock::Clock;
use crate::util::private_file;

#[derive(Clone)]
pub struct ConsoleDeps {
    pub host: Arc<ToolHost>,
    /// Where statistics are stored; `None` if nowhere.
    pub statistics: Option<RecordLocation>,
    /// Where past calls are stored; `None` if nowhere.
    pub history: Option<RecordLocation>,
    /// Whether calls are counted and kept there at the moment.
    pub keeps_statistics: bool,
    pub keeps_history: bool,
    /// The directory of the user's own settings; `None` without one.
    pub settings: Option<PathBuf>,
    /// The directory of saved calls; `None` where there is none, and for a server that only the
    /// command line names.
    pub saved_calls: Option<PathBuf>,
    /// The root of the project whose statistics and history are shown; `None` shows those of all.
    pub project_root: Option<String>,
    /// The editor from `$VISUAL` or `$EDITOR`, for texts that are easier to write there.
    pub editor: ExternalEditor,
    pub cwd: PathBuf,
    pub clock: Arc<dyn Clock>,
}

/// A change of the state, and what is to be done after it.
pub struct Outcome(pub Box<dyn FnOnce(&mut AppState) + Send>);

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outcome")
    }
}

enum Work {
    Wait(Box<dyn FnOnce(TaskContext) -> BoxFuture<'static, Outcome> + Send>),
    Compute(Box<dyn FnOnce() -> Outcome + Send>),
}

/// Work that takes time. Two are the same when their names are.
pub struct Task {
    name: Box<dyn fmt::Debug + Send>,
    /// Under which at most one is at work: a newer one, or [`AppEffect::Stop`], cancels it.
    slot: Option<String>,
    is_of_host: bool,
    is_awaited: bool,
    work: Work,
}

pub struct TaskContext {
    pub deps: ConsoleDeps,
    pub host_factory: Arc<HostFactory>,
    pub stats: SharedStatistics,
    pub trace_gate: TraceGate,
    /// Cancelled when the task is not wanted any more.
    pub cancel: CancellationToken,
    /// The end of the console waits until this is dropped; `None` where it does not wait.
    pub quit_guard: Option<oneshot::Sender<()>>,
    pub events: mpsc::Sender<AppEvent>,
}

impl Task {
    /// Work that is described by `name`, and what is made of what it gives.
    pub fn new<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        name: impl fmt::Debug + Send + 'static,
        work: impl FnOnce(TaskContext) -> F + Send + 'static,
        then: impl FnOnce(&mut AppState, T) + Send + 'static,
    ) -> Self {
        let work = |context| {
            let work = work(context);
            async move {
                let result = work.await;
                Outcome(Box::new(move |state| then(state, result)))
            }
            .boxed()
        };
        Self::of(name, Work::Wait(Box::new(work)))
    }

    /// Work that needs nothing but a processor; it gives `None` when it panics.
    pub fn compute<T: Send + 'static>(
        name: impl fmt::Debug + Send + 'static,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(&mut AppState, Option<T>) + Send + 'static,
    ) -> Self {
        let work = || {
            let result = catch_unwind(AssertUnwindSafe(work)).ok();
            Outcome(Box::new(move |state: &mut AppState| then(state, result)))
        };
        Self::of(name, Work::Compute(Box::new(work)))
    }

    fn of(name: impl fmt::Debug + Send + 'static, work: Work) -> Self {
        let name = Box::new(name);
        Self { name, slot: None, is_of_host: false, is_awaited: false, work }
    }

    /// Does the work at once, if it is only computed.
    #[cfg(test)]
    pub fn computed(self) -> Option<AppEvent> {
        match self.work {
            Work::Compute(work) => Some(AppEvent::Outcome(work())),
            Work::Wait(_) => None,
        }
    }

    /// Work of which a person only learns whether it worked.
    pub fn message<F: Future<Output = Result<String, String>> + Send + 'static>(
        name: impl fmt::Debug + Send + 'static,
        work: impl FnOnce(TaskContext) -> F + Send + 'static,
    ) -> Self {
        Self::new(name, work, |state, result| match result {
            Ok(text) => state.context.show_status(text),
            Err(text) => state.context.show_error(text),
        })
    }

    #[must_use]
    pub fn in_slot(self, slot: impl Into<String>) -> Self {
        Self { slot: Some(slot.into()), ..self }
    }

    /// What it gives is of no use once another host answers.
    #[must_use]
    pub fn of_host(self) -> Self {
        Self { is_of_host: true, ..self }
    }

    /// The console does not end before it is done.
    #[must_use]
    pub fn before_quitting(self) -> Self {
        Self { is_awaited: true, ..self }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl From<Task> for AppEffect {
    fn from(task: Task) -> Self {
        Self::Task(task)
    }
}

impl TaskContext {
    /// Changes the state while the task goes on.
    pub async fn report(&self, change: impl FnOnce(&mut AppState) + Send + 'static) {
        // The console is gone; nobody has to know.
        let _unheard = self.events.send(AppEvent::outcome(change)).await;
    }
}

/// Does what blocks on a thread of its own.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::internal(format!("stopped unexpectedly: {error}"))))
}

/// What is at work in each slot. What has ended by itself is forgotten when something else begins.
#[derive(Default)]
pub struct Slots(HashMap<String, (CancellationToken, AbortHandle)>);

impl Slots {
    /// Takes note of work that has begun; what was at work in its slot is cancelled.
    fn begin(&mut self, slot: String, cancel: CancellationToken, work: AbortHandle) {
        self.stop(&slot);
        self.0.retain(|_, (_, work)| !work.is_finished());
        self.0.insert(slot, (cancel, work));
    }

    fn stop(&mut self, slot: &str) {
        if let Some((cancel, _)) = self.0.remove(slot) {
            cancel.cancel();
        }
    }

    pub fn stop_all(&mut self) {
        self.0.drain().for_each(|(_, (cancel, _))| cancel.cancel());
    }
}

/// The slot of a call, which is never used twice.
fn slot_of(run: ConsoleCallId) -> String {
    format!("call {}", run.0)
}

pub struct EffectRunner {
    pub deps: ConsoleDeps,
    pub bridge: HostBridge,
    pub slots: Slots,
    pub stats: SharedStatistics,
    pub host_factory: Arc<HostFactory>,
    /// Tasks that have to be done before the console ends; each ends with its sender.
    awaited: Vec<oneshot::Receiver<()>>,
    pub observing: Option<DropGuard>,
    pub host_generation: Arc<AtomicU64>,
}

/// How long the end of the console may wait for what has to be stored.
const QUIT_TIMEOUT: Duration = Duration::from_secs(5);

impl EffectRunner {
    /// Runs effects with these dependencies and sends the results through `bridge`. Call it inside
    /// a runtime, because it starts watching the trust store and the attached host.
    pub fn new(deps: ConsoleDeps, bridge: HostBridge, host_factory: Arc<HostFactory>) -> Self {
        let stats = OpenStatistics::new(&deps);
        trust::tasks::watch(&host_factory, bridge.sender());
        let mut runner = Self {
            deps,
            bridge,
            slots: Slots::default(),
            stats,
            host_factory,
            awaited: Vec::new(),
            observing: None,
            host_generation: Arc::default(),
        };
        runner.observe_attached();
        runner
    }

    /// The console ends: what has to be stored is stored first, unless a disk is too slow.
    pub async fn shutdown(&mut self) {
        let all = join_all(self.awaited.drain(..));
        let _too_slow = tokio::time::timeout(QUIT_TIMEOUT, all).await;
    }

    pub fn perform(&mut self, effect: AppEffect) {
        let host = Arc::clone(&self.deps.host);
        match effect {
            AppEffect::Task(task) => self.start(task),
            AppEffect::Stop(slot) => self.slots.stop(&slot),
            AppEffect::SwitchHost => self.switch(),
            AppEffect::ListDeclared => self.list(ListScope::Declared, Vec::new()),
            AppEffect::ListServer(server) => {
                self.list(ListScope::Servers(vec![server.clone()]), vec![server]);
            }
            AppEffect::RefreshServers => {
                self.spawn_for_current_host(async move {
                    let mut servers = host.server_statuses().await;
                    servers.extend(host.servers_out_of_service());
                    AppEvent::AllServers(servers)
                });
            }
            AppEffect::PingServer(server) => {
                self.spawn_for_current_host(async move {
                    AppEvent::ServerStatuses(host.check_servers(&[server]).await)
                });
            }
            AppEffect::Call { run, tool, arguments } => {
                let cancel = CancellationToken::new();
                let id = host.new_call_id();
                let request = CallRequest {
                    id: Some(id.clone()),
                    from_form: true,
                    cancel: cancel.clone(),
                    ..CallRequest::new(tool, CallArguments::Object(arguments))
                };
                let send = self.bridge.sender();
                let work = self.spawn(async move {
                    // Before anything that the host tells of this call.
                    let _unheard = send.send(AppEvent::CallStarted { run, call: id }).await;
                    AppEvent::CallFinished { run, outcome: Box::new(host.call(request).await) }
                });
                self.slots.begin(slot_of(run), cancel, work);
            }
            AppEffect::Cancel(run) => self.slots.stop(&slot_of(run)),
            AppEffect::AnswerApproval(id, approval) => self.bridge.approve(id, approval),
            AppEffect::AnswerQuestion(id, reply) => {
                self.bridge.reply(id, Arc::unwrap_or_clone(reply));
            }
            AppEffect::ValidateArguments { schema, arguments } => {
                self.spawn(async move {
                    let mut problems = form::validate(&schema, &arguments).await;
                    for unknown in unknown_keys(&arguments, &schema) {
                        if !problems.contains(&unknown) {
                            problems.push(unknown);
                        }
                    }
                    AppEvent::ArgumentsChecked { schema, arguments, problems }
                });
            }
            // Done where the terminal is, or in the state itself.
            AppEffect::Copy(_)
            | AppEffect::OpenEditor(_)
            | AppEffect::Navigate(_)
            | AppEffect::Redraw
            | AppEffect::Suspend
            | AppEffect::Quit(_) => {}
        }
    }

    fn start(&mut self, task: Task) {
        let cancel = CancellationToken::new();
        let quit_guard = task.is_awaited.then(|| {
            let (guard, dropped) = oneshot::channel();
            self.awaited.retain(|waits| !waits.is_terminated());
            self.awaited.push(dropped);
            guard
        });
        let context = TaskContext {
            deps: self.deps.clone(),
            host_factory: Arc::clone(&self.host_factory),
            stats: self.stats.clone(),
            trace_gate: self.bridge.trace_gate(),
            cancel: cancel.clone(),
            quit_guard,
            events: self.bridge.sender(),
        };
        let work = match task.work {
            Work::Wait(work) => work(context),
            Work::Compute(work) => async move {
                let nothing = || Outcome(Box::new(|_| {}));
                tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| nothing())
            }
            .boxed(),
        };
        let work = async move { AppEvent::Outcome(work.await) };
        let work =
            if task.is_of_host { self.spawn_for_current_host(work) } else { self.spawn(work) };
        if let Some(slot) = task.slot {
            self.slots.begin(slot, cancel, work);
        }
    }

    fn list(&self, reach: ListScope, servers: Vec<String>) {
        let host = Arc::clone(&self.deps.host);
        self.spawn_for_current_host(async move {
            let mut catalogue = Box::new(host.catalogue(&reach).await);
            catalogue.tools = host.masked_definitions(&catalogue.tools);
            AppEvent::ToolsListed { servers, catalogue }
        });
    }

    /// Spawns the work and sends its event, unless the host was replaced meanwhile.
    fn spawn_for_current_host(
        &self,
        work: impl Future<Output = AppEvent> + Send + 'static,
    ) -> AbortHandle {
        let (send, generation) = (self.bridge.sender(), Arc::clone(&self.host_generation));
        let begun_in = generation.load(Ordering::Relaxed);
        let task = tokio::spawn(async move {
            let event = work.await;
            if generation.load(Ordering::Relaxed) == begun_in {
                // The console is gone; its events are not needed.
                let _unheard = send.send(event).await;
            }
        });
        task.abort_handle()
    }

    pub fn spawn(&self, work: impl Future<Output = AppEvent> + Send + 'static) -> AbortHandle {
        let send = self.bridge.sender();
        tokio::spawn(async move { send.send(work.await).await }).abort_handle()
    }
}

/// Writes a new file that only its owner can read; says what became of it.
pub async fn write(path: &Path, bytes: &[u8]) -> Result<String, String> {
    let written = async {
        let mut file = tokio::fs::File::from_std(private_file::create_new(path)?);
        file.write_all(bytes).await?;
        file.flush().await
    };
    file_message(path, written.await)
}

/// Says what became of a file.
pub fn file_message<E: fmt::Display>(
    path: &Path,
    written: Result<(), E>,
) -> Result<String, String> {
    let shown = path.display();
    match written {
        Ok(()) => Ok(format!("wrote {shown}")),
        Err(error) => Err(format!("cannot write {shown}: {error}")),
    }
}

pub fn error_message(error: &Error) -> String {
    let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{error}{hint}")
}

/// Writes a file that was not there before; relative to where the console was opened.
pub fn write_file(path: PathBuf, text: String) -> Task {
    Task::message(("write", path.clone(), text.clone()), async move |context: TaskContext| {
        write(&context.deps.cwd.join(path), text.as_bytes()).await
    })
}

const NEWEST_CALLS: usize = 500;

/// What was read for the start of the console.
#[derive(Debug, Default)]
pub struct Recollection {
    /// The settings from `console.yaml`, or the defaults.
    pub settings: ConsoleSettings,
    /// The last arguments of tools by their full names, without what was secret.
    pub arguments: HashMap<String, JsonObject>,
    pub problems: Vec<String>,
}

/// Reads `console.yaml` and the newest calls of the history.
pub fn recall(look: Appearance) -> Task {
    let work = async move |context: TaskContext| {
        blocking(move || Ok(recollect(&context.deps, look))).await
    };
    Task::new("recall", work, |state, read| read.into_iter().for_each(|read| state.recall(read)))
}

fn recollect(deps: &ConsoleDeps, look: Appearance) -> Recollection {
    let look = Appearance { clock: true, ..look };
    let mut settings = ConsoleSettings { look, ..ConsoleSettings::default() };
    let path = deps.settings.as_ref().map(|directory| directory.join(settings::FILE));
    let problems = match path.filter(|path| path.exists()).map(|path| read::read(&path, false)) {
        Some(Ok((source, text))) => {
            let (own, problems) = settings::read(&source, &text, look);
            settings = own;
            problems
        }
        Some(Err(problem)) => vec![problem],
        None => Vec::new(),
    };
    let problems = problems.iter().map(one_line_problem).collect();
    Recollection { settings, arguments: last_arguments(deps), problems }
}

fn last_arguments(deps: &ConsoleDeps) -> HashMap<String, JsonObject> {
    let mut last = HashMap::new();
    let Ok(lines) = lines(deps) else { return last };
    let filter = CallFilter { project: deps.project_root.clone(), ..CallFilter::default() };
    let each = |entry: HistoryEntry| {
        // What another tool made of its own arguments was not written by a person.
        if let (None, Some(arguments)) = (entry.parent, entry.arguments) {
            last.entry(entry.tool).or_insert_with(|| rerun::without_masked(&arguments).0);
        }
    };
    let _unread = select(lines, &filter, NEWEST_CALLS, each);
    last
}

fn one_line_problem(problem: &Diagnostic) -> String {
    let place = problem.location.as_ref().filter(|place| place.line > 0);
    let place = place.map_or_else(
        || settings::FILE.to_owned(),
        |place| format!("{}:{}:{}", settings::FILE, place.line, place.column),
    );
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{place}: {}{hint}", problem.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_has_ended_by_itself_is_not_remembered() {
        let mut slots = Slots::default();
        for number in 0..100 {
            let work = tokio::spawn(async {});
            let handle = work.abort_handle();
            work.await.unwrap();
            slots.begin(slot_of(ConsoleCallId(number)), CancellationToken::new(), handle);
        }
        assert_eq!(slots.0.len(), 1);
    }

    #[tokio::test]
    async fn what_is_at_work_in_a_slot_is_cancelled_by_a_newer_one_and_by_a_stop() {
        let mut slots = Slots::default();
        let cancels = [(); 2].map(|()| CancellationToken::new());
        for cancel in &cancels {
            let work = tokio::spawn(std::future::pending::<()>());
            slots.begin("benchmark".to_owned(), cancel.clone(), work.abort_handle());
        }
        let is_cancelled = || cancels.each_ref().map(CancellationToken::is_cancelled);
        assert_eq!(is_cancelled(), [true, false]);
        slots.stop("benchmark");
        assert_eq!(is_cancelled(), [true, true]);
    }
}
