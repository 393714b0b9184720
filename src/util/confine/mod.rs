//! Sandboxing of child processes: files, network, memory, time.
//!
//! Owns: [`Confinement`], the value that says it; whether this system can keep it; and [`PreparedConfinement`],
//! everything that has to be ready before a fork. Never does: decide a policy (kinds of tool do),
//! read the environment, or weaken what was asked for. What cannot be kept is a [`ConfinementError`].
//!
//! | level | kept by |
//! |---|---|
//! | `limits` | resource limits of the kernel, for each process |
//! | `landlock` | those, Landlock rules on files, and a seccomp filter on system calls |
//! | `bwrap` | all of that, inside of namespaces made by bubblewrap (Landlock where the kernel has it) |
//!
//! [`coverage()`] reports what a level blocks and what it leaves open, from the same tables that
//! make the rules.
//!
//! Everything that allocates or may fail is done in the parent. Between fork and exec a child makes
//! a handful of system calls and nothing else (`util::process`).

mod coverage;
mod limits;
mod prepared;
mod scratch;
mod system_paths;

#[cfg(target_os = "linux")]
mod bwrap;
#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod prepare;
#[cfg(target_os = "linux")]
mod subject;
#[cfg(target_os = "linux")]
mod support;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub use bwrap::become_program_if_requested;
pub use coverage::Coverage;
#[cfg(target_os = "linux")]
pub use coverage::coverage;
pub use limits::{LimitCause, ResourceLimits, is_superuser};
pub use prepared::PreparedConfinement;
pub use scratch::ScratchDir;
#[cfg(target_os = "linux")]
pub use support::{available, check};
pub use system_paths::{can_read, contains, program_paths};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{available, become_program_if_requested, check, coverage};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConfinementLevel {
    /// Resource limits only; it reaches what the user reaches.
    Limits,
    Landlock,
    /// Namespaces of bubblewrap, with Landlock and seccomp inside.
    Bwrap,
}

impl ConfinementLevel {
    /// The word used in files and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Limits => "limits",
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
        }
    }

    /// Whether files and the network are confined, and not only resources.
    pub fn confines(self) -> bool {
        self != Self::Limits
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HomeDir {
    /// Where its environment says; whether it can be read is a question of the paths.
    Inherited,
    Temporary,
    /// Its own directory, which it may write to and which persists.
    At(PathBuf),
}

/// What a child may reach. Paths are absolute; a directory stands for everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Confinement {
    pub level: ConfinementLevel,
    /// The programs, libraries and settings of the system can be read, too: without them hardly
    /// any program starts.
    pub system: bool,
    /// What can be read and executed; each has to exist.
    pub read: Vec<PathBuf>,
    /// What can be read, executed and changed; each has to exist.
    pub write: Vec<PathBuf>,
    pub network: bool,
    /// Whether it may change permissions, owners, times and attributes of files where only a filter
    /// could keep it from that (level `landlock`): of all files of the user, then. The other levels
    /// allow it in what may be written, and nowhere else.
    pub metadata: bool,
    pub limits: ResourceLimits,
    /// Where its private temporary directory is made (level `landlock`; `bwrap` gives it a `/tmp` of
    /// its own in memory). It is named by `TMPDIR` and removed when the child is gone.
    pub scratch: PathBuf,
    pub home: HomeDir,
}

/// Why a child cannot be confined as asked. It is not started then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfinementError {
    /// The system lacks what the level needs.
    #[error("{missing}")]
    Unsupported { missing: String, remedy: String },
    #[error("'{}' cannot be opened for the sandbox: {why}", .path.display())]
    Path {
        path: PathBuf,
        /// The system's reason.
        why: String,
    },
    /// Something that should have worked did not.
    #[error("the sandbox could not be created: {0}")]
    Failed(String),
}

#[cfg(target_os = "linux")]
impl ConfinementError {
    fn unsupported(missing: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unsupported { missing: missing.into(), remedy: remedy.into() }
    }
}

impl Confinement {
    #[cfg(target_os = "linux")]
    fn writable_paths(&self) -> impl Iterator<Item = &PathBuf> {
        let home = match &self.home {
            HomeDir::At(home) => Some(home),
            HomeDir::Inherited | HomeDir::Temporary => None,
        };
        self.write.iter().chain(home)
    }

    /// What is kept, in one line for people: the level, then files, network and limits. `own` are
    /// words for paths that are known only when the child is started.
    pub fn describe(&self, own: &[&str]) -> String {
        let mut facts = Vec::new();
        if self.level.confines() {
            let system = self.system.then_some("the system's programs and settings");
            let texts = |texts: &[&str]| texts.iter().map(|word| (*word).to_owned()).collect();
            let mut reads: Vec<String> = texts(system.as_slice());
            reads.extend(self.read.iter().map(display_path));
            reads.extend::<Vec<String>>(texts(own));
            if !reads.is_empty() {
                facts.push(format!("reads {}", reads.join(", ")));
            }
            let mut writes = vec!["its own temporary directory".to_owned()];
            if let HomeDir::At(home) = &self.home {
                writes.push(format!("its own home in {}", home.display()));
            }
            writes.extend(self.write.iter().map(display_path));
            facts.push(format!("writes {}", writes.join(", ")));
            facts.push(if self.network { "network" } else { "no network" }.to_owned());
        }
        facts.extend(self.limits.describe());
        facts.join("; ")
    }

    /// How the level is named once it is known what the system gives: `landlock (ABI 7)`,
    /// `bwrap, landlock (ABI 7)`.
    pub fn describe_level(&self) -> String {
        match (self.level, support_abi()) {
            (ConfinementLevel::Landlock, Some(abi)) => format!("landlock (ABI {abi})"),
            #[cfg(target_os = "linux")]
            (ConfinementLevel::Bwrap, Some(abi)) if bwrap::is_available(&support::ThisSystem) => {
                format!("bwrap, landlock (ABI {abi})")
            }
            (level, _) => level.as_str().to_owned(),
        }
    }

    pub fn prepare(
        &self,
        program: &Path,
        cwd: &Path,
    ) -> Result<PreparedConfinement, ConfinementError> {
        #[cfg(target_os = "linux")]
        return PreparedConfinement::build(&support::ThisSystem, self, program, cwd);
        #[cfg(not(target_os = "linux"))]
        return PreparedConfinement::build(self, program, cwd);
    }
}

#[expect(clippy::ptr_arg, reason = "it is mapped over lists of these")]
fn display_path(path: &PathBuf) -> String {
    path.display().to_string()
}

#[cfg(target_os = "linux")]
fn support_abi() -> Option<u32> {
    use support::SystemSupport as _;
    support::ThisSystem.landlock_abi()
}

#[cfg(not(target_os = "linux"))]
fn support_abi() -> Option<u32> {
    None
}
