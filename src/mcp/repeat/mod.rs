//! Many calls of one tool over one connection, bypassing the session.
//!
//! Owns: the second speed of a connection. Requests are written in advance but for their ids and
//! arguments, and an answer is recognised in its bytes; whatever is not plainly the answer to one
//! of these calls goes the way that everything else goes. Never does: say what is sent when, or
//! count.

pub mod answer;
pub mod in_flight;
pub mod stdio_run;
