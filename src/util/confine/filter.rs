//! The seccomp filter of a confined child: system calls that no rule about files can hold.
//!
//! What is denied fails with an error and kills nothing, so that programs can do without. The
//! filter is a list of what is forbidden, not of what is allowed: it closes known doors beside the
//! file rules and is no claim about the rest of the kernel.

use std::collections::BTreeMap;

use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::Refusal;
use super::support::unsupported;

/// Denied whatever their arguments.
const DENIED: &[i64] = &[
    // The memory of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    // Another view of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    // The kernel's keyrings belong to the whole session.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // A ring of requests does system calls that no filter sees.
    libc::SYS_io_uring_setup,
    // Large parts of the kernel that tools have no use for.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];

/// What may be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Everything.
    All,
    /// Unix sockets.
    Unix,
    /// Nothing; pairs of Unix sockets can be made.
    Pairs,
}

fn architecture() -> Result<TargetArch, Refusal> {
    TargetArch::try_from(std::env::consts::ARCH).map_err(|_| {
        let name = std::env::consts::ARCH;
        unsupported(format!("there is no seccomp filter for {name}"), "use 'level: limits'")
    })
}

/// Whether a filter can be made for this machine.
///
/// # Errors
/// When its instruction set is not known.
pub(super) fn usable() -> Result<(), Refusal> {
    architecture().map(|_| ())
}

/// The filter.
///
/// # Errors
/// When there is none for this machine.
pub(super) fn program(sockets: Sockets) -> Result<BpfProgram, Refusal> {
    let failed = |why: seccompiler::BackendError| Refusal::Failed(format!("seccomp: {why}"));
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let mut only_if = |call: i64, condition: Result<SeccompCondition, _>| {
        let rule = SeccompRule::new(vec![condition?])?;
        rules.insert(call, vec![rule]);
        Ok(())
    };
    let new_user = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
    let makes_user = || {
        SeccompCondition::new(
            0,
            SeccompCmpArgLen::Qword,
            SeccompCmpOp::MaskedEq(new_user),
            new_user,
        )
    };
    let foreign = || {
        let unix = u64::from(libc::AF_UNIX.cast_unsigned());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, unix)
    };
    // In a user namespace of its own a process has powers over parts of the kernel.
    only_if(libc::SYS_clone, makes_user()).map_err(failed)?;
    only_if(libc::SYS_unshare, makes_user()).map_err(failed)?;
    if sockets != Sockets::All {
        only_if(libc::SYS_socket, foreign()).map_err(failed)?;
        only_if(libc::SYS_socketpair, foreign()).map_err(failed)?;
    }
    if sockets == Sockets::Pairs {
        // A filter cannot see the path of a socket, and behind a path may stand the session bus or
        // a container engine, which start anything for whoever asks.
        let addressed = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
        only_if(libc::SYS_sendto, addressed).map_err(failed)?;
        rules.insert(libc::SYS_connect, Vec::new());
    }
    let denied = SeccompAction::Errno(Errno::PERM.raw_os_error().cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture()?);
    let rest: BpfProgram = filter.and_then(TryInto::try_into).map_err(failed)?;
    Ok(unknown_calls().into_iter().chain(rest).collect())
}

/// Instructions that make some system calls look as if the kernel had none of them.
///
/// The flags of `clone3` stand in memory, where no filter sees them; C libraries fall back to
/// `clone`. On x86-64 a second numbering of all system calls (x32) would go around the list.
fn unknown_calls() -> Vec<sock_filter> {
    // BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_JMP | BPF_JGE | BPF_K,
    // BPF_RET | BPF_K (linux/bpf_common.h).
    const LOAD_WORD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    let missing = libc::SECCOMP_RET_ERRNO | Errno::NOSYS.raw_os_error().cast_unsigned();
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX);
    let mut steps = vec![
        // The number of the call stands at offset 0.
        step(LOAD_WORD, 0, 0, 0),
        step(IF_EQUAL, 0, 1, clone3),
        step(RETURN, 0, 0, missing),
    ];
    if cfg!(target_arch = "x86_64") {
        steps.extend([step(IF_AT_LEAST, 0, 1, X32), step(RETURN, 0, 0, missing)]);
    }
    steps
}

/// A filter as the bytes that other programs load it from.
pub(super) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for step in program {
        bytes.extend(step.code.to_ne_bytes());
        bytes.extend([step.jt, step.jf]);
        bytes.extend(step.k.to_ne_bytes());
    }
    bytes
}
