//! Child processes that cannot outlive us: own session, clean environment, bounded shutdown.
//!
//! Each child leads its own session and process group, so that a signal reaches the wrappers
//! (`npx`, `uvx`, shells) and what they started alike, and so that it has no controlling terminal.
//! On Linux the child is killed when we die, and grandchildren that left the group re-parent to us
//! and are ended at last (see [`super::orphans`]).
//!
//! A child may be confined ([`super::confine`]). All of that is made ready in the parent; between
//! fork and exec the child only enters it, in an order in which nothing undoes what came before:
//! limits, powers, no new privileges, Landlock, seccomp.
#![expect(unsafe_code, reason = "a session of one's own can only be made between fork and exec")]

use std::collections::BTreeMap;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::confine::{
    Confinement, ConfinementError, LimitCause, PreparedConfinement, ResourceLimits, ScratchDir,
};
use super::orphans::AwaitedChild;

/// The descriptor at which a child finds the write end of its events pipe, when it has one. It is
/// a single digit because a POSIX shell can redirect to no other (`>&3`).
pub const EVENTS_FD: RawFd = 3;

/// A program to start. Nothing is inherited but what is named here.
#[derive(Debug, Clone)]
pub struct Program {
    /// The executable, resolved (see [`resolve`]).
    pub path: PathBuf,
    /// Its arguments, each passed as one.
    pub args: Vec<String>,
    /// The whole environment; nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// Whether stdin is a pipe; otherwise it is `/dev/null`.
    pub stdin: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct ShutdownTimeouts {
    /// After its stdin was closed.
    pub eof: Duration,
    /// How long to wait after SIGTERM before SIGKILL.
    pub term: Duration,
    /// After SIGKILL, to be reaped.
    pub kill: Duration,
}

impl Default for ShutdownTimeouts {
    fn default() -> Self {
        Self {
            eof: Duration::from_secs(2),
            term: Duration::from_secs(2),
            kill: Duration::from_secs(1),
        }
    }
}

/// A running child and its pipes. Dropping it kills its whole group at once.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: u32,
    _awaited: AwaitedChild,
    pub stdin: Option<ChildStdin>,
    /// The read end of its stdout, until taken.
    pub stdout: Option<ChildStdout>,
    /// The read end of its stderr, until taken.
    pub stderr: Option<ChildStderr>,
    /// The read end of its events pipe, when it was started with one, until taken.
    pub events: Option<pipe::Receiver>,
    limits: ResourceLimits,
    _scratch: Option<ScratchDir>,
    has_ended: bool,
}

/// Why a child was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Confinement(#[from] ConfinementError),
    #[error(transparent)]
    System(#[from] io::Error),
}

impl Process {
    pub fn start(program: &Program) -> io::Result<Self> {
        Self::spawn(program, None, None)
    }

    /// Starts `program`, within `confinement` if there is one. With `events` it has one descriptor
    /// more than the usual three: the write end of a pipe at [`EVENTS_FD`], whose read end is
    /// [`Process::events`].
    pub fn start_within(
        program: &Program,
        confinement: Option<&Confinement>,
        events: bool,
    ) -> Result<Self, StartError> {
        let pipe = if events { Some(events_pipe()?) } else { None };
        let (read, write) = pipe.unzip();
        let prepared = confinement.map(|within| within.prepare(&program.path, &program.cwd));
        let mut process = Self::spawn(program, write, prepared.transpose()?)?;
        process.events = read;
        process.limits = confinement.map(|within| within.limits).unwrap_or_default();
        Ok(process)
    }

    fn spawn(
        program: &Program,
        events: Option<OwnedFd>,
        prepared: Option<PreparedConfinement>,
    ) -> io::Result<Self> {
        let mut prepared = prepared;
        let is_confined = prepared.is_some();
        let scratch = prepared.as_mut().and_then(|prepared| prepared.scratch.take());
        let mut command = command(program, prepared.as_ref());
        // SAFETY: the closure runs in the child between fork and exec and calls only
        // async-signal-safe system calls; it allocates nothing and takes no lock. What it owns was
        // made in the parent and is not dropped in the child.
        unsafe {
            command.pre_exec(move || {
                prepare_child()?;
                #[cfg(target_os = "linux")]
                if let (Err(why), true) = (close_all_on_exec(), prepared.is_some()) {
                    return Err(why);
                }
                events.as_ref().map_or(Ok(()), install_events_fd)?;
                prepared.as_ref().map_or(Ok(()), PreparedConfinement::enter)
            });
        }
        let (mut child, awaited) =
            AwaitedChild::start(|| command.spawn(), |child| child.id().unwrap_or_default())?;
        let pid = child.id().unwrap_or_default();
        tracing::debug!(pid, confined = is_confined, "process started");
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            events: None,
            child,
            pid,
            _awaited: awaited,
            limits: ResourceLimits::default(),
            _scratch: scratch,
            has_ended: false,
        })
    }

    /// What the end of this child says about its limits; see [`ResourceLimits::exit_cause`].
    pub fn exit_cause(&self, status: ExitStatus, lines: &[String]) -> Option<LimitCause> {
        self.limits.exit_cause(status, lines)
    }

    /// The process id, which is also the id of its group and session.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the leader has exited. Cancel-safe; may be called again.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Sends a signal to the whole group; a group that is gone already is fine.
    pub fn signal(&self, signal: Signal) {
        signal_group(self.pid, signal);
    }

    /// Ends the child and everything in its group: closes stdin, waits, SIGTERM, waits, SIGKILL.
    ///
    /// Returns the leader's exit status when it could be had within the grace.
    pub async fn shut_down(mut self, grace: ShutdownTimeouts) -> Option<ExitStatus> {
        drop(self.stdin.take());
        let mut status = self.wait_timeout(grace.eof).await;
        // The group may outlive its leader: wrappers exit at end of file, their children do not.
        if status.is_none() || group_alive(self.pid) {
            self.signal(Signal::TERM);
            status = self.wait_group(grace.term, status).await;
        }
        if status.is_none() || group_alive(self.pid) {
            self.signal(Signal::KILL);
            status = self.wait_group(grace.kill, status).await;
        }
        self.has_ended = true;
        log_end(self.pid, status);
        status
    }

    async fn wait_timeout(&mut self, limit: Duration) -> Option<ExitStatus> {
        tokio::time::timeout(limit, self.child.wait()).await.ok()?.ok()
    }

    /// Waits until the leader is reaped and its group is empty, `limit` at most.
    async fn wait_group(
        &mut self,
        limit: Duration,
        exit_status: Option<ExitStatus>,
    ) -> Option<ExitStatus> {
        let deadline = tokio::time::Instant::now() + limit;
        let status = match exit_status {
            Some(status) => Some(status),
            None => self.wait_timeout(limit).await,
        };
        // There is no event for "the group is empty": poll, briefly and rarely.
        while group_alive(self.pid) && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
            reap_group(self.pid);
        }
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended {
            self.signal(Signal::KILL);
        }
    }
}

/// A pipe for events. Both ends close on exec; the child makes its own copy that does not. Ours of
/// the write end is gone when the child is started, so that the pipe ends with the last writer.
fn events_pipe() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(read.into())?, write.into()))
}

fn command(program: &Program, prepared: Option<&PreparedConfinement>) -> tokio::process::Command {
    let mut command = match prepared.and_then(|prepared| prepared.wrapper.as_ref()) {
        Some((wrapper, arguments)) => {
            let mut command = tokio::process::Command::new(wrapper);
            command.args(arguments);
            command
        }
        None => tokio::process::Command::new(&program.path),
    };
    command
        .args(&program.args)
        .env_clear()
        .envs(&program.env)
        .envs(
            prepared
                .into_iter()
                .flat_map(|prepared| &prepared.env)
                .map(|(name, value)| (name, value)),
        )
        .current_dir(&program.cwd)
        .stdin(if program.stdin { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn prepare_child() -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustix::process::setrlimit(
        rustix::process::Resource::Core,
        rustix::process::Rlimit { current: Some(0), maximum: Some(0) },
    )?;
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// Runs in the child between fork and exec: descriptors that our own parent left open are not
/// inherited. A directory among them would lead out of any confinement. Kernels before 5.11 cannot
/// do it; there only confined children depend on it.
#[cfg(target_os = "linux")]
fn close_all_on_exec() -> io::Result<()> {
    const FIRST: u32 = 3;
    // SAFETY: with this flag the call changes descriptors' flags and closes nothing now; it reads
    // and writes no memory.
    let marked =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if marked == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs in the child between fork and exec: puts the write end of the events pipe at
/// [`EVENTS_FD`], open across exec.
///
/// Nothing that the standard library still needs stands there: the pipe was made before the spawn,
/// when the lowest free descriptors are given out, so 3 was taken before the library opened its
/// own. What the number meant in the parent is closed on exec anyway.
fn install_events_fd(write: &OwnedFd) -> io::Result<()> {
    if write.as_raw_fd() == EVENTS_FD {
        // `dup2` onto itself would leave the close-on-exec flag set.
        return Ok(rustix::io::fcntl_setfd(write, rustix::io::FdFlags::empty())?);
    }
    // SAFETY: the number is used for this one call, in a process that is about to be replaced;
    // `ManuallyDrop` keeps the descriptor from being closed, since nothing here owns it.
    let mut target = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(EVENTS_FD) });
    Ok(rustix::io::dup2(write.as_fd(), &mut target)?)
}

fn group(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

fn signal_group(pid: u32, signal: Signal) {
    if let Some(pid) = group(pid) {
        // ESRCH means the group is gone, which is what was wanted.
        let _gone = rustix::process::kill_process_group(pid, signal);
    }
}

fn group_alive(pid: u32) -> bool {
    group(pid).is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok())
}

/// Collects members of the group that re-parented to us, so that they do not stay as zombies.
fn reap_group(pid: u32) {
    if let Some(pid) = group(pid) {
        while let Ok(Some(_)) = rustix::process::waitpgid(pid, rustix::process::WaitOptions::NOHANG)
        {
        }
    }
}

/// The process that runs the program of a child: the child itself, or, where that is bubblewrap,
/// the one inside of its namespaces.
pub(in crate::util) fn program_pid(pid: u32) -> u32 {
    // Bubblewrap waits outside, and is number 1 inside; it starts the program right after that.
    child_with_number(pid, "1").and_then(|first| child_with_number(first, "2")).unwrap_or(pid)
}

fn child_with_number(pid: u32, number: &str) -> Option<u32> {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let children = read(format!("/proc/{pid}/task/{pid}/children"));
    let mut children = children.split_whitespace().filter_map(|child| child.parse::<u32>().ok());
    children.find(|child| {
        let status = read(format!("/proc/{child}/status"));
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let numbers: Vec<&str> = numbers.unwrap_or_default().split_whitespace().collect();
        numbers.len() > 1 && numbers.last() == Some(&number)
    })
}

/// Resident memory of the program of a child in bytes (Linux; elsewhere `None`).
pub fn resident_memory(pid: u32) -> Option<u64> {
    let pid = program_pid(pid);
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * u64::try_from(rustix::param::page_size()).ok()?)
}

/// The processor time that the program of a child used until now (Linux; elsewhere `None`).
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let pid = program_pid(pid);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let (user, system) = (fields.nth(11)?, fields.next()?);
    let ticks: u64 = user.parse::<u64>().ok()? + system.parse::<u64>().ok()?;
    let second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(ticks * 1_000 / second.max(1)))
}

#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// No such file in any directory of `PATH`.
    #[error("'{program}' was not found in PATH")]
    NotInPath {
        /// The name or path that was searched for.
        program: String,
        searched: Vec<PathBuf>,
    },
    #[error("'{}' does not exist", .0.display())]
    Missing(PathBuf),
    #[error("'{}' is a directory", .0.display())]
    Directory(PathBuf),
    /// A file without the right to execute it.
    #[error("'{}' is not executable", .0.display())]
    NotExecutable(PathBuf),
}

/// The directories searched for programs where no `PATH` is set.
pub const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Finds the executable for `program`: a path as it is (relative to `cwd`), a bare name in `path`.
pub fn resolve(program: &str, path: Option<&str>, cwd: &Path) -> Result<PathBuf, ResolveError> {
    if program.contains('/') {
        let file = cwd.join(program);
        return check(&file).map(|()| file);
    }
    let searched: Vec<PathBuf> =
        path.unwrap_or(DEFAULT_PATH).split(':').map(PathBuf::from).collect();
    let mut refused = None;
    for directory in &searched {
        let file = cwd.join(directory).join(program);
        match check(&file) {
            Ok(()) => return Ok(file),
            Err(ResolveError::Missing(_)) => {}
            Err(other) => refused = refused.or(Some(other)),
        }
    }
    Err(refused.unwrap_or_else(|| ResolveError::NotInPath { program: program.into(), searched }))
}

fn check(file: &Path) -> Result<(), ResolveError> {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(metadata) = std::fs::metadata(file) else {
        return Err(ResolveError::Missing(file.into()));
    };
    if metadata.is_dir() {
        Err(ResolveError::Directory(file.into()))
    } else if metadata.permissions().mode() & 0o111 == 0 {
        Err(ResolveError::NotExecutable(file.into()))
    } else {
        Ok(())
    }
}

fn log_end(pid: u32, status: Option<ExitStatus>) {
    let status = status.map_or_else(|| "not reaped".to_owned(), show_exit);
    tracing::debug!(pid, status, "process ended");
}

/// Describes how a process ended: `exited with 7`, `was killed by SIGSEGV`.
pub fn show_exit(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => {
            // The standard library says "signal: 11 (SIGSEGV) (core dumped)".
            let text = status.to_string();
            match text.split(['(', ')']).nth(1).filter(|name| name.starts_with("SIG")) {
                Some(name) => format!("was killed by {name}"),
                None => format!("was killed by signal {signal}"),
            }
        }
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: BTreeMap::new(),
            cwd: "/".into(),
            stdin: true,
        }
    }

    #[tokio::test]
    async fn a_polite_child_ends_at_end_of_file() {
        let process = Process::start(&shell("cat >/dev/null; exit 3")).unwrap();
        let status = process.shut_down(ShutdownTimeouts::default()).await.unwrap();
        assert_eq!(status.code(), Some(3));
    }

    #[tokio::test]
    async fn a_stubborn_child_and_its_children_are_killed() {
        let script = "trap '' TERM; (trap '' TERM; sleep 60) & echo $!; sleep 60";
        let mut process = Process::start(&shell(script)).unwrap();
        let pid = process.pid();
        let mut line = String::new();
        let stdout = process.stdout.take().unwrap();
        tokio::io::AsyncBufReadExt::read_line(&mut tokio::io::BufReader::new(stdout), &mut line)
            .await
            .unwrap();
        let step = Duration::from_millis(50);
        process
            .shut_down(ShutdownTimeouts { eof: step, term: step, kill: Duration::from_secs(5) })
            .await;
        assert!(!group_alive(pid), "the group of {pid} is still there; its child was {line}");
    }

    #[tokio::test]
    async fn an_events_pipe_stands_at_its_number_and_ends_with_the_child() {
        let script = "echo event >&3; echo result";
        let mut process = Process::start_within(&shell(script), None, true).unwrap();
        let (mut events, mut result) = (String::new(), String::new());
        let (mut pipe, mut stdout) =
            (process.events.take().unwrap(), process.stdout.take().unwrap());
        tokio::io::AsyncReadExt::read_to_string(&mut pipe, &mut events).await.unwrap();
        tokio::io::AsyncReadExt::read_to_string(&mut stdout, &mut result).await.unwrap();
        assert_eq!((events.as_str(), result.as_str()), ("event\n", "result\n"));
        process.shut_down(ShutdownTimeouts::default()).await;
    }

    #[tokio::test]
    async fn a_child_inherits_nothing_but_its_own_pipes() {
        let _held = std::fs::File::open("/").unwrap();
        let list = "for f in 3 4 5 6 7 8 9; do (eval \": >&$f\") 2>/dev/null && echo $f; done";
        for (events, expected) in [(false, ""), (true, "3\n")] {
            let mut process = Process::start_within(&shell(list), None, events).unwrap();
            let mut open = String::new();
            let mut stdout = process.stdout.take().unwrap();
            tokio::io::AsyncReadExt::read_to_string(&mut stdout, &mut open).await.unwrap();
            assert_eq!(open, expected);
            process.shut_down(ShutdownTimeouts::default()).await;
        }
    }

    #[tokio::test]
    async fn a_program_that_cannot_be_started_is_an_error_with_an_events_pipe_too() {
        let program = Program { path: "/no/such/program".into(), ..shell("") };
        let error = Process::start_within(&program, None, true).err().unwrap();
        let StartError::System(error) = error else { panic!("{error}") };
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_missing_program_names_where_it_was_looked_for() {
        let error = resolve("no-such-program", Some("/usr/bin:/bin"), Path::new("/")).unwrap_err();
        let ResolveError::NotInPath { searched, .. } = error else { panic!("{error}") };
        assert_eq!(searched.len(), 2);
        assert!(matches!(resolve("/bin", None, Path::new("/")), Err(ResolveError::Directory(_))));
    }
}
