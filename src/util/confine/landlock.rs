//! Landlock rules: built in the parent; the child only enters them.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};
use rustix::fs::{FileType, fstat};

use super::subject::SandboxSubject;
use super::{Confinement, ConfinementError, system_paths};

const TCP_ABI: u32 = 4;
const DEVICE_ABI: u32 = 5;
const SCOPES_ABI: u32 = 6;
const UNIX_ABI: u32 = 9;

/// The rules for one child, as the descriptor it enters them by.
pub(super) fn ruleset(
    confinement: &Confinement,
    scratch: &Path,
    abi: u32,
) -> Result<OwnedFd, ConfinementError> {
    let fd: Option<OwnedFd> = rules(confinement, scratch, abi)?.into();
    fd.ok_or_else(|| ConfinementError::Failed("the kernel returned no ruleset".into()))
}

pub(super) fn rules(
    confinement: &Confinement,
    scratch: &Path,
    abi: u32,
) -> Result<RulesetCreated, ConfinementError> {
    let rights = FileRights::of(abi);
    let handled = HandledRights::of(confinement, abi);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(handled.files)
        .map_err(failed)?;
    if !handled.network.is_empty() {
        rules = rules.handle_access(handled.network).map_err(failed)?;
    }
    if !handled.scopes.is_empty() {
        rules = rules.scope(handled.scopes).map_err(failed)?;
    }
    let mut rules = rules.create().map_err(failed)?;
    if confinement.system {
        // What goes away between the look and the opening is no loss: it is not asked for.
        let shared = system_paths::shared();
        let parts = shared.split.into_iter().flat_map(|(_, parts)| parts.readable);
        for path in shared.readable.into_iter().chain(parts).chain(system_paths::machine()) {
            if let Ok(fd) = PathFd::new(&path) {
                rules = allow(rules, fd, rights.read)?;
            }
        }
        for path in system_paths::devices() {
            if let Ok(fd) = PathFd::new(&path) {
                rules = allow(rules, fd, AccessFs::ReadFile | AccessFs::WriteFile)?;
            }
        }
    }
    let written = confinement.writable_paths().map(|path| (path.as_path(), rights.write));
    let read = confinement.read.iter().map(|path| (path.as_path(), rights.read));
    for (path, right) in written.chain(read).chain([(scratch, rights.write)]) {
        rules = allow(rules, open(path)?, right)?;
    }
    Ok(rules)
}

/// What the rules deny unless one of them allows it, and what they keep inside.
pub(super) struct HandledRights {
    files: BitFlags<AccessFs>,
    network: BitFlags<AccessNet>,
    scopes: BitFlags<Scope>,
}

impl HandledRights {
    pub(super) fn of(confinement: &Confinement, abi: u32) -> Self {
        let tcp = !confinement.network && abi >= TCP_ABI;
        Self {
            files: FileRights::of(abi).all,
            network: if tcp { AccessNet::from_all(ABI::V4) } else { BitFlags::EMPTY },
            scopes: Scope::from_all(if abi >= SCOPES_ABI { ABI::V6 } else { ABI::V5 }),
        }
    }

    pub(super) fn subjects(&self) -> Vec<SandboxSubject> {
        // A process in a Landlock domain cannot trace one outside, whatever the rules say.
        let mut subjects = vec![SandboxSubject::Memory];
        let kinds = [
            (self.files.contains(AccessFs::ReadFile), SandboxSubject::Files),
            (self.files.contains(AccessFs::ReadFile), SandboxSubject::ProcessDetails),
            (self.files.contains(AccessFs::ResolveUnix), SandboxSubject::UnixSockets),
            (!self.network.is_empty(), SandboxSubject::Network),
            (self.scopes.contains(Scope::Signal), SandboxSubject::Signals),
            (self.scopes.contains(Scope::AbstractUnixSocket), SandboxSubject::AbstractSockets),
        ];
        subjects.extend(kinds.into_iter().filter(|(held, _)| *held).map(|(_, subject)| subject));
        subjects
    }
}

struct FileRights {
    /// Everything that is denied unless a rule allows it.
    all: BitFlags<AccessFs>,
    read: BitFlags<AccessFs>,
    write: BitFlags<AccessFs>,
}

impl FileRights {
    fn of(abi: u32) -> Self {
        let rights = match abi {
            ..DEVICE_ABI => ABI::V3,
            DEVICE_ABI..UNIX_ABI => ABI::V5,
            _ => ABI::V9,
        };
        let all = AccessFs::from_all(rights);
        // A device made in a directory would be a way out of it.
        let never = AccessFs::MakeBlock | AccessFs::MakeChar;
        let devices = if abi >= DEVICE_ABI { AccessFs::IoctlDev.into() } else { BitFlags::EMPTY };
        Self { all, read: AccessFs::from_read(rights), write: all & !never & !devices }
    }
}

fn open(path: &Path) -> Result<PathFd, ConfinementError> {
    PathFd::new(path).map_err(|error| {
        let why = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), ToString::to_string);
        ConfinementError::Path { path: path.to_path_buf(), why }
    })
}

/// A file has fewer rights than a directory; the kernel takes no others.
fn allow(
    rules: RulesetCreated,
    fd: PathFd,
    rights: impl Into<BitFlags<AccessFs>>,
) -> Result<RulesetCreated, ConfinementError> {
    let stat = fstat(&fd).map_err(|why| ConfinementError::Failed(why.to_string()))?;
    let mut rights = rights.into();
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        rights &= AccessFs::from_file(ABI::V9);
    }
    rules.add_rule(PathBeneath::new(fd, rights)).map_err(failed)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn failed(error: landlock::RulesetError) -> ConfinementError {
    ConfinementError::Failed(format!("landlock: {error}"))
}
