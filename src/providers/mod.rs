//! The kinds of tool, one file or folder each.
//!
//! Owns: turning entries of a kind into one provider that runs them. Each kind of internal tool
//! gives a function `kind()` for the registry in `assembly` and nothing else; `mcp` makes one
//! provider of each server. Never does: validate arguments, ask for approval, keep deadlines or
//! repeat — the host does that, once for all kinds.

pub mod builtin;
pub mod command;
pub mod http;
pub mod mcp;
#[cfg(feature = "openapi")]
pub mod openapi;

#[cfg_attr(not(test), expect(dead_code, reason = "no kind in this build selects yet"))]
mod toolkit;

mod properties;

#[cfg(test)]
#[expect(dead_code, reason = "each kind uses what it needs")]
mod bench;
