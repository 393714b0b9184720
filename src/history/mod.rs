//! The history: calls with arguments and results, kept for inspection and reruns.
//!
//! Owns: the history, writing and reading it. Never does: decide what is secret (what arrives here
//! is masked already), run a call, or keep more of a result than its head.

pub mod compare;
pub mod json;
pub mod log;
pub mod read;

pub use read::HistoryEntry;
