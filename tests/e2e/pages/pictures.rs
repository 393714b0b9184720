//! The pictures of the console on the pages are taken from real runs.
//!
//! `<!-- screen: 96x30; until TEXT; type TEXT; press KEY -->` above a `text` block is what a person
//! does in a terminal of that size before the picture is taken. In a picture that moves, `show TIME`
//! is a frame that lasts so many milliseconds, and `glimpse TIME` one of what is different each time.
//! Times, sizes and what follows from their width may differ.

use std::fmt::Write as _;

use regex::Regex;

use super::{CLONE, Page, blocks, home, is_blessing, lasting, pages, root, svg};
use crate::support::Pty;

/// What a person does before the picture is taken.
enum Step<'a> {
    Until(&'a str),
    Type(&'a str),
    Press(&'a str),
    Show(u32),
    Glimpse(u32),
}

/// What the console showed, for so many milliseconds, and whether it always does.
struct Frame {
    screen: vt100::Screen,
    lasts: u32,
    is_steady: bool,
}

fn steps(script: &str) -> (u16, u16, Vec<Step<'_>>) {
    let mut parts = script.split(';').map(str::trim);
    let size = parts.next().and_then(|size| size.split_once('x')).expect("a size comes first");
    let steps = parts.map(|part| match part.split_once(' ') {
        Some(("until", text)) => Step::Until(text),
        Some(("type", text)) => Step::Type(text),
        Some(("press", key)) => Step::Press(key),
        Some(("show", lasts)) => Step::Show(lasts.parse().unwrap()),
        Some(("glimpse", lasts)) => Step::Glimpse(lasts.parse().unwrap()),
        _ => panic!("'{part}' in a comment means nothing"),
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
        "Esc" => "\u{1b}",
        other if other.len() == 1 => other,
        other => panic!("no key is called '{other}'"),
    }
}

/// Without what differs between runs: lines are as long as what stands in them leaves room.
fn steady(picture: &str) -> String {
    let lines = Regex::new("[─━]{2,}").unwrap();
    let clock = Regex::new(r"\b\d\d:\d\d(:\d\d(\.\d+)?)?\b").unwrap();
    let rates = Regex::new(r"[0-9][0-9.,]*/s\b").unwrap();
    let bars = Regex::new("[▁▂▃▄▅▆▇█]+").unwrap();
    let picture: Vec<&str> = picture.trim_end().lines().map(str::trim_end).collect();
    let text = lasting(&picture.join("\n"));
    let text = clock.replace_all(&text, "CLOCK").into_owned();
    let text = rates.replace_all(&text, "RATE").into_owned();
    let text = bars.replace_all(&text, "BAR").into_owned();
    lines.replace_all(&text, "─").into_owned()
}

/// What the terminal shows while somebody does what a script says, in a fresh clone, and at last.
fn take(script: &str, pages: &[Page]) -> Vec<Frame> {
    let room = home(pages);
    let (width, height, steps) = steps(script);
    let binary = env!("CARGO_BIN_EXE_toolhost");
    let clone = room.path("home").join(CLONE).display().to_string();
    let start = format!("cd {clone} && COLORTERM=truecolor exec {binary} --trust");
    let mut pty = Pty::sized(&room, "sh", &["-c", &start], height, width);
    let mut frames = Vec::new();
    for step in steps {
        match step {
            Step::Show(lasts) | Step::Glimpse(lasts) => {
                let is_steady = matches!(step, Step::Show(_));
                frames.push(Frame { screen: pty.terminal().clone(), lasts, is_steady });
                continue;
            }
            Step::Until(text) => pty.expect_shown(text),
            Step::Type(text) => pty.type_keys(text),
            Step::Press(name) => pty.type_keys(key(name)),
        };
    }
    if frames.is_empty() {
        frames.push(Frame { screen: pty.terminal().clone(), lasts: 1, is_steady: true });
    }
    pty.terminate();
    assert_eq!(pty.finish().0, Some(143));
    frames
}

#[test]
fn every_picture_of_the_console_is_a_real_one() {
    let pages = pages();
    let mut wrong = String::new();
    let mut taken = 0;
    for page in &pages {
        let mut corrections = Vec::new();
        for block in blocks(page) {
            let script = block.comment.and_then(|comment| comment.strip_prefix("screen: "));
            let Some(script) = script else { continue };
            let picture = take(script, &pages)[0].screen.contents();
            taken += 1;
            if steady(&picture) != steady(&block.lines.join("\n")) {
                let (path, at) = (&page.path, block.first);
                writeln!(wrong, "{path}:{at}: the console shows\n\n{picture}\n").unwrap();
                let shown = picture.trim_end().lines().map(|line| line.trim_end().to_owned());
                corrections.push((block.first, block.lines.len(), shown.collect()));
            }
        }
        page.correct(corrections);
    }
    assert!(taken > 0, "no page has a picture");
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// What a person does in the picture on the first page: finds a tool, calls it, looks at the messages and
/// benchmarks it.
const FILM: &str = "112x32; until Tools 31; show 1500; type /wea; until Tools 1/; show 1000; \
    press Enter; until city; show 900; type os; until oslo; show 900; press F5; until  OK ; \
    until result content; until err╮; show 3500; press Esc; until bench; press b; until Plan; \
    until weather_report; show 900; press Enter; until run 1 finished; glimpse 4000; press 3; \
    type /weather; until Trace 2/; press Enter; until Frame; glimpse 3500";

#[test]
fn the_picture_on_the_first_page_is_a_real_one() {
    let frames = take(FILM, &pages());
    let path = root().join("docs/console.svg");
    let kept = svg::texts(&std::fs::read_to_string(&path).unwrap_or_default());
    let own = env!("CARGO_MANIFEST_DIR");
    let is_right = kept.len() == frames.len()
        && kept.iter().all(|frame| !frame.contains(own))
        && frames.iter().zip(&kept).all(|(frame, kept)| {
            !frame.is_steady || steady(kept) == steady(&frame.screen.contents())
        });
    if !is_right && is_blessing() {
        let film: Vec<_> = frames.iter().map(|frame| (frame.screen.clone(), frame.lasts)).collect();
        std::fs::write(&path, svg::film(&film)).unwrap();
    }
    let shown: Vec<_> = frames.iter().map(|frame| frame.screen.contents()).collect();
    assert!(is_right, "docs/console.svg is not what the console shows:\n{}", shown.join("\n\n"));
}
