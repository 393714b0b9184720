//! The pictures of the console on the pages are taken from real runs.
//!
//! `96x30; until TEXT; type TEXT; press KEY; show TIME` is what a person does in a terminal of that size.
//! `run LINE` runs a line of shell in which `$T` is toolhost, and `agent TOOL JSON` a call
//! of an agent that `serve` serves.
//! `again COUNT KEY` makes that many more calls. `show TIME` is a frame that lasts so many milliseconds, and `glimpse TIME` one of what is different
//! each time. Times, sizes and what follows from their width may differ.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use regex::Regex;

use super::{CLONE, Page, home, is_blessing, lasting, pages, root, svg};
use crate::support::Pty;

/// What a person does before the picture is taken.
enum Step<'a> {
    Until(&'a str),
    Type(&'a str),
    Press(&'a str),
    /// Something at another terminal.
    Run(&'a str),
    /// A call of an agent: the tool and its arguments.
    Agent(&'a str, &'a str),
    /// The key of a call so many times, each when the call before is counted.
    Again(u32, &'a str),
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
        Some(("run", line)) => Step::Run(line),
        Some(("agent", call)) => {
            let (tool, arguments) = call.split_once(' ').expect("agent TOOL JSON");
            Step::Agent(tool, arguments)
        }
        Some(("again", more)) => {
            let (count, key) = more.split_once(' ').expect("again COUNT KEY");
            Step::Again(count.parse().unwrap(), key)
        }
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
    // Under another name, so that no picture shows where it was built.
    let binary = room.path("toolhost");
    let built = env!("CARGO_BIN_EXE_toolhost");
    std::fs::hard_link(built, &binary)
        .or_else(|_| std::fs::copy(built, &binary).map(drop))
        .unwrap();
    let binary = binary.display();
    let clone = room.path("home").join(CLONE).display().to_string();
    let start = format!("cd {clone} && COLORTERM=truecolor exec {binary} --trust");
    let elsewhere = |line: &str| {
        let mut shell = Command::new("sh");
        let line = format!("cd {clone} && T='{binary} --trust' && {line}");
        shell.args(["-c", &line]).env_clear().envs(room.environment()).stdin(Stdio::piped());
        shell.stdout(Stdio::null()).spawn().unwrap()
    };
    let mut agents = Vec::new();
    let mut pty = Pty::sized(&room, "sh", &["-c", &start], height, width);
    let mut frames = Vec::new();
    for step in steps {
        match step {
            Step::Show(lasts) | Step::Glimpse(lasts) => {
                let is_steady = matches!(step, Step::Show(_));
                frames.push(Frame { screen: pty.terminal().clone(), lasts, is_steady });
                continue;
            }
            Step::Run(line) => {
                assert!(elsewhere(line).wait().unwrap().success(), "{line}");
                continue;
            }
            Step::Agent(tool, arguments) => {
                let mut served = elsewhere("exec $T serve");
                let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"1"}}"#;
                let call = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
                let lines = [
                    (r#""id":0,"#, "initialize", hello),
                    ("", "notifications/initialized", "{}"),
                    (r#""id":1,"#, "tools/call", &call),
                ];
                let input = served.stdin.as_mut().unwrap();
                for (id, method, params) in lines {
                    writeln!(
                        input,
                        r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#
                    )
                    .unwrap();
                }
                agents.push(served);
                continue;
            }
            Step::Until(text) => pty.expect_shown(text),
            Step::Type(text) => pty.type_keys(text),
            Step::Press(name) => pty.type_keys(key(name)),
            Step::Again(count, name) => {
                for made in 1..=count {
                    pty.type_keys(key(name)).expect_shown(&format!("calls {}", made + 1));
                }
                &mut pty
            }
        };
    }
    pty.terminate();
    assert_eq!(pty.finish().0, Some(143));
    for mut served in agents {
        drop(served.stdin.take());
        served.wait().unwrap();
    }
    if script.contains("; run ") {
        assert!(elsewhere("$T down").wait().unwrap().success());
    }
    frames
}

/// What a person does in the pictures under `docs/`: in the one on the first page, which moves, they find
/// a tool, call it, look at the messages, benchmark it, and decide about a call of an agent.
const PICTURES: [(&str, &str); 11] = [
    (
        "console.svg",
        "112x32; until Tools 31; show 1500; type /wea; until Tools 1/; show 1000; press Enter; \
         until city; show 900; type os; until oslo; show 900; press F5; until  OK ; \
         until result of; until p50  err; show 3500; press Esc; until bench; press b; until Plan; \
         until weather_report; show 900; press Enter; until run 1 finished; glimpse 4000; press 3; \
         type /weather; until Trace 2/; press Enter; until Frame; glimpse 3500; \
         run $T up; run $T break demo-add --client claude; press 2; until ready; press A; \
         until attached to; agent demo-add {\"a\": 40, \"b\": 2}; \
         until │     y go on; glimpse 4000; press e; until ^D decline; glimpse 2500; press F5; \
         until goes on; glimpse 2000",
    ),
    (
        "console/tools.svg",
        "112x30; until ● 1 server; type /demo-add; until Tools 1/; press Enter; until Arguments; \
         type 2; press Tab; type 40; press F5; until OK; until p50  calls; until result of; show 1",
    ),
    (
        "console/servers.svg",
        "112x30; until ● 1 server; press 2; until ready; until result of tools/list; \
         until offers; glimpse 1",
    ),
    (
        "console/trace.svg",
        "112x30; until ● 1 server; type /demo-add; until Tools 1/; press Enter; until Arguments; \
         type 2; press Tab; type 40; press F5; until OK; press Esc; until bench; press 3; press Enter; \
         until Frame; glimpse 1",
    ),
    (
        "console/stats.svg",
        "112x30; until ● 1 server; type /demo-add; until Tools 1/; press Enter; until Arguments; \
         type 2; press Tab; type 40; press F5; until calls 1; \
         again 11 F5; press Esc; until bench; press 4; until change), 12 calls; glimpse 1",
    ),
    (
        "console/bench.svg",
        "112x30; until ● 1 server; type /demo-add; until Tools 1/; press Enter; until Arguments; \
         type 2; press Tab; type 40; press F5; until OK; press Esc; until bench; press b; \
         until Plan; press Enter; until run 1 finished; glimpse 1",
    ),
    (
        "console/history.svg",
        "112x30; until ● 1 server; type /demo-add; until Tools 1/; press Enter; until Arguments; \
         type 2; press Tab; type 40; press F5; until OK; press Esc; until bench; press 6; \
         until WHEN; press Enter; until definition; glimpse 1",
    ),
    (
        "console/approval.svg",
        "112x30; until ● 1 server; type /notes-del; until Tools 1/; press Enter; until Arguments; \
         type draft; press F5; until may destroy; until Enter deny; glimpse 1",
    ),
    (
        "console/resources.svg",
        "112x30; until ● 1 server; press 7; until demo://readme; press Down; press Down; \
         press Enter; until The demo server; glimpse 1",
    ),
    (
        "console/inbox.svg",
        "112x30; until ● 1 server; type /demo-ask; until Tools 1/; press Enter; \
         until No arguments; press F5; until Esc later; press Enter; until ^D decline; glimpse 1",
    ),
    (
        "console/question.svg",
        "112x30; until ● 1 server; type /demo-ask; until Tools 1/; press Enter; \
         until No arguments; press F5; until Esc later; glimpse 1",
    ),
];

#[test]
fn the_pictures_of_the_pages_are_real_ones() {
    let pages = pages();
    let own = env!("CARGO_MANIFEST_DIR");
    let mut wrong = String::new();
    for (name, script) in PICTURES {
        let frames = take(script, &pages);
        let path = root().join("docs").join(name);
        let kept = svg::texts(&std::fs::read_to_string(&path).unwrap_or_default());
        let is_right = kept.len() == frames.len()
            && kept.iter().all(|frame| !frame.contains(own))
            && frames.iter().zip(&kept).all(|(frame, kept)| {
                !frame.is_steady || steady(kept) == steady(&frame.screen.contents())
            });
        if is_right {
            continue;
        }
        if is_blessing() {
            let film = frames.iter().map(|frame| (frame.screen.clone(), frame.lasts));
            std::fs::write(&path, svg::film(&film.collect::<Vec<_>>())).unwrap();
        }
        let shown: Vec<_> = frames.iter().map(|frame| frame.screen.contents()).collect();
        writeln!(wrong, "docs/{name} is not what the console shows:\n{}", shown.join("\n\n"))
            .unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
}
