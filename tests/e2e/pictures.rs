//! The pictures of the console in README.md are taken from real runs.
//!
//! `<!-- screen: 96x30; until TEXT; type TEXT; press KEY -->` above a `text` block is what a person
//! does in a terminal of that size before the picture is taken. Times, sizes and what follows from
//! their width may differ. To take them anew: `TOOLHOST_BLESS=1 cargo test --test e2e pictures`.

use std::fmt::Write as _;
use std::path::Path;

use regex::Regex;

use crate::readme::{CLONE, README, blocks, house, lasting};
use crate::support::Pty;

/// What a person does before the picture is taken.
enum Step<'a> {
    Until(&'a str),
    Type(&'a str),
    Press(&'a str),
}

fn steps(script: &str) -> (u16, u16, Vec<Step<'_>>) {
    let mut parts = script.split(';').map(str::trim);
    let size = parts.next().and_then(|size| size.split_once('x')).expect("a size comes first");
    let steps = parts.map(|part| match part.split_once(' ') {
        Some(("until", text)) => Step::Until(text),
        Some(("type", text)) => Step::Type(text),
        Some(("press", key)) => Step::Press(key),
        _ => panic!("README.md: '{part}' in a comment means nothing"),
    });
    (size.0.parse().unwrap(), size.1.parse().unwrap(), steps.collect())
}

fn key(name: &str) -> &str {
    match name {
        "Enter" => "\r",
        "Tab" => "\t",
        "F5" => "\u{1b}[15~",
        "F6" => "\u{1b}[17~",
        "Down" => "\u{1b}[B",
        "Space" => " ",
        other if other.len() == 1 => other,
        other => panic!("README.md: no key is called '{other}'"),
    }
}

/// Without what differs between runs: lines are as long as what stands in them leaves room.
fn steady(picture: &str) -> String {
    let lines = Regex::new("[─━]{2,}").unwrap();
    let clock = Regex::new(r"\b\d\d:\d\d:\d\d(\.\d+)?\b").unwrap();
    let bars = Regex::new("[▁▂▃▄▅▆▇█]+").unwrap();
    let picture: Vec<&str> = picture.trim_end().lines().map(str::trim_end).collect();
    let text = lasting(&picture.join("\n"));
    let text = clock.replace_all(&text, "CLOCK").into_owned();
    let text = bars.replace_all(&text, "BAR").into_owned();
    lines.replace_all(&text, "─").into_owned()
}

#[test]
fn every_picture_of_the_console_is_a_real_one() {
    let blocks = blocks();
    let mut wrong = String::new();
    let mut lines: Vec<String> = README.lines().map(str::to_owned).collect();
    let mut taken = 0;
    for block in blocks.iter().rev() {
        let script = block.comment.and_then(|comment| comment.strip_prefix("screen: "));
        let Some(script) = script else { continue };
        let room = house(&blocks);
        let (width, height, steps) = steps(script);
        let binary = env!("CARGO_BIN_EXE_toolhost");
        let clone = room.path("home").join(CLONE).display().to_string();
        let start = format!("cd {clone} && exec {binary} --trust");
        let mut pty = Pty::sized(&room, "bash", &["-c", &start], height, width);
        for step in steps {
            match step {
                Step::Until(text) => pty.expect_shown(text),
                Step::Type(text) => pty.type_keys(text),
                Step::Press(name) => pty.type_keys(key(name)),
            };
        }
        let picture = pty.shown();
        pty.terminate();
        assert_eq!(pty.finish().0, Some(143));
        taken += 1;
        if steady(&picture) != steady(&block.lines.join("\n")) {
            writeln!(wrong, "README.md:{}: the console shows\n\n{picture}\n", block.first).unwrap();
            let shown = picture.trim_end().lines().map(|line| line.trim_end().to_owned());
            lines.splice(block.first..block.first + block.lines.len(), shown);
        }
    }
    assert!(taken > 0, "README.md has no picture");
    if std::env::var_os("TOOLHOST_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
