//! Output: pages for people, JSON and YAML for programs, and the one writer for all.

pub mod settings;
pub mod streams;
pub mod yaml;

pub use settings::{ColourChoice, Format};
pub use streams::{CommandError, Output, conclude};
