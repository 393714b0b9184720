//! The kinds of tools, one file or folder each.
//!
//! Owns: turning entries of a kind into one provider that runs them. Each kind of internal tool
//! gives a function `kind()` for the registry in `assembly` and nothing else; `mcp` makes one
//! provider of each server. Never does: validate arguments, ask for approval, keep deadlines or
//! repeat — the host does that, once for all kinds.

pub mod builtin;
pub mod command;
pub mod files;
pub mod http;
pub mod mailbox;
pub mod mcp;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod pipeline;
pub mod python;
pub mod storage;

mod arguments;
mod confinement;
mod engines;
mod limited_events;
mod local;
mod program_env;
mod template;
mod toolkit;

#[cfg(test)]
mod harness;
