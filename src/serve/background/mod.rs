//! The background host: a catalogue server that front ends of the same program use as their host.
//!
//! Owns: the protocol between them in addition to MCP ([`protocol`]), how long the host
//! ([`lifetime`]) and its sessions ([`held_sessions`]) live, who watches it ([`observers`]), and the
//! front end's side of the connection ([`client`]). Never does: load a configuration, or choose the
//! path of the socket.

pub mod client;
mod connection;
pub mod held_sessions;
pub mod lifetime;
pub mod observers;
pub mod protocol;
#[cfg(test)]
mod tests;
