//! The background host: a catalogue server that front ends of the same program use as their host.
//!
//! Owns: what they say to each other beside MCP ([`protocol`]), how long the host lives
//! ([`lifetime`]) and the sessions in it ([`held_sessions`]), who watches it ([`observers`]), and the front end's side of the connection
//! ([`client`]). Never does: load a configuration, or choose where the socket lies.

pub mod client;
mod connection;
pub mod held_sessions;
pub mod lifetime;
pub mod observers;
pub mod protocol;
#[cfg(test)]
mod tests;
