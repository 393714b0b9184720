//! A prepared confinement of one child. Linux only; elsewhere none is ever made.

use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit};
#[cfg(target_os = "linux")]
use rustix::thread::CapabilitySets;
#[cfg(target_os = "linux")]
use seccompiler::BpfProgram;

use super::ScratchDir;

/// A confinement that was made ready. The child enters it between fork and exec
/// ([`PreparedConfinement::enter`]); the program to start, its variables and its temporary directory
/// are for the parent.
#[derive(Debug)]
pub struct PreparedConfinement {
    /// The program to start instead, and its arguments before the path of the real one.
    pub(in crate::util) wrapper: Option<(PathBuf, Vec<OsString>)>,
    /// Variables to set over those of the child.
    pub(in crate::util) env: Vec<(&'static str, PathBuf)>,
    /// Its private temporary directory; to be kept until the child is gone.
    pub(in crate::util) scratch: Option<ScratchDir>,
    #[cfg(target_os = "linux")]
    pub(super) resources: Vec<(Resource, Rlimit)>,
    /// What is left of the superuser's powers, when some have to go.
    #[cfg(target_os = "linux")]
    pub(super) capabilities: Option<CapabilitySets>,
    /// Whether the power to raise limits must be dropped permanently.
    #[cfg(target_os = "linux")]
    pub(super) limits_are_final: bool,
    /// Rules to enter; with them come no new privileges.
    #[cfg(target_os = "linux")]
    pub(super) ruleset: Option<OwnedFd>,
    #[cfg(target_os = "linux")]
    pub(super) filter: Option<BpfProgram>,
    /// Descriptors that have to stay open across exec.
    #[cfg(target_os = "linux")]
    pub(super) inherited: Vec<OwnedFd>,
    /// Whether SIGTERM is ignored until the program starts, which then is its only recipient:
    /// bubblewrap would end at once, and the program with it.
    #[cfg(target_os = "linux")]
    pub(super) ignores_termination: bool,
}
