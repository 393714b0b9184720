//! What this system can keep: the version of Landlock, and whether bubblewrap works.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use super::{Confinement, Level, Refusal, is_superuser};
use crate::util::orphans::Awaited;
use crate::util::process::query_landlock_abi;

/// The least version of Landlock that keeps files: from 2 on a rename cannot carry a file out, from
/// 3 on a file cannot be cut short.
const LEAST_ABI: u32 = 3;
/// The version that keeps signals and abstract sockets inside.
pub(super) const SCOPES_ABI: u32 = 6;
/// The version that knows the paths of Unix sockets.
pub(super) const UNIX_ABI: u32 = 9;

/// Where a system keeps bubblewrap. `PATH` is not asked: a project could have changed it.
const BWRAP: [&str; 5] = [
    "/usr/bin/bwrap",
    "/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/wrappers/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];
/// How often the trial of bubblewrap is looked at.
const STEP: Duration = Duration::from_millis(1);
/// How long it may take.
const TRIAL: Duration = Duration::from_secs(5);

/// The version of Landlock's interface; `None` when the kernel has none or it is switched off.
pub(super) fn landlock_abi() -> Option<u32> {
    static ABI: OnceLock<Option<u32>> = OnceLock::new();
    *ABI.get_or_init(query_landlock_abi)
}

/// Where bubblewrap is installed.
pub(super) fn bwrap() -> Option<&'static Path> {
    BWRAP.iter().map(Path::new).find(|path| path.is_file())
}

/// The level for whoever asks to be confined and leaves it open how.
///
/// # Errors
/// When there is neither Landlock nor bubblewrap.
pub fn available() -> Result<Level, Refusal> {
    if landlock_usable().is_ok() {
        return Ok(Level::Landlock);
    }
    if bwrap().is_some() {
        return Ok(Level::Bwrap);
    }
    landlock_usable().map(|()| Level::Landlock)
}

/// Whether a level can be kept here, as far as can be told without starting anything.
///
/// # Errors
/// Says what is missing.
pub fn check(level: Level) -> Result<(), Refusal> {
    match level {
        Level::Limits => Ok(()),
        Level::Landlock => landlock_usable().and_then(|()| super::filter::usable()),
        Level::Bwrap => match bwrap() {
            Some(_) => super::filter::usable(),
            None => Err(unsupported("bubblewrap (bwrap) is not installed", "install bubblewrap")),
        },
    }
}

fn landlock_usable() -> Result<(), Refusal> {
    let remedy = "use a newer kernel, or 'level: bwrap' with bubblewrap installed";
    match landlock_abi() {
        None => Err(unsupported("this kernel has no Landlock, or it is switched off", remedy)),
        Some(abi) if abi < LEAST_ABI => Err(unsupported(
            format!(
                "this kernel's Landlock (ABI {abi}) cannot keep files from being cut short: ABI {LEAST_ABI} can (Linux 6.2)"
            ),
            remedy,
        )),
        Some(_) => Ok(()),
    }
}

pub(super) fn unsupported(missing: impl Into<String>, remedy: impl Into<String>) -> Refusal {
    Refusal::Unsupported { missing: missing.into(), remedy: remedy.into() }
}

/// What a confined child can still do here that a newer kernel would prevent, in words.
pub fn shortcomings(confinement: &Confinement) -> Vec<String> {
    let mut found = Vec::new();
    if confinement.limits.processes.is_none() && is_superuser() {
        found.push(
            "the number of its processes: the superuser is exempt from that limit".to_owned(),
        );
    }
    if confinement.level == Level::Landlock {
        let abi = landlock_abi().unwrap_or_default();
        if abi < SCOPES_ABI {
            found
                .push("signals to your other programs (Landlock does it from ABI 6 on)".to_owned());
        }
        if abi < UNIX_ABI && confinement.network {
            found.push("Unix sockets (Landlock does it from ABI 9 on)".to_owned());
        }
    }
    found
}

/// Bubblewrap, once it has shown that it can make namespaces here. Tried once.
///
/// # Errors
/// When it is not installed, or what it said when it failed.
pub(super) fn working_bwrap() -> Result<&'static Path, Refusal> {
    static WORKING: OnceLock<Result<(), String>> = OnceLock::new();
    check(Level::Bwrap)?;
    let path = bwrap().ok_or_else(|| unsupported("bubblewrap is not installed", ""))?;
    WORKING.get_or_init(|| trial(path)).clone().map(|()| path).map_err(|why| {
        unsupported(format!("bubblewrap does not work here: {why}"), "use 'level: landlock'")
    })
}

fn trial(bwrap: &Path) -> Result<(), String> {
    let mut command = Command::new(bwrap);
    command
        .args(["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"])
        .args(["--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/run/current-system/sw/bin")
        .current_dir(PathBuf::from("/"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let (mut child, _awaited) = Awaited::start(|| command.spawn(), std::process::Child::id)
        .map_err(|why| why.to_string())?;
    // No clock is needed: the steps are counted.
    for _ in 0..TRIAL.as_millis() {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(_)) => return Err(first_line(&mut child)),
            Ok(None) => std::thread::sleep(STEP),
            Err(why) => return Err(why.to_string()),
        }
    }
    let _gone = child.kill();
    let _reaped = child.wait();
    Err(format!("it did not end within {} s", TRIAL.as_secs()))
}

/// What a child that has ended wrote to stderr, the beginning of it.
fn first_line(child: &mut std::process::Child) -> String {
    use std::io::Read as _;
    let mut text = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _unreadable = stderr.take(4096).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    text.lines().next().unwrap_or("it failed without a word").to_owned()
}
