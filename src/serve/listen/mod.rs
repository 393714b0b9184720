//! The transports of `toolhost serve`: standard streams, Unix sockets, HTTP and WebSocket.
//!
//! Owns: listening, who may connect, and how much a client may send before anything of it is
//! believed. Never does: know what a request means; each client is handed to the SDK as a transport.

pub mod access;
pub mod address;
pub mod http;
pub mod stdio;
pub mod stream;
pub mod token;
pub mod unix;
pub mod web_socket;

mod connections;
mod line_stream;
mod text_transport;

use std::time::Duration;

/// The pause after a connection that could not be accepted, for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The longest message a client may send, in bytes.
pub(super) const MAX_MESSAGE: usize = 4 << 20;
