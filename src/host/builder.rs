//! Building a [`ToolHost`] with the services that every call uses, and closing it: what was started last
//! is stopped first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use super::breakpoints::Breakpoints;
use super::directory::ToolDirectory;
use super::listings::RegisteredProvider;
use super::offerings::OpenSubscriptions;
use super::permits::CallPermits;
use super::policy::{self, Approval, ApprovalRequest, Approver, Decision, NoApprover};
use super::profiles::{KnownProfiles, Profiles};
use super::questions::QuestionQueue;
use super::recorder::{NoRecorder, Recorder};
use super::registration::HostContents;
use super::registry::Roster;
use super::sessions::SessionManager;
use super::{ToolHost, attempt};
use crate::audit::Masker;
use crate::config::spec::{PolicyRule, ProfileSpec};
use crate::model::{CallId, EventSink, JsonObject, Routing, ToolDefinition, TraceContext};
use crate::provider::{ComponentFactory, Preview, ToolProvider};
use crate::util::clock::{Clock, SystemClock};
use crate::util::ids::{Ids, RandomIds};
use crate::util::json::map_json;
use crate::util::lock::Current;

/// Collects the parts of a [`ToolHost`]. Every part has a default: no providers, no rules, no
/// person to ask, no records.
#[derive(Default)]
#[must_use]
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
    pub fn provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.contents.providers.push(provider);
        self
    }

    /// Adds several providers, in the order of the catalogue.
    pub fn providers(mut self, more: impl IntoIterator<Item = Arc<dyn ToolProvider>>) -> Self {
        self.contents.providers.extend(more);
        self
    }

    /// Sets everything that [`ToolHost::replace_contents`] replaces.
    #[doc(hidden)] // for the program's own commands
    pub fn contents(mut self, contents: HostContents) -> Self {
        self.contents = contents;
        self
    }

    /// Sets the policy rules; the first match wins.
    pub fn policy(mut self, rules: Vec<PolicyRule>) -> Self {
        self.contents.policy = rules;
        self
    }

    /// Sets who approves calls that need it; by default such calls are refused.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.pipeline.approver = approver;
        self
    }

    /// Sets the queue for the providers' questions, so that a person is asked one thing at a time.
    #[doc(hidden)] // for the program's own commands
    pub fn questions(mut self, questions: Arc<QuestionQueue>) -> Self {
        self.pipeline.questions = questions;
        self
    }

    /// Sets where calls are recorded; nowhere by default.
    pub fn recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.pipeline.recorder = recorder;
        self
    }

    /// Sets the masker, which knows the secrets that must not be recorded or shown.
    #[doc(hidden)] // for the program's own commands
    pub fn masker(mut self, masker: Masker) -> Self {
        self.pipeline.masker = masker;
        self
    }

    /// Sets the source of new ids.
    #[doc(hidden)] // for the program's own commands
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.pipeline.ids = ids;
        self
    }

    /// Sets where events for viewers go; nowhere by default.
    pub fn events(mut self, events: EventSink) -> Self {
        self.sessions.events = events;
        self
    }

    /// Sets the profile of requests that name none; by default they see and may call everything.
    pub fn profile(mut self, profile: Option<ProfileSpec>) -> Self {
        self.contents.profile = profile;
        self
    }

    /// Adds profiles that requests may name.
    pub fn profiles(mut self, named: impl IntoIterator<Item = (String, ProfileSpec)>) -> Self {
        self.contents.profiles.extend(named);
        self
    }

    /// Asks the approver about every call that no rule refuses, even if the policy allows it.
    pub fn ask_all(mut self, asks: bool) -> Self {
        self.pipeline.asks_about_all = asks;
        self
    }

    /// Refuses calls that cannot be recorded.
    pub fn require_record(mut self, required: bool) -> Self {
        self.pipeline.require_record = required;
        self
    }

    /// The directory the user works in.
    pub fn cwd(mut self, cwd: PathBuf) -> Self {
        self.sessions.base.cwd = cwd.into();
        self
    }

    /// Sets variables for every tool; those of a request are added.
    pub fn environment(mut self, environment: BTreeMap<String, String>) -> Self {
        self.sessions.base.environment = environment;
        self
    }

    /// Sets metadata for every tool.
    pub fn metadata(mut self, metadata: JsonObject) -> Self {
        self.sessions.base.metadata = metadata;
        self
    }

    /// Sets the user for calls that name none; unset by default.
    pub fn user_id(mut self, user: Option<String>) -> Self {
        self.sessions.base.user_id = user;
        self
    }

    /// Sets the trace context for calls that have none.
    pub fn trace(mut self, trace: Option<TraceContext>) -> Self {
        self.sessions.trace = trace;
        self
    }

    /// Sets the session of requests that name none; a new id by default.
    pub fn session(mut self, session: Option<String>) -> Self {
        self.session = session;
        self
    }

    /// Sets the end of a command line that names an ad-hoc server, which hints repeat.
    #[doc(hidden)] // for the program's own commands
    pub fn command_end(mut self, text: Option<&str>) -> Self {
        self.command_end = text.map(|text| format!(" {text}")).unwrap_or_default();
        self
    }

    /// Adds a component type that can be registered while the host runs, under its type key. If two
    /// have the same key, the later one wins.
    #[doc(hidden)] // for the program's own commands
    pub fn kind(mut self, key: &str, factory: Arc<dyn ComponentFactory>) -> Self {
        self.roster.factories.insert(key.to_owned(), factory);
        self
    }

    /// Sets the factory for providers of MCP servers registered while the host runs; without it
    /// none can be registered.
    #[doc(hidden)] // for the program's own commands
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

impl ToolHost {
    /// Ends everything that was started, in the reverse order of the starts: what was started
    /// together is ended together, and what was started before it when that has ended, or has had
    /// its time. Nothing can be registered from now on. Idempotent.
    pub async fn close(&self) {
        self.subscriptions.clear();
        let (providers, leaving) = {
            let mut roster = self.directory.roster();
            roster.is_closed = true;
            (self.directory.providers(), roster.leaving.clone())
        };
        let mut groups: BTreeMap<Reverse<Option<u64>>, Vec<&RegisteredProvider>> = BTreeMap::new();
        for provider in providers.iter().chain(&leaving) {
            groups.entry(Reverse(provider.first_start.get().copied())).or_default().push(provider);
        }
        let count = u32::try_from(groups.len()).unwrap_or(u32::MAX).max(1);
        // So all of them are told to end within half of the whole time, even if some hang.
        let patience = attempt::STOP_GRACE_PERIOD / count;
        let all = async {
            let mut closing = FuturesUnordered::new();
            for group in groups.into_values() {
                closing.extend(group.into_iter().map(|provider| provider.inner.close()));
                let ended = async { while closing.next().await.is_some() {} };
                let _late = tokio::time::timeout(patience, ended).await;
            }
            while closing.next().await.is_some() {}
        };
        // Each provider bounds its shutdown; the bound here is for one that does not.
        let _elapsed = tokio::time::timeout(attempt::STOP_GRACE_PERIOD * 2, all).await;
        self.sessions.live.clear();
        self.pipeline.recorder.close().await;
    }
}

/// What a call passes through. The default has no approver, records nothing and allows what the
/// hints of a tool allow.
pub(super) struct CallPipeline {
    /// The rules about calls, in order: the first that matches decides.
    pub(super) policy: Current<[PolicyRule]>,
    pub(super) approver: Arc<dyn Approver>,
    pub(super) permits: CallPermits,
    pub(super) questions: Arc<QuestionQueue>,
    pub(super) breakpoints: Arc<Breakpoints>,
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) asks_about_all: bool,
    pub(super) require_record: bool,
    pub(super) masker: Masker,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn Ids>,
}

impl Default for CallPipeline {
    fn default() -> Self {
        Self {
            policy: Current::new([]),
            approver: Arc::new(NoApprover),
            permits: CallPermits::default(),
            questions: Arc::default(),
            breakpoints: Arc::default(),
            recorder: Arc::new(NoRecorder),
            asks_about_all: false,
            require_record: false,
            masker: Masker::default(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
        }
    }
}

impl CallPipeline {
    pub(super) fn decision(&self, tool: &ToolDefinition) -> Decision {
        match policy::decide(&self.policy.get(), tool) {
            Decision::Allow(_) if self.asks_about_all => {
                Decision::Ask("every call needs approval (--ask-all)".into())
            }
            decision => decision,
        }
    }

    pub(super) fn new_call_id(&self) -> CallId {
        CallId(self.ids.next().into())
    }

    /// Asks a person about a call. Composed calls may ask several questions at once, so each waits
    /// until the previous prompt is answered. Reports how long the person took, which does not
    /// count towards the call `parent` that this one is part of.
    pub(super) async fn approve(
        &self,
        request: &ApprovalRequest<'_>,
        parent: Option<&CallId>,
    ) -> (Approval, Duration) {
        let wait = self.questions.wait_for_person(parent);
        let _prompt_lock = self.questions.lock_prompt().await;
        let answer = self.approver.ask(request).await;
        (answer, wait.elapsed())
    }

    pub(super) fn masked_arguments(&self, arguments: &JsonObject, schema: &Value) -> JsonObject {
        self.masker.arguments(arguments, schema)
    }

    /// A preview without secrets: a provider may add some that are not arguments.
    pub(super) fn masked_preview(&self, preview: &Preview) -> Preview {
        let mask = |text: &str| self.masker.text(text);
        Preview { summary: mask(&preview.summary), request: map_json(&preview.request, &mask) }
    }

    /// What is shown of a choice between servers: its reasons quote them, and they may say anything.
    pub(super) fn masked_routing(&self, mut routing: Routing) -> Routing {
        for skipped in &mut routing.skipped {
            skipped.reason = self.masker.text(&skipped.reason);
        }
        routing
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use crate::host::fake::{FakeProvider, call, host};
    use crate::host::request::ListScope;

    type Ends = Arc<Mutex<Vec<&'static str>>>;

    /// A server that writes its end down; one that hangs never ends.
    fn server(name: &'static str, ends: &Ends, hangs: bool) -> Arc<FakeProvider> {
        let ends = Arc::clone(ends);
        Arc::new(FakeProvider::server(name, &["echo"]).ending(move || {
            ends.lock().unwrap().push(name);
            if hangs { tokio::time::Duration::MAX } else { tokio::time::Duration::ZERO }
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_started_last_is_ended_first() {
        let ends = Ends::default();
        let [one, two, three] = ["one", "two", "three"].map(|name| server(name, &ends, false));
        let host = host(&[&one, &two, &three]).build();
        for name in ["two-echo", "three-echo", "one-echo", "two-echo"] {
            host.call(call(name)).await.unwrap();
        }
        host.close().await;
        assert_eq!(*ends.lock().unwrap(), ["one", "three", "two"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_keeps_no_other_from_being_ended() {
        let ends = Ends::default();
        let (first, last) = (server("first", &ends, false), server("last", &ends, true));
        let together = ["a", "b"].map(|name| server(name, &ends, true));
        let host = host(&[&first, &together[0], &together[1], &last]).build();
        host.call(call("first-echo")).await.unwrap();
        let scope = ListScope::Servers(vec!["a".to_owned(), "b".to_owned()]);
        host.catalogue(&scope).await;
        host.call(call("last-echo")).await.unwrap();
        host.close().await;
        assert_eq!(*ends.lock().unwrap(), ["last", "a", "b", "first"]);
    }
}
