//! A pseudo-terminal with the binary on it, for what only a person can answer.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{Sandbox, example};

/// How long to wait for something to appear on the screen.
const PATIENCE: Duration = Duration::from_mins(1);

/// A run on a terminal of its own.
pub struct Pty {
    child: Child,
    master: File,
    output: mpsc::Receiver<Vec<u8>>,
    screen: String,
    /// The same as a terminal shows it.
    shown: vt100::Parser,
    /// What came of a frame that is not whole yet.
    unfinished: Vec<u8>,
}

impl Pty {
    /// Starts the binary on a terminal.
    pub fn toolhost(room: &Sandbox, arguments: &[&str]) -> Self {
        Self::program(room, env!("CARGO_BIN_EXE_toolhost"), arguments)
    }

    /// Starts a program with the terminal as stdin, stdout, stderr and controlling terminal.
    pub fn program(room: &Sandbox, program: &str, arguments: &[&str]) -> Self {
        Self::sized(room, program, arguments, 0, 0)
    }

    /// The same with so many rows and columns; 0 is a terminal that does not tell.
    pub fn sized(
        room: &Sandbox,
        program: &str,
        arguments: &[&str],
        rows: u16,
        columns: u16,
    ) -> Self {
        Self::start(room, program, arguments, &[], (rows, columns))
    }

    /// The binary on a whole screen, with more variables.
    pub fn console_with(
        room: &Sandbox,
        variables: &[(String, String)],
        rows: u16,
        columns: u16,
    ) -> Self {
        let program = env!("CARGO_BIN_EXE_toolhost");
        Self::start(room, program, &[], variables, (rows, columns))
    }

    fn start(
        room: &Sandbox,
        program: &str,
        arguments: &[&str],
        variables: &[(String, String)],
        (rows, columns): (u16, u16),
    ) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        #[cfg(target_os = "linux")]
        let flags = flags | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let end = || {
            let file = File::options().read(true).write(true).open(name.to_str().unwrap());
            Stdio::from(OwnedFd::from(file.unwrap()))
        };
        // Gives a session and a controlling terminal.
        let child = Command::new(example("launcher"))
            .arg("--terminal")
            .args(room.as_user(Path::new(program)))
            .args(arguments)
            .env_clear()
            .envs(room.environment())
            .env("TERM", "xterm-256color")
            .envs(variables.iter().cloned())
            .current_dir(room.path("work"))
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let master = File::from(master);
        let output = pump(master.try_clone().unwrap());
        let shown = vt100::Parser::new(at_least_one(rows), at_least_one(columns), 0);
        Self { child, master, output, screen: String::new(), shown, unfinished: Vec::new() }
    }

    /// Starts the binary for a person who looks at a whole screen.
    pub fn console(room: &Sandbox, arguments: &[&str], rows: u16, columns: u16) -> Self {
        Self::sized(room, env!("CARGO_BIN_EXE_toolhost"), arguments, rows, columns)
    }

    /// Asks the program to end.
    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Tells the program that its terminal is gone.
    pub fn hang_up(&self) {
        self.signal(rustix::process::Signal::HUP);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.unwrap(), signal).unwrap();
    }

    /// Waits until some text is on the screen.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> &mut Self {
        let deadline = Instant::now() + PATIENCE;
        while !self.screen.contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(reason) => panic!("{text:?} never appeared ({reason}):\n{}", self.screen),
            }
        }
        self
    }

    /// Waits until a terminal of this size shows some text: for programs that draw a whole screen.
    #[track_caller]
    pub fn expect_shown(&mut self, text: &str) -> &mut Self {
        let deadline = Instant::now() + PATIENCE;
        while !self.shown().contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(reason) => panic!("{text:?} is never shown ({reason}):\n{}", self.shown()),
            }
        }
        self
    }

    /// Waits until a terminal of this size shows one of these texts.
    #[track_caller]
    pub fn expect_one_of(&mut self, texts: &[&str]) -> &mut Self {
        let deadline = Instant::now() + PATIENCE;
        while !texts.iter().any(|text| self.shown().contains(text)) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(reason) => panic!("{texts:?}: none is shown ({reason}):\n{}", self.shown()),
            }
        }
        self
    }

    /// Waits until a terminal of this size does not show some text any more.
    #[track_caller]
    pub fn expect_gone(&mut self, text: &str) -> &mut Self {
        let deadline = Instant::now() + PATIENCE;
        while self.shown().contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(reason) => panic!("{text:?} stays ({reason}):\n{}", self.shown()),
            }
        }
        self
    }

    /// What a terminal of this size shows now.
    pub fn shown(&self) -> String {
        self.shown.screen().contents()
    }

    /// The terminal itself: its cells with their colours.
    pub fn terminal(&self) -> &vt100::Screen {
        self.shown.screen()
    }

    /// A terminal with synchronized output shows a frame when it is whole, so this one does too:
    /// otherwise a test could see the upper half of a frame over the lower half of the one before.
    fn take(&mut self, bytes: &[u8]) {
        self.screen.push_str(&String::from_utf8_lossy(bytes));
        self.unfinished.extend_from_slice(bytes);
        let whole = self.unfinished.len() - unfinished_frame(&self.unfinished);
        self.shown.process(&self.unfinished[..whole]);
        self.unfinished.drain(..whole);
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, rows: u16, columns: u16) -> &mut Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).unwrap();
        self.shown.screen_mut().set_size(at_least_one(rows), at_least_one(columns));
        self
    }

    /// What is on the screen so far.
    pub fn screen(&self) -> &str {
        &self.screen
    }

    /// What was put on the clipboard so far, through the terminal (OSC 52).
    pub fn copied(&self) -> Vec<String> {
        use base64::Engine as _;
        let sequences = self.screen.split("\u{1b}]52;c;").skip(1);
        let text = |sequence: &str| {
            let end = sequence.find(['\u{7}', '\u{1b}']).unwrap();
            let bytes = base64::engine::general_purpose::STANDARD.decode(&sequence[..end]);
            String::from_utf8(bytes.unwrap()).unwrap()
        };
        sequences.map(text).collect()
    }

    /// Forgets what was on the screen so far, so that only what comes counts.
    pub fn cleared(&mut self) -> &mut Self {
        self.screen.clear();
        self
    }

    /// Types. Each Escape key is sent as `CSI 27 u`, which means the same whatever comes next: a
    /// program that is slow to read would take the byte ESC and the next key for Alt and that key.
    /// Sequences that begin with `ESC [` are sent as they are.
    pub fn type_keys(&mut self, keys: &str) -> &mut Self {
        let typed = keys.replace('\u{1b}', "\u{1b}[27u").replace("\u{1b}[27u[", "\u{1b}[");
        self.type_bytes(typed.as_bytes())
    }

    /// Sends these bytes as a terminal would.
    pub fn type_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.master.write_all(bytes).unwrap();
        self
    }

    /// Waits until one of these texts was written; which one.
    #[track_caller]
    pub fn expect_first_of(&mut self, texts: &[&str]) -> usize {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = texts.iter().position(|text| self.screen.contains(text)) {
                return found;
            }
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(reason) => panic!("{texts:?}: none appears ({reason}):\n{}", self.screen),
            }
        }
    }

    /// Waits for the end, and types these keys if some text appears before it.
    #[track_caller]
    pub fn finish_with(mut self, text: &str, keys: &str) -> (Option<i32>, String) {
        let deadline = Instant::now() + PATIENCE;
        while !self.screen.contains(text) {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(_) => return self.finish(),
            }
        }
        self.type_keys(keys);
        self.finish()
    }

    /// Waits for the end; the exit code and all that was on the screen.
    #[track_caller]
    pub fn finish(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.child.kill().unwrap();
                    panic!("still running:\n{}", self.screen);
                }
            }
        }
        (self.child.wait().unwrap().code(), self.screen)
    }
}

/// How many bytes at the end belong to a frame whose end is still to come, or to the start of one.
fn unfinished_frame(bytes: &[u8]) -> usize {
    const BEGIN: &[u8] = b"\x1b[?2026h";
    const END: &[u8] = b"\x1b[?2026l";
    let last = |mark: &[u8]| bytes.windows(mark.len()).rposition(|window| window == mark);
    match (last(BEGIN), last(END)) {
        (Some(begin), end) if end.is_none_or(|end| end < begin) => bytes.len() - begin,
        _ => (1..BEGIN.len()).rev().find(|&cut| bytes.ends_with(&BEGIN[..cut])).unwrap_or(0),
    }
}

fn at_least_one(size: u16) -> NonZeroU16 {
    NonZeroU16::new(size).unwrap_or(NonZeroU16::MIN)
}

/// Reads the terminal until nobody has it open any more.
fn pump(mut master: File) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            match master.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) if sender.send(buffer[..length].to_vec()).is_err() => return,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // EIO: the last process with the terminal open has closed it.
                Err(_) => return,
            }
        }
    });
    receiver
}
