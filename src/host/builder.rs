//! Building a [`ToolHost`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use super::ToolHost;
use super::approval::Approver;
use super::directory::ToolDirectory;
use super::offerings::OpenSubscriptions;
use super::pipeline::CallPipeline;
use super::profiles::{KnownProfiles, Profiles};
use super::questions::QuestionQueue;
use super::recorder::Recorder;
use super::registration::HostContents;
use super::roster::Roster;
use super::session_manager::SessionManager;
use crate::audit::Masker;
use crate::config::spec::{PolicyRule, ProfileSpec};
use crate::model::{EventSink, JsonObject, TraceContext};
use crate::provider::{ComponentFactory, ToolProvider};
use crate::util::current::Current;
use crate::util::ids::Ids;

/// Collects the parts of a [`ToolHost`]. Every part has a default: no providers, no rules, no
/// person to ask, no records.
#[derive(Default)]
pub struct ToolHostBuilder {
    contents: HostContents,
    roster: Roster,
    command_end: String,
    pipeline: CallPipeline,
    sessions: SessionManager,
    session: Option<String>,
}

impl ToolHostBuilder {
    /// Adds a provider. The order of servers is the order of the catalogue.
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.contents.providers.push(provider);
        self
    }

    /// Adds several providers, in the order of the catalogue.
    #[must_use]
    pub fn providers(mut self, more: impl IntoIterator<Item = Arc<dyn ToolProvider>>) -> Self {
        self.contents.providers.extend(more);
        self
    }

    /// Sets everything that [`ToolHost::replace_contents`] replaces.
    #[doc(hidden)] // for the program's own commands
    #[must_use]
    pub fn contents(mut self, contents: HostContents) -> Self {
        self.contents = contents;
        self
    }

    /// Sets the policy rules; the first match wins.
    #[must_use]
    pub fn policy(mut self, rules: Vec<PolicyRule>) -> Self {
        self.contents.policy = rules;
        self
    }

    /// Sets who approves calls that need it; by default such calls are refused.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.pipeline.approver = approver;
        self
    }

    /// Sets the queue for the providers' questions, so that a person is asked one thing at a time.
    #[doc(hidden)] // for the program's own commands
    #[must_use]
    pub fn questions(mut self, questions: Arc<QuestionQueue>) -> Self {
        self.pipeline.questions = questions;
        self
    }

    /// Sets where calls are recorded; nowhere by default.
    #[must_use]
    pub fn recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.pipeline.recorder = recorder;
        self
    }

    /// Sets the masker, which knows the secrets that must not be recorded or shown.
    #[doc(hidden)] // for the program's own commands
    #[must_use]
    pub fn masker(mut self, masker: Masker) -> Self {
        self.pipeline.masker = masker;
        self
    }

    /// Sets the source of new ids.
    #[doc(hidden)] // for the program's own commands
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.pipeline.ids = ids;
        self
    }

    /// Sets where events for viewers go; nowhere by default.
    #[must_use]
    pub fn events(mut self, events: EventSink) -> Self {
        self.sessions.events = events;
        self
    }

    /// Sets the profile of requests that name none; by default they see and may call everything.
    #[must_use]
    pub fn profile(mut self, profile: Option<ProfileSpec>) -> Self {
        self.contents.profile = profile;
        self
    }

    /// Adds profiles that requests may name.
    #[must_use]
    pub fn profiles(mut self, named: impl IntoIterator<Item = (String, ProfileSpec)>) -> Self {
        self.contents.profiles.extend(named);
        self
    }

    /// Asks the approver about every call that no rule refuses, even if the policy allows it.
    #[must_use]
    pub fn ask_all(mut self, asks: bool) -> Self {
        self.pipeline.asks_about_all = asks;
        self
    }

    /// Refuses calls that cannot be recorded.
    #[must_use]
    pub fn require_record(mut self, required: bool) -> Self {
        self.pipeline.require_record = required;
        self
    }

    /// The directory the user works in.
    #[must_use]
    pub fn cwd(mut self, cwd: PathBuf) -> Self {
        self.sessions.base.cwd = cwd.into();
        self
    }

    /// Sets variables for every tool; those of a request are added.
    #[must_use]
    pub fn environment(mut self, environment: BTreeMap<String, String>) -> Self {
        self.sessions.base.environment = environment;
        self
    }

    /// Sets metadata for every tool.
    #[must_use]
    pub fn metadata(mut self, metadata: JsonObject) -> Self {
        self.sessions.base.metadata = metadata;
        self
    }

    /// Sets the user for calls that name none; unset by default.
    #[must_use]
    pub fn user_id(mut self, user: Option<String>) -> Self {
        self.sessions.base.user_id = user;
        self
    }

    /// Sets the trace context for calls that have none.
    #[must_use]
    pub fn trace(mut self, trace: Option<TraceContext>) -> Self {
        self.sessions.trace = trace;
        self
    }

    /// Sets the session of requests that name none; a new id by default.
    #[must_use]
    pub fn session(mut self, session: Option<String>) -> Self {
        self.session = session;
        self
    }

    /// Sets the end of a command line that names an ad-hoc server, which hints repeat.
    #[doc(hidden)] // for the program's own commands
    #[must_use]
    pub fn command_end(mut self, text: Option<&str>) -> Self {
        self.command_end = text.map(|text| format!(" {text}")).unwrap_or_default();
        self
    }

    /// Adds a component type that can be registered while the host runs, under its type key. If two
    /// have the same key, the later one wins.
    #[doc(hidden)] // for the program's own commands
    #[must_use]
    pub fn kind(mut self, key: &str, factory: Arc<dyn ComponentFactory>) -> Self {
        self.roster.factories.insert(key.to_owned(), factory);
        self
    }

    /// Sets the factory for providers of MCP servers registered while the host runs; without it
    /// none can be registered.
    #[doc(hidden)] // for the program's own commands
    #[must_use]
    pub fn client_factory(mut self, factory: Arc<dyn ComponentFactory>) -> Self {
        self.roster.client_factory = Some(factory);
        self
    }

    /// Builds the host. Starts and contacts nothing.
    pub fn build(self) -> Arc<ToolHost> {
        let Self { contents, roster, command_end, pipeline, mut sessions, session } = self;
        let HostContents { providers, policy, disabled, pins, profile, profiles, .. } = contents;
        pipeline.policy.replace(policy);
        sessions.base.session_id = session.unwrap_or_else(|| pipeline.ids.next()).into();
        let live = Arc::clone(&sessions.live);
        let directory = ToolDirectory::new(providers, pins, disabled, command_end, roster, live);
        Arc::new_cyclic(|weak_self| ToolHost {
            directory: Arc::new(directory),
            profiles: Profiles::new(KnownProfiles::new(profile, profiles)),
            pipeline: Arc::new(pipeline),
            sessions: Arc::new(sessions),
            client: None,
            link: Current::default(),
            subscriptions: OpenSubscriptions::default(),
            weak_self: Weak::clone(weak_self),
        })
    }
}
