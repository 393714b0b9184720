//! The Python program that runs in the interpreter, embedded in this binary.
//!
//! Owns: its parts and how it is started. A worker is started with a few lines ([`BOOT`]) on its
//! command line; the rest is the first line of its standard input, so that nothing has to be
//! written to a disk and a list of processes stays readable.

use std::path::Path;

use serde_json::{Value, json};

/// The code on the interpreter's command line, after `-c`.
pub(super) const BOOT: &str = include_str!("boot.py");

const MAIN: &str = include_str!("main.py");
const VALUES: &str = include_str!("values.py");
const HINTS: &str = include_str!("hints.py");
const DESCRIBE: &str = include_str!("describe.py");
const OFFERS: &str = include_str!("offers.py");
const CLASSES: &str = include_str!("classes.py");
const HOST_TOOLS: &str = include_str!("host_tools.py");
const GUARD: &str = include_str!("guard.py");

/// The first line a worker reads; `guard` says which code it may load, when that is bound.
pub(super) fn setup(root: &Path, guard: Option<&Value>) -> Vec<u8> {
    let mut parts = json!({
        "main": MAIN,
        "values": VALUES,
        "hints": HINTS,
        "describe": DESCRIBE,
        "offers": OFFERS,
        "classes": CLASSES,
        "host_tools": HOST_TOOLS,
    });
    if guard.is_some() {
        parts["guard"] = GUARD.into();
    }
    let setup = json!({ "root": root.to_string_lossy(), "parts": parts, "guard": guard });
    let mut line = setup.to_string();
    line.push('\n');
    line.into_bytes()
}
