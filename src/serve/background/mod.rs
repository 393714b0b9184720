//! The background host: a catalogue server that front ends of the same program use as their host.
//!
//! Owns: the protocol between them in addition to MCP ([`protocol`]), how long the host
//! ([`lifetime`]) and its sessions ([`held_sessions`]) live, who watches it ([`observers`]), and the
//! front end's side of the connection ([`client`]). Never does: answer requests (`front_ends`), load a
//! configuration, or choose the path of the socket.

pub mod client;
pub(in crate::serve) mod connection;
pub mod held_sessions;
mod host_message;
pub mod lifetime;
pub mod observers;
pub mod protocol;
#[cfg(test)]
mod tests;
