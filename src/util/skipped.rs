//! Tests that a machine cannot make: each says so where the test runner does not hide it.
//!
//! A part of both test binaries, so that it knows nothing but the standard library.

use std::io::Write as _;

/// Says that something is left out, and why. With `TOOLHOST_REQUIRE_ALL=1`, as in CI, that is a
/// failure.
pub fn left_out(why: &str) {
    #[expect(clippy::disallowed_methods, reason = "a switch for the person who runs the tests")]
    let requires_all = std::env::var_os("TOOLHOST_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!requires_all, "left out, and TOOLHOST_REQUIRE_ALL is set: {why}");
    let test = std::thread::current();
    let test = test.name().unwrap_or("a test");
    // The runner hides what is printed by macros, and only that.
    let line = format!("\nLEFT OUT: {test}: {why} (TOOLHOST_REQUIRE_ALL=1 makes this a failure)\n");
    std::io::stderr().write_all(line.as_bytes()).ok();
}

/// Whether one of these programs is not installed; then the test is left out, aloud.
pub fn lacks(programs: &[&str]) -> bool {
    #[expect(clippy::disallowed_methods, reason = "where a test looks for its counterpart")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |name: &&&str| std::env::split_paths(&path).any(|place| place.join(name).is_file());
    let missing = programs.iter().find(|name| !is_there(name));
    if let Some(name) = missing {
        left_out(&format!("{name} is not installed; install it to include this test"));
    }
    missing.is_some()
}
