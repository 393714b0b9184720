//! Configuration as a small compiler: discover → read → parse → expand → resolve → spec.
//!
//! Owns: finding and understanding `tools.yaml` and `mcp.yaml`, and saying exactly what is wrong
//! with them. Every value knows its file, line and column; all problems are reported at once; one
//! bad entry never stops the rest. Never does: start, open or contact anything an entry names.

pub mod environment;
pub mod node;
pub mod schema;
pub mod spec;
pub mod trust_store;
