//! Which room of `src` may import which, and where foreign crates may be named. The product part of every file is read as tokens, so that groups, macros and `super::` count and
//! comments, strings and what `#[cfg(test)]` gates do not.

use std::collections::BTreeSet;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The page whose two tables are the rules: rooms from the top down, and what is forbidden below.
const MAP: &str = include_str!("../../ARCHITECTURE.md");

/// What is meant all the same.
const EXCEPTIONS: &[(&str, &str)] = &[("catalogue/", "config")];

/// Where a foreign crate may be named, as beginnings of paths below `src`.
const BORDERS: &[(&str, &[&str])] = &[
    ("rmcp", &["mcp/auth/", "serve/"]),
    ("clap", &["cli/", "main.rs"]),
    ("clap_complete", &["cli/", "main.rs"]),
    ("ratatui", &["tui/", "cli/prompt"]),
    ("crossterm", &["tui/", "cli/prompt"]),
    ("reqwest", &["net/", "mcp/transport/http", "mcp/auth", "providers/http"]),
    ("tracing_subscriber", &["cli/log"]),
    (
        "tracing",
        &[
            "assembly/",
            "config/",
            "host/",
            "mcp/",
            "providers/",
            "run/",
            "serve/",
            "util/",
            "cli/log",
        ],
    ),
];

/// What the product part of a file names.
#[derive(Default)]
struct Source {
    module: Vec<String>,
    /// Whether a path leads into this crate, its segments from the root on, and its line.
    imports: Vec<(bool, Vec<String>, usize)>,
    /// Modules in files of their own that are compiled for tests only.
    gated: BTreeSet<String>,
}

impl Source {
    fn read(path: &str, text: &str) -> Self {
        let names = path.trim_end_matches(".rs").split('/').map(str::to_owned);
        let module =
            names.filter(|name| !matches!(name.as_str(), "mod" | "lib" | "main")).collect();
        let mut source = Self { module, ..Self::default() };
        source.tokens(text.parse().unwrap_or_else(|error| panic!("src/{path}: {error}")), &[]);
        source
    }

    /// Reads paths such as `a::b`, those of a group with what stands before it.
    fn tokens(&mut self, tokens: TokenStream, before: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let sign = |at: usize, sign| matches!(tokens.get(at), Some(TokenTree::Punct(it)) if it.as_char() == sign);
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Punct(it) if it.as_char() == '#' && is_test_gate(tokens.get(at + 1)) => {
                    let end = |token: &TokenTree| {
                        matches!(token, TokenTree::Punct(it) if it.as_char() == ';')
                            || matches!(token, TokenTree::Group(it) if it.delimiter() == Delimiter::Brace)
                    };
                    let from = at;
                    while tokens.get(at).is_some_and(|token| !end(token)) {
                        at += 1;
                    }
                    if let (true, [.., TokenTree::Ident(word), TokenTree::Ident(name)]) =
                        (sign(at, ';'), &tokens[from..at])
                        && word == "mod"
                    {
                        self.gated.insert(name.to_string());
                    }
                }
                TokenTree::Ident(first) => {
                    let line = first.span().start().line;
                    let mut path = before.to_vec();
                    path.push(first.to_string());
                    while sign(at + 1, ':') && sign(at + 2, ':') {
                        match tokens.get(at + 3) {
                            Some(TokenTree::Ident(next)) => path.push(next.to_string()),
                            Some(TokenTree::Group(group))
                                if group.delimiter() == Delimiter::Brace =>
                            {
                                self.tokens(group.stream(), &path);
                            }
                            _ => {}
                        }
                        at += 3;
                    }
                    if path.len() > 1 {
                        self.import(&path, line);
                    }
                }
                TokenTree::Group(group) => self.tokens(group.stream(), &[]),
                _ => {}
            }
            at += 1;
        }
    }

    fn import(&mut self, path: &[String], line: usize) {
        let mut base = self.module.clone();
        let leads =
            |word: &&String| matches!(word.as_str(), "crate" | "toolhost" | "super" | "self");
        let count = path.iter().take_while(leads).count();
        for word in &path[..count] {
            match word.as_str() {
                "super" => drop(base.pop()),
                "self" => {}
                _ => base.clear(),
            }
        }
        if count == 0 {
            base.clear();
        }
        base.extend_from_slice(&path[count..]);
        self.imports.push((count > 0, base, line));
    }
}

fn is_test_gate(token: Option<&TokenTree>) -> bool {
    let text = token.map(ToString::to_string).unwrap_or_default();
    let text: String = text.chars().filter(|char| !char.is_whitespace()).collect();
    text == "[cfg(test)]" || text.starts_with("[cfg(all(test,")
}

/// The words of each line of the block below a mark in the map.
fn table(mark: &str) -> Vec<Vec<&'static str>> {
    let lines = MAP.lines().skip_while(|line| *line != mark).skip(2);
    lines.take_while(|line| *line != "```").map(|line| line.split_whitespace().collect()).collect()
}

/// What a file imports against the rules.
fn broken_rules(path: &str, source: &Source) -> Vec<String> {
    let room = path.split(['/', '.']).next().unwrap_or_default();
    let (floors, barred) = (table("<!-- floors -->"), table("<!-- barred -->"));
    let floor = |room: &str| floors.iter().position(|floor| floor.contains(&room));
    let judge = |(is_own, segments, line): &(bool, Vec<String>, usize)| {
        let first = segments.first()?.as_str();
        let is_wrong = if *is_own {
            let (own, other) = (floor(room)?, floor(first)?);
            let is_barred = barred.iter().any(|row| row[0] == room && row[1..].contains(&first));
            let is_meant = |(from, to): &(&str, &str)| path.starts_with(from) && *to == first;
            first != room && (is_barred || other <= own) && !EXCEPTIONS.iter().any(is_meant)
        } else {
            let (_, places) = BORDERS.iter().find(|(krate, _)| *krate == first)?;
            !places.iter().any(|place| path.starts_with(place))
        };
        is_wrong.then(|| format!("src/{path}:{line}: {room} may not import {first}"))
    };
    source.imports.iter().filter_map(judge).collect()
}

#[test]
fn rooms_and_foreign_crates_keep_their_places() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut wrong, mut count) = (vec![root.clone()], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        let paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
        let name = |path: &Path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let files: Vec<_> =
            paths.iter().filter(|path| path.extension().is_some_and(|it| it == "rs")).collect();
        let read = |path: &Path| Source::read(&name(path), &std::fs::read_to_string(path).unwrap());
        let sources: Vec<Source> = files.iter().map(|path| read(path)).collect();
        let gated: BTreeSet<&String> = sources.iter().flat_map(|source| &source.gated).collect();
        let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_product = |path: &Path| !gated.contains(&stem(path));
        for (path, source) in files.iter().zip(&sources).filter(|(path, _)| is_product(path)) {
            wrong.extend(broken_rules(&name(path), source));
            count += source.imports.len();
        }
        folders.extend(paths.iter().filter(|path| path.is_dir() && is_product(path)).cloned());
    }
    assert!(count > 10_000, "only {count} paths were read");
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_rules_see_groups_macros_and_super_and_no_tests() {
    let broken = |path, text| broken_rules(path, &Source::read(path, text));
    assert_eq!(
        broken("model/x.rs", "\nuse crate::{host::X};"),
        ["src/model/x.rs:2: model may not import host"]
    );
    assert_eq!(broken("model/x.rs", "use super::{y, super::host};").len(), 1);
    assert_eq!(broken("host/x.rs", "fn f(x: rmcp::Peer) { g!(clap::Arg) }").len(), 2);
    assert_eq!(broken("cli/x.rs", "fn f() { vec![crate::mcp::y()] }").len(), 1);
    assert!(broken("model/x.rs", "#[cfg(test)] mod tests { use crate::host; }").is_empty());
    assert!(broken("providers/mcp/x.rs", "use crate::{mcp::wire, model::X};").is_empty());
}
