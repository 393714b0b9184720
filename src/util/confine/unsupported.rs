//! Systems without Landlock and bubblewrap: everything is refused.

use std::path::{Path, PathBuf};

use super::{Confinement, Coverage, Level, Refusal, Scratch};

/// Never made here.
#[derive(Debug)]
pub struct Cage {
    pub(in crate::util) env: Vec<(&'static str, PathBuf)>,
    pub(in crate::util) scratch: Option<Scratch>,
}

impl Cage {
    pub(super) fn build(_: &Confinement, _: &Path, _: &Path) -> Result<Self, Refusal> {
        Err(refusal())
    }
}

fn refusal() -> Refusal {
    Refusal::Unsupported {
        missing: "programs can be confined on Linux only".into(),
        remedy: "run toolhost on Linux, or in a container".into(),
    }
}

/// No level is available.
///
/// # Errors
/// Always.
pub fn available() -> Result<Level, Refusal> {
    Err(refusal())
}

/// No level can be kept.
///
/// # Errors
/// Always.
pub fn check(_: Level) -> Result<(), Refusal> {
    Err(refusal())
}

/// Nothing is kept.
pub fn coverage(confinement: &Confinement) -> Coverage {
    Coverage {
        level: confinement.level.as_str(),
        keeps: Vec::new(),
        leaves_open: vec!["everything that you may do".to_owned()],
    }
}
