//! Preparing the confinement of one child, before it is forked.

use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities};
use seccompiler::BpfProgram;

use super::support::{SystemSupport, check_on};
use super::{
    Confinement, ConfinementError, ConfinementLevel, HomeDir, PreparedConfinement, ScratchDir,
    bwrap, filter, landlock,
};

/// Descriptors of ours are moved up here, out of the way of those a child is given by number.
const FIRST_FD: i32 = 10;

const HELPERS: u64 = 2;

/// What a child does between fork and exec.
#[derive(Debug, Default)]
pub(super) struct ChildSteps {
    pub(super) resources: Vec<(Resource, Rlimit)>,
    /// What is left of the superuser's powers, when some have to go.
    pub(super) capabilities: Option<CapabilitySets>,
    /// Whether the power to raise limits must be dropped permanently.
    pub(super) limits_are_final: bool,
    /// Rules to enter; with them come no new privileges.
    pub(super) ruleset: Option<OwnedFd>,
    pub(super) filter: Option<BpfProgram>,
    /// Descriptors that have to stay open across exec.
    pub(super) inherited: Vec<OwnedFd>,
    /// Whether SIGTERM is ignored until the program starts, which then is its only recipient:
    /// bubblewrap would end at once, and the program with it.
    pub(super) ignores_termination: bool,
}

impl PreparedConfinement {
    pub(super) fn build(
        system: &dyn SystemSupport,
        confinement: &Confinement,
        program: &Path,
        cwd: &Path,
    ) -> Result<Self, ConfinementError> {
        check_on(system, confinement.level)?;
        let helpers = if confinement.level == ConfinementLevel::Bwrap { HELPERS } else { 0 };
        let resources = confinement.limits.resources(helpers)?;
        let child = ChildSteps { resources, ..ChildSteps::default() };
        let mut prepared = Self { wrapper: None, env: Vec::new(), scratch: None, child };
        match confinement.level {
            ConfinementLevel::Limits => {
                prepared.child.limits_are_final =
                    remaining_capabilities()?.permitted.contains(CapabilitySet::SYS_RESOURCE);
            }
            ConfinementLevel::Landlock => prepared.landlock(system, confinement)?,
            ConfinementLevel::Bwrap => prepared.bwrap(system, confinement, program, cwd)?,
        }
        Ok(prepared)
    }

    fn landlock(
        &mut self,
        system: &dyn SystemSupport,
        confinement: &Confinement,
    ) -> Result<(), ConfinementError> {
        let scratch = scratch(confinement)?;
        let abi = system.landlock_abi().unwrap_or_default();
        let rules = landlock::ruleset(confinement, scratch.path(), abi)?;
        self.child.ruleset = Some(move_fd_up(&rules)?);
        self.child.filter = Some(filter::program(confinement)?);
        // The superuser could load modules, set the clock or raise its limits. It keeps the power
        // over files of others, since the rules say which.
        let had = remaining_capabilities()?;
        let reduced = CapabilitySets {
            effective: had.effective & CapabilitySet::DAC_OVERRIDE,
            permitted: had.permitted & CapabilitySet::DAC_OVERRIDE,
            inheritable: CapabilitySet::empty(),
        };
        self.child.capabilities = (reduced != had).then_some(reduced);
        self.variables(confinement, scratch.path());
        self.scratch = Some(scratch);
        Ok(())
    }

    fn bwrap(
        &mut self,
        system: &dyn SystemSupport,
        confinement: &Confinement,
        program: &Path,
        cwd: &Path,
    ) -> Result<(), ConfinementError> {
        use std::os::fd::AsRawFd as _;
        let bwrap = system.bwrap()?;
        let filter = memfd(&filter::bytes(&filter::program(confinement)?))?;
        let scratch = bwrap::shows_everything(confinement).then(|| scratch(confinement));
        self.scratch = scratch.transpose()?;
        let temporary = self.scratch.as_ref().map(ScratchDir::path);
        let mut arguments = bwrap::arguments(confinement, cwd, temporary, filter.as_raw_fd())?;
        let temporary = temporary.unwrap_or(Path::new(bwrap::TMP)).to_path_buf();
        self.child.inherited.push(filter);
        if bwrap::is_available(system) {
            let (wrapper, own) = bwrap::wrap(confinement, &temporary)?;
            arguments.extend(wrapper);
            self.child.inherited.push(own);
            self.child.ignores_termination = true;
        }
        arguments.push(program.into());
        self.wrapper = Some((bwrap, arguments));
        self.variables(confinement, &temporary);
        Ok(())
    }

    fn variables(&mut self, confinement: &Confinement, temporary: &Path) {
        self.env.push(("TMPDIR", temporary.to_path_buf()));
        match &confinement.home {
            HomeDir::Inherited => {}
            HomeDir::Temporary => self.env.push(("HOME", temporary.to_path_buf())),
            HomeDir::At(home) => self.env.push(("HOME", home.clone())),
        }
    }
}

fn scratch(confinement: &Confinement) -> Result<ScratchDir, ConfinementError> {
    ScratchDir::make(&confinement.scratch).map_err(|why| ConfinementError::Path {
        path: confinement.scratch.clone(),
        why: why.to_string(),
    })
}

fn remaining_capabilities() -> Result<CapabilitySets, ConfinementError> {
    capabilities(None).map_err(|why| ConfinementError::Failed(format!("capabilities: {why}")))
}

pub(super) fn move_fd_up(fd: &OwnedFd) -> Result<OwnedFd, ConfinementError> {
    rustix::io::fcntl_dupfd_cloexec(fd.as_fd(), FIRST_FD)
        .map_err(|why| ConfinementError::Failed(format!("a descriptor: {why}")))
}

/// A file without a name that holds `bytes`, to be read from its start.
fn memfd(bytes: &[u8]) -> Result<OwnedFd, ConfinementError> {
    let failed = |why: std::io::Error| ConfinementError::Failed(format!("a file in memory: {why}"));
    let fd = rustix::fs::memfd_create("filter", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(|why| failed(why.into()))?;
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes).map_err(failed)?;
    std::io::Seek::rewind(&mut file).map_err(failed)?;
    move_fd_up(&file.into())
}
