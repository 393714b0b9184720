//! Whether a call may be made: asked, answered, and what is remembered of the answers.
//!
//! Owns: that a yes for the session holds for exactly that call and for no other, that what was typed
//! ahead is no answer, and what changed since a tool was last allowed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use serde_json::Value;

use super::Inbox;
use crate::catalogue::fingerprint;
use crate::host::approval::Approval;
use crate::model::ToolDefinition;
use crate::tui::event::{AskId, AskedApproval, Effect, Errand};
use crate::tui::keys::Action;
use crate::tui::state::Shell;

/// Keys that come sooner than this after a question were typed for something else.
const TYPED_AHEAD: Duration = Duration::from_millis(300);

/// A person is asked whether a call may be made.
#[derive(Debug, Clone)]
pub struct PendingApproval {
    /// To be named in the answer.
    pub id: AskId,
    /// What is asked.
    pub asked: AskedApproval,
    /// Since when; keys that were typed ahead must not answer it.
    pub since: Option<Duration>,
    /// How far the request is scrolled.
    pub scroll: usize,
    /// What of it is shown.
    pub shows: Shows,
    /// What of the definition is not what it was when a call of this tool was last allowed here.
    pub changed: Vec<String>,
}

/// What of an approval is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shows {
    /// What would be sent.
    #[default]
    Request,
    /// What the tool says about itself, whole.
    Definition,
}

/// What was allowed here.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Calls that need not be asked about again, by their identity.
    always: HashSet<String>,
    /// What tools said about themselves when a call of them was last allowed, by full name.
    allowed: HashMap<String, Value>,
}

impl Memory {
    fn allow(&mut self, tool: &ToolDefinition) {
        self.allowed.insert(tool.name.full(), fingerprint::content(tool));
    }

    fn changed(&self, tool: &ToolDefinition) -> Vec<String> {
        let Some(before) = self.allowed.get(&tool.name.full()) else { return Vec::new() };
        let now = fingerprint::content(tool);
        let keys = |content: &Value| -> Vec<String> {
            content.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
        };
        let mut changed = keys(&now);
        changed.extend(keys(before));
        changed.sort_unstable();
        changed.dedup();
        changed.retain(|key| now.get(key) != before.get(key));
        changed
    }
}

impl Inbox {
    /// Whether a call may be made is asked. What was allowed for the session is not asked again.
    pub fn approval(&mut self, id: AskId, asked: AskedApproval, shell: &mut Shell) -> Vec<Effect> {
        if self.memory.always.contains(&asked.identity) {
            let name = asked.tool.name.full();
            shell.say(format!("{name} was allowed with these arguments for this session"));
            return vec![Effect::Approve(id, Approval::Granted)];
        }
        let changed = self.memory.changed(&asked.tool);
        let (since, scroll, shows) = (None, 0, Shows::default());
        self.approvals.push_back(PendingApproval { id, asked, since, scroll, shows, changed });
        Vec::new()
    }

    /// Whether the approval that is shown has been there for long enough to be answered.
    pub fn takes_an_answer(&self, now: Duration) -> bool {
        let since = self.approvals.front().and_then(|pending| pending.since);
        since.is_some_and(|since| since + TYPED_AHEAD <= now)
    }

    /// Does what a key stands for while an approval is shown; `None` when that means nothing here.
    pub fn decide(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        let front = self.approvals.front_mut()?;
        match action {
            Action::Yes => Some(self.granted()),
            Action::YesForSession => Some(self.granted_always()),
            Action::No => Some(self.refused()),
            Action::Fill => Some(self.edited(shell)),
            Action::Turn => {
                front.scroll = 0;
                front.shows = match front.shows {
                    Shows::Request => Shows::Definition,
                    Shows::Definition => Shows::Request,
                };
                Some(Vec::new())
            }
            Action::Turnaway | Action::Cancel => Some(self.called_off(shell)),
            _ => None,
        }
    }

    fn granted(&mut self) -> Vec<Effect> {
        let Some(pending) = self.approvals.pop_front() else { return Vec::new() };
        self.memory.allow(&pending.asked.tool);
        vec![Effect::Approve(pending.id, Approval::Granted)]
    }

    /// This call and every one that is the same, also of those that already wait.
    fn granted_always(&mut self) -> Vec<Effect> {
        let Some(front) = self.approvals.front() else { return Vec::new() };
        let identity = front.asked.identity.clone();
        self.memory.allow(&front.asked.tool);
        let (same, others): (VecDeque<_>, VecDeque<_>) =
            self.approvals.drain(..).partition(|pending| pending.asked.identity == identity);
        self.approvals = others;
        self.memory.always.insert(identity);
        same.iter().map(|pending| Effect::Approve(pending.id, Approval::Granted)).collect()
    }

    fn refused(&mut self) -> Vec<Effect> {
        let pending = self.approvals.pop_front();
        pending.map(|pending| Effect::Approve(pending.id, Approval::Refused)).into_iter().collect()
    }

    /// Not this call, but perhaps another one: its arguments are filled in again.
    fn edited(&mut self, shell: &Shell) -> Vec<Effect> {
        let Some(asked) = self.approvals.front().map(|pending| pending.asked.clone()) else {
            return Vec::new();
        };
        // What is shown is masked; what was typed here is known as it was.
        let made = shell.calls.running().find(|call| call.id.is_some() && call.id == asked.call);
        let arguments = made.map_or(asked.arguments, |call| call.arguments.clone());
        let mut effects = self.refused();
        let tool = asked.tool.name.full();
        effects.push(Effect::Go(Errand::Fill { tool, arguments: Some(arguments) }));
        effects
    }

    /// The whole call is off, where it was made here; what others made of it is refused.
    fn called_off(&mut self, shell: &Shell) -> Vec<Effect> {
        let call = self.approvals.front().and_then(|pending| pending.asked.call.clone());
        let made = shell.calls.running().find(|made| call.is_some() && made.id == call);
        match made.map(|made| made.run) {
            Some(run) => {
                self.approvals.pop_front();
                vec![Effect::Cancel(run)]
            }
            None => self.refused(),
        }
    }
}
