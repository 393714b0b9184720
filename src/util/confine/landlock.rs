//! Landlock rules: built here, in the parent; the child only enters them.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};
use rustix::fs::{FileType, fstat};

use super::support::{SCOPES_ABI, UNIX_ABI, landlock_abi};
use super::{Confinement, Refusal, system};

/// The first version that knows of TCP.
const TCP_ABI: u32 = 4;
/// The first version that knows of the control requests of devices.
const DEVICE_ABI: u32 = 5;

/// The rules for one child, as the descriptor it enters them by.
///
/// # Errors
/// When a path cannot be opened or the kernel refuses a rule: every right is a hard requirement.
pub(super) fn ruleset(confinement: &Confinement, scratch: &Path) -> Result<OwnedFd, Refusal> {
    let abi = landlock_abi().unwrap_or_default();
    let rights = Rights::of(abi);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(rights.all)
        .map_err(failed)?;
    if !confinement.network && abi >= TCP_ABI {
        rules = rules.handle_access(AccessNet::from_all(ABI::V4)).map_err(failed)?;
    }
    let scopes = scopes();
    if !scopes.is_empty() {
        rules = rules.scope(scopes).map_err(failed)?;
    }
    let mut rules = rules.create().map_err(failed)?;
    if confinement.system {
        // What goes away between the look and the opening is no loss: it is not asked for.
        let shared = system::shared();
        let parts = shared.parted.into_iter().flat_map(|(_, parts)| parts.open);
        for path in shared.whole.into_iter().chain(parts).chain(system::machine()) {
            if let Ok(fd) = PathFd::new(&path) {
                rules = allow(rules, fd, rights.read)?;
            }
        }
        for path in system::devices() {
            if let Ok(fd) = PathFd::new(&path) {
                rules = allow(rules, fd, AccessFs::ReadFile | AccessFs::WriteFile)?;
            }
        }
    }
    let written = confinement.written().map(|path| (path.as_path(), rights.write));
    let read = confinement.read.iter().map(|path| (path.as_path(), rights.read));
    for (path, right) in written.chain(read).chain([(scratch, rights.write)]) {
        rules = allow(rules, open(path)?, right)?;
    }
    let fd: Option<OwnedFd> = rules.into();
    fd.ok_or_else(|| Refusal::Failed("the kernel gave no ruleset".into()))
}

/// What is kept inside beside files: signals and abstract sockets, where the kernel can.
pub(super) fn scopes() -> BitFlags<Scope> {
    let known = if landlock_abi() >= Some(SCOPES_ABI) { ABI::V6 } else { ABI::V5 };
    Scope::from_all(known)
}

/// Sets of rights, by what this kernel knows.
struct Rights {
    /// Everything that is denied unless a rule allows it.
    all: BitFlags<AccessFs>,
    read: BitFlags<AccessFs>,
    write: BitFlags<AccessFs>,
}

impl Rights {
    fn of(abi: u32) -> Self {
        let known = match abi {
            ..DEVICE_ABI => ABI::V3,
            DEVICE_ABI..UNIX_ABI => ABI::V5,
            _ => ABI::V9,
        };
        let all = AccessFs::from_all(known);
        // A device made in a directory would be a door out of it.
        let never = AccessFs::MakeBlock | AccessFs::MakeChar;
        let devices = if abi >= DEVICE_ABI { AccessFs::IoctlDev.into() } else { BitFlags::EMPTY };
        Self { all, read: AccessFs::from_read(known), write: all & !never & !devices }
    }
}

fn open(path: &Path) -> Result<PathFd, Refusal> {
    PathFd::new(path).map_err(|error| {
        let why = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), ToString::to_string);
        Refusal::Path { path: path.to_path_buf(), why }
    })
}

/// A file has fewer rights than a directory; the kernel takes no others.
fn allow(
    rules: RulesetCreated,
    fd: PathFd,
    rights: impl Into<BitFlags<AccessFs>>,
) -> Result<RulesetCreated, Refusal> {
    let stat = fstat(&fd).map_err(|why| Refusal::Failed(why.to_string()))?;
    let mut rights = rights.into();
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        rights &= AccessFs::from_file(ABI::V9);
    }
    rules.add_rule(PathBeneath::new(fd, rights)).map_err(failed)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn failed(error: landlock::RulesetError) -> Refusal {
    Refusal::Failed(format!("landlock: {error}"))
}
