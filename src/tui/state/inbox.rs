//! What a person is asked: whether a call may be made, and what servers want to know.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Pane, Shell, Stage};
use crate::host::approval::Approval;
use crate::tui::event::{AskId, AskedApproval, Effect};
use crate::tui::keys::{Action, When};

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
}

/// What a person is asked.
#[derive(Debug, Default)]
pub struct Inbox {
    /// Calls that wait for a person, the oldest first.
    pub approvals: VecDeque<PendingApproval>,
}

impl Inbox {
    /// Whether a call may be made is asked.
    pub fn approval(&mut self, id: AskId, asked: AskedApproval) {
        self.approvals.push_back(PendingApproval { id, asked, since: None, scroll: 0 });
    }

    /// Nobody waits for this answer any more.
    pub fn withdrawn(&mut self, id: AskId) {
        self.approvals.retain(|pending| pending.id != id);
    }

    /// It is so late.
    pub fn now(&mut self, now: Duration) {
        if let Some(pending) = self.approvals.front_mut() {
            pending.since.get_or_insert(now);
        }
    }

    /// Whether the approval that is shown has been there for long enough to be answered.
    pub fn takes_an_answer(&self, now: Duration) -> bool {
        let since = self.approvals.front().and_then(|pending| pending.since);
        since.is_some_and(|since| since + TYPED_AHEAD <= now)
    }

    /// Answers the approval that is shown.
    pub fn decide(&mut self, approval: Approval) -> Vec<Effect> {
        let pending = self.approvals.pop_front();
        pending.map(|pending| Effect::Approve(pending.id, approval)).into_iter().collect()
    }
}

impl Stage for Inbox {
    fn act(&mut self, _action: Action, _shell: &mut Shell) -> Option<Vec<Effect>> {
        None
    }

    fn places(&self, _focus: Pane) -> Vec<When> {
        vec![When::Inbox, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, _focus: Pane, _by: isize) {}

    fn is_moving(&self) -> bool {
        !self.approvals.is_empty()
    }
}
