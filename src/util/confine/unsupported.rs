//! Systems without Landlock and bubblewrap: every confinement is refused.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::{Confinement, ConfinementError, ConfinementLevel, Coverage, PreparedConfinement};

impl PreparedConfinement {
    pub(super) fn build(_: &Confinement, _: &Path, _: &Path) -> Result<Self, ConfinementError> {
        Err(refusal())
    }

    pub(in crate::util) fn enter(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn refusal() -> ConfinementError {
    ConfinementError::Unsupported {
        missing: "programs can only be confined on Linux".into(),
        remedy: "run toolhost on Linux, or in a container".into(),
    }
}

pub fn become_program_if_requested(_: &[OsString]) -> Option<ConfinementError> {
    None
}

pub fn available() -> Result<ConfinementLevel, ConfinementError> {
    Err(refusal())
}

pub fn check(_: ConfinementLevel) -> Result<(), ConfinementError> {
    Err(refusal())
}

/// What a confinement protects from here: nothing.
pub fn coverage(confinement: &Confinement) -> Coverage {
    Coverage {
        level: confinement.level.as_str().into(),
        protects: Vec::new(),
        leaves_open: vec!["everything that you may do".to_owned()],
    }
}
