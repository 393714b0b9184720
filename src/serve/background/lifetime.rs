//! How long a background host lives.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::protocol::{HostStatus, HostedServer};
use crate::host::ToolHost;
use crate::util::process;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostCurrency {
    Current,
    /// The files say something else: it takes no call, and ends when none runs.
    Outdated,
    /// What was trusted changed: its calls end, too.
    Untrusted,
}

pub type CurrencyCheck = Box<dyn Fn() -> HostCurrency + Send + Sync>;

pub struct HostLifetime {
    directory: PathBuf,
    idle_limit: Duration,
    started: Instant,
    currency: CurrencyCheck,
    stop: CancellationToken,
    /// Fired with `stop` when running calls must not go on.
    abort: CancellationToken,
    activity: watch::Sender<HostActivity>,
}

#[derive(Debug)]
struct HostActivity {
    calls: u64,
    running: usize,
    idle_since: Instant,
}

#[derive(Debug)]
pub struct RunningCallGuard(Arc<HostLifetime>);

impl fmt::Debug for HostLifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostLifetime").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl HostLifetime {
    /// The life of a host that serves `directory` until it had no call for `idle_limit`, or until
    /// `stop` fires, which it may fire itself; with `abort` it also ends calls at once.
    pub fn new(
        directory: PathBuf,
        idle_limit: Duration,
        stop: CancellationToken,
        abort: CancellationToken,
        currency: CurrencyCheck,
    ) -> Arc<Self> {
        let now = Instant::now();
        let activity = HostActivity { calls: 0, running: 0, idle_since: now };
        Arc::new(Self {
            directory,
            idle_limit,
            started: now,
            currency,
            stop,
            abort,
            activity: watch::Sender::new(activity),
        })
    }

    /// Admits a call; `None` when the host is ending, or ends now because it is not current.
    pub fn begin_call(self: &Arc<Self>) -> Option<RunningCallGuard> {
        if !self.recheck() {
            return None;
        }
        self.activity.send_modify(|activity| {
            activity.calls += 1;
            activity.running += 1;
        });
        Some(RunningCallGuard(Arc::clone(self)))
    }

    /// Whether the host answers: it ends when it is not what was configured and trusted any more.
    pub fn recheck(&self) -> bool {
        if self.stop.is_cancelled() {
            return false;
        }
        match (self.currency)() {
            HostCurrency::Current => return true,
            HostCurrency::Outdated if self.activity.borrow().running > 0 => {}
            HostCurrency::Outdated => self.stop.cancel(),
            HostCurrency::Untrusted => {
                self.stop.cancel();
                self.abort.cancel();
            }
        }
        false
    }

    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until no call came for so long, and ends the host.
    pub async fn watch_idle(&self) {
        let mut activity = self.activity.subscribe();
        loop {
            let idle = activity.wait_for(|activity| activity.running == 0).await;
            // The sender lives as long as this.
            let Ok(idle_since) = idle.map(|activity| activity.idle_since) else { return };
            let Some(end) = idle_since.checked_add(self.idle_limit) else {
                return std::future::pending().await;
            };
            if Instant::now() >= end {
                return self.stop();
            }
            tokio::time::sleep_until(end).await;
        }
    }

    pub fn status(&self, host: &ToolHost) -> HostStatus {
        let servers = host.servers();
        let activity = self.activity.borrow();
        let idle = activity.idle_since.elapsed();
        HostStatus {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            directory: self.directory.clone(),
            uptime: self.started.elapsed(),
            servers: servers
                .into_iter()
                .map(|server| HostedServer {
                    state: server.state.as_str().to_owned(),
                    name: server.name,
                    connections: server.connections,
                })
                .collect(),
            calls: activity.calls,
            running: activity.running,
            memory: process::resident_memory(std::process::id()),
            idle_limit: self.idle_limit,
            idle_left: (activity.running == 0).then(|| self.idle_limit.saturating_sub(idle)),
        }
    }
}

impl Drop for RunningCallGuard {
    fn drop(&mut self) {
        self.0.activity.send_modify(|activity| {
            activity.running = activity.running.saturating_sub(1);
            activity.idle_since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const LIMIT: Duration = Duration::from_mins(30);

    fn lifetime(currency: CurrencyCheck) -> (Arc<HostLifetime>, CancellationToken) {
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        (HostLifetime::new(PathBuf::from("/p"), LIMIT, stop.clone(), abort, currency), stop)
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_ends_when_no_call_came_for_so_long_and_not_while_one_runs() {
        let (lifetime, stop) = lifetime(Box::new(|| HostCurrency::Current));
        let watched = Arc::clone(&lifetime);
        let watching = tokio::spawn(async move { watched.watch_idle().await });
        tokio::time::advance(LIMIT / 2).await;
        let call = lifetime.begin_call().unwrap();
        tokio::time::advance(LIMIT * 3).await;
        assert!(!stop.is_cancelled(), "a call runs");
        drop(call);
        tokio::time::advance(LIMIT / 2).await;
        assert!(!stop.is_cancelled(), "it is idle for half the time only");
        watching.await.unwrap();
        assert!(stop.is_cancelled());
        assert!(lifetime.begin_call().is_none(), "an ending host takes no call");
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_is_no_longer_what_is_configured_takes_no_call_and_ends() {
        let current = Arc::new(Mutex::new(HostCurrency::Current));
        let checked = Arc::clone(&current);
        let (lifetime, stop) = lifetime(Box::new(move || *checked.lock().unwrap()));
        let running = lifetime.begin_call().unwrap();
        *current.lock().unwrap() = HostCurrency::Outdated;
        assert!(lifetime.begin_call().is_none());
        assert!(!stop.is_cancelled(), "a call runs that began before");
        drop(running);
        assert!(lifetime.begin_call().is_none());
        assert!(stop.is_cancelled());
        *current.lock().unwrap() = HostCurrency::Current;
        assert!(lifetime.begin_call().is_none(), "what ended does not come back");
    }

    #[tokio::test(start_paused = true)]
    async fn the_calls_of_a_host_that_is_no_longer_trusted_end() {
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let untrusted = Box::new(|| HostCurrency::Untrusted);
        let lifetime =
            HostLifetime::new(PathBuf::from("/p"), LIMIT, stop.clone(), abort.clone(), untrusted);
        assert!(lifetime.begin_call().is_none());
        assert!(stop.is_cancelled() && abort.is_cancelled());
    }
}
