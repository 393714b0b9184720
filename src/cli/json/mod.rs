//! The documented JSON output of several commands: one serialisable type for each shape. What only
//! one command prints stands with that command.
//!
//! Owns: the keys, their order and their meaning. [`schema`] derives the JSON Schemas from the same
//! types, so the two cannot differ. Fields may be added and never removed. Pure: no input, no
//! output, no clock, no human-readable text.

pub mod call;
pub mod error;
pub mod offerings;
pub mod schema;
pub mod server;
pub mod stats;
pub mod tool;
