//! The durable audit record: who ran which tool, and what was decided.
//!
//! Owns: the audit log, writing and reading it, and the masking of secrets. Never does: decide anything about a call, or
//! keep results.

pub mod log;
pub mod mask;
pub mod read;
pub mod trace;

pub use mask::Masker;
