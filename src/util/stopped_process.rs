//! Processes of this user that were stopped, by SIGSTOP or a shell's job control.

use rustix::process::{Pid, Signal, kill_process};

/// Whether a process is stopped until it is resumed. One held by a debugger does not count.
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may hold anything.
    stat.rsplit_once(')').is_some_and(|(_, fields)| fields.trim_start().starts_with('T'))
}

/// Resumes a stopped process; returns whether it was stopped.
pub fn resume(pid: u32) -> bool {
    let stopped = i32::try_from(pid).ok().filter(|_| is_stopped(pid)).and_then(Pid::from_raw);
    // A process that is gone does not need it.
    stopped.is_some_and(|pid| kill_process(pid, Signal::CONT).is_ok())
}
