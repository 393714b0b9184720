//! Named pipes for tests: what a path may turn out to be instead of a file.

use std::path::Path;
use std::process::Command;

/// Makes a named pipe at `path`, which only the owner may use.
pub fn make(path: &Path) {
    // The system call has another name on each system; the program is the same on all.
    let made = Command::new("mkfifo").args(["-m", "600"]).arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "no pipe at {}", path.display());
}
