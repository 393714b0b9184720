//! Runs the commands of the state outside of the event loop, and sends their results back as
//! events.
//!
//! Owns: the calls that run. Each view's commands are handled in their own module. Never does:
//! decide anything.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::config::read;
use crate::history::HistoryEntry;
use crate::history::read::select;
use crate::host::arguments::unknown_keys;
use crate::host::request::{CallArguments, CallRequest, ListScope};
use crate::host::{ToolHost, form, rerun};
use crate::model::{CallFilter, Diagnostic, JsonObject};
use crate::stats::StatsLocation;
use crate::tui::bridge::{self, HostBridge};
use crate::tui::event::{AppEffect, AppEvent, ConsoleCallId, PersistenceEffect, PersistenceEvent};
use crate::tui::external_editor::ExternalEditor;
use crate::tui::settings::{self, ConsoleSettings};
use crate::tui::views::history::tasks::lines;
use crate::tui::views::trace::{self, TraceEffect};
use crate::tui::views::trust::tasks::HostFactory;
use crate::tui::views::trust::{self, TrustEffect};
use crate::tui::views::{bench, offerings, pins, servers, stats, tools};
use crate::util::append::RecordLocation;
use crate::util::clock::Clock;
use crate::util::private_file;

#[derive(Clone)]
pub struct ConsoleDeps {
    pub host: Arc<ToolHost>,
    /// Where statistics are stored, and for how long; `None` if nowhere.
    pub statistics: Option<(StatsLocation, Duration)>,
    /// Where past calls are stored; `None` if nowhere.
    pub history: Option<RecordLocation>,
    /// Whether calls are kept there at the moment.
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

/// Does what the state wants done.
pub struct EffectRunner {
    pub deps: ConsoleDeps,
    pub event_tx: mpsc::Sender<AppEvent>,
    pub bridge: HostBridge,
    pub running: HashMap<ConsoleCallId, CancellationToken>,
    pub stats: stats::tasks::StatsReader,
    pub offering_tasks: offerings::tasks::OfferingTasks,
    pub bench: bench::tasks::BenchController,
    pub host_factory: Arc<HostFactory>,
    /// Answers about the project that are being stored; each ends with its sender.
    pub answers: Vec<oneshot::Receiver<()>>,
    pub observing: Option<bridge::ObservationGuard>,
    pub host_generation: Arc<AtomicU64>,
}

impl EffectRunner {
    /// Runs effects with these dependencies and sends the results to `send`. Call it inside a
    /// runtime, because it starts watching the trust store and the attached host.
    pub fn new(
        deps: ConsoleDeps,
        send: mpsc::Sender<AppEvent>,
        bridge: HostBridge,
        project: Arc<HostFactory>,
    ) -> Self {
        let stats = stats::tasks::StatsReader::new(&deps);
        let offering_tasks = offerings::tasks::OfferingTasks::default();
        let bench = bench::tasks::BenchController::default();
        trust::tasks::watch(&project, send.clone());
        let (running, answers, epoch) = (HashMap::new(), Vec::new(), Arc::default());
        let mut runner = Self {
            deps,
            event_tx: send,
            bridge,
            running,
            stats,
            offering_tasks,
            bench,
            host_factory: project,
            answers,
            observing: None,
            host_generation: epoch,
        };
        runner.observe_attached();
        runner
    }

    /// The console ends: answers about the project are stored first.
    pub async fn shutdown(&mut self) {
        self.wait_for_trust_answers().await;
    }

    pub fn perform(&mut self, effect: AppEffect) {
        let host = Arc::clone(&self.deps.host);
        match effect {
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
                self.running.retain(|_, cancel| !cancel.is_cancelled());
                self.running.insert(run, cancel.clone());
                let id = host.new_call_id();
                let request = CallRequest {
                    id: Some(id.clone()),
                    cancel,
                    ..CallRequest::new(tool, CallArguments::Object(arguments))
                };
                let send = self.event_tx.clone();
                self.spawn(async move {
                    // Before anything that the host tells of this call.
                    let _unheard = send.send(AppEvent::CallStarted { run, call: id }).await;
                    AppEvent::CallFinished { run, outcome: Box::new(host.call(request).await) }
                });
            }
            AppEffect::Cancel(run) => {
                if let Some(cancel) = self.running.remove(&run) {
                    cancel.cancel();
                }
            }
            AppEffect::AnswerApproval(id, approval) => self.bridge.approve(id, approval),
            AppEffect::AnswerQuestion(id, reply) => {
                self.bridge.reply(id, Arc::unwrap_or_clone(reply));
            }
            AppEffect::Stats(effect) => self.spawn(self.stats.perform(effect)),
            AppEffect::Tools(effect) => {
                let cwd = self.deps.cwd.clone();
                let saved = self.deps.saved_calls.clone();
                self.spawn(async move {
                    tools::tasks::perform(effect, &host, &cwd, saved.as_deref()).await
                });
            }
            AppEffect::Pins(effect) => {
                let environment = Arc::clone(&self.host_factory.environment);
                self.spawn_for_current_host(async move {
                    let event = pins::perform(effect, &host, &*environment).await;
                    AppEvent::Pins(Box::new(event))
                });
            }
            AppEffect::Persistence(effect) => {
                let deps = self.deps.clone();
                self.spawn(perform(effect, deps));
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
            AppEffect::History(effect) => self.history(effect),
            AppEffect::Offerings(effect) => self.run_offerings_effect(effect),
            AppEffect::Servers(effect) => {
                tokio::spawn(servers::perform(host, effect, self.event_tx.clone()));
            }
            AppEffect::Trace(TraceEffect::Export { path, trace_export }) => {
                let path = self.deps.cwd.join(path);
                self.spawn(async move { trace::write(path, trace_export).await });
            }
            AppEffect::Bench(effect) => {
                self.bench.perform(effect, &self.deps, &self.event_tx, &self.bridge.trace_gate());
            }
            AppEffect::Trust(TrustEffect::SwitchHost) => self.switch(),
            AppEffect::Trust(effect) => self.trust(effect),
            AppEffect::WriteFile { path, text } => {
                let path = self.deps.cwd.join(path);
                self.spawn(async move { write(path, text.as_bytes()).await });
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

    pub fn list(&self, reach: ListScope, servers: Vec<String>) {
        let host = Arc::clone(&self.deps.host);
        self.spawn_for_current_host(async move { listed(&host, reach, servers).await });
    }

    /// Spawns the work and sends its event, unless the host was replaced meanwhile.
    pub fn spawn_for_current_host(&self, work: impl Future<Output = AppEvent> + Send + 'static) {
        let (send, epoch) = (self.event_tx.clone(), Arc::clone(&self.host_generation));
        let asked = epoch.load(Ordering::Relaxed);
        tokio::spawn(async move {
            let event = work.await;
            if epoch.load(Ordering::Relaxed) == asked {
                // The console is gone; its events are not needed.
                let _unheard = send.send(event).await;
            }
        });
    }

    pub fn spawn(&self, work: impl Future<Output = AppEvent> + Send + 'static) {
        let send = self.event_tx.clone();
        tokio::spawn(async move {
            let event = work.await;
            // The console is gone; its events are not needed.
            let _unheard = send.send(event).await;
        });
    }
}

/// The catalogue of the sources that `reach` covers.
pub async fn listed(host: &ToolHost, reach: ListScope, servers: Vec<String>) -> AppEvent {
    let mut catalogue = Box::new(host.catalogue(&reach).await);
    catalogue.tools = host.masked_definitions(&catalogue.tools);
    AppEvent::ToolsListed { servers, catalogue }
}

/// Writes a new file that only its owner can read, and reports the outcome.
pub async fn write(path: PathBuf, bytes: &[u8]) -> AppEvent {
    let written = async {
        let mut file = tokio::fs::File::from_std(private_file::create_new(&path)?);
        file.write_all(bytes).await?;
        file.flush().await
    };
    write_result_event(&path, written.await)
}

/// Says what became of a file.
pub fn write_result_event<E: std::fmt::Display>(path: &Path, written: Result<(), E>) -> AppEvent {
    let shown = path.display();
    match written {
        Ok(()) => AppEvent::said(format!("wrote {shown}")),
        Err(error) => AppEvent::failed(format!("cannot write {shown}: {error}")),
    }
}

const NEWEST_CALLS: usize = 500;

pub async fn perform(effect: PersistenceEffect, deps: ConsoleDeps) -> AppEvent {
    let PersistenceEffect::Load = effect;
    let event = tokio::task::spawn_blocking(move || {
        let mut event = PersistenceEvent::default();
        if let Some(directory) = &deps.settings {
            settings(&directory.join(settings::FILE), &mut event);
        }
        event.arguments = last_arguments(&deps);
        event
    });
    AppEvent::Persistence(Box::new(event.await.unwrap_or_default()))
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

fn one_line_problem(problem: &Diagnostic) -> String {
    let place = problem.location.as_ref().filter(|place| place.line > 0);
    let place = place.map_or_else(
        || settings::FILE.to_owned(),
        |place| format!("{}:{}:{}", settings::FILE, place.line, place.column),
    );
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{place}: {}{hint}", problem.message)
}
