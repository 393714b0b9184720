//! Shared code of all HTTP clients in this crate.
//!
//! Owns: the client and how it connects, which addresses and redirects are refused, bounded
//! reading of responses, and what goes wrong below HTTP as errors. Never does: know what is asked
//! or what an answer means; the wire to servers (`mcp`) and the tools of the kind `http` do.

pub mod address;
pub mod client;
pub mod dial;
pub mod errors;
pub mod excerpt;
pub mod fetch;
mod gzip;
mod idle_connections;
pub mod lookup;
pub mod origin;
#[cfg(feature = "otel")]
pub mod otlp;
mod plain;
pub mod posted_body;
pub mod redirect;
pub mod response;
mod tls;

#[cfg(test)]
pub(crate) mod test_server;
