//! `SECURITY.md` names the tests that fail when a promise is broken: each of them has to be there.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_test_that_a_promise_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let named: BTreeSet<&str> = page
        .split("(tests:")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .flat_map(|list| list.split('`').skip(1).step_by(2))
        .collect();
    assert!(named.len() > 60, "only {} tests are named", named.len());
    let mut functions = BTreeSet::new();
    for directory in ["src", "tests"] {
        collect(&root.join(directory), &mut functions);
    }
    let missing: Vec<&&str> = named.iter().filter(|name| !functions.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Every promise has one: a paragraph under "The defences" or "Logins" that names none is found.
    let promises = page.split("\n## The defences").nth(1).unwrap();
    let promises = promises.split("\n## What is not defended").next().unwrap();
    for title in promises.split("\n**D").skip(1) {
        assert!(title.contains("(tests:"), "D{}", title.lines().next().unwrap_or_default());
    }
}

/// The names of all functions below a directory.
fn collect(directory: &Path, functions: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, functions);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for rest in text.split("fn ").skip(1) {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                functions.insert(rest.get(..end.unwrap_or(rest.len())).unwrap().to_owned());
            }
        }
    }
}
