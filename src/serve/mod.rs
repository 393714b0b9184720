//! Stand-in for the catalogue as a server.
pub mod demo;
