//! A prepared confinement of one child. Linux only; elsewhere none is ever made.

use std::ffi::OsString;
use std::path::PathBuf;

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
    pub(super) child: super::prepare::ChildSteps,
}
