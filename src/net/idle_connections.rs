//! Connections that wait for their next request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

pub(super) struct IdleConnections<C> {
    limit: Duration,
    state: Mutex<IdleState<C>>,
}

struct IdleState<C> {
    /// Each with the time from when on it is too old; the newest is the last.
    connections: Vec<(Instant, C)>,
    /// Whether a task drops those that are too old.
    is_swept: bool,
}

impl<C: Send + 'static> IdleConnections<C> {
    /// None yet; each is kept for `limit`.
    pub(super) fn new(limit: Duration) -> Arc<Self> {
        let state = IdleState { connections: Vec::new(), is_swept: false };
        Arc::new(Self { limit, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, IdleState<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Option<C> {
        let (until, connection) = self.state().connections.pop()?;
        (Instant::now() < until).then_some(connection)
    }

    pub(super) fn put(self: &Arc<Self>, connection: C) {
        // Outside of a runtime nothing would drop it in time.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut state = self.state();
        state.connections.push((Instant::now() + self.limit, connection));
        if !std::mem::replace(&mut state.is_swept, true) {
            drop(runtime.spawn(sweep(Arc::downgrade(self))));
        }
    }

    /// Drops what is too old; when the next one is, if there is any.
    fn drop_expired(&self) -> Option<Instant> {
        let mut state = self.state();
        let now = Instant::now();
        let fresh = state.connections.partition_point(|(until, _)| *until <= now);
        let expired: Vec<_> = state.connections.drain(..fresh).collect();
        let next = state.connections.first().map(|(until, _)| *until);
        state.is_swept = next.is_some();
        drop(state);
        drop(expired);
        next
    }
}

/// Drops connections that are too old until there are none, or the client is gone.
async fn sweep<C: Send + 'static>(idle: Weak<IdleConnections<C>>) {
    while let Some(next) = idle.upgrade().and_then(|idle| idle.drop_expired()) {
        sleep_until(next).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_newest_is_used_and_the_oldest_dropped() {
        let second = Duration::from_secs(1);
        let idle = IdleConnections::new(4 * second);
        let (first, late) = (Arc::new(()), Arc::new(()));
        idle.put(Arc::clone(&first));
        tokio::time::advance(2 * second).await;
        idle.put(Arc::clone(&late));
        assert!(idle.take().is_some_and(|taken| Arc::ptr_eq(&taken, &late)));
        idle.put(Arc::clone(&late));
        tokio::time::sleep(3 * second).await;
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&late)), (1, 2));
        tokio::time::sleep(2 * second).await;
        assert_eq!(Arc::strong_count(&late), 1);
        assert!(idle.take().is_none());
        // Another round starts with the next one.
        idle.put(Arc::clone(&first));
        tokio::time::sleep(5 * second).await;
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
