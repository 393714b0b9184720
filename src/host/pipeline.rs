//! The services every call uses: policy, approver, permits, recorders, and the masker.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::approval::{Approval, ApprovalRequest, Approver, NoApprover};
use super::breakpoints::Breakpoints;
use super::permits::CallPermits;
use super::policy::{self, Decision};
use super::questions::QuestionQueue;
use super::recorder::{NoRecorder, Recorder};
use crate::audit::Masker;
use crate::config::spec::PolicyRule;
use crate::model::{CallId, JsonObject, Routing, ToolDefinition};
use crate::provider::Preview;
use crate::util::clock::{Clock, SystemClock};
use crate::util::current::Current;
use crate::util::ids::{Ids, RandomIds};
use crate::util::json::map_json;

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
