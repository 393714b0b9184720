//! Entering a prepared confinement, in the child between fork and exec: system calls only, nothing
//! that allocates or takes a lock.

#![expect(unsafe_code, reason = "the kernel's interface to Landlock has no wrapper")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};

use rustix::thread::{CapabilitySet, set_capabilities, set_no_new_privs};

use super::PreparedConfinement;

impl PreparedConfinement {
    /// Runs in the child between fork and exec.
    ///
    /// The order matters. Limits first, as long as nothing stands in their way. Then powers go, since
    /// the superuser could undo all that. Landlock and seccomp ask for the promise of no new
    /// privileges; seccomp is last because it could deny what the others need.
    pub(in crate::util) fn enter(&self) -> io::Result<()> {
        for (resource, limit) in &self.child.resources {
            rustix::process::setrlimit(*resource, *limit)?;
        }
        if self.child.limits_are_final {
            let power = CapabilitySet::SYS_RESOURCE;
            rustix::thread::remove_capability_from_bounding_set(power)?;
            let mut capabilities = rustix::thread::capabilities(None)?;
            capabilities.effective.remove(power);
            capabilities.permitted.remove(power);
            capabilities.inheritable.remove(power);
            set_capabilities(None, capabilities)?;
        }
        if let Some(capabilities) = self.child.capabilities {
            set_capabilities(None, capabilities)?;
        }
        for fd in &self.child.inherited {
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
        }
        if self.child.ignores_termination {
            // SAFETY: no handler is set: the action of this one signal is to ignore it.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        }
        if let Some(ruleset) = &self.child.ruleset {
            set_no_new_privs(true)?;
            // SAFETY: the call takes a descriptor, which is open for as long as `self` is borrowed, and
            // flags; it reads and writes no memory of this process.
            let entered = unsafe {
                libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32)
            };
            if entered != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        if let Some(filter) = &self.child.filter {
            // One `prctl` and one `seccomp`; an error is not turned into text here.
            seccompiler::apply_filter(filter).map_err(|error| match error {
                seccompiler::Error::Prctl(why) | seccompiler::Error::Seccomp(why) => why,
                _ => io::Error::from(io::ErrorKind::PermissionDenied),
            })?;
        }
        Ok(())
    }
}

/// Ends what [`PreparedConfinement::enter`] began with `ignores_termination`.
pub(super) fn heed_termination() {
    // SAFETY: no handler is set: the signal has its default action again.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_DFL) };
}

/// Keeps what this process becomes from inheriting one of its descriptors.
pub(super) fn close_on_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: the descriptor was inherited from the parent, and nothing in this process closes it; a
    // number that is none is an error of the call.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?)
}

/// The version of Landlock's interface; `None` when the kernel has none or it is switched off.
pub(super) fn query_landlock_abi() -> Option<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call takes no memory (a null pointer and a size of zero) and makes
    // no descriptor; it returns a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(abi).ok().filter(|abi| *abi > 0)
}
