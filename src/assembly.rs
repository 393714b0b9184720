//! The only place that names every provider kind: specifications in, a [`ToolHost`] out.
//!
//! Owns: the registry of kinds, the wiring of recorders, secrets and events, and the order in
//! which everything ends. Never does: ask, print, or start anything by itself.

mod secrets;

use std::sync::Arc;

use crate::audit::AuditLog;
use crate::config::discover::LoadRequest;
use crate::config::environment::Environment;
use crate::config::load::load;
use crate::config::spec::{
    Configuration, DisabledEntry, FileRole, KindWords, ProfileSpec, RecordSpec, ServerSpec,
    ToolSpec,
};
use crate::host::ToolHost;
use crate::host::approval::Approver;
use crate::host::builder::ToolHostBuilder;
use crate::host::listings::ListWatch;
use crate::host::records::RecorderSet;
use crate::mcp::era::EraMemory;
use crate::model::{EventSink, Fault};
use crate::provider::{Kind, KindContext, ToolProvider};
use crate::providers::mcp::{McpProvider, McpSetup};
use crate::providers::{builtin, command, http};
use crate::stats::Spool;
use crate::util::clock::SystemClock;
use crate::util::orphans;

/// What the command line says about the whole run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which files to read, and whether all of them are trusted.
    pub files: LoadRequest,
    /// `--profile`.
    pub profile: Option<String>,
    /// `--insecure`.
    pub insecure: bool,
    /// `--require-record`.
    pub require_record: bool,
    /// The least level of the log lines that servers are asked for; they may send others.
    pub log_level: Option<&'static str>,
}

/// A host and what it was built from.
pub struct Assembly {
    /// The gateway to all tools.
    pub host: Arc<ToolHost>,
    /// What was loaded.
    pub configuration: Configuration,
}

/// The registry of kinds of internal tools.
pub fn kinds() -> Vec<Kind> {
    let mut kinds = vec![builtin::kind(), command::kind(), http::kind()];
    // Kinds that a build may be without.
    let optional: &[fn() -> Kind] = &[
        #[cfg(feature = "openapi")]
        crate::providers::openapi::kind,
    ];
    kinds.extend(optional.iter().map(|kind| kind()));
    kinds
}

/// How files speak of each kind.
pub fn kind_words() -> Vec<KindWords> {
    kinds().into_iter().map(|kind| kind.words).collect()
}

/// Reads the configuration and builds the host. Starts nothing.
///
/// # Errors
/// An unknown profile.
pub fn assemble(
    options: &Options,
    environment: &Arc<dyn Environment>,
    approver: Arc<dyn Approver>,
    events: EventSink,
) -> Result<Assembly, Fault> {
    let mut configuration = load(&options.files, &kind_words(), environment.as_ref());
    let profile = profile(options.profile.as_deref(), &configuration)?;
    // Whatever a server or tool leaves behind becomes ours to end.
    orphans::adopt();
    let watch = ListWatch::default();
    let masker = secrets::masker(&configuration, environment.as_ref());
    let events = watch.sink(masker.events(events));
    let host = ToolHostBuilder::default()
        .providers(internal_providers(&mut configuration, options.insecure, environment, &events))
        .providers(servers(&configuration, options, environment, &events))
        .policy(configuration.policy.clone())
        .approver(approver)
        .recorder(Arc::new(recorders(&configuration, environment.as_ref(), &events)))
        .masker(masker)
        .routing_weights(
            configuration.servers.iter().filter_map(|s| Some((s.name.clone(), s.routing_weight?))),
        )
        .disabled(configuration.disabled.clone())
        .profile(profile)
        .require_record(options.require_record)
        .cwd(environment.cwd())
        .events(events)
        .watch(watch)
        .build();
    Ok(Assembly { host: Arc::new(host), configuration })
}

/// Ends everything: the providers, and then whatever their children left behind.
pub async fn close(host: &ToolHost) {
    host.close().await;
    // Whoever cannot be killed is told about by who ends the process.
    let _left = orphans::end().await;
}

/// One provider for each kind that has entries. What a kind refuses is added to the problems.
fn internal_providers(
    configuration: &mut Configuration,
    insecure: bool,
    environment: &Arc<dyn Environment>,
    events: &EventSink,
) -> Vec<Arc<dyn ToolProvider>> {
    let context = KindContext {
        environment: Arc::clone(environment),
        state_dir: environment.state_dir(),
        scopes: configuration.scopes.clone(),
        events: events.clone(),
        insecure,
    };
    let mut providers = Vec::new();
    for kind in kinds() {
        let specs: Vec<&ToolSpec> =
            configuration.tools.iter().filter(|t| t.kind == kind.words.key).collect();
        if specs.is_empty() {
            continue;
        }
        let built = (kind.build)(&specs, &context);
        for problem in built.problems.iter().filter(|problem| problem.is_error()) {
            let Some(name) = problem.entry.clone() else { continue };
            // An entry may have several problems; the first stands for all where it is listed.
            let known = |entry: &DisabledEntry| entry.role == FileRole::Tools && entry.name == name;
            if !configuration.disabled.iter().any(known) {
                let (role, problem) = (FileRole::Tools, problem.clone());
                configuration.disabled.push(DisabledEntry { name, role, problem });
            }
        }
        configuration.problems.extend(built.problems);
        providers.extend(built.providers);
    }
    providers
}

fn servers(
    configuration: &Configuration,
    options: &Options,
    environment: &Arc<dyn Environment>,
    events: &EventSink,
) -> Vec<Arc<dyn ToolProvider>> {
    let setup = McpSetup {
        environment: Arc::clone(environment),
        eras: Arc::new(EraMemory::new(environment.cache_dir().map(|dir| dir.join("eras.json")))),
        events: events.clone(),
        insecure: options.insecure,
        log_level: options.log_level,
    };
    let provider = |spec: &ServerSpec| {
        Arc::new(McpProvider::new(spec.clone(), setup.clone())) as Arc<dyn ToolProvider>
    };
    configuration.servers.iter().map(provider).collect()
}

fn profile(
    name: Option<&str>,
    configuration: &Configuration,
) -> Result<Option<ProfileSpec>, Fault> {
    let Some(name) = name else { return Ok(None) };
    configuration.profiles.get(name).cloned().map(Some).ok_or_else(|| {
        let known: Vec<&str> = configuration.profiles.keys().map(String::as_str).collect();
        let fault = Fault::usage(format!("unknown profile '{name}'"));
        match known.as_slice() {
            [] => {
                fault.hint("no profiles are configured; they stand under `profiles:` in tools.yaml")
            }
            known => fault.hint(format!("known profiles: {}", known.join(", "))),
        }
    })
}

fn recorders(
    configuration: &Configuration,
    environment: &dyn Environment,
    events: &EventSink,
) -> RecorderSet {
    let state_dir = environment.state_dir();
    let kept = |spec: &RecordSpec| spec.enabled.then(|| spec.path.clone().ok_or(state_dir.clone()));
    let audit = kept(&configuration.audit).and_then(|place| match place {
        Ok(path) => Some(AuditLog::at(path, configuration.audit.sync)),
        Err(dir) => dir.map(|dir| AuditLog::in_state_dir(&dir, configuration.audit.sync)),
    });
    let spool = kept(&configuration.stats).and_then(|place| match place {
        Ok(path) => Some(Spool::at(path, configuration.stats.sync)),
        Err(dir) => dir.map(|dir| Spool::in_state_dir(&dir, configuration.stats.sync)),
    });
    let user = environment.var("USER").or_else(|| environment.var("LOGNAME"));
    RecorderSet::new(audit, spool, Arc::new(SystemClock), events.clone(), user)
}
