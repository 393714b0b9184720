//! The Python program that runs in the interpreter, embedded in this binary.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// The code on the interpreter's command line, after `-c`.
pub(super) const BOOT: &str = include_str!("boot.py");

const PARTS: [(&str, &str); 8] = [
    ("main", include_str!("main.py")),
    ("values", include_str!("values.py")),
    ("hints", include_str!("hints.py")),
    ("describe", include_str!("describe.py")),
    ("offers", include_str!("offers.py")),
    ("classes", include_str!("classes.py")),
    ("host_tools", include_str!("host_tools.py")),
    ("guard", include_str!("guard.py")),
];

/// The first line a worker reads; `guard` says which code it may load, when that is bound.
pub(super) fn setup(root: &Path, guard: Option<&Value>) -> Vec<u8> {
    let parts = BTreeMap::from(PARTS);
    let setup = json!({ "root": root.to_string_lossy(), "parts": parts, "guard": guard });
    setup.to_string().into_bytes()
}
