//! Namespaces of a child: which ones, and the data needed to make them.
//!
//! The mount namespace holds the user's files as they are, read-only but for what may be written;
//! which of them can be read is left to the Landlock rules inside. So two fences hold for changes
//! of files and of their metadata, for processes, shared memory and the network.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

use super::subject::SandboxSubject;
use super::{Confinement, ConfinementError, ConfinementLevel};

/// Each kind of namespace, its name, and what it keeps.
const KINDS: [(UnshareFlags, &str, &[SandboxSubject]); 4] = [
    (UnshareFlags::NEWNS, "mount namespace", &[SandboxSubject::Files, SandboxSubject::Metadata]),
    (
        UnshareFlags::NEWPID,
        "process namespace",
        &[SandboxSubject::Memory, SandboxSubject::Scheduling, SandboxSubject::Signals],
    ),
    (UnshareFlags::NEWIPC, "IPC namespace", &[SandboxSubject::SharedMemory]),
    (
        UnshareFlags::NEWNET,
        "network namespace",
        &[SandboxSubject::Network, SandboxSubject::AbstractSockets],
    ),
];

/// What a file system of its own keeps beside: with bubblewrap a child sees nothing that is not
/// given to it, and a `/proc` of its own namespace.
const OWN_ROOT: (&str, &[SandboxSubject]) = (
    "its own root",
    &[
        SandboxSubject::Files,
        SandboxSubject::FileExistence,
        SandboxSubject::UnixSockets,
        SandboxSubject::ProcessDetails,
        SandboxSubject::ProcessIds,
    ],
);

/// The namespaces that a confinement asks for.
pub(super) fn kinds(confinement: &Confinement) -> UnshareFlags {
    let all = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    match confinement.level {
        ConfinementLevel::Limits | ConfinementLevel::Landlock => UnshareFlags::empty(),
        ConfinementLevel::Namespaces | ConfinementLevel::Bwrap if confinement.network => all,
        ConfinementLevel::Namespaces | ConfinementLevel::Bwrap => all | UnshareFlags::NEWNET,
    }
}

/// Which subjects the namespaces of a confinement protect, by the name of each namespace.
pub(super) fn protected_subjects(
    confinement: &Confinement,
) -> Vec<(&'static str, Vec<SandboxSubject>)> {
    let made = kinds(confinement);
    let mut kept: Vec<_> = KINDS
        .iter()
        .filter(|(kind, ..)| made.contains(*kind))
        .map(|(_, name, subjects)| (*name, subjects.to_vec()))
        .collect();
    if confinement.level == ConfinementLevel::Bwrap {
        kept.push((OWN_ROOT.0, OWN_ROOT.1.to_vec()));
    }
    kept
}

/// Everything a child needs to make its namespaces, so that it allocates nothing then.
#[derive(Debug)]
pub(in crate::util) struct NamespaceSetup {
    /// Which ones; with a user namespace when this process has not the power without.
    pub(in crate::util) kinds: UnshareFlags,
    /// Who the user is in a user namespace: the same as outside.
    pub(in crate::util) maps: Option<IdMaps>,
    /// What stays writable, outer before inner; `None` when that is everything.
    pub(in crate::util) writable: Option<Vec<CString>>,
    /// Room for one descriptor for each of them.
    pub(in crate::util) trees: Vec<OwnedFd>,
    /// Where the program works, to be entered once more among the new mounts.
    pub(in crate::util) cwd: CString,
}

/// What is written to `/proc/self/uid_map` and `gid_map`.
#[derive(Debug)]
pub(in crate::util) struct IdMaps {
    pub(in crate::util) user: Vec<u8>,
    pub(in crate::util) group: Vec<u8>,
}

impl NamespaceSetup {
    /// Those of a confinement whose program works in `cwd` and has `scratch` to itself.
    ///
    /// # Errors
    /// When a path cannot be resolved.
    pub(super) fn of(
        confinement: &Confinement,
        scratch: &Path,
        cwd: &Path,
    ) -> Result<Self, ConfinementError> {
        let mut writable = confinement
            .writable_paths()
            .map(PathBuf::as_path)
            .chain([scratch])
            .map(resolved)
            .collect::<Result<Vec<_>, _>>()?;
        writable.sort_by_key(|path| path.components().count());
        writable.dedup();
        let all = writable.first().is_some_and(|path| path == Path::new("/"));
        let writable: Vec<CString> =
            writable.iter().map(|path| text(path)).collect::<Result<_, _>>()?;
        Ok(Self::new(kinds(confinement), (!all).then_some(writable), text(cwd)?))
    }

    /// The ones to try whether such can be made at all.
    pub(super) fn trial() -> Self {
        let kinds = KINDS.iter().fold(UnshareFlags::empty(), |all, (kind, ..)| all | *kind);
        Self::new(kinds, Some(Vec::new()), c"/".to_owned())
    }

    fn new(kinds: UnshareFlags, writable: Option<Vec<CString>>, cwd: CString) -> Self {
        // A process that may mount needs no user namespace, and keeps its power over files of other
        // users.
        let powerful =
            capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
        let maps = (!powerful).then(|| {
            let (user, group) = (geteuid().as_raw(), getegid().as_raw());
            IdMaps {
                user: format!("{user} {user} 1\n").into_bytes(),
                group: format!("{group} {group} 1\n").into_bytes(),
            }
        });
        let user = if powerful { UnshareFlags::empty() } else { UnshareFlags::NEWUSER };
        let trees = Vec::with_capacity(writable.as_ref().map_or(0, Vec::len));
        Self { kinds: kinds | user, maps, writable, trees, cwd }
    }
}

fn resolved(path: &Path) -> Result<PathBuf, ConfinementError> {
    path.canonicalize()
        .map_err(|why| ConfinementError::Path { path: path.to_path_buf(), why: why.to_string() })
}

fn text(path: &Path) -> Result<CString, ConfinementError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|why| ConfinementError::Path { path: path.to_path_buf(), why: why.to_string() })
}
