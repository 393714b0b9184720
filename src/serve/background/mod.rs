//! The background host: a catalogue server that front ends of the same program use as their host.

pub mod client;
pub mod held_sessions;
pub mod lifetime;
pub mod observers;
pub mod protocol;
pub mod service;
#[cfg(test)]
mod tests;
