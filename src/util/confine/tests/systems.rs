//! Tests of what is chosen, refused and reported on systems that lack a mechanism.

use super::super::coverage::coverage_on;
use super::super::support::{SystemSupport, available_on, check_on};
use super::*;

/// A system that lacks what a test says.
#[derive(Clone)]
struct Other {
    landlock: Option<u32>,
    bwrap: bool,
}

const WHOLE: Other = Other { landlock: Some(9), bwrap: true };

impl SystemSupport for Other {
    fn landlock_abi(&self) -> Option<u32> {
        self.landlock
    }

    fn bwrap(&self) -> Result<PathBuf, ConfinementError> {
        let missing = || ConfinementError::unsupported("bubblewrap does not work here", "");
        self.bwrap.then(|| "/usr/bin/bwrap".into()).ok_or_else(missing)
    }
}

#[test]
fn the_most_that_works_is_taken_and_nothing_less_than_files_is() {
    let landlock = Other { bwrap: false, ..WHOLE };
    let bwrap = Other { landlock: None, ..WHOLE };
    let old = Other { landlock: Some(2), bwrap: false };
    let bare = Other { landlock: None, bwrap: false };
    assert_eq!(available_on(&WHOLE), Ok(ConfinementLevel::Bwrap));
    assert_eq!(available_on(&landlock), Ok(ConfinementLevel::Landlock));
    assert_eq!(available_on(&bwrap), Ok(ConfinementLevel::Bwrap));
    assert!(available_on(&old).is_err());
    let refusal = available_on(&bare).unwrap_err().to_string();
    assert!(refusal.contains("no Landlock"), "{refusal}");
}

#[test]
fn a_level_that_cannot_be_kept_is_refused_before_anything_starts() {
    let room = Room::new();
    let prepared = |system: &Other, level| {
        let confinement = room.confinement(level);
        PreparedConfinement::build(system, &confinement, Path::new("/bin/true"), &room.path("work"))
            .map(|_| ())
            .map_err(|refusal| refusal.to_string())
    };
    let lacks = Other { landlock: None, bwrap: false };
    for level in [ConfinementLevel::Landlock, ConfinementLevel::Bwrap] {
        assert!(prepared(&lacks, level).is_err(), "{level:?}");
        assert!(check_on(&lacks, level).is_err(), "{level:?}");
    }
    assert_eq!(std::fs::read_dir(room.path("scratch")).unwrap().count(), 0);
}

#[test]
fn nothing_is_left_open_silently() {
    let room = Room::new();
    for level in [ConfinementLevel::Limits, ConfinementLevel::Landlock, ConfinementLevel::Bwrap] {
        for (network, metadata, abi) in
            [(false, false, 9), (true, false, 9), (false, true, 9), (true, true, 3)]
        {
            let confinement = Confinement { network, metadata, ..room.confinement(level) };
            let system = Other { landlock: Some(abi), ..WHOLE };
            let coverage = coverage_on(&system, &confinement);
            let (keeps, open) = (coverage.protects, coverage.leaves_open);
            // Each subject is on one of the two sides; the number of processes is beside them.
            assert_eq!(
                keeps.len() + open.len(),
                <subject::SandboxSubject as strum::VariantArray>::VARIANTS.len() + 1,
                "{level:?}"
            );
            assert_eq!(keeps.is_empty(), level == ConfinementLevel::Limits);
            let is_open = |text: &str| open.iter().any(|line| line.contains(text));
            assert!(is_open("flaws of the kernel"));
            assert_eq!(is_open("the network, with"), network || level == ConfinementLevel::Limits);
            let changes = level == ConfinementLevel::Limits
                || (level == ConfinementLevel::Landlock && metadata);
            assert_eq!(is_open("permissions, owners"), changes, "{level:?}");
            assert_eq!(
                is_open("whether any file exists"),
                level != ConfinementLevel::Bwrap,
                "{level:?}"
            );
            let signals = level == ConfinementLevel::Limits
                || (level == ConfinementLevel::Landlock && abi < 6);
            assert_eq!(is_open("signals"), signals, "{level:?}");
            let sockets = match level {
                ConfinementLevel::Limits => true,
                ConfinementLevel::Landlock => network && abi < 9,
                ConfinementLevel::Bwrap => false,
            };
            assert_eq!(is_open("session bus"), sockets, "{level:?} {network} {abi}");
        }
    }
}

#[test]
fn every_protection_names_its_mechanisms() {
    let room = Room::new();
    let by = |level, what: &str| {
        let coverage = coverage_on(&WHOLE, &room.confinement(level));
        let protection =
            coverage.protects.iter().find(|protection| protection.subject.starts_with(what));
        protection.map(|protection| protection.mechanisms.join(", ")).unwrap_or_default()
    };
    let (landlock, bwrap) = (ConfinementLevel::Landlock, ConfinementLevel::Bwrap);
    assert_eq!(by(landlock, "other files"), "Landlock");
    assert_eq!(by(bwrap, "other files"), "mount namespace, its own root");
    assert_eq!(by(landlock, "permissions"), "system call filter");
    assert_eq!(by(bwrap, "permissions"), "mount namespace");
    assert_eq!(by(bwrap, "the network"), "network namespace, system call filter");
    assert_eq!(by(bwrap, "System V"), "IPC namespace, system call filter");
    assert_eq!(by(bwrap, "signals"), "process namespace");
}
