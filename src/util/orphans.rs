//! Reaping orphaned descendants of our children.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
#[cfg(target_os = "linux")]
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// How long the dead are left lying, so that many are collected at once.
#[cfg(target_os = "linux")]
const REAP_INTERVAL: Duration = Duration::from_millis(50);
/// How long ending all of them may take. Only what cannot be killed takes that long.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Children that were started here and whose exit status is still to be collected.
static AWAITED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

static LEFT_RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Lets a child keep running when this process ends: [`kill_all`] does not end it.
pub fn leave_running(pid: u32) {
    LEFT_RUNNING.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
}

fn awaited() -> MutexGuard<'static, BTreeSet<u32>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaves the exit status of a child to the holder of this value.
#[derive(Debug)]
pub struct AwaitedChild(u32);

impl AwaitedChild {
    /// Starts a child. No other child is collected meanwhile, so that one that ends at once is not
    /// taken for a stranger.
    pub fn start<T>(
        start: impl FnOnce() -> io::Result<T>,
        pid: impl FnOnce(&T) -> u32,
    ) -> io::Result<(T, Self)> {
        let mut awaited = awaited();
        let child = start()?;
        let pid = pid(&child);
        awaited.insert(pid);
        Ok((child, Self(pid)))
    }
}

impl Drop for AwaitedChild {
    fn drop(&mut self) {
        awaited().remove(&self.0);
    }
}

/// Makes this process the parent of grandchildren whose parent died, and, inside of a runtime,
/// collects them when they end: a server that starts and forgets a process a second must not fill
/// the process table.
pub fn become_subreaper() {
    #[cfg(target_os = "linux")]
    {
        let own = Pid::from_raw(i32::try_from(std::process::id()).unwrap_or_default());
        // Without it such processes are merely harder to find; nothing else depends on it.
        let _unsupported = rustix::process::set_child_subreaper(own);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(reap_forever());
        }
    }
}

#[cfg(target_os = "linux")]
async fn reap_forever() {
    let Ok(mut ended) = signal(SignalKind::child()) else { return };
    while ended.recv().await.is_some() {
        tokio::time::sleep(REAP_INTERVAL).await;
        reap_orphans();
    }
}

#[cfg(target_os = "linux")]
fn reap_orphans() {
    let awaited = awaited();
    for pid in children().into_iter().filter(|pid| !awaited.contains(pid)) {
        reap(pid);
    }
}

/// Kills and collects every child this process still has, and what those leave behind in turn;
/// for when all known ones are ended. Returns those that could not be killed.
pub async fn kill_all() -> Vec<u32> {
    let deadline = Instant::now() + KILL_TIMEOUT;
    loop {
        let left = children();
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        for pid in left {
            if let Some(pid) = to_pid(pid) {
                // A group that is gone already needs no signal.
                let _gone = rustix::process::kill_process_group(pid, Signal::KILL);
                let _gone = rustix::process::kill_process(pid, Signal::KILL);
            }
            reap(pid);
        }
        // There is no event for "it has died and its children are ours now".
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn reap(pid: u32) {
    if let Some(pid) = to_pid(pid) {
        let _not_yet = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(target_os = "linux")]
fn children() -> Vec<u32> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    // Mostly there are none, and the system says so at once. What ended stays unreaped.
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if matches!(waitid(WaitId::All, look), Err(rustix::io::Errno::CHILD)) {
        return Vec::new();
    }
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let left_running = LEFT_RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|line| {
            line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        })
        .filter(|pid| !left_running.contains(pid))
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn children() -> Vec<u32> {
    Vec::new()
}
