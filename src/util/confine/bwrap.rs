//! The command line of bubblewrap for one child.
//!
//! The second fence of a child in bubblewrap: Landlock rules, which hold even where a mount does not.
//!
//! Bubblewrap could not mount anything within such rules. So it starts this program in the place of
//! the confined one, which enters the rules there and becomes that program.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};

use super::subject::SandboxSubject;
use super::support::{SystemSupport, ThisSystem, check_on};
use super::{Confinement, ConfinementError, ConfinementLevel, enter, landlock, system_paths};

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

/// The first argument of this program when it is started that way.
const REQUEST: &str = "__confined";

/// Whether this program looks for [`REQUEST`]; one that embeds the library does not.
static IS_LISTENING: AtomicBool = AtomicBool::new(false);

/// Becomes the confined program, if this process was started to do that. Returns if it was not, or
/// why it cannot.
pub fn become_program_if_requested(arguments: &[OsString]) -> Option<ConfinementError> {
    IS_LISTENING.store(true, Ordering::Relaxed);
    match arguments {
        [own, request, rules, program, arguments @ ..] if request == REQUEST => {
            Some(become_program(own, rules, program, arguments))
        }
        _ => None,
    }
}

fn become_program(
    own: &OsStr,
    rules: &OsStr,
    program: &OsStr,
    arguments: &[OsString],
) -> ConfinementError {
    let own = Path::new(own).file_name().and_then(|fd| fd.to_str()?.parse().ok());
    let Some(Ok(())) = own.map(enter::close_on_exec) else {
        return ConfinementError::Failed("its own descriptor is unknown".into());
    };
    let rules = rules.to_str().map(serde_json::from_str::<Confinement>);
    let Some(Ok(confinement)) = rules else {
        return ConfinementError::Failed("its rules cannot be read".into());
    };
    let abi = ThisSystem.landlock_abi().unwrap_or_default();
    let entered = landlock::rules(&confinement, &confinement.scratch, abi).and_then(|rules| {
        rules.restrict_self().map_err(|why| ConfinementError::Failed(format!("landlock: {why}")))
    });
    if let Err(why) = entered {
        return why;
    }
    enter::heed_termination();
    let failed = std::process::Command::new(program).args(arguments).exec();
    ConfinementError::Failed(format!("'{}': {failed}", Path::new(program).display()))
}

/// Whether a child in bubblewrap gets this fence here.
pub(super) fn is_available(system: &dyn SystemSupport) -> bool {
    IS_LISTENING.load(Ordering::Relaxed) && check_on(system, ConfinementLevel::Landlock).is_ok()
}

/// The words to start before the program, and the descriptor of this program, which they name.
pub(super) fn wrap(
    confinement: &Confinement,
    temporary: &Path,
) -> Result<(Vec<OsString>, OwnedFd), ConfinementError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let own = rustix::fs::open("/proc/self/exe", flags, Mode::empty())
        .map_err(|why| ConfinementError::Failed(format!("this program: {why}")))?;
    let own = super::prepare::move_fd_up(&own)?;
    let mut inner = Confinement { scratch: temporary.to_path_buf(), ..confinement.clone() };
    if inner.system {
        // Those of its own namespaces.
        inner.read.extend(["/proc", "/dev"].map(PathBuf::from));
        inner.write.push("/dev/shm".into());
    }
    let rules = serde_json::to_string(&inner)
        .map_err(|why| ConfinementError::Failed(format!("its rules: {why}")))?;
    let program = format!("/proc/self/fd/{}", own.as_raw_fd());
    Ok((vec![program.into(), REQUEST.into(), rules.into()], own))
}
