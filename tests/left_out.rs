//! The end of `cargo test`: which tests this machine could not make, and how to include them.
//!
//! A binary of its own that runs after the others, so that its lines are the last ones.

use std::io::Write as _;

#[path = "../src/util/skipped.rs"]
#[expect(dead_code, reason = "leaving out is for the tests")]
mod skipped;

fn main() {
    // `cargo nextest` asks what there is: nothing.
    if std::env::args().any(|word| word == "--list") {
        return;
    }
    let Some(path) = skipped::notes() else { return };
    let notes = std::fs::read_to_string(&path).unwrap_or_default();
    // Those of runs that ended before this, such as `cargo test --test e2e`, go too.
    let directory = path.parent().and_then(|directory| std::fs::read_dir(directory).ok());
    for file in directory.into_iter().flatten().flatten() {
        let name = file.file_name();
        if name.to_string_lossy().starts_with("left-out-") {
            std::fs::remove_file(file.path()).ok();
        }
    }
    std::io::stdout().write_all(skipped::summary(&notes).as_bytes()).ok();
}
