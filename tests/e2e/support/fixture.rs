//! Servers to talk to: the misbehaving one of this repository, over both transports.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Where a server is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Stdio,
    Http,
}

/// A server that can stand in a configuration.
pub struct Fixture {
    command: Vec<String>,
    /// The running server and its address, over HTTP.
    listening: Option<(Child, String)>,
}

impl Fixture {
    /// The misbehaving server with one fault.
    pub fn fault(place: Place, fault: &str, era: &str, log: &Path) -> Self {
        let log = log.to_str().unwrap();
        let command = [example("misbehaving_server").to_str().unwrap(), "--fault", fault]
            .into_iter()
            .chain(["--era", era, "--event-log", log])
            .map(str::to_owned)
            .collect();
        Self::new(place, command)
    }

    /// The misbehaving server over stdio, with a fault that begins after so many calls.
    pub fn fault_after(calls: usize, fault: &str, log: &Path) -> Self {
        let mut fixture = Self::fault(Place::Stdio, fault, "legacy", log);
        fixture.command.extend(["--spared-calls".to_owned(), calls.to_string()]);
        fixture
    }

    /// Any server that takes `--http 0` and says `LISTENING <url>` on its first line.
    pub fn new(place: Place, command: Vec<String>) -> Self {
        let listening = (place == Place::Http).then(|| listen(&command));
        Self { command, listening }
    }

    /// How to start it over stdio.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }

    /// Its address, over HTTP.
    pub fn url(&self) -> Option<&str> {
        self.listening.as_ref().map(|(_, url)| url.as_str())
    }

    /// Its entry in `mcp.yaml`, without indentation.
    pub fn entry(&self) -> String {
        if let Some(url) = self.url() {
            return format!("url: {url}\n");
        }
        let quoted = |text: &String| Value::from(text.as_str()).to_string();
        let arguments: Vec<String> = self.command[1..].iter().map(quoted).collect();
        let program = quoted(&self.command[0]);
        format!("command: {program}\nargs: [{}]\n", arguments.join(", "))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.listening.take() {
            // It may have died of its own fault.
            child.kill().ok();
            child.wait().ok();
        }
    }
}

fn listen(command: &[String]) -> (Child, String) {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .args(["--http", "0"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Some(url) = line.trim().strip_prefix("LISTENING ") else {
        panic!("{command:?} does not listen: {line:?}")
    };
    let url = url.to_owned();
    (child, url)
}

/// A binary of `[[example]]`, which cargo builds together with the tests.
pub fn example(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_BIN_EXE_toolhost")).parent().unwrap().join("examples");
    let path = directory.join(name);
    assert!(path.exists(), "{} is missing: run `cargo build --examples`", path.display());
    path
}

/// The events of one kind in a server's log, oldest first.
pub fn log_events(log: &Path, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == kind).map(|event| event["details"].clone()).collect()
}
