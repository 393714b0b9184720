//! Consent: what a project's files would do, whether the user agreed, and the proof of it.
//!
//! Owns: the survey of a project's bundle, its comparison with what was trusted, the [`Grant`]
//! without which no file is expanded, and the [`Seal`] that is checked again just before
//! something starts. Never does: ask (front ends do), or start anything.
//!
//! A bundle is every configuration file that was read for a project, the code its entries would
//! run and the documents they name. It is trusted as a whole, by content. No list of keys here
//! needs to be kept in sync with the expander: a file without a grant has no expander at all.

mod bundle;
mod command_files;
mod decision;
mod effect;
mod expander;
mod keyring;
mod program;
mod seal;
pub mod store;
mod survey;
mod trust_request;
mod written_credentials;

#[cfg(test)]
pub use bundle::Bundle;
pub use bundle::EntryRecord;
pub(super) use decision::decide;
pub use decision::{Consent, Grant, ProjectRecord};
pub(super) use effect::kind_of;
pub use effect::{EntryEffect, EntrySite, KindClaim, KindDescriptor, ProgramEffect};
pub use expander::Expander;
#[cfg(test)]
pub use seal::BoundFile;
pub use seal::Seal;
pub use trust_request::{TrustRequest, TrustRequestLine};
