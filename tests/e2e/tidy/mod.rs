//! The rules of the house that one package gets no help from the compiler for.
//!
//! Owns: the table of who may import whom (`ARCHITECTURE.md`), which external crate belongs to
//! which room, the names of types, and the shape of files. The sources are parsed (`sources`), so
//! every product line is seen, whatever stands before it.

mod circles;
mod names;
mod public_api;
mod sources;
mod texts;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use names::Alias;
use sources::{Source, files_on_disk, sources};

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
    ("rmcp", &["mcp/", "serve/"]),
    ("clap", &["cli/", "run/", "main.rs"]),
    ("clap_complete", &["cli/", "run/", "main.rs"]),
    ("ratatui", &["tui/", "cli/prompt"]),
    ("crossterm", &["tui/", "cli/prompt"]),
    ("reqwest", &["net/", "mcp/transport/http", "mcp/auth", "providers/http"]),
    ("tracing_subscriber", &["cli/log"]),
    ("tracing", LOGGING),
];

/// The rooms that emit events for the log, and the one that writes it.
const LOGGING: &[&str] =
    &["assembly/", "config/", "host/", "mcp/", "providers/", "run/", "serve/", "util/", "cli/log"];

/// The longest a file may be.
const MOST_LINES: usize = 800;

/// The largest share of doc comments, in percent, that may say four words or fewer.
const MOST_SHORT_COMMENTS: usize = 5;

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&room))
}

/// What may not be imported where, of one file.
fn wrong_imports(source: &Source, found: &mut String) {
    let room = source.room();
    if matches!(room, "lib" | "main") {
        return;
    }
    let Some(own) = floor(room) else {
        writeln!(found, "src/{}: no floor is known for the room '{room}'", source.path).unwrap();
        return;
    };
    for name in source.names.paths.iter().filter(|name| name.is_own) {
        let Some(named) = name.segments.first().map(String::as_str) else { continue };
        let Some(other) = floor(named) else { continue };
        let allowed = named == room || other < own || NEIGHBOURS.contains(&(room, named));
        let barred = BARRED.contains(&(room, named))
            // One provider is the bridge to the servers; no other kind knows them.
            || (room == "providers"
                && named == "mcp"
                && !source.path.starts_with("providers/mcp"));
        if !allowed || barred {
            writeln!(found, "src/{}:{}: {room} may not import {named}", source.path, name.line)
                .unwrap();
        }
    }
}

/// What a file names of crates that belong to other rooms.
fn strangers(source: &Source, found: &mut String) {
    for name in source.names.paths.iter().filter(|name| !name.is_own) {
        let Some(first) = name.segments.first() else { continue };
        let Some((krate, places)) = BORDERS.iter().find(|(krate, _)| krate == first) else {
            continue;
        };
        if !places.iter().any(|place| source.path.starts_with(place)) {
            writeln!(found, "src/{}:{}: {krate} does not belong here", source.path, name.line)
                .unwrap();
        }
    }
}

#[track_caller]
fn none(found: &str) {
    assert!(found.is_empty(), "\n{found}");
}

#[test]
fn imports_point_downwards_only() {
    let mut found = String::new();
    for source in sources() {
        wrong_imports(source, &mut found);
    }
    none(&found);
}

/// Inside a room, too, imports lead one way: whoever opens a module need not read them all.
#[test]
fn rooms_have_no_circles() {
    none(&circles::circles(sources()).join("\n"));
}

#[test]
fn external_crates_stay_in_their_rooms() {
    let mut found = String::new();
    for source in sources() {
        strangers(source, &mut found);
    }
    none(&found);
}

#[test]
fn every_file_belongs_to_a_module() {
    let read: Vec<&str> = sources().iter().map(|source| source.path.as_str()).collect();
    assert_eq!(files_on_disk(), read, "files that no module declares are not compiled");
}

/// One name, one type: a reader who meets a name need not ask which one is meant.
#[test]
fn public_types_have_names_of_their_own() {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources() {
        for definition in source.names.types.iter().filter(|it| it.is_public) {
            let place = format!("src/{}:{}", source.path, definition.line);
            places.entry(&definition.name).or_default().push(place);
        }
    }
    places.retain(|_, places| places.len() > 1);
    let mut found = String::new();
    for (name, places) in &places {
        writeln!(found, "{name}: {}", places.join(", ")).unwrap();
    }
    none(&found);
}

/// A type that is called otherwise where it is imported has two names.
#[test]
fn own_types_keep_their_names_where_they_are_imported() {
    let mut found = String::new();
    for source in sources() {
        let is_type = |alias: &&Alias| alias.new.starts_with(char::is_uppercase);
        let own = source.names.aliases.iter().filter(|alias| alias.name.is_own);
        for alias in own.filter(is_type) {
            writeln!(
                found,
                "src/{}:{}: {} is called {} here",
                source.path,
                alias.name.line,
                alias.name.segments.join("::"),
                alias.new
            )
            .unwrap();
        }
    }
    none(&found);
}

/// An error carries what its callers decide on; a decision never looks for a word in its text.
#[test]
fn errors_are_typed() {
    let mut found = String::new();
    for source in sources() {
        for place in &source.untyped {
            writeln!(found, "src/{}:{}: {}", source.path, place.line, place.what).unwrap();
        }
    }
    none(&found);
}

#[test]
fn doc_comments_add_something() {
    let (mut all, mut count, mut short) = (0, 0, String::new());
    for source in sources() {
        for comment in &source.doc_comments {
            all += 1;
            if comment.text.split_whitespace().count() <= 4 {
                count += 1;
                let text = comment.text.trim();
                writeln!(short, "src/{}:{}: {text}", source.path, comment.line).unwrap();
            }
        }
    }
    assert!(count * 100 <= all * MOST_SHORT_COMMENTS, "{count} of {all}:\n{short}");
}

/// Metaphors that stood for terms of the field, and pronouns that leave open who is meant; they are
/// not to come back, neither as names nor in comments.
#[test]
fn the_words_are_those_of_the_field() {
    const GONE: [&str; 20] = [
        "door",
        "wishes",
        "errand",
        "backstage",
        "course",
        "shot",
        "fence",
        "obituary",
        "surroundings",
        "shutter",
        "detour",
        "farewell",
        "errands",
        "courses",
        "somebody",
        "someone",
        "whoever",
        "nobody",
        "anybody",
        "anyone",
    ];
    let mut found = String::new();
    for source in sources() {
        for (at, line) in source.text.lines().enumerate() {
            // Text in quotes may be a promised key, such as `course` in the JSON of `stats`.
            let code: String = line.split('"').step_by(2).collect();
            for word in texts::words(&code).iter().filter(|word| GONE.contains(&word.as_str())) {
                writeln!(found, "src/{}:{}: {word}", source.path, at + 1).unwrap();
            }
        }
    }
    none(&found);
}

/// The lines of the block below a mark in ARCHITECTURE.md, as words.
fn mapped(mark: &str) -> Vec<Vec<&'static str>> {
    let page = include_str!("../../../ARCHITECTURE.md");
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

/// Each path of the last table of ARCHITECTURE.md leads to a file or a folder below `src`, or to a
/// page.
#[test]
fn the_map_leads_to_files_that_exist() {
    let page = include_str!("../../../ARCHITECTURE.md");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = page.lines().skip_while(|line| !line.starts_with("| change | in `src` |")).skip(2);
    let mut found = String::new();
    let mut count = 0;
    for row in rows.take_while(|line| line.starts_with('|')) {
        for path in row.split('`').skip(1).step_by(2).filter(|word| word.contains('/')) {
            count += 1;
            let is_page = path.starts_with("docs/") && root.join(path).exists();
            if !is_page && !root.join("src").join(path).exists() {
                writeln!(found, "ARCHITECTURE.md: there is no src/{path}").unwrap();
            }
        }
    }
    assert!(count > 20, "{count} paths");
    none(&found);
}

#[test]
fn every_decision_is_listed() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/decisions");
    let list = std::fs::read_to_string(directory.join("README.md")).unwrap();
    let mut pages: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    pages.sort();
    let listed: Vec<&str> =
        list.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    assert_eq!(listed, pages);
}

#[test]
fn every_file_says_what_it_is_for_and_none_is_too_long() {
    let mut found = String::new();
    for source in sources() {
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
    for source in sources() {
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

/// A source made of a text.
fn source(path: &str, text: &str) -> Source {
    Source::of(path, text.to_owned(), false, syn::parse_file(text).unwrap())
}

/// The absolute paths into the crate that a text names.
fn own_paths(path: &str, text: &str) -> Vec<String> {
    let paths = source(path, text).names.paths;
    paths.iter().filter(|name| name.is_own).map(|name| name.segments.join("::")).collect()
}

#[test]
fn the_rules_see_groups_macros_and_what_follows_the_tests() {
    assert_eq!(
        own_paths("a.rs", "use crate::{mcp::wire::Wire, host::{self, *}};"),
        ["mcp::wire::Wire", "host::self", "host"]
    );
    assert_eq!(own_paths("cli/a.rs", "use super::{args, super::mcp};"), ["cli::args", "mcp"]);
    assert_eq!(own_paths("a.rs", "pub use crate::mcp::X;"), ["mcp::X"]);
    assert_eq!(
        own_paths("a.rs", "fn f() { vec![crate::cli::y(), (crate::tui::z)] }"),
        ["cli::y", "tui::z"]
    );
    assert_eq!(
        own_paths("a.rs", "#[cfg(test)] mod tests { use crate::cli; }\nuse crate::tui::x;"),
        ["tui::x"]
    );
    assert!(own_paths("a.rs", "impl A { #[cfg(test)] fn f() { crate::cli::x() } }").is_empty());

    let mut found = String::new();
    wrong_imports(&source("model/x.rs", "mod tests {}\nuse crate::{host::X};"), &mut found);
    assert_eq!(found, "src/model/x.rs:2: model may not import host\n");
    found.clear();
    strangers(&source("host/x.rs", "fn f(x: rmcp::Peer) { g!(clap::Arg) }"), &mut found);
    assert_eq!(
        found,
        "src/host/x.rs:1: rmcp does not belong here\nsrc/host/x.rs:1: clap does not belong here\n"
    );
    found.clear();
    strangers(&source("host/x.rs", "use clap_complete::Shell; use crate::clap::y;"), &mut found);
    assert_eq!(found, "src/host/x.rs:1: clap_complete does not belong here\n");
}

#[test]
fn the_rules_see_text_that_decides() {
    let found = |text: &str| source("a.rs", text).untyped.len();
    assert_eq!(found("fn f() -> Result<u8, String> { todo() }"), 1);
    assert_eq!(found("fn f() { if error.message.contains(\"refused\") {} }"), 1);
    assert_eq!(found("fn f() { if error.to_string().starts_with(\"x\") {} }"), 1);
    assert_eq!(found("fn f() { if error.message() == \"gone\" {} }"), 1);
    assert_eq!(found("fn f() { if error.kind == Kind::Gone {} names.contains(&x); }"), 0);
    assert_eq!(
        texts::words("let snapshot_of = Course::on_course();"),
        ["let", "snapshot", "of", "course", "on", "course"]
    );
}
