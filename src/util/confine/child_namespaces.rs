//! The steps of a child that makes namespaces for itself, between fork and exec.
//!
//! Three processes come of it. The child that was forked stays outside of the process namespace and
//! waits: it ends as the program ends, so that its parent notices no difference. The first process
//! of the namespace only collects orphans, as such a process must. The second one becomes the
//! program. When the one that waits dies, the kernel ends the other two, and with the first process
//! all others of the namespace.
//!
//! Everything here runs in a copy of a process with several threads: system calls only, nothing
//! that allocates or takes a lock.

#![expect(unsafe_code, reason = "namespaces can only be made between fork and exec")]

use std::ffi::CStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions};

use super::namespaces::NamespaceSetup;
use crate::util::orphans::AwaitedChild;

/// The system error by which a trial reports success.
const TRIAL_SUCCEEDED: i32 = libc::ECANCELED;

/// Makes such namespaces in a child that ends at once.
///
/// # Errors
/// What the system said to one of the steps.
pub(super) fn try_namespaces(namespaces: NamespaceSetup) -> io::Result<()> {
    let mut namespaces = namespaces;
    // It is never started: the last step before is an error.
    let mut command = std::process::Command::new("/");
    command.env_clear().current_dir("/").stdin(std::process::Stdio::null());
    // SAFETY: as in `Process::spawn`: system calls only, on what was made in the parent.
    unsafe {
        command.pre_exec(move || {
            make(&mut namespaces)?;
            become_program()?;
            Err(io::Error::from_raw_os_error(TRIAL_SUCCEEDED))
        });
    }
    match AwaitedChild::start(|| command.spawn(), std::process::Child::id) {
        Err(why) if why.raw_os_error() == Some(TRIAL_SUCCEEDED) => Ok(()),
        Err(why) => Err(why),
        Ok((mut child, _awaited)) => {
            child.wait()?;
            Err(io::Error::other("a directory was executed"))
        }
    }
}

/// Leaves the namespaces of the parent, all but that of processes, which only children leave.
pub(super) fn make(namespaces: &mut NamespaceSetup) -> io::Result<()> {
    // SAFETY: no descriptors are shared with another thread: this is the only one of a new process.
    unsafe { rustix::thread::unshare_unsafe(namespaces.kinds)? };
    if let Some(maps) = &namespaces.maps {
        // Without this a user could drop a group that a file keeps out.
        write(c"/proc/self/setgroups", b"deny")?;
        write(c"/proc/self/uid_map", &maps.user)?;
        write(c"/proc/self/gid_map", &maps.group)?;
    }
    mounts(namespaces)
}

/// Makes everything read-only but what may be written.
fn mounts(namespaces: &mut NamespaceSetup) -> io::Result<()> {
    let all = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change(c"/", all)?;
    let Some(writable) = &namespaces.writable else { return Ok(()) };
    // Copies from before keep the rights that each mount had.
    for path in writable {
        let copy = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = rustix::mount::open_tree(CWD, path.as_c_str(), copy)?;
        // There is room: it was made in the parent.
        namespaces.trees.push(tree);
    }
    read_only(c"/")?;
    for (tree, path) in namespaces.trees.iter().zip(writable) {
        let from_descriptor = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(tree, c"", CWD, path.as_c_str(), from_descriptor)?;
    }
    // The working directory is still that of the mount below.
    Ok(rustix::process::chdir(namespaces.cwd.as_c_str())?)
}

/// Forbids changes in a mount and all below it.
fn read_only(path: &CStr) -> io::Result<()> {
    let change = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the kernel reads a path that ends with a zero and a structure of the size given; both
    // outlive the call, which writes no memory.
    let changed = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    if changed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn write(path: &CStr, text: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text)?;
    Ok(())
}

/// Enters the process namespace. It returns in the process that becomes the program; the other two
/// stay in it until they end.
pub(super) fn become_program() -> io::Result<()> {
    let parent = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    // What ends the program by a signal is meant for the program, which may want to end in peace.
    let before = block_signals()?;
    let Some(first) = fork()? else {
        die_with_parent(&parent)?;
        collect_orphans()
    };
    match fork() {
        Ok(None) => {
            die_with_parent(&parent)?;
            set_signals(&before)
        }
        Ok(Some(program)) => exit_like(program, first),
        Err(why) => {
            end(first);
            Err(why)
        }
    }
}

/// Forks without the handlers that libraries register: the copy makes system calls only.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: without flags but the signal at its end, and without a stack, this is `fork`. No
    // other thread exists in this process, which was forked itself.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    match i32::try_from(pid) {
        Ok(0) => Ok(None),
        Ok(pid) if pid > 0 => Ok(Pid::from_raw(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Asks to be killed with the parent, which may be dead already.
fn die_with_parent(parent: &std::os::fd::OwnedFd) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut ended = [PollFd::new(parent, PollFlags::IN)];
    match poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// The first process of the namespace (PID 1): it holds nothing open and hides its memory, a copy
/// of ours, from the processes inside.
fn collect_orphans() -> ! {
    let _kept = release_resources();
    let mut child_ended = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised by the first call before it is used by the others, which read
    // it only; `sigwait` writes one number to a variable that outlives the call.
    unsafe {
        libc::sigemptyset(child_ended.as_mut_ptr());
        libc::sigaddset(child_ended.as_mut_ptr(), libc::SIGCHLD);
        loop {
            while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
            let mut which = 0;
            libc::sigwait(child_ended.as_ptr(), &raw mut which);
        }
    }
}

/// Waits for the program, ends all that it left behind, and ends in the same way.
fn exit_like(program: Pid, first: Pid) -> ! {
    let _kept = release_resources();
    let status = loop {
        match rustix::process::waitpid(Some(program), WaitOptions::empty()) {
            Ok(Some((_, status))) => break Some(status),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break None,
        }
    };
    end(first);
    let status = status.map(|status| std::process::ExitStatus::from_raw(status.as_raw()));
    if let Some(signal) = status.and_then(|status| status.signal()) {
        // SAFETY: the default action of a signal is set and its blocking ended, so that it ends
        // this process, which has one thread and nothing to clean up.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            let mut only = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(only.as_mut_ptr());
            libc::sigaddset(only.as_mut_ptr(), signal);
            libc::sigprocmask(libc::SIG_UNBLOCK, only.as_ptr(), std::ptr::null_mut());
            libc::kill(libc::getpid(), signal);
        }
    }
    // SAFETY: it ends the process at once; nothing of the copied program runs.
    unsafe { libc::_exit(status.and_then(|status| status.code()).unwrap_or(1)) }
}

/// Kills the first process, and waits until it is gone with all of its namespace.
fn end(first: Pid) {
    let _gone = rustix::process::kill_process(first, Signal::KILL);
    while let Err(rustix::io::Errno::INTR) =
        rustix::process::waitpid(Some(first), WaitOptions::empty())
    {}
}

/// Closes all descriptors, since the parent waits for the ends of some, and keeps the memory of
/// this process from others of the same user.
fn release_resources() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // SAFETY: nothing in this process uses a descriptor any more, nor drops one: it only waits, and
    // ends without running destructors.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
    if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn block_signals() -> io::Result<libc::sigset_t> {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call initialises `all`; the second one reads it and initialises `before`,
    // which is used only when it succeeded.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        match libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) {
            0 => Ok(before.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn set_signals(set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the call reads a set that is initialised and writes none.
    match unsafe { libc::sigprocmask(libc::SIG_SETMASK, set, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
