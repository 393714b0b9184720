//! Output: pages for people, JSON and YAML for programs, and the one writer for all.
//!
//! Owns: escaping, colour, and the only handles on stdout and stderr. Never does: know a
//! command, or decide what to print.

pub mod settings;
pub mod streams;
pub mod yaml;

pub use settings::{ColourChoice, Format};
pub use streams::{CommandError, Output};
