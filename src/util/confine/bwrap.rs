//! The command line of bubblewrap for one child.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::subject::SandboxSubject;
use super::{Confinement, ConfinementError, ConfinementLevel, system_paths};

/// What each namespace keeps, and what a file system does in which a child sees only what is given
/// to it, with a `/proc` of its own.
const KEPT_BY: [(&str, &[SandboxSubject]); 5] = [
    ("mount namespace", &[SandboxSubject::Files, SandboxSubject::Metadata]),
    (
        "process namespace",
        &[SandboxSubject::Memory, SandboxSubject::Scheduling, SandboxSubject::Signals],
    ),
    ("IPC namespace", &[SandboxSubject::SharedMemory]),
    (NETWORK, &[SandboxSubject::Network, SandboxSubject::AbstractSockets]),
    (
        "its own root",
        &[
            SandboxSubject::Files,
            SandboxSubject::FileExistence,
            SandboxSubject::UnixSockets,
            SandboxSubject::ProcessDetails,
            SandboxSubject::ProcessIds,
        ],
    ),
];

const NETWORK: &str = "network namespace";

pub(super) fn protected_subjects(
    confinement: &Confinement,
) -> impl Iterator<Item = (&'static str, Vec<SandboxSubject>)> {
    let (level, network) = (confinement.level, confinement.network);
    let used = KEPT_BY.iter().filter(move |(name, _)| {
        level == ConfinementLevel::Bwrap && !(network && *name == NETWORK)
    });
    used.map(|(name, subjects)| (*name, subjects.to_vec()))
}

/// Where a child at this level has its temporary files: in memory, gone with its namespace.
pub(super) const TMP: &str = "/tmp";

/// Whether a confinement names the root, so that its child sees all files where they are.
pub(super) fn shows_everything(confinement: &Confinement) -> bool {
    confinement.writable_paths().chain(&confinement.read).any(|path| path == Path::new("/"))
}

/// The arguments before the program: an empty root, and in it what the confinement names; or the
/// whole root, if it names that. `scratch` is its temporary directory, if it is not [`TMP`].
pub(super) fn arguments(
    confinement: &Confinement,
    cwd: &Path,
    scratch: Option<&Path>,
    filter_fd: i32,
) -> Result<Vec<OsString>, ConfinementError> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut covered: Vec<PathBuf> = Vec::new();
    let mut say = |items: &[&dyn AsRef<std::ffi::OsStr>]| {
        arguments.extend(items.iter().map(|item| item.as_ref().to_owned()));
    };
    say(&[&"--die-with-parent", &"--unshare-uts", &"--unshare-pid", &"--unshare-ipc"]);
    if !confinement.network {
        say(&[&"--unshare-net"]);
    }
    say(&[&"--unshare-cgroup-try", &"--cap-drop", &"ALL"]);
    if rustix::process::geteuid().is_root() {
        // As with Landlock: files of others stay within reach of the superuser, in these paths.
        say(&[&"--cap-add", &"CAP_DAC_OVERRIDE"]);
    }
    let whole = shows_everything(confinement);
    if whole {
        // First of all, since it would cover the rest.
        let writable = confinement.writable_paths().any(|path| path == Path::new("/"));
        say(&[&if writable { "--bind" } else { "--ro-bind" }, &"/", &"/"]);
        covered.push("/".into());
    }
    if scratch.is_none() {
        if let Some(size) = confinement.limits.file_size {
            say(&[&"--size", &size.to_string()]);
        }
        say(&[&"--perms", &"0700", &"--tmpfs", &TMP]);
    }
    if confinement.system {
        // As root a child could change settings of the kernel through it.
        say(&[&"--proc", &"/proc", &"--remount-ro", &"/proc", &"--dev", &"/dev"]);
    }
    if confinement.system && !whole {
        let shared = system_paths::shared();
        covered.extend(shared.readable);
        let mut hidden = Vec::new();
        if let Some((directory, parts)) = shared.split {
            covered.push(directory);
            hidden = parts.restricted;
        }
        for path in &covered {
            say(&[&"--ro-bind-try", path, path]);
        }
        // One mount for what is open, and one over each thing that is not.
        for path in hidden {
            if path.is_dir() {
                say(&[&"--perms", &"0000", &"--tmpfs", &path]);
            } else {
                say(&[&"--ro-bind-try", &"/dev/null", &path]);
            }
        }
    }
    for mount in mounts(confinement, covered)? {
        say(&[&if mount.writable { "--bind" } else { "--ro-bind" }, &mount.path, &mount.path]);
    }
    if let Some(scratch) = scratch {
        say(&[&"--bind", &scratch, &scratch]);
    }
    if !whole {
        // A directory that is not given still has to be there to be worked in.
        say(&[&"--dir", &cwd, &"--remount-ro", &"/"]);
    }
    say(&[&"--chdir", &cwd, &"--seccomp", &filter_fd.to_string(), &"--"]);
    Ok(arguments)
}

struct Mount {
    path: PathBuf,
    writable: bool,
}

/// The paths of the declaration, outer before inner, so that none covers another. What stands
/// below a writable directory is writable with it, and what stands below one of `covered` is there.
fn mounts(
    confinement: &Confinement,
    mut covered: Vec<PathBuf>,
) -> Result<Vec<Mount>, ConfinementError> {
    let writable = |path: &PathBuf| Mount { path: path.clone(), writable: true };
    let inner = confinement.writable_paths().filter(|path| *path != Path::new("/"));
    let mut mounts: Vec<Mount> = inner.map(writable).collect();
    covered.extend(confinement.writable_paths().cloned());
    let mut read: Vec<&PathBuf> = confinement.read.iter().collect();
    read.sort_by_key(|path| path.components().count());
    for path in read {
        // A path through a link leads elsewhere, whatever it begins with.
        let plain = path.canonicalize().is_ok_and(|real| real == *path);
        if !(plain && covered.iter().any(|outer| path.starts_with(outer))) {
            covered.push(path.clone());
            mounts.push(Mount { path: path.clone(), writable: false });
        }
    }
    for Mount { path, .. } in &mounts {
        std::fs::metadata(path)
            .map_err(|why| ConfinementError::Path { path: path.clone(), why: why.to_string() })?;
    }
    mounts.sort_by_key(|mount| mount.path.components().count());
    Ok(mounts)
}
