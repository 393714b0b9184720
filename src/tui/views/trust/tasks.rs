//! Trust in the project: loads its configuration, stores a person's answer, has the host offer what
//! follows from it, and notices when another process changes the trust store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::assembly::host_locator::{HostLocator, attached_front_end};
use crate::assembly::reload::{HostReloader, NewErrors, ReloadError};
use crate::assembly::{self, Assembly, FrontEnd};
use crate::audit::Masker;
use crate::config::LoadRequest;
use crate::config::consent::TrustRequest;
use crate::config::consent::store::TrustStore;
use crate::config::environment::Environment;
use crate::config::spec::Configuration;
use crate::config::watched_files::{FileStamp, WatchedFiles};
use crate::history;
use crate::host::ToolHost;
use crate::model::EventSink;
use crate::serve::background::client::HostClient;
use crate::tui::prelude::*;
use crate::tui::tasks::{ConsoleDeps, EffectRunner, blocking};
use crate::tui::views::stats::tasks::OpenStatistics;
use crate::tui::views::trust::TrustStatus;
use crate::util::clock::Clock;

/// The time between two looks at the metadata of the trust store.
const STORE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The file that answers are stored in, below the state directory.
const TRUST_STORE_FILE: &str = "trust.json";

/// What a host is built from, again after each answer about the project.
pub struct HostFactory {
    pub environment: Arc<dyn Environment>,
    pub front_end: FrontEnd,
    pub clock: Arc<dyn Clock>,
    pub locator: HostLocator,
    /// The trust store as it was before the first host was built.
    first_stamp: Option<FileStamp>,
    files: Mutex<(u64, WatchedFiles)>,
    /// Reads the files again for the host in use; `None` until the console has opened.
    current: Mutex<Option<CurrentHost>>,
    /// What was read and is not in use yet.
    next: Mutex<Option<NextHost>>,
}

struct CurrentHost {
    host: Arc<ToolHost>,
    masker: Masker,
    reloader: HostReloader,
}

struct NextHost {
    host: Arc<ToolHost>,
    masker: Masker,
    socket: Option<PathBuf>,
    /// What it was built from; `None` when it is the host in use, which offers what was read.
    replacement: Option<(Assembly, HostReloader)>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HostFactory {
    pub fn new(
        environment: Arc<dyn Environment>,
        front_end: FrontEnd,
        clock: Arc<dyn Clock>,
        locator: HostLocator,
    ) -> Self {
        let first_stamp = store_of(&*environment).and_then(|path| FileStamp::of_link(&path));
        Self {
            environment,
            front_end,
            clock,
            locator,
            first_stamp,
            files: Mutex::default(),
            current: Mutex::default(),
            next: Mutex::default(),
        }
    }

    /// Takes the first host. Looks at every entry, which with many tools takes its time.
    pub fn begin(&self, assembly: &Assembly) {
        let reloader = HostReloader::new(assembly, Arc::clone(&self.environment));
        self.use_host(assembly, reloader);
    }

    fn use_host(&self, assembly: &Assembly, reloader: HostReloader) {
        let (host, masker) = (Arc::clone(&assembly.host), assembly.masker.clone());
        let current = CurrentHost { host, masker, reloader };
        *lock(&self.current) = Some(current);
    }

    pub fn watch_files(&self, configuration: &Configuration) {
        self.watch(WatchedFiles::of(configuration, []));
    }

    fn watch(&self, now: WatchedFiles) {
        let mut files = lock(&self.files);
        *files = (files.0 + 1, now);
    }

    /// How many hosts were built, and the names of the files that are not what they were when the
    /// newest one was.
    fn changed_files(&self) -> (u64, Vec<String>) {
        let files = lock(&self.files);
        let (generation, before) = &*files;
        let now = before.looked_at_again();
        let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        (*generation, now.changed_since(before).filter_map(name).collect())
    }

    /// The host in use; `None` until the console has opened.
    pub fn host(&self) -> Option<Arc<ToolHost>> {
        lock(&self.current).as_ref().map(|current| Arc::clone(&current.host))
    }

    fn check_trust(&self) -> Result<TrustStatus, Error> {
        // A person asks: code that appeared beside what is trusted is compared too.
        let request = LoadRequest { reviews_code: true, ..self.locator.options.files.clone() };
        let (configuration, _masker) = assembly::load(&request, &*self.environment);
        TrustStatus::of_readable(&configuration)
    }

    /// Has the host offer what the files say now. Settings that a host takes when it is built need
    /// another one, which ends the calls that run.
    fn read_files(&self, may_end_calls: bool) -> Result<FilesRead, Error> {
        let loaded = assembly::read(&self.locator.options, self.environment.as_ref())?;
        let socket = self.locator.socket(&loaded);
        let current = lock(&self.current);
        let (next, status) = match &*current {
            Some(current) if !current.reloader.needs_another_host(&loaded) => {
                let mut status = TrustStatus::of(&loaded.configuration);
                let readable = TrustStatus::of_readable(&loaded.configuration);
                let files = WatchedFiles::of(&loaded.configuration, []);
                match current.reloader.reload(loaded, NewErrors::Accepted) {
                    Ok(report) => status.diagnostics = report.diagnostics,
                    Err(ReloadError::Untrusted(_)) => return readable.map(FilesRead::HostKept),
                    Err(ReloadError::Invalid(_)) => {
                        return Err(Error::internal(
                            "configuration errors must not stop this reload",
                        ));
                    }
                    Err(ReloadError::Failed(error)) => return Err(error),
                }
                self.watch(files);
                let (host, masker) = (Arc::clone(&current.host), current.masker.clone());
                (NextHost { host, masker, socket, replacement: None }, status)
            }
            Some(_) if !may_end_calls => {
                return Err(Error::usage(
                    "the audit, history or stats settings changed; applying them ends running calls",
                )
                .with_hint("cancel the calls, then reload the files"));
            }
            current => {
                if current.is_some() {
                    TrustStatus::of_readable(&loaded.configuration)?;
                }
                let (options, front_end) = (&self.locator.options, self.front_end.clone());
                let assembly = assembly::build(loaded, options, &self.environment, front_end)?;
                let status = TrustStatus::of(&assembly.configuration);
                self.watch_files(&assembly.configuration);
                let reloader = HostReloader::new(&assembly, Arc::clone(&self.environment));
                let (host, masker) = (Arc::clone(&assembly.host), assembly.masker.clone());
                let replacement = Some((assembly, reloader));
                (NextHost { host, masker, socket, replacement }, status)
            }
        };
        *lock(&self.next) = Some(next);
        Ok(FilesRead::HostReady(status))
    }

    /// Passes everything that `host` is asked on to the background host behind a socket, when one
    /// listens; otherwise `host` answers itself.
    pub async fn attach(&self, host: &ToolHost, masker: &Masker, socket: Option<PathBuf>) {
        // The console observes the host, so it sees its own calls along with all others.
        let front_end = FrontEnd { events: EventSink::discard(), ..self.front_end.clone() };
        let front_end = attached_front_end(&front_end, masker);
        let client = match socket {
            Some(socket) => HostClient::connect(&socket, "toolhost console", front_end).await,
            None => None,
        };
        match client {
            Some(client) => host.attach(Arc::new(client)),
            None => host.detach(),
        }
    }

    /// Attaches the next host when a background host answers for what it offers, and detaches it when
    /// none does.
    async fn attach_next(&self) {
        let next = || {
            let mut next = lock(&self.next);
            let next = next.as_mut()?;
            Some((Arc::clone(&next.host), next.masker.clone(), next.socket.take()))
        };
        if let Some((host, masker, socket)) = next() {
            self.attach(&host, &masker, socket).await;
        }
    }

    fn trust(&self, request: &TrustRequest, as_author: bool) -> Result<FilesRead, Error> {
        self.store()?.trust(request, as_author, self.clock.unix())?;
        self.read_files(true)
    }

    fn refuse(&self, request: &TrustRequest) -> Result<(), Error> {
        self.store()?.refuse(request, self.clock.unix())
    }

    fn store(&self) -> Result<TrustStore, Error> {
        TrustStore::open(self.environment.state_dir().as_deref()).map_err(|problem| {
            let error = Error::config(problem.message);
            problem.hint.into_iter().fold(error, Error::with_hint)
        })
    }
}

impl ConsoleDeps {
    /// The same console after reloading the configuration.
    fn with_assembly(&self, assembly: &Assembly, state: Option<&Path>) -> Self {
        let configuration = &assembly.configuration;
        Self {
            host: Arc::clone(&assembly.host),
            statistics: assembly::stats_place(&configuration.stats, state),
            history: assembly::record_location(&configuration.history, history::log::FILE, state),
            keeps_statistics: configuration.stats.enabled,
            keeps_history: configuration.history.enabled,
            ..self.clone()
        }
    }
}

#[derive(Debug)]
pub enum FilesRead {
    HostReady(TrustStatus),
    /// The project is not what was trusted any more, and the host offers what it offered before.
    HostKept(TrustStatus),
}

/// Looks how far the project is trusted; the host stays as it is.
pub fn check() -> Task {
    let work =
        async |context: TaskContext| blocking(move || context.host_factory.check_trust()).await;
    Task::new("check trust", work, |state, status| state.trust.checked(status, &mut state.context))
}

/// Stores the user's yes to exactly this request, and offers what it allows. With `as_author` code
/// below the root may change from now on without asking.
pub fn trust(request: Arc<TrustRequest>, as_author: bool) -> Task {
    let name = ("trust", Arc::clone(&request), as_author);
    read_files(name, move |factory| factory.trust(&request, as_author)).before_quitting()
}

pub fn refuse(request: Arc<TrustRequest>) -> Task {
    let name = ("refuse", Arc::clone(&request));
    let work = async move |context: TaskContext| {
        blocking(move || context.host_factory.refuse(&request)).await
    };
    let then = |state: &mut AppState, stored: Result<(), Error>| {
        if let Err(error) = stored {
            state.trust.on_failed(&error, &mut state.context);
        }
    };
    Task::new(name, work, then).before_quitting()
}

pub fn reload(may_end_calls: bool) -> Task {
    read_files(("reload", may_end_calls), move |factory| factory.read_files(may_end_calls))
}

fn read_files(
    name: impl fmt::Debug + Send + 'static,
    read: impl FnOnce(&HostFactory) -> Result<FilesRead, Error> + Send + 'static,
) -> Task {
    let work = async move |mut context: TaskContext| {
        let factory = Arc::clone(&context.host_factory);
        // Files are hashed, which takes as long as it takes.
        let files = blocking(move || read(&factory)).await;
        drop(context.quit_guard.take());
        context.host_factory.attach_next().await;
        files
    };
    Task::new(name, work, |state, files| state.trust.files_read(files, &mut state.context))
}

impl EffectRunner {
    /// Goes on with what was read last. When that needed another host, calls of the old one are
    /// cancelled, and its servers have ended before this is reported.
    pub fn switch(&mut self) {
        let mut next = lock(&self.host_factory.next);
        let Some(NextHost { replacement, .. }) = next.take() else { return };
        drop(next);
        // What the host was asked before may be answered by what it offered then.
        self.host_generation.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let Some((assembly, reloader)) = replacement else {
            self.observe_attached();
            self.spawn(async { AppEvent::outcome(AppState::host_switched) });
            return;
        };
        self.slots.stop_all();
        let state = self.host_factory.environment.state_dir();
        let deps = self.deps.with_assembly(&assembly, state.as_deref());
        let before = std::mem::replace(&mut self.deps, deps);
        self.host_factory.use_host(&assembly, reloader);
        if self.deps.statistics != before.statistics {
            self.stats = OpenStatistics::new(&self.deps);
        }
        self.observe_attached();
        self.spawn(async move {
            before.host.close().await;
            AppEvent::outcome(AppState::host_switched)
        });
    }
}

/// Tells when the trust store or the configuration files change, until the console is gone. Only
/// their metadata is looked at.
pub fn watch(project: &Arc<HostFactory>, send: mpsc::Sender<AppEvent>) {
    let store = store_of(&*project.environment);
    let project = Arc::clone(project);
    let mut before = project.first_stamp;
    let mut reported = project.changed_files();
    tokio::spawn(async move {
        let mut looks = tokio::time::interval(STORE_POLL_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let now = store.as_deref().and_then(FileStamp::of_link);
            if std::mem::replace(&mut before, now) != now
                && send
                    .send(AppEvent::outcome(|state| state.trust.check(&mut state.context)))
                    .await
                    .is_err()
            {
                return;
            }
            let now = project.changed_files();
            // The same file may have changed since it was read again.
            let is_news = std::mem::replace(&mut reported, now.clone()) != now;
            let event = AppEvent::outcome(|state| state.trust.changed_files = now.1);
            if is_news && send.send(event).await.is_err() {
                return;
            }
        }
    });
}

fn store_of(environment: &dyn Environment) -> Option<PathBuf> {
    Some(environment.state_dir()?.join(TRUST_STORE_FILE))
}
