//! How a [`ToolHost`] is put together.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use super::ToolHost;
use super::approval::{Approver, NoApprover};
use super::balancer::Balancer;
use super::circuit::Circuits;
use super::limits::CallPermits;
use super::listings::{ListWatch, RegisteredProvider};
use super::questions::QuestionQueue;
use super::recorder::{NoRecorder, Recorder};
use super::registry::ToolRegistry;
use super::sessions::Sessions;
use crate::audit::Masker;
use crate::catalogue::pins::Pins;
use crate::config::spec::{DisabledEntry, PolicyRule, ProfileSpec};
use crate::model::{EventSink, JsonObject};
use crate::provider::ToolProvider;
use crate::util::clock::{Clock, SystemClock};
use crate::util::ids::{Ids, RandomIds};

/// Collects the parts of a [`ToolHost`]. Every part has a default: no providers, no rules,
/// nobody to ask, no records.
pub struct ToolHostBuilder {
    providers: Vec<Arc<dyn ToolProvider>>,
    host: ToolHost,
    watch: ListWatch,
    pins: Arc<Pins>,
    session: Option<String>,
}

impl Default for ToolHostBuilder {
    fn default() -> Self {
        let sessions = Arc::new(Sessions::default());
        let registry = Arc::new(ToolRegistry::new(Arc::clone(&sessions)));
        let watch = ListWatch::default();
        let registered =
            Arc::new(RegisteredProvider::new(Arc::clone(&registry) as _, &watch, Arc::default()));
        Self {
            providers: Vec::new(),
            host: ToolHost {
                providers: Vec::new(),
                pins: Arc::default(),
                policy: Vec::new(),
                approver: Arc::new(NoApprover),
                recorder: Arc::new(NoRecorder),
                masker: Masker::default(),
                clock: Arc::new(SystemClock),
                ids: Arc::new(RandomIds),
                events: EventSink::discard(),
                profile: None,
                require_record: false,
                cwd: PathBuf::from("."),
                environment: BTreeMap::new(),
                metadata: JsonObject::new(),
                session: String::new(),
                routing_weights: HashMap::new(),
                balance: Balancer::default(),
                circuits: Circuits::default(),
                disabled: Vec::new(),
                permits: CallPermits::default(),
                questions: Arc::default(),
                registry,
                registry_provider: registered,
                sessions,
                version: AtomicU64::new(0),
                weak_self: Weak::new(),
            },
            watch,
            pins: Arc::default(),
            session: None,
        }
    }
}

impl ToolHostBuilder {
    /// Adds a provider. The order of servers is the order of the catalogue.
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.providers.push(provider);
        self
    }

    /// Adds several providers.
    #[must_use]
    pub fn providers(mut self, more: impl IntoIterator<Item = Arc<dyn ToolProvider>>) -> Self {
        self.providers.extend(more);
        self
    }

    /// The rules about calls; the first that matches counts.
    #[must_use]
    pub fn policy(mut self, rules: Vec<PolicyRule>) -> Self {
        self.host.policy = rules;
        self
    }

    /// Who is asked when a call needs approval; nobody by default.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.host.approver = approver;
        self
    }

    /// What the providers' questions pass through, so that a person is asked one thing at a time.
    #[must_use]
    pub fn questions(mut self, questions: Arc<QuestionQueue>) -> Self {
        self.host.questions = questions;
        self
    }

    /// Where calls are recorded; nowhere by default.
    #[must_use]
    pub fn recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.host.recorder = recorder;
        self
    }

    /// Knows the secrets that must not be recorded or shown.
    #[must_use]
    pub fn masker(mut self, masker: Masker) -> Self {
        self.host.masker = masker;
        self
    }

    /// What the tools were when somebody accepted them; a tool that is something else is marked,
    /// and its entry says whether it may still be called.
    #[must_use]
    pub fn pins(mut self, pins: Pins) -> Self {
        self.pins = Arc::new(pins);
        self
    }

    /// The clock, for durations.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.host.clock = clock;
        self
    }

    /// The source of fresh identities.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.host.ids = ids;
        self
    }

    /// Where events go.
    #[must_use]
    pub fn events(mut self, events: EventSink) -> Self {
        self.host.events = events;
        self
    }

    /// The watch through which the providers' events pass, so that changed lists are asked for
    /// again.
    #[must_use]
    pub fn watch(mut self, watch: ListWatch) -> Self {
        self.watch = watch;
        self
    }

    /// The view that is shown and may be called; everything by default.
    #[must_use]
    pub fn profile(mut self, profile: Option<ProfileSpec>) -> Self {
        self.host.profile = profile;
        self
    }

    /// Refuse calls that cannot be recorded.
    #[must_use]
    pub fn require_record(mut self, required: bool) -> Self {
        self.host.require_record = required;
        self
    }

    /// The directory the user works in.
    #[must_use]
    pub fn cwd(mut self, cwd: PathBuf) -> Self {
        self.host.cwd = cwd;
        self
    }

    /// Variables that every tool gets; those of a request are added to them.
    #[must_use]
    pub fn environment(mut self, environment: BTreeMap<String, String>) -> Self {
        self.host.environment = environment;
        self
    }

    /// Metadata that every tool gets.
    #[must_use]
    pub fn metadata(mut self, metadata: JsonObject) -> Self {
        self.host.metadata = metadata;
        self
    }

    /// The session of requests that name none; a fresh identity by default.
    #[must_use]
    pub fn session(mut self, session: Option<String>) -> Self {
        self.session = session;
        self
    }

    /// The weights of servers that set one (see `balance`).
    #[must_use]
    pub fn routing_weights(mut self, weights: impl IntoIterator<Item = (String, f64)>) -> Self {
        self.host.routing_weights = weights.into_iter().collect();
        self
    }

    /// Entries out of service, so that asking for one says why.
    #[must_use]
    pub fn disabled(mut self, entries: Vec<DisabledEntry>) -> Self {
        self.host.disabled = entries;
        self
    }

    /// Puts the host together. Starts and contacts nothing.
    pub fn build(self) -> Arc<ToolHost> {
        let Self { providers, mut host, watch, pins, session } = self;
        host.session = session.unwrap_or_else(|| host.ids.next());
        let provider =
            |provider| Arc::new(RegisteredProvider::new(provider, &watch, Arc::clone(&pins)));
        host.providers = providers.into_iter().map(provider).collect();
        host.pins = pins;
        host.providers.push(Arc::clone(&host.registry_provider));
        Arc::new_cyclic(|me| {
            host.weak_self = Weak::clone(me);
            host
        })
    }
}
