//! Configuration as a small compiler: discover → read → parse → consent → expand → resolve → spec.
//!
//! Owns: finding and parsing `tools.yaml` and `mcp.yaml`, and reporting exactly what is wrong
//! with them. Every value has its file, line and column; all diagnostics are reported at once; one
//! bad entry never stops the rest. No value of a project's file is expanded without a [`Grant`] of
//! [`consent`]. Never does: start or contact anything an entry names, or ask the user.
//!
//! [`Grant`]: consent::Grant

pub mod consent;
mod credentials;
pub mod discover;
pub mod editors;
pub mod entries;
mod env_file;
pub mod environment;
pub mod expanded;
pub mod load;
pub mod node;
pub mod parse;
mod permissions;
pub mod plain_http;
pub mod read;
pub mod references;
mod resolve;
pub mod sandbox;
pub mod saved_calls;
pub mod schema;
pub mod secrets;
pub mod show;
mod sources;
pub mod spec;
pub mod suite;
pub mod typed;
pub mod unix_socket;
pub mod watched_files;

pub use discover::LoadRequest;
pub use load::load;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod layers;
