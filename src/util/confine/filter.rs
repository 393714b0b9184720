//! The seccomp filter of a confined child, for what file rules cannot express.
//!
//! What is denied fails with an error and kills nothing, so that programs can do without. The
//! filter is a list of what is forbidden, not of what is allowed: it closes known ways around the
//! file rules and makes no claim about the rest of the kernel.
//!
//! The list here is the only one: the filter is built from it, and [`super::coverage()`] tells a
//! person what the filter keeps. A call that is denied here and has a counterpart that takes a
//! directory or a descriptor is denied in all its forms.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rustix::io::Errno;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use super::subject::SandboxSubject;
use super::{Confinement, ConfinementError, ConfinementLevel};

/// The part of the table that holds for a confinement: what the filter is made of, and what is
/// said about it. Resource limits alone have no filter.
pub(super) fn denied(confinement: &Confinement) -> impl Iterator<Item = &'static DeniedCalls> {
    let (network, level) = (confinement.network, confinement.level);
    // In a mount namespace what may not be changed is mounted read-only, metadata included.
    let metadata = confinement.metadata || level != ConfinementLevel::Landlock;
    DENIED.iter().filter(move |group| {
        level.confines()
            && match group.condition {
                DenyCondition::Always => true,
                DenyCondition::NetworkOff => !network,
                DenyCondition::MetadataOff => !metadata,
            }
    })
}

fn architecture() -> Result<TargetArch, ConfinementError> {
    TargetArch::try_from(std::env::consts::ARCH).map_err(|_| {
        let name = std::env::consts::ARCH;
        ConfinementError::unsupported(
            format!("there is no seccomp filter for {name}"),
            "use 'level: limits'",
        )
    })
}

/// Whether a filter can be made for this machine.
pub(super) fn usable() -> Result<(), ConfinementError> {
    architecture().map(|_| ())
}

pub(super) fn program(confinement: &Confinement) -> Result<BpfProgram, ConfinementError> {
    let failed = |why: BackendError| ConfinementError::Failed(format!("seccomp: {why}"));
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (call, when) in denied(confinement).flat_map(|group| group.calls) {
        let more = rules_of(when).map_err(failed)?;
        match rules.entry(*call) {
            // No rule means "always", which stays the case whatever else is said.
            Entry::Occupied(existing) if existing.get().is_empty() => {}
            Entry::Occupied(mut existing) if more.is_empty() => {
                existing.insert(more);
            }
            Entry::Occupied(mut existing) => existing.get_mut().extend(more),
            Entry::Vacant(new) => {
                new.insert(more);
            }
        }
    }
    let denied = SeccompAction::Errno(Errno::PERM.raw_os_error().cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture()?);
    let rest: BpfProgram = filter.and_then(TryInto::try_into).map_err(failed)?;
    Ok(unknown_calls().into_iter().chain(rest).collect())
}

fn rules_of(when: ArgumentTests) -> Result<Vec<SeccompRule>, BackendError> {
    let condition = |test: &ArgumentTest| match *test {
        ArgumentTest::Is(argument, value) => {
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value.into())
        }
        ArgumentTest::IsNot(argument, value) => {
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value.into())
        }
        ArgumentTest::Bits(argument, mask, value) => SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Qword,
            SeccompCmpOp::MaskedEq(mask),
            value,
        ),
        ArgumentTest::NotNull(argument) => {
            SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)
        }
    };
    let rule = |tests: &&'static [ArgumentTest]| {
        SeccompRule::new(tests.iter().map(condition).collect::<Result<_, _>>()?)
    };
    when.iter().map(rule).collect()
}

/// Instructions that make some system calls look as if the kernel had none of them.
///
/// The flags of `clone3` are in memory, where no filter sees them; C libraries fall back to
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
        // The system call number is at offset 0.
        step(LOAD_WORD, 0, 0, 0),
        step(IF_EQUAL, 0, 1, clone3),
        step(RETURN, 0, 0, missing),
    ];
    if cfg!(target_arch = "x86_64") {
        steps.extend([step(IF_AT_LEAST, 0, 1, X32), step(RETURN, 0, 0, missing)]);
    }
    steps
}

pub(super) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for step in program {
        bytes.extend(step.code.to_ne_bytes());
        bytes.extend([step.jt, step.jf]);
        bytes.extend(step.k.to_ne_bytes());
    }
    bytes
}

/// What is denied depends on these; the rest of the table always holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DenyCondition {
    /// Part of every filter, regardless of what is allowed.
    Always,
    NetworkOff,
    MetadataOff,
}

/// A test of one argument, counted from 0. What the kernel takes as 32 bits is compared as 32
/// bits: it ignores the upper half, and so must the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentTest {
    Is(u8, u32),
    IsNot(u8, u32),
    /// These bits of it (the first number) are the second number.
    Bits(u8, u64, u64),
    /// A pointer that leads somewhere.
    NotNull(u8),
}

/// When a call is denied: if all tests of one of the lists hold; with no list, always.
pub(super) type ArgumentTests = &'static [&'static [ArgumentTest]];

#[derive(Debug)]
pub(super) struct DeniedCalls {
    pub(super) subject: SandboxSubject,
    pub(super) condition: DenyCondition,
    pub(super) calls: &'static [(i64, ArgumentTests)],
}

const ALWAYS: ArgumentTests = &[];

// Calls that are newer than the `libc` crate; these numbers are the same on all machines.
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// Control requests that change flags and project of a file (`linux/fs.h`), in both widths.
const SET_FLAGS: u32 = 0x4008_6602;
const SET_FLAGS_32: u32 = 0x4004_6602;
const SET_ATTRIBUTES: u32 = 0x401c_5820;
const SET_GENERATION: u32 = 0x4008_7602;
const SET_GENERATION_32: u32 = 0x4004_7602;

const PRIO_PROCESS: u32 = 0;
const IOPRIO_WHO_PROCESS: u32 = 1;
const NEW_USER: u64 = 0x1000_0000;
const UNIX: u32 = 1;
/// The bits of a socket's type, without flags.
const TYPE: u64 = 0xf;
const DATAGRAM: u64 = 2;
const RAW: u64 = 3;

/// Another process than the caller. A filter does not know the caller's number, so that it may
/// name itself by 0 only; the C library's functions for one's own process do.
const OF_ANOTHER: ArgumentTests = &[&[ArgumentTest::IsNot(0, 0)]];

pub(super) const DENIED: &[DeniedCalls] = &[
    DeniedCalls {
        subject: SandboxSubject::Metadata,
        condition: DenyCondition::MetadataOff,
        calls: &[
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_chmod, ALWAYS),
            (libc::SYS_fchmod, ALWAYS),
            (libc::SYS_fchmodat, ALWAYS),
            (libc::SYS_fchmodat2, ALWAYS),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_chown, ALWAYS),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_lchown, ALWAYS),
            (libc::SYS_fchown, ALWAYS),
            (libc::SYS_fchownat, ALWAYS),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_utime, ALWAYS),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_utimes, ALWAYS),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_futimesat, ALWAYS),
            (libc::SYS_utimensat, ALWAYS),
            (libc::SYS_setxattr, ALWAYS),
            (libc::SYS_lsetxattr, ALWAYS),
            (libc::SYS_fsetxattr, ALWAYS),
            (SETXATTRAT, ALWAYS),
            (libc::SYS_removexattr, ALWAYS),
            (libc::SYS_lremovexattr, ALWAYS),
            (libc::SYS_fremovexattr, ALWAYS),
            (REMOVEXATTRAT, ALWAYS),
            (FILE_SETATTR, ALWAYS),
            (
                libc::SYS_ioctl,
                &[
                    &[ArgumentTest::Is(1, SET_FLAGS)],
                    &[ArgumentTest::Is(1, SET_FLAGS_32)],
                    &[ArgumentTest::Is(1, SET_ATTRIBUTES)],
                    &[ArgumentTest::Is(1, SET_GENERATION)],
                    &[ArgumentTest::Is(1, SET_GENERATION_32)],
                ],
            ),
        ],
    },
    DeniedCalls {
        subject: SandboxSubject::Memory,
        condition: DenyCondition::Always,
        calls: &[
            (libc::SYS_ptrace, ALWAYS),
            (libc::SYS_process_vm_readv, ALWAYS),
            (libc::SYS_process_vm_writev, ALWAYS),
            (libc::SYS_process_madvise, ALWAYS),
            (libc::SYS_process_mrelease, ALWAYS),
            (libc::SYS_pidfd_getfd, ALWAYS),
            (libc::SYS_kcmp, ALWAYS),
            (libc::SYS_migrate_pages, OF_ANOTHER),
            (libc::SYS_move_pages, OF_ANOTHER),
        ],
    },
    DeniedCalls {
        subject: SandboxSubject::Scheduling,
        condition: DenyCondition::Always,
        calls: &[
            // Reading limits (no new ones given) is harmless.
            (libc::SYS_prlimit64, &[&[ArgumentTest::IsNot(0, 0), ArgumentTest::NotNull(2)]]),
            (
                libc::SYS_setpriority,
                &[&[ArgumentTest::IsNot(0, PRIO_PROCESS)], &[ArgumentTest::IsNot(1, 0)]],
            ),
            (
                libc::SYS_ioprio_set,
                &[&[ArgumentTest::IsNot(0, IOPRIO_WHO_PROCESS)], &[ArgumentTest::IsNot(1, 0)]],
            ),
            (libc::SYS_sched_setaffinity, OF_ANOTHER),
            (libc::SYS_sched_setscheduler, OF_ANOTHER),
            (libc::SYS_sched_setparam, OF_ANOTHER),
            (libc::SYS_sched_setattr, OF_ANOTHER),
        ],
    },
    DeniedCalls {
        subject: SandboxSubject::SharedMemory,
        condition: DenyCondition::Always,
        calls: &[
            (libc::SYS_shmget, ALWAYS),
            (libc::SYS_shmat, ALWAYS),
            (libc::SYS_shmctl, ALWAYS),
            (libc::SYS_shmdt, ALWAYS),
            (libc::SYS_semget, ALWAYS),
            (libc::SYS_semop, ALWAYS),
            (libc::SYS_semtimedop, ALWAYS),
            (libc::SYS_semctl, ALWAYS),
            (libc::SYS_msgget, ALWAYS),
            (libc::SYS_msgsnd, ALWAYS),
            (libc::SYS_msgrcv, ALWAYS),
            (libc::SYS_msgctl, ALWAYS),
            (libc::SYS_mq_open, ALWAYS),
            (libc::SYS_mq_unlink, ALWAYS),
            (libc::SYS_mq_timedsend, ALWAYS),
            (libc::SYS_mq_timedreceive, ALWAYS),
            (libc::SYS_mq_notify, ALWAYS),
            (libc::SYS_mq_getsetattr, ALWAYS),
        ],
    },
    DeniedCalls {
        subject: SandboxSubject::Network,
        condition: DenyCondition::NetworkOff,
        calls: &[
            (libc::SYS_socket, ALWAYS),
            (libc::SYS_socketpair, &[&[ArgumentTest::IsNot(0, UNIX)]]),
        ],
    },
    // A filter cannot see the address of a Unix socket, and behind one may stand the session bus or
    // a container engine, which start anything for any client. Pairs are for talking to oneself. A
    // datagram socket of a pair can still be given another address with every message.
    DeniedCalls {
        subject: SandboxSubject::UnixSockets,
        condition: DenyCondition::NetworkOff,
        calls: NAMED_SOCKETS,
    },
    DeniedCalls {
        subject: SandboxSubject::AbstractSockets,
        condition: DenyCondition::NetworkOff,
        calls: NAMED_SOCKETS,
    },
    DeniedCalls {
        subject: SandboxSubject::Mounts,
        condition: DenyCondition::Always,
        calls: &[
            (libc::SYS_mount, ALWAYS),
            (libc::SYS_umount2, ALWAYS),
            (libc::SYS_pivot_root, ALWAYS),
            (libc::SYS_chroot, ALWAYS),
            (libc::SYS_move_mount, ALWAYS),
            (libc::SYS_open_tree, ALWAYS),
            (OPEN_TREE_ATTR, ALWAYS),
            (libc::SYS_fsopen, ALWAYS),
            (libc::SYS_fspick, ALWAYS),
            (libc::SYS_fsconfig, ALWAYS),
            (libc::SYS_fsmount, ALWAYS),
            (libc::SYS_mount_setattr, ALWAYS),
            (libc::SYS_setns, ALWAYS),
            // In its own user namespace a process has powers over parts of the kernel.
            (libc::SYS_clone, &[&[ArgumentTest::Bits(0, NEW_USER, NEW_USER)]]),
            (libc::SYS_unshare, &[&[ArgumentTest::Bits(0, NEW_USER, NEW_USER)]]),
        ],
    },
    // They belong to the whole session.
    DeniedCalls {
        subject: SandboxSubject::Keyrings,
        condition: DenyCondition::Always,
        calls: &[
            (libc::SYS_add_key, ALWAYS),
            (libc::SYS_keyctl, ALWAYS),
            (libc::SYS_request_key, ALWAYS),
        ],
    },
    DeniedCalls {
        subject: SandboxSubject::KernelInterfaces,
        condition: DenyCondition::Always,
        calls: &[
            // A ring of requests does system calls that no filter sees.
            (libc::SYS_io_uring_setup, ALWAYS),
            (libc::SYS_bpf, ALWAYS),
            (libc::SYS_perf_event_open, ALWAYS),
            (libc::SYS_userfaultfd, ALWAYS),
        ],
    },
];

const NAMED_SOCKETS: &[(i64, ArgumentTests)] = &[
    (libc::SYS_socket, ALWAYS),
    (libc::SYS_connect, ALWAYS),
    (libc::SYS_sendto, &[&[ArgumentTest::NotNull(4)]]),
    (
        libc::SYS_socketpair,
        &[&[ArgumentTest::Bits(1, TYPE, DATAGRAM)], &[ArgumentTest::Bits(1, TYPE, RAW)]],
    ),
];
