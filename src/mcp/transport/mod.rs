//! The transports: how bytes reach a server and come back.

pub mod http;
pub mod socket;
pub mod stdio;
