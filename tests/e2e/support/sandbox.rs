//! A sealed room: its own home, working directory and environment, and a limit on time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Finished, Fixture, example};

/// How long a run may take before it is killed and the test fails; generous, because a loaded
/// machine is no fault.
const LIMIT: Duration = Duration::from_secs(30);
/// How long the pipes of a process that has exited may stay open.
const DRAIN: Duration = Duration::from_secs(3);

/// One room. What runs in it carries the room's path in its environment (`HOME`), so that
/// whatever is left behind can be found.
pub struct Sandbox {
    root: tempfile::TempDir,
    servers: RefCell<String>,
    /// Whether what runs here gives up the rights of root first.
    is_ordinary: bool,
}

/// Whom an ordinary user's room belongs to when the tests run as root: "nobody".
const ORDINARY: u32 = 65534;

impl Sandbox {
    /// An empty room.
    pub fn new() -> Self {
        let room = Self {
            root: tempfile::Builder::new().prefix("toolhost-e2e-").tempdir().unwrap(),
            servers: RefCell::new("mcp_servers:\n".to_owned()),
            is_ordinary: false,
        };
        for directory in ["home", "work", "config/toolhost", "state", "cache", "data", "run"] {
            std::fs::create_dir_all(room.path(directory)).unwrap();
        }
        room
    }

    /// An empty room of an ordinary user: for what depends on who owns a file and who may write
    /// to it, which root is not asked about.
    pub fn ordinary() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        let mut room = Self::new();
        room.is_ordinary = is_root;
        room
    }

    /// The command line that runs a program as the user of this room.
    pub fn as_user(&self, program: &Path) -> Vec<std::ffi::OsString> {
        let mut line = Vec::new();
        if self.is_ordinary {
            for path in tree(self.root.path()) {
                std::os::unix::fs::lchown(path, Some(ORDINARY), Some(ORDINARY)).unwrap();
            }
            let id = ORDINARY.to_string();
            line.extend([example("launcher").into(), "--user".into(), id.into()]);
        }
        line.push(program.into());
        line
    }

    /// A path inside the room.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.path().join(inside)
    }

    /// Writes a file below the working directory.
    pub fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.path("work").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Adds a server to `mcp.yaml`, with waits short enough for tests.
    pub fn server(&self, name: &str, fixture: &Fixture) -> &Self {
        self.server_with(name, fixture, "")
    }

    /// The same with more keys, each on a line of its own. Without them the limits of time are short.
    pub fn server_with(&self, name: &str, fixture: &Fixture, more: &str) -> &Self {
        let mut entry = format!("  {name}:\n");
        for line in fixture.entry().lines().chain(more.lines()) {
            writeln!(entry, "    {line}").unwrap();
        }
        for (key, value) in [("timeout", "2s"), ("start_timeout", "8s")] {
            if !more.lines().any(|line| line.split(':').next() == Some(key)) {
                writeln!(entry, "    {key}: {value}").unwrap();
            }
        }
        self.servers.borrow_mut().push_str(&entry);
        let text = self.servers.borrow().clone();
        self.file("mcp.yaml", &text)
    }

    /// Where a fixture of this room keeps its log.
    pub fn log(&self, name: &str) -> PathBuf {
        self.path(&format!("run/{name}.jsonl"))
    }

    /// A run of the binary in this room, not started yet. No file is named: the configuration is
    /// looked up as a user's would be.
    pub fn toolhost<'a>(&'a self, arguments: impl IntoIterator<Item = &'a str>) -> Run<'a> {
        self.program(env!("CARGO_BIN_EXE_toolhost"), arguments)
    }

    /// A run of any program.
    pub fn program<'a>(
        &'a self,
        program: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Run<'a> {
        Run {
            room: self,
            program: PathBuf::from(program),
            arguments: arguments.into_iter().map(str::to_owned).collect(),
            environment: self.environment(),
            stdin: Vec::new(),
            limit: LIMIT,
        }
    }

    /// The same with this room's `mcp.yaml` named, which is consent to start what it holds.
    pub fn with_servers<'a>(&'a self, arguments: impl IntoIterator<Item = &'a str>) -> Run<'a> {
        let mut run = self.toolhost(arguments);
        run.arguments.splice(0..0, ["--mcp".to_owned(), "mcp.yaml".to_owned()]);
        run
    }

    /// The whole environment of a run.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let path = |inside: &str| self.path(inside).display().to_string();
        [
            ("HOME", path("home")),
            ("XDG_CONFIG_HOME", path("config")),
            ("XDG_STATE_HOME", path("state")),
            ("XDG_CACHE_HOME", path("cache")),
            ("XDG_DATA_HOME", path("data")),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
    }

    /// Processes that still live in this room, as `pid command`.
    pub fn inhabitants(&self) -> Vec<String> {
        inhabitants(self.root.path())
            .into_iter()
            .map(|(pid, name)| format!("{pid} {name}"))
            .collect()
    }

    /// Everything that was written under the state and cache directories: path and bytes.
    pub fn records(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut left = vec![self.path("state"), self.path("cache"), self.path("data")];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).unwrap().flatten() {
                let path = entry.path();
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => left.push(path),
                    kind if kind.is_file() => {
                        let bytes = std::fs::read(&path).unwrap();
                        found.push((path, bytes));
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

const LEAVING: Duration = Duration::from_secs(5);

impl Drop for Sandbox {
    fn drop(&mut self) {
        // One that was killed is there for a moment, and may have started another.
        let deadline = Instant::now() + LEAVING;
        loop {
            let left = inhabitants(self.root.path());
            if left.is_empty() || Instant::now() > deadline {
                return;
            }
            for (pid, _) in left {
                // It may have gone by itself in between.
                kill_process(pid, Signal::KILL).ok();
            }
        }
    }
}

/// A directory and everything below it, links not followed.
fn tree(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_path_buf()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        if path.is_dir() && !path.is_symlink() {
            found.extend(std::fs::read_dir(path).unwrap().flatten().map(|entry| entry.path()));
        }
    }
    found
}

/// Processes whose environment or working directory names the room.
fn inhabitants(room: &Path) -> Vec<(Pid, String)> {
    let marker = room.as_os_str().as_encoded_bytes();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // A zombie has neither, and a process of somebody else cannot be read.
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let inside =
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|d| d.starts_with(room));
        if inside || environment.windows(marker.len()).any(|part| part == marker) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.extend(Pid::from_raw(pid).map(|pid| (pid, name.trim().to_owned())));
        }
    }
    found
}

/// A run that is being prepared.
pub struct Run<'a> {
    room: &'a Sandbox,
    program: PathBuf,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    stdin: Vec<u8>,
    limit: Duration,
}

impl<'a> Run<'a> {
    /// Adds a variable.
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.environment.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Takes a variable away.
    pub fn without(mut self, key: &str) -> Self {
        self.environment.remove(key);
        self
    }

    /// Gives bytes to read; without them stdin is at its end.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets the time after which it is killed.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs to the end and holds the result to the invariants.
    pub fn check(self) -> Finished {
        let room = self.room;
        let finished = self.go();
        finished.hold(room);
        finished
    }

    /// Runs to the end.
    pub fn go(self) -> Finished {
        self.start().finish()
    }

    /// Starts it.
    pub fn start(self) -> Running<'a> {
        let line = self.room.as_user(&self.program);
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .args(&self.arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(self.room.path("work"))
            .stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().unwrap();
        if let Some(mut pipe) = child.stdin.take() {
            let bytes = self.stdin;
            // A reader that leaves early is judged by its exit code, not by this write.
            std::thread::spawn(move || pipe.write_all(&bytes).ok());
        }
        Running {
            stdout: collect(child.stdout.take().unwrap()),
            stderr: collect(child.stderr.take().unwrap()),
            command: command_line(&self.program, &self.arguments),
            room: self.room,
            limit: self.limit,
            started,
            child,
        }
    }
}

/// A run under way.
pub struct Running<'a> {
    pub child: Child,
    room: &'a Sandbox,
    command: String,
    limit: Duration,
    started: Instant,
    stdout: mpsc::Receiver<Vec<u8>>,
    stderr: mpsc::Receiver<Vec<u8>>,
}

impl Running<'_> {
    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it has ended; kills it at its limit.
    pub fn finish(mut self) -> Finished {
        let pid = Pid::from_child(&self.child);
        let (sender, exited) = mpsc::channel();
        std::thread::spawn(move || sender.send(self.child.wait().unwrap()));
        let mut peak_rss = 0;
        let mut in_time = true;
        let status = loop {
            match exited.recv_timeout(Duration::from_millis(10)) {
                Ok(status) => break status,
                Err(RecvTimeoutError::Disconnected) => panic!("{}: nobody waits", self.command),
                Err(RecvTimeoutError::Timeout) => {
                    peak_rss = peak_rss.max(resident(pid));
                    if in_time && self.started.elapsed() > self.limit {
                        in_time = false;
                        kill_process(pid, Signal::KILL).unwrap();
                    }
                }
            }
        };
        let took = self.started.elapsed();
        let deadline = Instant::now() + DRAIN;
        let drained = |pipe: &mpsc::Receiver<Vec<u8>>| {
            pipe.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        };
        let (stdout, stderr) = (drained(&self.stdout), drained(&self.stderr));
        Finished {
            pipes_closed: stdout.is_ok() && stderr.is_ok(),
            code: status.code(),
            signal: status.signal(),
            stdout: stdout.unwrap_or_default(),
            stderr: stderr.unwrap_or_default(),
            command: self.command,
            room: self.room.path(""),
            in_time,
            took,
            peak_rss,
        }
    }
}

fn command_line(program: &Path, arguments: &[String]) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    format!("{name} {}", arguments.join(" "))
}

/// Reads a pipe to its end in a thread of its own.
fn collect(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        sender.send(bytes)
    });
    receiver
}

/// The peak resident size of a process so far, in KiB; 0 when it is gone.
fn resident(pid: Pid) -> u64 {
    let path = format!("/proc/{}/status", pid.as_raw_nonzero());
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
