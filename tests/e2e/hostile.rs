//! A hostile server from outside of this repository, over every fault and transport it knows.
//!
//! `TOOLHOST_HOSTILE` names its script; without it the test says so and does nothing. Each fault
//! declares an outcome, which maps to an exit code; each run is held to the invariants. The table
//! of all runs is written to the target directory. Faults that are known to fail stand in
//! `hostile_expected_failures.txt`, which is strict: one that passes fails the test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Finished, Fixture, Place, Run, Sandbox};

/// How many faults run at once.
const WORKERS: usize = 4;
/// The limit of one run.
const LIMIT: Duration = Duration::from_mins(1);
/// Waits of the generated configuration: short, so that the suite is, and longer than what the
/// slowest well-behaved fault takes.
const WAITS: &str = "timeout: 2s\nstart_timeout: 6s\nmax_total: 15s\n";
/// The waits of faults whose declared end comes later than that.
const PATIENT: &[(&str, &str)] = &[
    ("sse-reconnect-storm", "timeout: 60s\nstart_timeout: 6s\n"),
    // Many megabytes that a busy machine needs time to make.
    ("giant-line", "timeout: 20s\nstart_timeout: 6s\n"),
    ("gzip-bomb", "timeout: 20s\nstart_timeout: 6s\n"),
    ("big-binary", "timeout: 20s\nstart_timeout: 6s\n"),
];
/// Faults that are made smaller, since the binary under test is not optimised.
const SMALLER: &[(&str, &str)] = &[("progress-flood", "count=20000")];
/// Faults that only a limit meets, with the keys that set it.
const LIMITED: &[(&str, &str)] = &[("memory-hog", "sandbox: { level: limits, memory: 256MiB }\n")];
/// Faults of the `http` phase that only a call meets.
const CALLS_ONLY: &[&str] = &["gzip-bomb", "http-endless-body"];
/// Faults for which a second code is as good: the server insists on what must not be used.
const EQUALLY: &[(&str, i32)] = &[("http-evil-session", 10)];
/// The most memory a run may take, in KiB, and the faults that may take twice as much.
const MOST_MEMORY: u64 = 128 * 1024;
const BIG: &[&str] = &["many-tools", "many-pages"];

/// One fault as the script declares it.
pub struct Fault {
    pub name: String,
    phase: String,
    outcome: String,
    era: Option<String>,
}

/// One run of the table.
struct Row {
    fault: String,
    place: Place,
    command: &'static str,
    expected: i32,
    finished: Finished,
    violations: Vec<String>,
}

impl Row {
    fn passes(&self) -> bool {
        let equally = EQUALLY.iter().find(|(fault, _)| *fault == self.fault).map(|(_, code)| *code);
        let code = self.finished.code;
        self.violations.is_empty()
            && (code == Some(self.expected) || code.is_some() && code == equally)
    }
}

#[test]
#[ignore = "needs TOOLHOST_HOSTILE, a server outside of this repository"]
fn every_fault_of_the_hostile_server_ends_as_declared() {
    let Some(script) = std::env::var_os("TOOLHOST_HOSTILE") else {
        crate::support::left_out("TOOLHOST_HOSTILE names no hostile server");
        return;
    };
    let script = script.into_string().unwrap();
    let jobs = Mutex::new(jobs(&script));
    let rows = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().unwrap().pop();
                    let Some((fault, place)) = job else { return };
                    let found = attack(&script, &fault, place);
                    rows.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by(|a, b| (&a.fault, a.place as u8).cmp(&(&b.fault, b.place as u8)));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile.tsv");
    std::fs::write(&path, table(&rows)).unwrap();
    eprintln!("the table of {} runs is in {}", rows.len(), path.display());
    judge(&rows);
}

/// Every fault with every place it applies to; the slow ones last, so that they are taken first.
pub fn jobs(script: &str) -> Vec<(Fault, Place)> {
    let listed = std::process::Command::new("python3")
        .args([script, "--list-faults", "--json"])
        .output()
        .unwrap();
    let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
    assert!(!listed.is_empty(), "the script lists no faults");
    let mut jobs = Vec::new();
    for fault in &listed {
        let text = |key: &str| fault[key].as_str().map(str::to_owned);
        let places: &[Place] = match fault["where"].as_str().unwrap() {
            "stdio" => &[Place::Stdio],
            "http" => &[Place::Http],
            _ => &[Place::Stdio, Place::Http],
        };
        for place in places {
            let fault = Fault {
                name: text("name").unwrap(),
                phase: text("phase").unwrap(),
                outcome: text("outcome").unwrap(),
                era: text("era"),
            };
            jobs.push((fault, *place));
        }
    }
    jobs.sort_by_key(|(fault, _)| (fault.name == PATIENT[0].0, fault.outcome == "timeout"));
    jobs
}

/// What a declared outcome means for a call.
fn code(outcome: &str) -> i32 {
    match outcome {
        "ok" | "warn" | "partial" => 0,
        "toolerror" | "rpcerror" => 3,
        "unavailable" => 4,
        "auth" => 5,
        "refused" => 6,
        "timeout" => 7,
        "protocol" | "limit" => 10,
        other => panic!("no exit code is known for the outcome {other}"),
    }
}

/// A room with a server `bad` that has this fault.
pub fn stage(script: &str, fault: &Fault, place: Place) -> (Sandbox, Fixture) {
    let room = Sandbox::new();
    let mut command: Vec<String> =
        ["python3", script, "--fault", &fault.name].map(Into::into).into();
    if let Some(era) = &fault.era {
        command.extend(["--era".to_owned(), era.clone()]);
    }
    if let Some((_, parameter)) = SMALLER.iter().find(|(name, _)| *name == fault.name) {
        command.extend(["--param".to_owned(), (*parameter).to_owned()]);
    }
    let log = room.log("bad").display().to_string();
    command.extend(["--event-log".to_owned(), log, "--max-seconds".to_owned(), "60".to_owned()]);
    let fixture = Fixture::new(place, command);
    let mut entry = String::new();
    let waits = PATIENT.iter().find(|(name, _)| *name == fault.name).map_or(WAITS, |(_, w)| w);
    let limits = LIMITED.iter().find(|(name, _)| *name == fault.name && place == Place::Stdio);
    let limits = limits.map_or("", |(_, keys)| keys);
    for line in fixture.entry().lines().chain(waits.lines()).chain(limits.lines()) {
        writeln!(entry, "    {line}").unwrap();
    }
    room.file("mcp.yaml", &format!("mcp_servers:\n  bad:\n{entry}"));
    (room, fixture)
}

/// Calls a tool behind one fault, and lists where the fault is one of listing or starting.
fn attack(script: &str, fault: &Fault, place: Place) -> Vec<Row> {
    let (room, _fixture) = stage(script, fault, place);
    room.file("big.txt", &"x".repeat(1024 * 1024));
    let arguments: &[&str] = match fault.name.as_str() {
        "output-mismatch" => &["call", "bad-add", "a=1", "b=2"],
        // More than fits into a pipe that nobody reads.
        "stdin-unread" => &["call", "bad-echo", "text=@big.txt"],
        _ => &["call", "bad-echo", "text=hello"],
    };
    // A tool that is not listed cannot be called.
    let expected = if fault.name == "no-tools" { 2 } else { code(&fault.outcome) };
    let row = |command, expected, run: Run<'_>| {
        let finished = run.limit(LIMIT).go();
        let mut violations = finished.violations(&room);
        let most = if BIG.contains(&fault.name.as_str()) { 2 * MOST_MEMORY } else { MOST_MEMORY };
        if finished.peak_rss > most {
            violations.push(format!("I2: {} KiB of memory", finished.peak_rss));
        }
        let fault = fault.name.clone();
        Row { fault, place, command, expected, finished, violations }
    };
    let mut rows = vec![row("call", expected, room.with_servers(arguments.iter().copied()))];
    let listing = match (fault.outcome.as_str(), fault.phase.as_str()) {
        ("partial", _) => Some(11),
        (outcome, "-" | "spawn" | "init" | "http")
            if !CALLS_ONLY.contains(&fault.name.as_str()) =>
        {
            Some(code(outcome))
        }
        _ => None,
    };
    if let Some(expected) = listing {
        rows.push(row("list", expected, room.with_servers(["list"])));
    }
    rows
}

fn table(rows: &[Row]) -> String {
    let mut text =
        "fault\ttransport\tcommand\texpected\tgot\tms\tpeak KiB\tviolations\n".to_owned();
    for row in rows {
        let got = row.finished.code.map_or_else(|| "signal".to_owned(), |code| code.to_string());
        writeln!(
            text,
            "{}\t{:?}\t{}\t{}\t{got}\t{}\t{}\t{}",
            row.fault,
            row.place,
            row.command,
            row.expected,
            row.finished.took.as_millis(),
            row.finished.peak_rss,
            row.violations.join("; "),
        )
        .unwrap();
    }
    text
}

/// Known failures by fault and transport, with their reasons.
fn known() -> BTreeMap<(String, String), String> {
    include_str!("hostile_expected_failures.txt")
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut words = line.splitn(3, char::is_whitespace);
            let mut word = || words.next().map(|word| word.trim().to_owned());
            let (fault, place) = (word().unwrap(), word().unwrap());
            let reason = word().unwrap_or_else(|| panic!("{line:?} gives no reason"));
            ((fault, place), reason)
        })
        .collect()
}

fn judge(rows: &[Row]) {
    let mut known = known();
    let mut wrong = String::new();
    let mut groups: BTreeMap<(String, String), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let place = format!("{:?}", row.place).to_lowercase();
        groups.entry((row.fault.clone(), place)).or_default().push(row);
    }
    for (key, group) in groups {
        let passes = group.iter().all(|row| row.passes());
        match (passes, known.remove(&key)) {
            (true, Some(_)) => {
                writeln!(wrong, "{} {}: passes, so take it off the list", key.0, key.1).unwrap();
            }
            (false, None) => {
                for row in group.iter().filter(|row| !row.passes()) {
                    let what = row.violations.join("; ");
                    let (expected, finished) = (row.expected, &row.finished);
                    writeln!(wrong, "{} {}: expected {expected}; {what}\n{finished}", key.0, key.1)
                        .unwrap();
                }
            }
            _ => {}
        }
    }
    for (fault, place) in known.into_keys() {
        writeln!(wrong, "{fault} {place}: is on the list, but there is no such run").unwrap();
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
