//! Consent: what a project's files would do, whether a person agreed to it, and the proof of that.
//!
//! Owns: the survey of a project's bundle, its comparison with what was trusted, the [`Grant`]
//! without which nothing of a file is expanded, and the [`Seal`] that is checked again just before
//! something starts. Never does: ask (front ends do), expand a reference, or start anything.
//!
//! A bundle is every configuration file that was read for a project, the code its entries would
//! run and the documents they name. It is trusted as a whole, by content. There is no list of keys
//! here that has to keep step with the expander: a file without a grant has no expander at all.

mod bound;
mod bundle;
mod code;
mod decision;
mod effect;
mod grant;
mod local;
mod program;
mod question;
mod references;
mod server;
pub mod store;
mod survey;

pub use bound::{BoundFile, Seal};
pub use bundle::{Bundle, EntryRecord};
pub use decision::Consent;
pub(super) use decision::decide;
pub use effect::{Effect, ProgramEffect, Site};
pub use grant::{Access, Grant};
pub use program::quoted;
pub use question::{QuestionLine, TrustRequest};
pub use references::is_literal;
pub(super) use server::interpreter_of;
