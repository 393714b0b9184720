//! How things are written: pages for people, JSON and YAML for programs, one door for all.
//!
//! Owns: layout, escaping, colour, and the only handles on stdout and stderr. Never does: know a
//! command, or decide what is worth saying.

pub mod caret;
pub mod content;
pub mod door;
pub mod fault;
pub mod page;
pub mod settings;
pub mod table;
pub mod yaml;

pub use door::{Door, Stop};
pub use page::{Label, Line, Page, Palette};
pub use settings::{ColourChoice, Format};

pub use crate::util::json;
