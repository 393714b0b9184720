//! Running as a background host: `toolhost up --foreground`.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::assembly::runtime_directory::{self, RuntimeDirectory};
use crate::assembly::{self, FrontEnd, host_identity};
use crate::cli::context::{CommandContext, CommandResult};
use crate::config::consent::store::TrustStore;
use crate::config::spec::Configuration;
use crate::config::watched_files::{FileStamp, WatchedFiles};
use crate::model::Error;
use crate::serve::background::held_sessions::HeldSessions;
use crate::serve::background::lifetime::{CurrencyCheck, HostCurrency, HostLifetime};
use crate::serve::background::observers::ObserverHub;
use crate::serve::background::service::BackgroundService;
use crate::serve::catalogue_server::{CatalogueServer, ClientRegistry, ServeSettings};
use crate::serve::listen::unix::UnixSocketListener;

/// How long calls may continue after a signal to stop.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct HostOptions {
    /// How long it stays up without a call.
    pub idle: Duration,
    /// Whether it was started in the background: it then leaves the session of its starter.
    pub is_detached: bool,
}

/// Serves until the host has been idle for its limit, is told to stop, or no longer matches what
/// was trusted.
pub async fn run(options: HostOptions, context: &CommandContext) -> CommandResult {
    if options.is_detached {
        // This fails only for a group leader, which already has its own session.
        let _led_already = rustix::process::setsid();
    }
    context.request_grace_period(GRACE);
    let directory = require_directory(context)?;
    let key = directory.make_key()?;
    let (clients, observers) = (ClientRegistry::of_front_ends(), ObserverHub::new());
    let front_end = FrontEnd {
        approver: Arc::clone(&clients) as _,
        inbox: Arc::clone(&clients) as _,
        events: observers.events(clients.events()),
        traffic: observers.traffic(context.trace_outputs.sink(&context.output)?),
    };
    let loaded = context.read_usable()?;
    let identity = context.identity(&loaded, &key);
    let assembly = context.assemble_from(loaded, front_end)?;
    // Released with the process: until then servers may still be shutting down.
    let _lock: &mut File = Box::leak(Box::new(require_only_host(&directory, &identity)?));
    let cwd = context.environment.cwd();
    let lifetime = HostLifetime::new(
        host_identity::host_directory(&assembly.configuration, cwd),
        options.idle,
        context.cancel.clone(),
        context.abort.clone(),
        currency_check(context, &assembly.configuration, key, identity.clone()),
    );
    // Without such a server, no session needs cleanup.
    let has_unshared = assembly.configuration.servers.iter().any(|server| !server.is_shared);
    let sessions =
        has_unshared.then(|| HeldSessions::new(Arc::clone(&assembly.host), options.idle));
    let (host, lifetime) = (Arc::clone(&assembly.host), Arc::clone(&lifetime));
    let background =
        BackgroundService { host, lifetime: Arc::clone(&lifetime), observers, sessions };
    let settings =
        ServeSettings { background: Some(Arc::new(background)), ..ServeSettings::default() };
    let host = Arc::clone(&assembly.host);
    let server = CatalogueServer::new(host, clients, settings, context.abort.clone());
    let socket = directory.socket(&identity);
    let listener = UnixSocketListener::bind(&socket)?;
    context.warn_unserved(&assembly.configuration);
    context.output.note(format!("listening on {}", socket.display()));
    if options.is_detached {
        // The starter waits for this line, and reads nothing after it.
        context.output.line(&true)?;
    }
    let watching = async {
        lifetime.watch_idle().await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = listener.serve(&server, &context.cancel) => {}
        () = watching => {}
    }
    Ok(())
}

pub fn require_directory(context: &CommandContext) -> Result<RuntimeDirectory, Error> {
    RuntimeDirectory::of(context.environment.as_ref()).ok_or_else(|| {
        Error::config("there is no directory for background host sockets")
            .with_hint("set XDG_RUNTIME_DIR, or HOME")
    })
}

fn require_only_host(directory: &RuntimeDirectory, identity: &str) -> Result<File, Error> {
    let lock = runtime_directory::try_lock(&directory.host_lock(identity));
    let lock = lock.map_err(|error| Error::config(format!("cannot lock the host: {error}")))?;
    lock.ok_or_else(|| {
        Error::usage("a background host for this configuration is already running")
            .with_hint("'toolhost ps' shows it, 'toolhost down' stops it")
    })
}

/// Compares the configuration with its earlier state whenever a file of it or the trust store
/// changed.
fn currency_check(
    context: &CommandContext,
    configuration: &Configuration,
    key: Vec<u8>,
    identity: String,
) -> CurrencyCheck {
    let (options, environment) = (context.options(), Arc::clone(&context.environment));
    let trust: Option<PathBuf> = environment.state_dir().map(|state| TrustStore::file(&state));
    let trust_stamp = move || trust.as_deref().and_then(FileStamp::of);
    let files = WatchedFiles::of(configuration, []);
    // The files may have changed since they were read, so the first check reads them again.
    let seen = Mutex::new((trust_stamp(), None));
    Box::new(move || {
        let now = (trust_stamp(), Some(files.looked_at_again()));
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == now {
            return HostCurrency::Current;
        }
        let loaded = assembly::read(&options, environment.as_ref());
        let is_same = loaded.is_ok_and(|loaded| {
            host_identity::host_identity(&loaded, &options, environment.as_ref(), &key) == identity
        });
        if is_same {
            *seen = now;
            HostCurrency::Current
        } else if seen.0 == now.0 {
            HostCurrency::Outdated
        } else {
            HostCurrency::Untrusted
        }
    })
}
