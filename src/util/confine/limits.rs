//! Resource limits of a process, and what its exit says about them.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, getrlimit};
use serde::{Deserialize, Serialize};

use super::ConfinementError;
use crate::util::units::show_size;

/// Resource limits, each for every single process of a child, and `None` where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Private memory in bytes (`RLIMIT_DATA`). Address space that is only reserved does not count,
    /// so runtimes that reserve much of it start; memory shared between processes does not count
    /// either.
    pub memory: Option<u64>,
    /// Time on a processor, in whole seconds (`RLIMIT_CPU`); one more second ends a process that
    /// ignores the signal.
    pub cpu: Option<Duration>,
    /// How many processes and threads may be added to those the user has when it starts
    /// (`RLIMIT_NPROC`). The superuser is exempt from it.
    pub processes: Option<u64>,
    /// The largest file that may be written, in bytes (`RLIMIT_FSIZE`).
    pub file_size: Option<u64>,
    /// How many files may be open at once (`RLIMIT_NOFILE`).
    pub open_files: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitCause {
    /// A resource limit ended the program: which one.
    Limit(String),
    PossibleLimit(String),
}

impl ResourceLimits {
    pub fn describe(&self) -> Vec<String> {
        let named = [
            self.memory.map(|bytes| format!("memory {}", size(bytes))),
            self.cpu.map(|time| format!("cpu {} s", time.as_secs())),
            self.processes.map(|count| format!("{count} more processes")),
            self.file_size.map(|bytes| format!("files up to {}", size(bytes))),
            self.open_files.map(|count| format!("{count} open files")),
        ];
        named.into_iter().flatten().collect()
    }

    pub fn memory_limit(&self) -> Option<String> {
        self.memory.map(|bytes| format!("memory limit of {}", size(bytes)))
    }

    /// Determines why a child ended, from its status and the end of its stderr output.
    pub fn exit_cause(&self, status: ExitStatus, lines: &[String]) -> Option<LimitCause> {
        const XCPU: i32 = 24;
        const XFSZ: i32 = 25;
        const KILL: i32 = 9;
        // bwrap and shells report the signal of their child as an exit code.
        let relayed = status.code().filter(|code| (129..160).contains(code)).map(|c| c - 128);
        let signal = status.signal().or(relayed);
        let memory = self.memory_limit();
        let cpu = self.cpu.map(|time| format!("cpu limit of {} s", time.as_secs()));
        let file = self.file_size.map(|bytes| format!("file size limit of {}", size(bytes)));
        if signal == Some(XCPU) {
            return cpu.map(LimitCause::Limit);
        }
        if signal == Some(XFSZ) {
            return file.map(LimitCause::Limit);
        }
        if status.success() {
            return None;
        }
        if let Some(memory) = memory.clone().filter(|_| lines.iter().any(|w| mentions_memory(w))) {
            return Some(LimitCause::Limit(memory));
        }
        let possible: Vec<String> = match signal {
            Some(KILL) => [memory, cpu].into_iter().flatten().collect(),
            // How an allocation that failed ends depends on the program: a signal, or any exit.
            _ => memory.into_iter().collect(),
        };
        (!possible.is_empty()).then(|| LimitCause::PossibleLimit(possible.join(", ")))
    }

    pub fn check(&self) -> Result<(), ConfinementError> {
        if self.processes.is_some() && is_superuser() {
            return Err(ConfinementError::Unsupported {
                missing: "a process limit does not apply to the superuser".into(),
                remedy: "leave 'processes' out, or run toolhost as another user".into(),
            });
        }
        Ok(())
    }

    /// The limits as the system takes them, with room for `helpers` processes of ours. A limit that
    /// is stricter already stays.
    #[cfg(target_os = "linux")]
    pub(super) fn resources(
        &self,
        helpers: u64,
    ) -> Result<Vec<(Resource, Rlimit)>, ConfinementError> {
        self.check()?;
        let counted = |more: u64| more.saturating_add(count_of_tasks()).saturating_add(helpers);
        let nproc = self.processes.map(counted);
        let cpu = self.cpu.map(|time| time.as_secs().max(1));
        let limits = [
            (Resource::Data, self.memory, 0),
            (Resource::Cpu, cpu, 1),
            (Resource::Nproc, nproc, 0),
            (Resource::Fsize, self.file_size, 0),
            (Resource::Nofile, self.open_files, 0),
        ];
        let resources = limits.into_iter().filter_map(|(resource, limit, reserve)| {
            let limit = limit?;
            let strictest = getrlimit(resource).maximum.unwrap_or(u64::MAX);
            let maximum = limit.saturating_add(reserve).min(strictest);
            let current = limit.min(strictest);
            Some((resource, Rlimit { current: Some(current), maximum: Some(maximum) }))
        });
        Ok(resources.collect())
    }
}

/// Whether this is the user whom some limits do not bind.
pub fn is_superuser() -> bool {
    rustix::process::getuid().is_root()
}

/// How many tasks the user has now: the kernel counts all of them against the limit.
#[cfg(target_os = "linux")]
fn count_of_tasks() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::getuid().as_raw();
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    processes
        .flatten()
        .filter(|entry| {
            entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
        })
        .filter_map(|entry| std::fs::metadata(entry.path().join("task")).ok())
        .filter(|tasks| tasks.uid() == own)
        // The directory has one link for each task beside its own two.
        .map(|tasks| tasks.nlink().saturating_sub(2).max(1))
        .sum()
}

fn mentions_memory(line: &str) -> bool {
    let line = line.to_lowercase();
    ["memoryerror", "out of memory", "cannot allocate memory", "bad_alloc", "memory exhausted"]
        .iter()
        .any(|word| line.contains(word))
        || line.contains("memory allocation of")
}

/// A size without a fraction of zero.
fn size(bytes: u64) -> String {
    show_size(bytes).replace(".0 ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> ResourceLimits {
        ResourceLimits {
            memory: Some(256 << 20),
            cpu: Some(Duration::from_secs(5)),
            file_size: Some(64 << 20),
            ..ResourceLimits::default()
        }
    }

    fn cause(status: i32, text: &str) -> Option<LimitCause> {
        limits().exit_cause(ExitStatus::from_raw(status), &[text.to_owned()])
    }

    #[test]
    fn limits_are_put_in_words() {
        assert_eq!(limits().describe().join("; "), "memory 256 MiB; cpu 5 s; files up to 64 MiB");
        assert!(ResourceLimits::default().describe().is_empty());
    }

    #[test]
    fn a_limit_that_ended_a_process_is_named() {
        let limit = |text: &str| Some(LimitCause::Limit(text.to_owned()));
        let perhaps = |text: &str| Some(LimitCause::PossibleLimit(text.to_owned()));
        assert_eq!(cause(24, ""), limit("cpu limit of 5 s"));
        assert_eq!(cause((128 + 24) << 8, ""), limit("cpu limit of 5 s"));
        assert_eq!(cause(25, ""), limit("file size limit of 64 MiB"));
        assert_eq!(cause(1 << 8, "MemoryError"), limit("memory limit of 256 MiB"));
        assert_eq!(cause(11, ""), perhaps("memory limit of 256 MiB"));
        assert_eq!(cause(9, ""), perhaps("memory limit of 256 MiB, cpu limit of 5 s"));
        assert_eq!(cause(0, "MemoryError"), None);
        assert_eq!(ResourceLimits::default().exit_cause(ExitStatus::from_raw(24), &[]), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_tasks_of_this_user_are_counted() {
        // At least the thread of this test and the one that waits for it.
        assert!(count_of_tasks() >= 1);
    }
}
