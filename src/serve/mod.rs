//! The server side of MCP: what toolhost offers to others.
//!
//! Owns: the MCP servers that run inside this binary, and the proxy that stands before one of
//! somebody else. Never does: load configuration, talk to a terminal, or start a server of somebody
//! else. The SDK's types stay inside this room.

pub mod catalogue_server;
pub mod demo;
pub mod listen;
pub mod record;
pub mod replay;
