//! The transports of `toolhost serve`: standard streams, Unix sockets, HTTP and WebSocket.

pub mod access;
pub mod authentication;
pub mod http;
pub mod issued_tokens;
pub mod oauth;
pub mod stream;
pub mod token_store;
pub mod unix;

pub mod accept;
mod bounded_stream;
mod http_clients;
mod http_sessions;
mod mcp_service;
mod text_transport;
mod web_socket;

/// The longest message a client may send, in bytes.
pub(super) const MAX_MESSAGE: usize = super::background::protocol::MAX_REQUEST;
