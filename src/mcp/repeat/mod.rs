//! Many calls of one tool over one connection, bypassing the session.
//!
//! Owns: the fast path of a connection. Requests are serialised in advance except for their ids and
//! arguments, and responses are recognised in their bytes; anything not plainly a response to one
//! of these calls takes the ordinary path. Never does: decide what is sent when, or count.

pub mod answer;
pub mod in_flight;
pub mod stdio_run;
