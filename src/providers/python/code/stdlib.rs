//! The names of Python's standard library.

use std::collections::HashSet;
use std::sync::LazyLock;

/// `sys.stdlib_module_names` of Python 3.11 to 3.14, all of them, without `test`: no module of the
/// library imports that one, and it is what many projects call their tests.
const NAMES: &str = include_str!("stdlib.txt");

/// Whether a module of this name would be imported in the place of one that Python brings along.
pub(super) fn is_standard(name: &str) -> bool {
    static KNOWN: LazyLock<HashSet<&str>> =
        LazyLock::new(|| NAMES.split_ascii_whitespace().collect());
    KNOWN.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_interpreter_are_known() {
        // The interpreter of this machine may be newer or older; these are in all of them.
        for name in ["json", "os", "asyncio", "_json", "sysconfig", "annotationlib", "imp"] {
            assert!(is_standard(name), "{name}");
        }
        for name in ["test", "tests", "numpy", "json2", ""] {
            assert!(!is_standard(name), "{name}");
        }
    }
}
