//! Pins: what tools were when they were accepted, and what has changed since.

pub mod content;
pub mod report;
pub mod table;

pub use content::{Pin, PinFileContent, PinGroup, PinnedEntry};
pub use report::{PinReport, PinReportState, ToolReport};
pub use table::{ConfiguredServer, PinContext, Pins};

#[cfg(test)]
mod tests;
