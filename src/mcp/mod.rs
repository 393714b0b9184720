//! The MCP client: one connection from bytes to typed responses, in both protocol eras.
//!
//! Owns: the wire (our own stdio and HTTP transports), era detection, sessions, listing, calling,
//! reading and subscribing. Never does: know the host, the catalogue or the terminal. Only `auth`
//! uses rmcp.

pub mod auth;
pub mod calling;
pub mod connection;
pub mod credentials;
mod definition;
pub mod era_cache;
mod handshake;
pub mod headers;
pub mod json_text;
pub mod lifecycle;
pub mod listing;
pub mod message;
mod notifications;
mod offering_items;
pub mod offering_requests;
mod page;
mod questions;
mod responder;
pub mod rounds;
mod session;
pub mod subscription;
mod tasks;
#[cfg(test)]
mod tests;
pub mod tracer;
pub mod transport;
mod warnings;
pub mod wire;

pub use notifications::SUBSCRIPTION;
