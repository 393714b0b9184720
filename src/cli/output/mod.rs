//! Output: pages for people, JSON and YAML for programs, and the one writer for all.
//!
//! Owns: layout, escaping, colour, and the only handles on stdout and stderr. Never does: know a
//! command, or decide what to print.

pub mod caret;
pub mod content;
pub mod counts;
pub mod messages;
pub mod page;
pub mod settings;
pub mod streams;
pub mod table;
pub mod yaml;

pub use counts::plural;
pub use page::{SpanStyle, StyledLine, StyledPage};
pub use settings::{ColourChoice, Format};
pub use streams::{CommandError, Output};
