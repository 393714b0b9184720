//! The seccomp filter of a confined child, for what file rules cannot express.
//!
//! What is denied fails with an error and kills nothing, so that programs can do without. The
//! filter is a list of what is forbidden ([`super::denied_syscalls`]), not of what is allowed: it
//! closes known ways around the file rules and makes no claim about the rest of the kernel.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rustix::io::Errno;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use super::denied_syscalls::{ArgumentTest, ArgumentTests, DENIED, DeniedCalls, DenyCondition};
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
