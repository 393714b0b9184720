//! Permits for calls, for which clients take turns.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::limits::MAX_PARALLEL_CALLS;
use crate::model::ToolDefinition;

/// Permits for calls, [`MAX_PARALLEL_CALLS`] for each component, server or single tool at each depth of
/// nesting.
///
/// A call keeps its permit while it waits for its nested calls. Those take theirs one level deeper,
/// so that every wait leads inwards and the innermost calls wait for no permit: no set of calls can
/// deadlock, no matter which tool calls which.
#[derive(Debug, Default)]
pub(super) struct CallPermits(Mutex<HashMap<(usize, String), Arc<ComponentPermits>>>);

impl CallPermits {
    /// Waits for a permit for a call of `tool` by `client` inside `depth` others.
    pub(super) async fn acquire(
        &self,
        tool: &ToolDefinition,
        depth: usize,
        client: &str,
    ) -> CallPermit {
        let name = tool.name.component().unwrap_or(tool.name.tool());
        let permits = {
            // Names come from the catalogue and depths have a bound, which bounds the map.
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry((depth, name.to_owned())).or_default())
        };
        permits.acquire(client).await
    }
}

#[derive(Debug)]
struct ComponentPermits(Mutex<PermitQueue>);

#[derive(Debug)]
struct PermitQueue {
    free: usize,
    held: HashMap<String, usize>,
    waiting: VecDeque<(String, VecDeque<oneshot::Sender<CallPermit>>)>,
}

/// The right of a call to run; given to the next call when it is dropped.
#[derive(Debug)]
pub(super) struct CallPermit {
    client: String,
    /// `None` once it went to another call.
    permits: Option<Arc<ComponentPermits>>,
}

#[derive(Debug, Clone)]
pub(super) struct PermitSource {
    client: String,
    permits: Option<Arc<ComponentPermits>>,
}

impl Default for ComponentPermits {
    fn default() -> Self {
        let queue = PermitQueue {
            free: MAX_PARALLEL_CALLS,
            held: HashMap::new(),
            waiting: VecDeque::new(),
        };
        Self(Mutex::new(queue))
    }
}

impl ComponentPermits {
    fn queue(&self) -> MutexGuard<'_, PermitQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn acquire(self: &Arc<Self>, client: &str) -> CallPermit {
        let turn = {
            let mut queue = self.queue();
            if queue.has_permit(client) {
                queue.take(client);
                return CallPermit::new(client, self);
            }
            let (given, turn) = oneshot::channel();
            match queue.waiting.iter_mut().find(|(waiting, _)| waiting == client) {
                Some((_, calls)) => calls.push_back(given),
                None => queue.waiting.push_back((client.to_owned(), VecDeque::from([given]))),
            }
            turn
        };
        match turn.await {
            Ok(permit) => permit,
            // The queue lives as long as this.
            Err(_never) => CallPermit::new(client, self),
        }
    }
}

impl PermitQueue {
    /// Whether this client may have another: the last one is for a client that has none.
    fn has_permit(&self, client: &str) -> bool {
        let held = self.held.get(client).copied().unwrap_or_default();
        self.free > 0 && held + 1 < MAX_PARALLEL_CALLS
    }

    fn take(&mut self, client: &str) {
        self.free -= 1;
        *self.held.entry(client.to_owned()).or_default() += 1;
    }

    fn give_back(&mut self, client: &str) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(client) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(client);
            }
        }
    }

    /// The call whose turn it is; its client's next one comes after those of all others.
    fn next(&mut self) -> Option<(String, oneshot::Sender<CallPermit>)> {
        loop {
            let turn = self.waiting.iter().position(|(client, _)| self.has_permit(client))?;
            let (client, mut calls) = self.waiting.remove(turn)?;
            // What is not wanted any more is no turn of its client.
            calls.retain(|call| !call.is_closed());
            let Some(call) = calls.pop_front() else { continue };
            self.take(&client);
            if !calls.is_empty() {
                self.waiting.push_back((client.clone(), calls));
            }
            return Some((client, call));
        }
    }
}

impl CallPermit {
    fn new(client: &str, permits: &Arc<ComponentPermits>) -> Self {
        Self { client: client.to_owned(), permits: Some(Arc::clone(permits)) }
    }

    pub(super) fn source(&self) -> PermitSource {
        PermitSource { client: self.client.clone(), permits: self.permits.clone() }
    }
}

impl PermitSource {
    pub(super) async fn acquire(&self) -> Option<CallPermit> {
        Some(self.permits.as_ref()?.acquire(&self.client).await)
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let Some(permits) = self.permits.take() else { return };
        let mut holder = std::mem::take(&mut self.client);
        loop {
            let next = {
                let mut queue = permits.queue();
                queue.give_back(&holder);
                queue.next()
            };
            let Some((client, call)) = next else { return };
            match call.send(Self::new(&client, &permits)) {
                Ok(()) => return,
                // It was given up just now.
                Err(mut unused) => {
                    unused.permits = None;
                    holder = client;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, poll};

    use super::*;
    use crate::model::{Origin, ToolName, ToolSource};

    fn tool(component: &str) -> ToolDefinition {
        let name = ToolName::of(component, "t");
        ToolDefinition::new(name, ToolSource::Internal, "kind", Origin::Server("c".into()))
    }

    async fn all_of(permits: &CallPermits, tool: &ToolDefinition, client: &str) -> Vec<CallPermit> {
        let mut held = Vec::new();
        for _ in 1..MAX_PARALLEL_CALLS {
            held.push(permits.acquire(tool, 0, client).await);
        }
        held
    }

    #[tokio::test]
    async fn a_component_has_so_many_permits_and_another_or_a_deeper_level_its_own() {
        let (permits, one) = (CallPermits::default(), tool("c"));
        let mut held = all_of(&permits, &one, "a").await;
        let mut more = std::pin::pin!(permits.acquire(&one, 0, "a"));
        assert!(poll!(&mut more).is_pending());
        permits.acquire(&tool("d"), 0, "a").await;
        permits.acquire(&one, 1, "a").await;
        held.pop();
        more.await;
    }

    #[tokio::test]
    async fn the_last_permit_is_for_another_client() {
        let (permits, one) = (CallPermits::default(), tool("c"));
        let mut held = all_of(&permits, &one, "many").await;
        let mut more = Box::pin(permits.acquire(&one, 0, "many"));
        assert!(poll!(&mut more).is_pending(), "one client holds all permits");
        let other = permits.acquire(&one, 0, "few").now_or_never();
        drop(other.expect("there is a permit for another client"));
        assert!(poll!(&mut more).is_pending(), "the permit of another client became its own");
        held.pop();
        assert!(poll!(&mut more).is_ready());
    }

    #[tokio::test]
    async fn clients_take_turns_however_many_calls_one_of_them_has() {
        let (permits, one) = (CallPermits::default(), tool("c"));
        let mut held = all_of(&permits, &one, "many").await;
        let _last = permits.acquire(&one, 0, "other").await;
        let wait = |client: &'static str| Box::pin(permits.acquire(&one, 0, client));
        let mut many: Vec<_> = (0..20).map(|_| wait("many")).collect();
        for call in &mut many {
            assert!(poll!(call).is_pending());
        }
        let mut few: Vec<_> = (0..2).map(|_| wait("few")).collect();
        for call in &mut few {
            assert!(poll!(call).is_pending());
        }
        // One that is not wanted any more has no turn.
        drop(few.remove(0));
        held.truncate(held.len() - 2);
        let first = many.remove(0).now_or_never();
        assert!(first.is_some(), "it was first");
        let second = few.remove(0).now_or_never();
        assert!(second.is_some(), "20 calls of another client come first");
        drop(second);
        let third = poll!(&mut many[0]);
        assert!(third.is_ready(), "the permit of the other came back");
        assert!(poll!(&mut many[1]).is_pending());
    }

    #[tokio::test]
    async fn a_permit_that_nobody_takes_is_free_again() {
        let (permits, one) = (CallPermits::default(), tool("c"));
        let held = all_of(&permits, &one, "a").await;
        let _last = permits.acquire(&one, 0, "c").await;
        let mut waiting = Box::pin(permits.acquire(&one, 0, "b"));
        assert!(poll!(&mut waiting).is_pending());
        drop(held);
        // It was given its permit and does not look.
        drop(waiting);
        assert_eq!(all_of(&permits, &one, "a").await.len(), MAX_PARALLEL_CALLS - 1);
    }
}
