//! The kinds of internal tools, one folder each.
//!
//! Owns: turning the entries of a kind into one provider that runs them. Each kind gives a
//! function `kind()` for the registry in `assembly` and nothing else. Never does: validate
//! arguments, ask for approval, keep deadlines or repeat — the host does that once for all kinds.

pub mod builtin;
pub mod command;
