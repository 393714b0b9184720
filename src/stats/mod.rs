//! Statistics of the calls that were made.
//!
//! Owns: the spool, one line for each call, and what can be asked of it. Never does: keep arguments
//! or results, print.
//!
//! A call costs one line appended to the spool; whoever asks reads the lines.

pub mod comparison;
pub mod count;
pub mod spool;
mod statistics;
pub mod summary;

pub use spool::SpoolRow;
pub use statistics::{ReadBudget, Statistics};
pub use summary::{Summary, Usage};
