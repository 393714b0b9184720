//! The program that runs in the interpreter, which is part of this binary.
//!
//! Owns: its parts and how it is started. A worker is started with a few lines ([`BOOT`]) on its
//! command line; the rest is the first line of its standard input, so that nothing has to be
//! written to a disk and a list of processes stays readable.

use std::path::Path;

use serde_json::json;

/// What stands on the command line after `-c`.
pub(super) const BOOT: &str = include_str!("shim/boot.py");

const MAIN: &str = include_str!("shim/main.py");
const VALUES: &str = include_str!("shim/values.py");
const HINTS: &str = include_str!("shim/hints.py");
const DESCRIBE: &str = include_str!("shim/describe.py");

/// The first line a worker reads.
pub(super) fn setup(root: &Path) -> Vec<u8> {
    let parts = json!({ "main": MAIN, "values": VALUES, "hints": HINTS, "describe": DESCRIBE });
    let mut line = json!({ "root": root.to_string_lossy(), "parts": parts }).to_string();
    line.push('\n');
    line.into_bytes()
}
