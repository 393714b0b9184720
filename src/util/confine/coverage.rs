//! What a sandbox enforces, by which mechanism, and what it leaves open.
//!
//! Nothing here says that something is kept. Every line is asked of the mechanism itself: the table
//! of system calls that the filter is built from, the rights that the Landlock rules handle, and
//! the namespaces that are made.

use std::borrow::Cow;

/// Something that is out of a confined program's reach.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema, serde::Deserialize,
)]
pub struct Protection {
    /// What it is, as text for people.
    #[serde(rename = "what")]
    pub subject: Cow<'static, str>,
    /// Every mechanism that keeps it, one of them at least.
    #[serde(rename = "by")]
    pub mechanisms: Vec<Cow<'static, str>>,
}

/// What a sandbox keeps and what it leaves open, on this system.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema, serde::Deserialize,
)]
pub struct Coverage {
    /// The level, as files name it.
    pub level: Cow<'static, str>,
    /// What is out of reach.
    #[serde(rename = "keeps")]
    pub protects: Vec<Protection>,
    /// What is left open, as text.
    pub leaves_open: Vec<String>,
}

impl Coverage {
    /// In lines for people: one for what is kept, one for what is open.
    pub fn lines(&self) -> Vec<String> {
        let protections: Vec<String> = self
            .protects
            .iter()
            .map(|protection| {
                format!("{} ({})", protection.subject, protection.mechanisms.join(", "))
            })
            .collect();
        let mut lines = Vec::new();
        if !protections.is_empty() {
            lines.push(format!("out of reach: {}", protections.join("; ")));
        }
        if !self.leaves_open.is_empty() {
            lines.push(format!("left open: {}", self.leaves_open.join("; ")));
        }
        lines
    }
}

#[cfg(target_os = "linux")]
pub use linux::coverage;
#[cfg(all(test, target_os = "linux"))]
pub(super) use linux::coverage_on;

#[cfg(target_os = "linux")]
mod linux {
    use strum::VariantArray as _;

    use super::super::subject::SandboxSubject;
    use super::super::support::{SystemSupport, ThisSystem};
    use super::super::{Confinement, ConfinementLevel, bwrap, filter, is_superuser, landlock};
    use super::{Coverage, Cow, Protection};

    pub fn coverage(confinement: &Confinement) -> Coverage {
        coverage_on(&ThisSystem, confinement)
    }

    pub(in super::super) fn coverage_on(
        system: &dyn SystemSupport,
        confinement: &Confinement,
    ) -> Coverage {
        let mechanisms = mechanisms(system, confinement);
        let mut coverage = Coverage {
            level: confinement.level.as_str().into(),
            protects: Vec::new(),
            leaves_open: Vec::new(),
        };
        for subject in SandboxSubject::VARIANTS {
            let mut by: Vec<Cow<'static, str>> = Vec::new();
            for (name, subjects) in &mechanisms {
                if subjects.contains(subject) && !by.iter().any(|known| known == name) {
                    by.push((*name).into());
                }
            }
            if by.is_empty() {
                coverage.leaves_open.push(subject.open_text().to_owned());
            } else {
                coverage
                    .protects
                    .push(Protection { subject: subject.protected_text().into(), mechanisms: by });
            }
        }
        if confinement.limits.processes.is_none() {
            let exempt = "the number of its processes: the superuser is exempt from that limit";
            let unlimited = "the number of its processes";
            let open = if is_superuser() { exempt } else { unlimited };
            coverage.leaves_open.push(open.to_owned());
        }
        coverage
    }

    fn mechanisms(
        system: &dyn SystemSupport,
        confinement: &Confinement,
    ) -> Vec<(&'static str, Vec<SandboxSubject>)> {
        let mut used = Vec::new();
        let is_inner = confinement.level == ConfinementLevel::Bwrap && bwrap::is_available(system);
        if confinement.level == ConfinementLevel::Landlock || is_inner {
            let abi = system.landlock_abi().unwrap_or_default();
            used.push(("Landlock", landlock::HandledRights::of(confinement, abi).subjects()));
        }
        used.extend(bwrap::protected_subjects(confinement));
        let denied = filter::denied(confinement).map(|group| group.subject).collect();
        used.push(("system call filter", denied));
        used
    }
}
