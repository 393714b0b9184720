//! Utilities without domain knowledge.
//!
//! Owns: ports for time and ids, units, the one sanitiser for untrusted text, bounded buffers,
//! atomic files. Never does: know a tool, a server or a command.

pub mod append;
pub mod atomic_file;
pub mod base64;
pub mod clock;
pub mod confine;
pub mod diff;
pub mod hex;
pub mod histogram;
pub mod hosts;
pub mod ids;
pub mod jq;
pub mod json;
pub mod json_line;
pub mod keychain;
pub mod lock;
pub mod orphans;
pub mod output_paths;
pub mod pacer;
pub mod part_digest;
pub mod pattern;
pub mod percent;
pub mod private_file;
pub mod process;
pub mod regular_file;
pub mod schema;
pub mod segments;
pub mod shape;
pub mod spelling;
pub mod stopped_process;
pub mod tail;
pub mod text;
pub mod timestamp;
pub mod tls;
pub mod units;
pub mod uri_template;

#[cfg(test)]
pub(crate) mod named_pipe;
#[cfg(test)]
pub(crate) mod skipped;
