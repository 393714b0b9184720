//! Permits for calls, for which clients take turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::attempt::MAX_PARALLEL_CALLS;
use crate::model::ToolDefinition;

/// Permits for calls, [`MAX_PARALLEL_CALLS`] for each component, server or single tool at each depth of
/// nesting.
///
/// A call keeps its permit while it waits for its nested calls. Those take theirs one level deeper,
/// so that every wait leads inwards and the innermost calls wait for no permit: no set of calls can
/// deadlock, no matter which tool calls which.
#[derive(Debug, Default)]
pub(super) struct CallPermits(Mutex<HashMap<(usize, String), ComponentPermits>>);

#[derive(Debug)]
struct ComponentPermits {
    all: Arc<Semaphore>,
    /// Of each client that has a call. All but one of the permits: the last is for a client that has
    /// none.
    of_clients: HashMap<String, Arc<ClientPermits>>,
}

#[derive(Debug)]
struct ClientPermits {
    own: Arc<Semaphore>,
    /// Held by the one call of the client that waits before others.
    turn: tokio::sync::Mutex<()>,
}

impl Default for ClientPermits {
    fn default() -> Self {
        let own = Arc::new(Semaphore::new(MAX_PARALLEL_CALLS - 1));
        Self { own, turn: tokio::sync::Mutex::default() }
    }
}

impl Default for ComponentPermits {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_PARALLEL_CALLS)), of_clients: HashMap::new() }
    }
}

impl CallPermits {
    /// Waits for a permit for a call of `tool` by `client` inside `depth` others.
    pub(super) async fn acquire(
        &self,
        tool: &ToolDefinition,
        depth: usize,
        client: &str,
    ) -> CallPermit {
        let name = tool.name.component().unwrap_or(tool.name.tool());
        let source = {
            // Names come from the catalogue and depths have a bound, which bounds the map.
            let mut components = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let component = components.entry((depth, name.to_owned())).or_default();
            component.of_clients.retain(|_, own| Arc::strong_count(own) > 1);
            let client = component.of_clients.entry(client.to_owned()).or_default();
            PermitSource { all: Arc::clone(&component.all), client: Arc::clone(client) }
        };
        source.acquire().await
    }
}

/// The right of a call to run.
#[derive(Debug)]
pub(super) struct CallPermit {
    source: PermitSource,
    // No semaphore is ever closed, so that neither is missing.
    _of_all: Option<OwnedSemaphorePermit>,
    _own: Option<OwnedSemaphorePermit>,
}

impl CallPermit {
    /// Where there is another for the same call.
    pub(super) fn source(&self) -> PermitSource {
        self.source.clone()
    }
}

#[derive(Debug, Clone)]
pub(super) struct PermitSource {
    all: Arc<Semaphore>,
    client: Arc<ClientPermits>,
}

impl PermitSource {
    pub(super) async fn acquire(&self) -> CallPermit {
        // First its client's, then its client's turn: who has many calls waits with one before others.
        let own = Arc::clone(&self.client.own).acquire_owned().await.ok();
        let _turn = self.client.turn.lock().await;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok();
        CallPermit { source: self.clone(), _of_all: of_all, _own: own }
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
    async fn one_call_of_a_client_waits_before_those_of_others() {
        let (permits, one) = (CallPermits::default(), tool("c"));
        let mut held = all_of(&permits, &one, "a").await;
        let _running = permits.acquire(&one, 0, "b").await;
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(permits.acquire(&one, 0, "b"))).collect();
        for call in &mut waiting {
            assert!(poll!(call).is_pending());
        }
        let mut last = Box::pin(permits.acquire(&one, 0, "c"));
        assert!(poll!(&mut last).is_pending());
        held.truncate(held.len() - 2);
        assert!(poll!(&mut waiting[0]).is_ready() && poll!(&mut last).is_ready());
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
