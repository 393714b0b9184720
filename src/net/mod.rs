//! Shared code of all HTTP clients in this crate.
//!
//! Owns: the client and how it connects, which addresses and redirects are refused, bounded
//! reading of responses, and what goes wrong below HTTP as errors. Never does: know what is asked
//! or what an answer means; the wire to servers (`mcp`) and the tools of the kind `http` do.

pub mod address;
pub mod client;
pub mod errors;
#[cfg(feature = "otel")]
pub mod otlp;
pub mod posted_body;
pub mod redirect;
pub mod response;

#[cfg(test)]
pub(crate) mod test_server;
