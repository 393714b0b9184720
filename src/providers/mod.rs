//! The kinds of tool, one file or folder each.
//!
//! Owns: running tools of one kind. Each kind gives a constructor from its spec and nothing else;
//! only `assembly` names them. Never does: wrap a call — that is the host's, once for all kinds.

pub mod mcp;
