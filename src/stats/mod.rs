//! Numbers about calls that were made.
//!
//! Owns: the spool, one line for each call. Never does: keep arguments or results, or wait for
//! another process.

pub mod spool;

pub use spool::{Row, Spool};
