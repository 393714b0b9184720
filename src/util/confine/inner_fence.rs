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

use super::support::{SystemSupport, ThisSystem, check_on};
use super::{Confinement, ConfinementError, ConfinementLevel, enter, landlock};

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
