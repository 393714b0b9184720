//! The rules of the house that one package gets no help from the compiler for.
//!
//! Owns: the table of who may import whom (`ARCHITECTURE.md`), which external crate belongs to
//! which room, and the shape of files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The rooms from the bottom up; a room may import any room of a lower floor.
const FLOORS: &[&[&str]] = &[
    &["util"],
    &["model"],
    &["config", "catalogue", "formats", "stats", "audit", "history", "net"],
    &["provider", "mcp"],
    &["host", "providers"],
    &["bench", "serve"],
    &["assembly"],
    &["cli", "tui"],
    &["run"],
];

/// Imports on one floor that are meant.
const NEIGHBOURS: &[(&str, &str)] = &[("catalogue", "config")];

/// Imports downwards that are not allowed all the same: who, whom, and who may.
const BARRED: &[(&str, &str)] = &[
    ("cli", "mcp"),
    ("cli", "providers"),
    ("tui", "mcp"),
    ("tui", "providers"),
    ("host", "mcp"),
    ("bench", "mcp"),
    ("bench", "providers"),
];

/// Where an external crate may be named, as prefixes of paths below `src`.
const BORDERS: &[(&str, &[&str])] = &[
    ("rmcp", &["mcp/", "mcp.rs", "serve/", "serve.rs"]),
    ("clap", &["cli/", "cli.rs", "run.rs", "main.rs"]),
    ("clap_complete", &["cli/", "cli.rs", "run.rs", "main.rs"]),
    ("ratatui", &["tui/", "tui.rs", "cli/prompt"]),
    ("crossterm", &["tui/", "tui.rs", "cli/prompt"]),
    ("reqwest", &["net/", "mcp/transport/http", "mcp/auth", "providers/http"]),
];

/// The longest a file may be.
const MOST_LINES: usize = 800;

/// A source file: its path below `src` and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn room(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Numbered lines of code: without comments, and without tests, which may look anywhere.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = self.path.ends_with("tests.rs") || self.path.contains("/tests/");
        self.text
            .lines()
            .enumerate()
            .take_while(move |(_, line)| !tests && !line.starts_with("#[cfg(test)]"))
            .map(|(at, line)| (at + 1, line.split("//").next().unwrap_or_default()))
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut left = vec![root.clone()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                found.push(Source { path: below, text: std::fs::read_to_string(&path).unwrap() });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&room))
}

/// The rooms of this crate that a line names, as in `use crate::model::{…}` or `crate::host::x()`.
fn rooms_named(line: &str) -> Vec<&str> {
    let names = line.match_indices("crate::").filter(|(at, _)| {
        // `my_crate::` is something else.
        !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
    });
    names
        .map(|(at, word)| {
            let rest = &line[at + word.len()..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            &rest[..end]
        })
        .collect()
}

/// Whether a line names an external crate: `use name`, `name::` or `extern crate name`.
fn names_crate(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = &line[at + name.len()..];
        let starts = !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
        starts
            && (after.starts_with("::")
                || (line.trim_start().starts_with("use ") && after.starts_with(';')))
    })
}

#[track_caller]
fn none(found: &str) {
    assert!(found.is_empty(), "\n{found}");
}

#[test]
fn imports_point_downwards_only() {
    let mut found = String::new();
    for source in &sources() {
        let room = source.room();
        if matches!(room, "lib" | "main") {
            continue;
        }
        let Some(own) = floor(room) else {
            writeln!(found, "src/{}: no floor is known for the room '{room}'", source.path)
                .unwrap();
            continue;
        };
        for (at, line) in source.code() {
            for named in rooms_named(line) {
                let Some(other) = floor(named) else { continue };
                let allowed = named == room || other < own || NEIGHBOURS.contains(&(room, named));
                let barred = BARRED.contains(&(room, named))
                    // One provider is the bridge to the servers; no other kind knows them.
                    || (room == "providers" && named == "mcp" && !source.path.starts_with("providers/mcp"));
                if !allowed || barred {
                    writeln!(found, "src/{}:{at}: {room} may not import {named}", source.path)
                        .unwrap();
                }
            }
        }
    }
    none(&found);
}

#[test]
fn external_crates_stay_in_their_rooms() {
    let mut found = String::new();
    for source in &sources() {
        for (at, line) in source.code() {
            for (name, places) in BORDERS {
                let inside = places.iter().any(|place| source.path.starts_with(place));
                if !inside && names_crate(line, name) {
                    writeln!(found, "src/{}:{at}: {name} does not belong here", source.path)
                        .unwrap();
                }
            }
        }
    }
    none(&found);
}

/// The lines of the block below a mark in ARCHITECTURE.md, as words.
fn mapped(mark: &str) -> Vec<Vec<&'static str>> {
    let page = include_str!("../../ARCHITECTURE.md");
    let lines = page.lines().skip_while(|line| *line != mark).skip(2);
    lines.take_while(|line| *line != "```").map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn the_map_shows_these_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut floors = mapped("<!-- floors -->");
    for room in floors.iter_mut().flatten() {
        let planned = room.strip_prefix('(').and_then(|room| room.strip_suffix(')'));
        let name = planned.unwrap_or(room);
        let exists = root.join(name).is_dir() || root.join(format!("{name}.rs")).is_file();
        assert_eq!(planned.is_none(), exists, "ARCHITECTURE.md: {room}");
        *room = name;
    }
    let sorted = |mut rooms: Vec<&'static str>| {
        rooms.sort_unstable();
        rooms
    };
    let floors: Vec<_> = floors.into_iter().rev().map(sorted).collect();
    let expected: Vec<_> = FLOORS.iter().map(|floor| sorted(floor.to_vec())).collect();
    assert_eq!(floors, expected, "ARCHITECTURE.md: floors");

    let barred: Vec<(&str, &str)> = mapped("<!-- barred -->")
        .iter()
        .flat_map(|row| row.iter().skip(1).map(|whom| (row[0], *whom)))
        .collect();
    assert_eq!(barred, BARRED, "ARCHITECTURE.md: barred");
}

#[test]
fn every_file_says_what_it_is_for_and_none_is_too_long() {
    let mut found = String::new();
    for source in &sources() {
        // `main.rs` is a dozen lines, and its crate documentation is that of the library.
        if source.path != "main.rs" && !source.text.starts_with("//!") {
            writeln!(found, "src/{}: starts without //!", source.path).unwrap();
        }
        let lines = source.text.lines().count();
        if lines > MOST_LINES {
            writeln!(found, "src/{}: {lines} lines are too many", source.path).unwrap();
        }
    }
    none(&found);
}

#[test]
fn nothing_is_left_lying_about() {
    // Written in two halves, so that this file does not find itself should it be searched too.
    let marks = [["todo", "!("], ["dbg", "!("], ["unimplemented", "!("], ["FIX", "ME"]];
    let mut found = String::new();
    for source in &sources() {
        for (at, line) in source.text.lines().enumerate() {
            for mark in marks.map(|halves| halves.concat()) {
                if line.contains(&mark) {
                    writeln!(found, "src/{}:{}: {mark}", source.path, at + 1).unwrap();
                }
            }
        }
    }
    none(&found);
}

#[test]
fn the_rules_find_what_they_look_for() {
    assert_eq!(rooms_named("use crate::mcp::wire::Wire;"), ["mcp"]);
    assert_eq!(rooms_named("    let x = crate::host::run(crate::cli::y);"), ["host", "cli"]);
    assert_eq!(rooms_named("use $crate::a; my_crate::b; use std::fmt;"), ["a"]);
    assert!(names_crate("use clap::Parser;", "clap"));
    assert!(names_crate("    fn f(x: rmcp::Peer) {", "rmcp"));
    assert!(names_crate("use reqwest;", "reqwest"));
    assert!(!names_crate("use clap_complete::Shell;", "clap"));
    assert!(!names_crate("let clap = 1;", "clap"));
    assert!(!names_crate("use crate::x::clap::y;", "clap"));
    let room = |path: &str| Source { path: path.to_owned(), text: String::new() }.room().to_owned();
    assert_eq!(room("mcp/transport/mod.rs"), "mcp");
    assert_eq!(room("assembly.rs"), "assembly");
}
