//! Waiting for the end of a process that is not a child of ours.

use std::time::Duration;

use rustix::process::Pid;

/// How often it is looked whether a process is there, on systems that do not tell.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Waits until no process has this identity. One that has ended counts as gone even before its
/// parent has taken note of it.
pub async fn wait_for_exit(pid: u32) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    if wait_for_event(pid).await.is_none() {
        while rustix::process::test_kill_process(pid).is_ok() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Waits for the system to tell; `None` when it does not, or the process is gone already.
#[cfg(target_os = "linux")]
async fn wait_for_event(pid: Pid) -> Option<()> {
    use tokio::net::unix::pipe;

    let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
    // It is not a pipe; it becomes readable like one, and nothing is read.
    let process = pipe::Receiver::from_owned_fd_unchecked(process).ok()?;
    process.readable().await.ok()
}

#[cfg(not(target_os = "linux"))]
async fn wait_for_event(_pid: Pid) -> Option<()> {
    None
}
