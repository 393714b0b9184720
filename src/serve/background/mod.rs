//! The background host: a catalogue server that front ends of the same program use as their host.

pub mod client;
pub(in crate::serve) mod connection;
pub mod held_sessions;
mod host_message;
pub mod lifetime;
pub mod observers;
pub mod protocol;
#[cfg(test)]
mod tests;
