//! `SECURITY.md` names the tests that fail when a promise is broken: each of them has to be there. So
//! has what `docs/mission.md` names; its commands are run.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{Sandbox, example};

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

#[test]
fn every_row_of_the_mission_is_seen_where_it_says() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/mission.md")).unwrap();
    let (mut library, mut program) = (Vec::new(), Vec::new());
    tests_below(&root.join("src"), "", &mut library);
    tests_below(&root.join("tests/e2e"), "", &mut program);
    let is_there = |tests: &[String], name: &str| tests.iter().any(|test| test.contains(name));
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| part |"));
    let mut seen = 0;
    for row in rows {
        let cell = row.split(" | ").nth(2).unwrap_or_else(|| panic!("{row}"));
        let spans: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!spans.is_empty(), "nothing is named to see it: {row}");
        for span in spans {
            let words: Vec<&str> = span.split_whitespace().collect();
            match words[..] {
                ["toolhost", ref words @ ..] => run_in_a_clone(words),
                ["cargo", "test", "--lib", name] => assert!(is_there(&library, name), "{row}"),
                ["cargo", "run", "--example", name, "--", "toolhost", ref words @ ..] => {
                    let room = Sandbox::new();
                    let words = std::iter::once(env!("CARGO_BIN_EXE_toolhost"))
                        .chain(words.iter().copied());
                    room.program(example(name).to_str().unwrap(), words).check().exits(0);
                }
                [script, ..] if script.contains('/') => {
                    assert!(root.join(script).is_file(), "{row}");
                }
                [name] => assert!(
                    is_there(&program, &format!("{name}::")) || is_there(&program, name),
                    "{row}"
                ),
                _ => panic!("what is '{span}'? {row}"),
            }
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} places are named");
}

/// Runs a command as a newcomer would, with the examples of the project.
#[track_caller]
fn run_in_a_clone(words: &[&str]) {
    let room = Sandbox::new();
    let examples = format!("{}/examples/", env!("CARGO_MANIFEST_DIR"));
    let words: Vec<String> =
        words.iter().map(|word| word.replace("examples/", &examples)).collect();
    room.toolhost(words.iter().map(String::as_str)).check().exits(0);
}

/// The tests below a directory as paths: `module::name`.
fn tests_below(directory: &Path, module: &str, tests: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            tests_below(&path, &format!("{module}{name}::"), tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let within =
                if name == "mod" { module.to_owned() } else { format!("{module}{name}::") };
            let text = std::fs::read_to_string(&path).unwrap();
            let marked = text.split("#[test]").skip(1).chain(text.split("#[tokio::test").skip(1));
            tests.extend(marked.filter_map(|rest| {
                let function = rest.split("fn ").nth(1)?.split('(').next()?;
                Some(format!("{within}{function}"))
            }));
        }
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
