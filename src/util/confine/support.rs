//! Detecting what this system supports: the version of Landlock, bubblewrap.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use super::enter::query_landlock_abi;
use super::{ConfinementError, ConfinementLevel};
use crate::util::orphans::AwaitedChild;

/// The least version of Landlock that keeps files: from 2 on a rename cannot carry a file out, from
/// 3 on a file cannot be cut short.
const MIN_LANDLOCK_ABI: u32 = 3;
/// Where a system keeps bubblewrap. `PATH` is not asked: a project could have changed it.
const BWRAP: [&str; 5] = [
    "/usr/bin/bwrap",
    "/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/wrappers/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];
const TRIAL_POLL_INTERVAL: Duration = Duration::from_millis(1);
const TRIAL_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) trait SystemSupport {
    /// The version of Landlock's interface; `None` when the kernel has none or it is switched off.
    fn landlock_abi(&self) -> Option<u32>;
    /// The path of a bubblewrap that can make namespaces here; else what is missing.
    fn bwrap(&self) -> Result<PathBuf, ConfinementError>;
}

#[derive(Debug)]
pub(super) struct ThisSystem;

impl SystemSupport for ThisSystem {
    fn landlock_abi(&self) -> Option<u32> {
        static ABI: OnceLock<Option<u32>> = OnceLock::new();
        *ABI.get_or_init(query_landlock_abi)
    }

    /// Distributions forbid namespaces in several ways, and some only when they are used: so
    /// bubblewrap is tried once, with a program that ends at once.
    fn bwrap(&self) -> Result<PathBuf, ConfinementError> {
        static WORKING: OnceLock<Result<PathBuf, ConfinementError>> = OnceLock::new();
        WORKING.get_or_init(working_bwrap).clone()
    }
}

/// The strongest level that works here, for an entry that names none.
pub fn available() -> Result<ConfinementLevel, ConfinementError> {
    available_on(&ThisSystem)
}

pub(super) fn available_on(
    system: &dyn SystemSupport,
) -> Result<ConfinementLevel, ConfinementError> {
    let best = [ConfinementLevel::Bwrap, ConfinementLevel::Landlock];
    let level = best.into_iter().find(|level| check_on(system, *level).is_ok());
    level.map_or_else(
        || check_on(system, ConfinementLevel::Landlock).map(|()| ConfinementLevel::Landlock),
        Ok,
    )
}

pub fn check(level: ConfinementLevel) -> Result<(), ConfinementError> {
    check_on(&ThisSystem, level)
}

pub(super) fn check_on(
    system: &dyn SystemSupport,
    level: ConfinementLevel,
) -> Result<(), ConfinementError> {
    match level {
        ConfinementLevel::Limits => Ok(()),
        ConfinementLevel::Landlock => {
            landlock_usable(system).and_then(|()| super::filter::usable())
        }
        ConfinementLevel::Bwrap => system.bwrap().and_then(|_| super::filter::usable()),
    }
}

fn landlock_usable(system: &dyn SystemSupport) -> Result<(), ConfinementError> {
    let remedy = "use a newer kernel, or 'level: bwrap' with bubblewrap installed";
    match system.landlock_abi() {
        None => Err(ConfinementError::unsupported(
            "this kernel has no Landlock, or it is switched off",
            remedy,
        )),
        Some(abi) if abi < MIN_LANDLOCK_ABI => Err(ConfinementError::unsupported(
            format!(
                "this kernel's Landlock (ABI {abi}) cannot keep files from being truncated: ABI {MIN_LANDLOCK_ABI} can (Linux 6.2)"
            ),
            remedy,
        )),
        Some(_) => Ok(()),
    }
}

fn working_bwrap() -> Result<PathBuf, ConfinementError> {
    let installed = BWRAP.iter().map(PathBuf::from).find(|path| path.is_file());
    let path = installed.ok_or_else(|| {
        ConfinementError::unsupported(
            "bubblewrap (bwrap) is not installed",
            "install bubblewrap, or use 'level: landlock'",
        )
    })?;
    trial(&path)?;
    Ok(path)
}

fn trial(bwrap: &Path) -> Result<(), ConfinementError> {
    let broken = |why: &str| {
        let missing = format!("bubblewrap does not work here: {why}");
        ConfinementError::unsupported(missing, "use 'level: landlock'")
    };
    let failed = |error: io::Error| broken(&error.to_string());
    let mut command = Command::new(bwrap);
    command
        .args(["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"])
        .args(["--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/run/current-system/sw/bin")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let started = AwaitedChild::start(|| command.spawn(), std::process::Child::id);
    let (mut child, _awaited) = started.map_err(failed)?;
    // No clock is needed: the steps are counted.
    for _ in 0..TRIAL_TIMEOUT.as_millis() {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => {
                let line = first_line(&mut child);
                return Err(broken(
                    line.as_deref().unwrap_or("it failed without an error message"),
                ));
            }
            None => std::thread::sleep(TRIAL_POLL_INTERVAL),
        }
    }
    let _gone = child.kill();
    let _reaped = child.wait();
    Err(broken(&format!("it did not exit within {} s", TRIAL_TIMEOUT.as_secs())))
}

fn first_line(child: &mut std::process::Child) -> Option<String> {
    use std::io::Read as _;
    let mut text = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _unreadable = stderr.take(4096).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    text.lines().next().map(str::to_owned)
}
