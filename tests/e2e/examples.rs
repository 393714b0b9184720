//! The example calls that `inspect` prints, run as they are printed.

use std::path::Path;

use crate::support::Sandbox;

#[test]
fn every_example_of_the_default_catalogue_runs_as_printed() {
    let room = Sandbox::new();
    let listed = room.toolhost(["list", "-o", "names"]).check();
    listed.exits(0);
    let names = listed.out();
    assert!(names.lines().count() > 15, "{listed}");
    let directory = Path::new(env!("CARGO_BIN_EXE_toolhost")).parent().unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", directory.display());
    for name in names.lines() {
        let page = room.toolhost(["inspect", name]).check();
        let out = page.out();
        let example = out.split("\nExample\n").nth(1).unwrap_or_default().trim();
        assert!(example.starts_with("toolhost call "), "{page}");
        let run = room.program("sh", ["-c", example]).env("PATH", &path).check();
        // A tool may say no, and one that destroys something is refused; none is misused.
        run.exits_one_of(&[0, 3, 6]);
        let asks = name.contains("delete");
        assert_eq!(run.code == Some(6), asks, "{example}\n{run}");
        assert_eq!(run.code == Some(3), name.ends_with("fail"), "{example}\n{run}");
    }
}
