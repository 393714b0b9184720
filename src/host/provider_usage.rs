//! Tracks the users of a provider, so that it is not closed while in use.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(super) struct ProviderUsage {
    state: watch::Sender<UsageState>,
    stop: CancellationToken,
}

#[derive(Default)]
struct UsageState {
    users: usize,
    is_removed: bool,
}

impl Default for ProviderUsage {
    fn default() -> Self {
        Self { state: watch::Sender::new(UsageState::default()), stop: CancellationToken::new() }
    }
}

/// Counts as one user of a provider until it is dropped.
pub(super) struct UsageGuard(Arc<ProviderUsage>);

impl UsageGuard {
    /// Fires when its holder has to stop: the provider was removed, and is about to be closed.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    pub(super) fn is_removed(&self) -> bool {
        self.0.is_removed()
    }
}

impl Drop for UsageGuard {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.users -= 1);
    }
}

impl ProviderUsage {
    /// Begins to use the provider; `None` once it is removed.
    pub(super) fn begin(self: &Arc<Self>) -> Option<UsageGuard> {
        let has_begun = self.state.send_if_modified(|state| {
            state.users += usize::from(!state.is_removed);
            !state.is_removed
        });
        has_begun.then(|| UsageGuard(Arc::clone(self)))
    }

    pub(super) fn is_removed(&self) -> bool {
        self.state.borrow().is_removed
    }

    /// Prevents new uses. Running ones continue.
    pub(super) fn remove(&self) {
        self.state.send_modify(|state| state.is_removed = true);
    }

    pub(super) fn stop_users(&self) -> usize {
        self.stop.cancel();
        self.state.borrow().users
    }

    pub(super) async fn idle(&self) {
        let mut state = self.state.subscribe();
        // The sender lives as long as this.
        let _closed = state.wait_for(|state| state.users == 0).await;
    }
}
