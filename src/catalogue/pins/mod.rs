//! What tools were when somebody accepted them, and what has become of them since.
//!
//! Owns: what a pin holds ([`book`]), the comparison of one tool with its pin ([`table`]) and of a
//! whole listing with all pins ([`report`]). Never does: read or write a file, or refuse a call.

pub mod book;
pub mod report;
pub mod table;

pub use book::{Book, Group, Pin, PinnedEntry};
pub use report::{Report, State, ToolReport};
pub use table::{Known, Owner, Pins, Verdict};

#[cfg(test)]
mod tests;
