//! Who uses a provider, so that it is closed when nobody does any more.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

#[derive(Default)]
pub(super) struct ProviderUsage {
    /// Closed once the provider is removed.
    users: TaskTracker,
    stop: CancellationToken,
}

/// Counts as one user of a provider until it is dropped.
pub(super) struct UsageGuard {
    usage: Arc<ProviderUsage>,
    _user: TaskTrackerToken,
}

impl UsageGuard {
    /// Fires when its holder has to stop: the provider was removed, and is about to be closed.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.usage.stop
    }

    pub(super) fn is_removed(&self) -> bool {
        self.usage.is_removed()
    }
}

impl ProviderUsage {
    /// Begins to use the provider; `None` once it is removed.
    pub(super) fn begin(self: &Arc<Self>) -> Option<UsageGuard> {
        // Counted first: whoever removes the provider after that waits for this one.
        let user = self.users.token();
        (!self.is_removed()).then(|| UsageGuard { usage: Arc::clone(self), _user: user })
    }

    pub(super) fn is_removed(&self) -> bool {
        self.users.is_closed()
    }

    /// Prevents new uses. Running ones continue.
    pub(super) fn remove(&self) {
        self.users.close();
    }

    pub(super) fn stop_users(&self) -> usize {
        self.stop.cancel();
        self.users.len()
    }

    /// Waits until a removed provider is unused.
    pub(super) async fn idle(&self) {
        self.users.wait().await;
    }
}
