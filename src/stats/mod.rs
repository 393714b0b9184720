//! Numbers about calls that were made.
//!
//! Owns: the spool, one line for each call; the store, which the lines are folded into; and what
//! can be asked of both. Never does: keep arguments or results, wait for another process in a call,
//! print.
//!
//! A call costs one line appended to the spool. Whoever reads statistics first folds what was
//! appended since into the store ([`Statistics`]), each line once, whatever happens in between.

pub mod count;
pub mod export;
pub mod level;
pub mod place;
pub mod spool;
mod statistics;
mod store;
pub mod summary;
pub mod unread;

pub use place::Place;
pub use spool::{Row, Spool};
pub use statistics::{Patience, Statistics};
pub use summary::{Query, Summary, Usage};
