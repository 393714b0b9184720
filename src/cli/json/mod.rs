//! The documented JSON output of every command: one serialisable type for each shape.
//!
//! Owns: the keys, their order and their meaning. [`schema`] derives the JSON Schemas from the same
//! types, so the two cannot differ. Fields may be added and never removed. Pure: no input, no
//! output, no clock, no human-readable text.

pub mod audit;
pub mod auth;
pub mod background;
pub mod call;
pub mod config;
pub mod doctor;
pub mod error;
pub mod history;
pub mod list;
pub mod offerings;
pub mod pins;
pub mod saved_calls;
pub mod schema;
pub mod serve_token;
pub mod server;
pub mod stats;
pub mod token_costs;
pub mod tool;
pub mod trust;
