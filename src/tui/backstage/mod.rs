//! Does what the state wants done, out of sight; what comes of it comes back as events.
//!
//! Owns: the calls that run. What one view wants done stands in a module of its own. Never does:
//! decide anything.

mod bench;
mod desk;
mod files;
mod history;
mod memory;
mod offers;
mod servers;
mod stats;
mod tools;
mod trace;
mod trust;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::editor::Editor;
use super::event::{Effect, Event, RunId, trace::Wish as TraceWish, trust::Wish as TrustWish};
use super::memory::Memory;
use crate::host::arguments::unknown_keys;
use crate::host::request::{Arguments, CallRequest, Reach};
use crate::host::{ToolHost, form};
use crate::stats::Place;
use crate::util::append::Location;
use crate::util::clock::Clock;

pub use desk::Desk;
pub use trust::Project;

/// Where everything is that the console works with.
#[derive(Clone)]
pub struct Surroundings {
    /// The gateway to all tools.
    pub host: Arc<ToolHost>,
    /// Where statistics are kept, and for how long; `None` without a place.
    pub statistics: Option<(Place, Duration)>,
    /// Where the calls of the past are kept; `None` without a place.
    pub history: Option<Location>,
    /// Whether calls are kept there at the moment.
    pub keeps_history: bool,
    /// The directory of the user's own settings; `None` without one.
    pub settings: Option<PathBuf>,
    /// The directory of what is remembered between runs; `None` without one.
    pub state: Option<PathBuf>,
    /// The person's own editor.
    pub editor: Editor,
    /// The directory in which the console was opened.
    pub cwd: PathBuf,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Does what the state wants done.
pub struct Backstage {
    around: Surroundings,
    send: mpsc::Sender<Event>,
    desk: Desk,
    running: HashMap<RunId, CancellationToken>,
    stats: stats::Reader,
    keeper: memory::Keeper,
    offers: offers::UnderWay,
    bench: bench::Rig,
    project: Arc<Project>,
    /// Answers about the project that are being stored; each ends with its sender.
    answers: Vec<oneshot::Receiver<()>>,
    /// How often the host was replaced.
    epoch: Arc<AtomicU64>,
}

impl Backstage {
    /// Works with these, and tells what comes of it here. Inside of a runtime, because it begins to
    /// watch the trust store.
    pub fn new(
        around: Surroundings,
        send: mpsc::Sender<Event>,
        desk: Desk,
        project: Arc<Project>,
    ) -> Self {
        let stats = stats::Reader::new(&around);
        let keeper = memory::Keeper::new(&around);
        let offers = offers::UnderWay::default();
        let bench = bench::Rig::default();
        trust::watch(&project, send.clone());
        let (running, answers, epoch) = (HashMap::new(), Vec::new(), Arc::default());
        Self { around, send, desk, running, stats, keeper, offers, bench, project, answers, epoch }
    }

    /// Keeps this for the next run; soon, and not more often than is worth it.
    pub fn remember(&mut self, memory: Memory) {
        self.keeper.remember(memory, &self.around.host);
    }

    /// Keeps this for the next run, now: the console ends.
    pub async fn farewell(&mut self, memory: Option<Memory>) {
        self.answers_stored().await;
        self.keeper.finish(memory, &self.around.host).await;
    }

    /// Begins what is wanted, and returns at once.
    pub fn perform(&mut self, effect: Effect) {
        let host = Arc::clone(&self.around.host);
        match effect {
            Effect::ListDeclared => self.list(Reach::Declared, Vec::new()),
            Effect::ListServer(server) => {
                self.list(Reach::Servers(vec![server.clone()]), vec![server]);
            }
            Effect::LookAtServers => {
                let servers = host.servers();
                self.tell_of_host(async move { Event::Servers(servers) });
            }
            Effect::CheckServer(server) => {
                self.tell_of_host(
                    async move { Event::Servers(host.check_servers(&[server]).await) },
                );
            }
            Effect::Call { run, tool, arguments } => {
                let cancel = CancellationToken::new();
                self.running.retain(|_, cancel| !cancel.is_cancelled());
                self.running.insert(run, cancel.clone());
                let id = host.new_call_id();
                let request = CallRequest {
                    id: Some(id.clone()),
                    cancel,
                    ..CallRequest::new(tool, Arguments::Object(arguments))
                };
                let send = self.send.clone();
                self.tell(async move {
                    // Before anything that the host tells of this call.
                    let _unheard = send.send(Event::Began { run, call: id }).await;
                    Event::Ended { run, outcome: Box::new(host.call(request).await) }
                });
            }
            Effect::Cancel(run) => {
                if let Some(cancel) = self.running.remove(&run) {
                    cancel.cancel();
                }
            }
            Effect::Approve(id, approval) => self.desk.approve(id, approval),
            Effect::Reply(id, reply) => self.desk.reply(id, Arc::unwrap_or_clone(reply)),
            Effect::Stats(wish) => self.tell(self.stats.perform(wish)),
            Effect::Tools(wish) => {
                let cwd = self.around.cwd.clone();
                self.tell(async move { tools::perform(wish, &host, &cwd).await });
            }
            Effect::Memory(wish) => {
                let around = self.around.clone();
                self.tell(memory::perform(wish, around));
            }
            Effect::Check { schema, arguments } => {
                self.tell(async move {
                    let mut problems = form::problems(&schema, &arguments).await;
                    for unknown in unknown_keys(&arguments, &schema) {
                        if !problems.contains(&unknown) {
                            problems.push(unknown);
                        }
                    }
                    Event::Checked { schema, arguments, problems }
                });
            }
            Effect::History(wish) => self.history(wish),
            Effect::Offers(wish) => self.offers(wish),
            Effect::Servers(wish) => {
                tokio::spawn(servers::perform(host, wish, self.send.clone()));
            }
            Effect::Trace(TraceWish::Export { path, tape }) => {
                let path = self.around.cwd.join(path);
                self.tell(async move { trace::write(path, tape).await });
            }
            Effect::Bench(wish) => {
                self.bench.perform(wish, &self.around, &self.send, &self.desk.shutter());
            }
            Effect::Trust(TrustWish::Switch) => self.switch(),
            Effect::Trust(wish) => self.trust(wish),
            Effect::Write { path, text } => {
                let path = self.around.cwd.join(path);
                self.tell(async move { files::write(path, text.as_bytes()).await });
            }
            // Done where the terminal is, or in the state itself.
            Effect::Copy(_)
            | Effect::Edit(_)
            | Effect::Go(_)
            | Effect::Redraw
            | Effect::Suspend
            | Effect::Quit(_) => {}
        }
    }

    fn list(&self, reach: Reach, servers: Vec<String>) {
        let host = Arc::clone(&self.around.host);
        self.tell_of_host(async move { listed(&host, reach, servers).await });
    }

    /// Tells what the host said, unless another one has taken its place meanwhile.
    fn tell_of_host(&self, work: impl Future<Output = Event> + Send + 'static) {
        let (send, epoch) = (self.send.clone(), Arc::clone(&self.epoch));
        let asked = epoch.load(Ordering::Relaxed);
        tokio::spawn(async move {
            let event = work.await;
            if epoch.load(Ordering::Relaxed) == asked {
                // The console is gone: nobody wants to know.
                let _unheard = send.send(event).await;
            }
        });
    }

    fn tell(&self, work: impl Future<Output = Event> + Send + 'static) {
        let send = self.send.clone();
        tokio::spawn(async move {
            let event = work.await;
            // The console is gone: nobody wants to know.
            let _unheard = send.send(event).await;
        });
    }
}

/// What is offered, as far as `reach` goes.
async fn listed(host: &ToolHost, reach: Reach, servers: Vec<String>) -> Event {
    let mut catalogue = Box::new(host.catalogue(&reach).await);
    catalogue.tools = host.shown(&catalogue.tools);
    Event::Listed { servers, catalogue }
}
