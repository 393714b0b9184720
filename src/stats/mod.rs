//! Statistics of the calls that were made.
//!
//! Owns: the spool, one line for each call; the store, which the lines are folded into; and what
//! can be asked of both. Never does: keep arguments or results, wait for another process in a call,
//! print.
//!
//! A call costs one line appended to the spool. A reader first folds what was appended since into
//! the store ([`Statistics`]), each line exactly once, even across failures.

pub mod comparison;
pub mod count;
pub mod declared_speed;
pub mod granularity;
pub mod location;
pub mod spool;
pub mod spool_reader;
mod statistics;
mod store;
pub mod summary;

pub use location::StatsLocation;
pub use spool::SpoolRow;
pub use statistics::{ReadBudget, Statistics};
pub use summary::{Summary, Usage};
