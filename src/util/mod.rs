//! Small tools without knowledge of the domain.
//!
//! Owns: ports for time and ids, units, the one sanitiser for untrusted text, bounded buffers,
//! atomic files. Never does: know a tool, a server or a command.

pub mod append;
pub mod base64;
pub mod clock;
pub mod confine;
pub mod csv;
pub mod database;
pub mod difference;
pub mod histogram;
pub mod hosts;
pub mod ids;
pub mod jq;
pub mod json;
pub mod moment;
pub mod orphans;
pub mod pacer;
pub mod pattern;
pub mod private;
pub mod process;
pub mod regular;
pub mod replace;
pub mod row;
pub mod segments;
pub mod tail;
pub mod targets;
pub mod text;
pub mod units;
pub mod uri_template;
