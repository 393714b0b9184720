//! The only place that names every provider kind: specifications in, a [`ToolHost`] out.
//!
//! Owns: the registry of kinds, the wiring of recorders, secrets and events, and the order in
//! which everything ends. Never does: ask, print, or start anything by itself.

mod caller;
mod contents;
#[cfg(test)]
mod embedded;
pub mod host_identity;
pub mod host_locator;
pub mod logins;
#[cfg(test)]
mod mutations;
pub mod pin_update;
pub mod pins;
pub mod recording;
mod registration;
pub mod reload;
pub mod runtime_directory;
mod secrets;
mod start_scope;
#[cfg(feature = "otel")]
mod telemetry;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::audit::log::AuditedProcess;
use crate::audit::{self, Masker};
use crate::config::discover::LoadRequest;
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::spec::{
    Configuration, DisabledEntry, KindDescriptor, ProfileSpec, RecordSpec, UntrustedEntry,
};
use crate::host::builder::ToolHostBuilder;
use crate::host::policy::{Approver, NoApprover};
use crate::host::questions::QuestionQueue;
use crate::host::recorder::{AuditTarget, RecordScope, RecordStores, Recorder, RecorderSet};
use crate::host::{ToolHost, unknown_profile};
use crate::mcp::era_cache::EraCache;
use crate::model::{Diagnostic, Error, EventSink, NoQuestionHandler, QuestionHandler, TrafficSink};
use crate::provider::{ProviderDeps, ProviderKind, ToolProvider};
use crate::providers::mcp::McpSetup;
use crate::providers::{builtin, command, files, http, mailbox, pipeline, python, storage};
use crate::util::append::RecordLocation;
use crate::util::clock::{SteadyClock, SystemClock};
use crate::util::segments::{SegmentRetention, SegmentedLog};
use crate::util::{orphans, private_file};
use crate::{config, history, stats};

use contents::ProviderSources;
pub use registration::host_builder;
pub use start_scope::{StartScope, keep, untrusted_entries};

/// What the command line says about the whole run.
#[derive(Debug, Clone, Default)]
pub struct AssemblyOptions {
    /// Which files to read, and whether all of them are trusted.
    pub files: LoadRequest,
    /// The profile given with `--profile`; without one everything is shown and may be called.
    pub profile: Option<String>,
    /// Accept any TLS certificate in this run (`--insecure`).
    pub insecure: bool,
    /// Refuse calls that cannot be recorded (`--require-record`).
    pub require_record: bool,
    /// Ask the user about every call that no rule refuses (`--ask-all`).
    pub ask_all: bool,
    /// The minimum level of the log lines requested from servers; they may send others.
    pub log_level: Option<&'static str>,
}

/// What a front end provides: answers from the user, and displays.
#[derive(Clone)]
pub struct FrontEnd {
    /// Approves calls that the policy or a hint does not allow by itself.
    pub approver: Arc<dyn Approver>,
    /// Answers what servers ask while a call runs.
    pub inbox: Arc<dyn QuestionHandler>,
    /// Receives progress, logs and state changes; may lose some.
    pub events: EventSink,
    /// Receives the traffic of servers, known secrets removed.
    pub traffic: TrafficSink,
}

impl FrontEnd {
    /// For an unattended run: nothing is approved, questions are declined, events are dropped.
    pub fn headless() -> Self {
        Self {
            approver: Arc::new(NoApprover),
            inbox: Arc::new(NoQuestionHandler),
            events: EventSink::discard(),
            traffic: TrafficSink::disabled(),
        }
    }
}

/// A host and what it was built from.
pub struct Assembly {
    /// The gateway to all tools.
    pub host: Arc<ToolHost>,
    /// The compiled files, including diagnostics and broken entries.
    #[doc(hidden)] // for the program's own front ends
    pub configuration: Configuration,
    /// Masks values that must not be shown in anything that is written.
    #[doc(hidden)] // for the program's own front ends
    pub masker: Masker,
    sources: ProviderSources,
}

/// The registry of kinds of internal tools.
pub fn kinds() -> Vec<ProviderKind> {
    // If two kinds are equally certain, the first one gets the entry: an alias of a builtin stays a
    // builtin if there is no Python module.
    let mut kinds = vec![
        builtin::kind(),
        command::kind(),
        python::kind(),
        http::kind(),
        files::kind(),
        storage::kind(),
        mailbox::kind(),
        pipeline::kind(),
    ];
    // Kinds that a build may omit.
    let optional: &[fn() -> ProviderKind] = &[
        #[cfg(feature = "openapi")]
        crate::providers::openapi::kind,
    ];
    kinds.extend(optional.iter().map(|kind| kind()));
    kinds
}

/// The vocabulary of each kind in configuration files.
pub fn kind_words() -> Vec<KindDescriptor> {
    kinds().into_iter().map(|kind| kind.words).collect()
}

/// The equivalent of `--tools-module` or another `option`: a file of tools for
/// [`LoadRequest::inline_tools`].
pub fn tools_module_file(option: &str, module: &str) -> (PathBuf, String) {
    (PathBuf::from(format!("{option} {module}")), python::file_of_module(module))
}

pub fn load(request: &LoadRequest, environment: &dyn Environment) -> (Configuration, Masker) {
    let mut configuration = config::load::load(request, &kind_words(), environment);
    let masker = secrets::masker(&configuration, environment);
    secrets::mask_problems(&mut configuration, &masker);
    log_configuration(&configuration, &masker);
    (configuration, masker)
}

/// Logs what was read. Paths may contain values of variables.
fn log_configuration(configuration: &Configuration, masker: &Masker) {
    for file in &configuration.files {
        tracing::debug!(
            file = tracing::field::debug(masker.text(&file.path.display().to_string())),
            layer = ?file.layer,
            "configuration file read"
        );
    }
    tracing::info!(
        files = configuration.files.len(),
        tools = configuration.tools.len(),
        servers = configuration.servers.len(),
        problems = configuration.diagnostics.len(),
        out_of_service = configuration.disabled.len(),
        untrusted = configuration.untrusted.len(),
        "configuration read"
    );
}

/// A configuration that a host can be built from: servers already have the names under which their
/// tools are listed.
pub struct LoadedConfiguration {
    /// The compiled files, including diagnostics and broken entries.
    pub configuration: Configuration,
    /// Masks values that must not be shown in anything that is written.
    pub masker: Masker,
    profile: Option<ProfileSpec>,
}

/// Reads the configuration that a host will be built from.
///
/// # Errors
/// An unknown profile.
pub fn read(
    options: &AssemblyOptions,
    environment: &dyn Environment,
) -> Result<LoadedConfiguration, Error> {
    let (mut configuration, masker) = load(&options.files, environment);
    contents::apply(&mut configuration);
    let profile = profile(options.profile.as_deref(), &configuration)?;
    Ok(LoadedConfiguration { configuration, masker, profile })
}

/// Reads the configuration and builds the host. Starts nothing.
///
/// # Errors
/// An unknown profile, or pins that cannot be used.
pub fn assemble(
    options: &AssemblyOptions,
    environment: &Arc<dyn Environment>,
    front_end: FrontEnd,
) -> Result<Assembly, Error> {
    build(read(options, environment.as_ref())?, options, environment, front_end)
}

/// Builds the host from what was read. Starts nothing.
///
/// # Errors
/// Pins that cannot be used.
pub fn build(
    loaded: LoadedConfiguration,
    options: &AssemblyOptions,
    environment: &Arc<dyn Environment>,
    front_end: FrontEnd,
) -> Result<Assembly, Error> {
    let LoadedConfiguration { mut configuration, masker, profile } = loaded;
    if let Some(cache) = environment.cache_dir() {
        // Older versions created it readable by everyone. If this fails, it is no worse than
        // before.
        let _as_it_was = private_file::restrict_directory(&cache);
    }
    // Processes that a server or tool leaves behind become our children, so that we can kill them.
    orphans::become_subreaper();
    let pins = pins::load(&configuration, environment.as_ref(), &masker)
        .map_err(|error| masker.error(error))?;
    let (builder, front_end) = masked_builder(front_end, environment.as_ref(), &masker);
    let events = &front_end.events;
    let deps = ProviderDeps {
        environment: Arc::clone(environment),
        expanded: configuration.expanded.clone(),
        state_dir: environment.state_dir(),
        project: configuration.project(),
        events: events.clone(),
        insecure: options.insecure,
        ..ProviderDeps::bare(Arc::clone(environment))
    };
    let setup = mcp_setup(options, environment, &front_end, &masker);
    let sources = ProviderSources::new(deps, setup).build(&mut configuration, &[], &masker);
    let recorder: Arc<dyn Recorder> =
        Arc::new(recorders(&configuration, environment.as_ref(), events));
    #[cfg(feature = "otel")]
    let recorder = telemetry::exporting(recorder, environment.as_ref(), events);
    let builder = caller::apply(builder, environment.as_ref(), events)
        .contents(sources.contents(&configuration, pins, profile))
        .recorder(recorder)
        .command_end(options.files.command_end.as_deref())
        .require_record(options.require_record)
        .ask_all(options.ask_all);
    let credentials = configuration.credential_sections.clone();
    let setup = sources.setup.clone();
    let builder = registration::with_factories(builder, &sources.deps, setup, &masker, credentials);
    let host = builder.build();
    Ok(Assembly { host, configuration, masker, sources })
}

/// The beginning of a host behind a front end, and the front end with everything masked that it is shown.
fn masked_builder(
    front_end: FrontEnd,
    environment: &dyn Environment,
    masker: &Masker,
) -> (ToolHostBuilder, FrontEnd) {
    let questions = Arc::new(QuestionQueue::new(front_end.inbox, masker.clone()));
    let front_end = FrontEnd {
        inbox: Arc::clone(&questions) as _,
        events: masker.events(front_end.events),
        traffic: masker.traffic(front_end.traffic),
        ..front_end
    };
    let builder = ToolHost::builder()
        .approver(Arc::clone(&front_end.approver))
        .questions(questions)
        .masker(masker.clone())
        .cwd(environment.cwd())
        .events(front_end.events.clone());
    (builder, front_end)
}

/// Shuts down everything: the providers, then the processes that their children left behind.
pub async fn close(host: &ToolHost) {
    host.close().await;
    // The end of the process reports what cannot be killed.
    let _left = orphans::kill_all().await;
}

/// What all servers of a host share.
fn mcp_setup(
    options: &AssemblyOptions,
    environment: &Arc<dyn Environment>,
    front_end: &FrontEnd,
    masker: &Masker,
) -> McpSetup {
    let masker = masker.clone();
    McpSetup {
        environment: Arc::clone(environment),
        expanded: ExpandedValues::default(),
        eras: Arc::new(EraCache::new(environment.cache_dir().map(|dir| dir.join("eras.json")))),
        events: front_end.events.clone(),
        inbox: Arc::clone(&front_end.inbox),
        traffic: front_end.traffic.clone(),
        logins: logins::vault(environment.as_ref()),
        learn: Arc::new(move |name, value| masker.add_secret(name, value)),
        insecure: options.insecure,
        log_level: options.log_level,
    }
}

/// Entries that cannot be used: broken ones, and components of an untrusted project, whose tools
/// have no names yet.
fn disabled_entries(configuration: &Configuration) -> Vec<DisabledEntry> {
    let refused = |entry: &UntrustedEntry| {
        let refusal = entry.refusal();
        let diagnostic = Diagnostic::error(refusal.message()).with_location(entry.location.clone());
        let refused = DisabledEntry::new(&entry.name, entry.role, diagnostic);
        DisabledEntry { refusal: Some(refusal), ..refused }
    };
    let broken = configuration.disabled.iter().cloned();
    broken.chain(configuration.untrusted.iter().map(refused)).collect()
}

fn untrusted(configuration: &Configuration) -> Vec<Arc<dyn ToolProvider>> {
    let provider = |entry: &UntrustedEntry| {
        Arc::new(start_scope::UntrustedProvider::new(entry.clone())) as Arc<dyn ToolProvider>
    };
    configuration.untrusted.iter().map(provider).collect()
}

fn profile(
    name: Option<&str>,
    configuration: &Configuration,
) -> Result<Option<ProfileSpec>, Error> {
    let Some(name) = name else { return Ok(None) };
    let names = configuration.profiles.keys().map(String::as_str);
    let profile = configuration.profiles.get(name).cloned();
    profile.map(Some).ok_or_else(|| unknown_profile(name, names))
}

fn recorders(
    configuration: &Configuration,
    environment: &dyn Environment,
    events: &EventSink,
) -> RecorderSet {
    let state_dir = environment.state_dir();
    let place = |spec: &RecordSpec, file: &str| {
        spec.enabled.then(|| record_location(spec, file, state_dir.as_deref())).flatten()
    };
    let audit = &configuration.audit;
    let keep = SegmentRetention::for_age(audit.retention);
    let user = environment.var("USER").or_else(|| environment.var("LOGNAME"));
    let process = AuditedProcess { pid: std::process::id(), user };
    let audit = match place(audit, audit::log::FILE) {
        Some(at) => AuditTarget::Log(SegmentedLog::new(at, audit.sync, keep), process),
        None if audit.enabled => AuditTarget::Nowhere,
        None => AuditTarget::Off,
    };
    let stats = &configuration.stats;
    let keep = stats::spool::segment_retention(stats.retention);
    let spool = stats_place(stats, state_dir.as_deref()).filter(|_| stats.enabled);
    let spool = spool.map(|at| SegmentedLog::new(at, stats.sync, keep));
    let history = &configuration.history;
    let keep = SegmentRetention::for_age(history.retention);
    let past = place(history, history::log::FILE);
    let past = past.map(|at| SegmentedLog::new(at, history.sync, keep));
    let stores = RecordStores { audit, spool, history: past };
    let server_programs =
        configuration.servers.iter().map(|spec| (spec.name.clone(), spec.origin.program_id()));
    let scope = RecordScope {
        project: configuration.project(),
        server_programs: server_programs.collect(),
    };
    RecorderSet::new(stores, Arc::new(SteadyClock::<SystemClock>::default()), events.clone())
        .with_scope(scope)
}

/// Where the statistics are stored, whether enabled or not; `None` without a place to
/// store them.
pub fn stats_place(spec: &RecordSpec, state_dir: Option<&Path>) -> Option<RecordLocation> {
    match &spec.path {
        Some(path) => Some(stats::spool::named(path)),
        None => state_dir.map(|dir| RecordLocation::own(dir, stats::spool::FILE)),
    }
}

/// Where a record is stored, whether enabled or not; `None` without a place to store it.
pub fn record_location(
    spec: &RecordSpec,
    file: &str,
    state_dir: Option<&Path>,
) -> Option<RecordLocation> {
    match &spec.path {
        Some(path) => Some(RecordLocation::named(path.clone())),
        None => state_dir.map(|directory| RecordLocation::own(directory, file)),
    }
}
