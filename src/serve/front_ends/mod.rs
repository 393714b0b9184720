//! What a background host does for the front ends of this program.
//!
//! Owns: reading their requests ([`request`]), answering them ([`service`]), and what is sent and asked
//! meanwhile ([`conversation`]). The SDK is not involved: what it does for any client takes longer than a
//! call. Never does: serve other clients of the socket.

mod conversation;
pub(in crate::serve) mod request;
pub mod service;
