//! Pins: what tools were when they were accepted, and what has changed since.
//!
//! Owns: what a pin holds ([`content`]), the comparison of one tool with its pin ([`table`]) and of a
//! whole listing with all pins ([`report`]). Never does: read or write a file, or refuse a call.

pub mod content;
pub mod report;
pub mod table;

pub use content::{Pin, PinFileContent, PinGroup, PinnedEntry};
pub use report::{PinReport, PinReportState, ToolReport};
pub use table::{ConfiguredServer, PinContext, Pins};

#[cfg(test)]
mod tests;
