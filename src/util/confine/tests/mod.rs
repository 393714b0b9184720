//! Tests of confinement with real children.
#![cfg(target_os = "linux")]

mod attacks;
mod endings;
mod systems;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::AsyncReadExt as _;

use super::*;
use crate::util::process::{Process, Program, ShutdownTimeouts, StartError};

const PYTHON: &str = "/usr/bin/python3";

/// The levels that confine files and can be kept on this machine; says so when one cannot.
fn levels() -> Vec<ConfinementLevel> {
    let is_enforced = |level: &ConfinementLevel| {
        let refused = check(*level).err();
        if let Some(why) = &refused {
            crate::util::skipped::left_out(&format!("{}: {why}", level.as_str()));
        }
        refused.is_none()
    };
    [ConfinementLevel::Landlock, ConfinementLevel::Bwrap].into_iter().filter(is_enforced).collect()
}

fn keeps_signals(confinement: &Confinement) -> bool {
    coverage(confinement)
        .protects
        .iter()
        .any(|protection| protection.subject.starts_with("signals"))
}

/// What a child left behind.
struct Ended {
    status: ExitStatus,
    out: String,
    err: String,
    cause: Option<LimitCause>,
}

struct Room {
    dir: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "scratch", "work"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.dir.path().join(inside)
    }

    fn confinement(&self, level: ConfinementLevel) -> Confinement {
        Confinement {
            level,
            system: true,
            read: vec![self.path("work")],
            write: Vec::new(),
            network: false,
            metadata: false,
            limits: ResourceLimits::default(),
            scratch: self.path("scratch"),
            home: HomeDir::Temporary,
        }
    }

    async fn run(&self, confinement: &Confinement, argv: &[&str]) -> Ended {
        let program = Program {
            path: argv[0].into(),
            args: argv[1..].iter().map(|word| (*word).to_owned()).collect(),
            env: BTreeMap::from([
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("ROOM".into(), self.dir.path().display().to_string()),
                ("HOME".into(), self.path("home").display().to_string()),
            ]),
            cwd: self.path("work"),
            stdin: false,
        };
        let mut process = Process::start_within(&program, Some(confinement), false).unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        let (mut stdout, mut stderr) =
            (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        let (read, also_read) =
            tokio::join!(stdout.read_to_string(&mut out), stderr.read_to_string(&mut err));
        read.and(also_read).unwrap();
        let status = process.wait().await.unwrap();
        let cause = process.exit_cause(status, &[err.clone()]);
        process.shut_down(ShutdownTimeouts::default()).await;
        Ended { status, out, err, cause }
    }

    async fn shell(&self, confinement: &Confinement, script: &str) -> Ended {
        self.run(confinement, &["/bin/sh", "-c", script]).await
    }
}

#[tokio::test]
async fn files_outside_are_neither_read_nor_written() {
    for level in levels() {
        let room = Room::new();
        std::fs::write(room.path("home/secret"), "s3cret").unwrap();
        std::fs::write(room.path("work/file"), "open").unwrap();
        let script = "cat file; cat $ROOM/home/secret; echo x >$ROOM/home/new; echo x >new
            mv file moved; rm -f file; (: >file); ls $ROOM/home; cat file; ls / >/dev/null; exit 0";
        let ended = room.shell(&room.confinement(level), script).await;
        assert_eq!(ended.out, "openopen", "{level:?}: {}", ended.err);
        assert_eq!(std::fs::read_to_string(room.path("work/file")).unwrap(), "open");
        for left in ["home/new", "work/new", "work/moved"] {
            assert!(!room.path(left).exists(), "{level:?}: {left}");
        }
    }
}

#[tokio::test]
async fn what_may_be_written_is_written() {
    for level in levels() {
        let room = Room::new();
        std::fs::create_dir(room.path("out")).unwrap();
        std::fs::write(room.path("out/old"), "old").unwrap();
        let confinement = Confinement { write: vec![room.path("out")], ..room.confinement(level) };
        let script =
            "cd $ROOM/out && echo new >new && mkdir d && mv new d/ && : >old && ln -s old l
            mknod dev c 1 3; [ -e dev ] && echo device";
        let ended = room.shell(&confinement, script).await;
        assert_eq!(ended.out, "", "{level:?}: {}", ended.err);
        assert_eq!(std::fs::read_to_string(room.path("out/d/new")).unwrap(), "new\n");
        assert_eq!(std::fs::read_to_string(room.path("out/old")).unwrap(), "");
    }
}

#[tokio::test]
async fn the_temporary_directory_is_private_and_goes_with_the_child() {
    for level in levels() {
        let room = Room::new();
        let script = "echo x >$TMPDIR/x && cat $TMPDIR/x && [ $HOME = $TMPDIR ] && mktemp >/dev/null && echo $TMPDIR";
        let ended = room.shell(&room.confinement(level), script).await;
        let path = ended.out.strip_prefix("x\n").unwrap_or_else(|| panic!("{}", ended.err)).trim();
        assert!(path == "/tmp" || !Path::new(path).exists(), "{path}");
        assert_eq!(std::fs::read_dir(room.path("scratch")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn the_network_is_off_unless_it_is_on() {
    if !Path::new(PYTHON).exists() {
        crate::util::skipped::left_out(&format!("there is no {PYTHON}"));
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let script = r#"
import socket, sys
def attempt(name, act):
    try:
        act()
        print(name)
    except OSError:
        pass
to = ("127.0.0.1", int(sys.argv[1]))
attempt("tcp", lambda: socket.create_connection(to))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", to))
attempt("bind", lambda: socket.socket().bind(("127.0.0.1", 0)))
attempt("raw", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
pair = socket.socketpair()
attempt("pair", lambda: pair[0].send(b"x"))
"#;
    for level in levels() {
        let room = Room::new();
        for (network, expected) in [(false, "pair\n"), (true, "tcp\nudp\nbind\nraw\npair\n")] {
            let confinement = Confinement { network, ..room.confinement(level) };
            let ended = room.run(&confinement, &[PYTHON, "-c", script, &port]).await;
            assert_eq!(ended.out, expected, "{level:?}: {}", ended.err);
        }
    }
}

#[tokio::test]
async fn no_socket_of_another_user_is_connected_to() {
    if !Path::new(PYTHON).exists() {
        return;
    }
    let script = r"
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
    print('connected')
except OSError:
    print('refused')
";
    for level in levels() {
        let room = Room::new();
        let path = room.path("home/bus");
        let _bus = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let confinement = room.confinement(level);
        let ended = room.run(&confinement, &[PYTHON, "-c", script, path.to_str().unwrap()]).await;
        assert_eq!(ended.out, "refused\n", "{level:?}: {}", ended.err);
    }
}

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    for level in levels() {
        let room = Room::new();
        if level == ConfinementLevel::Landlock && !keeps_signals(&room.confinement(level)) {
            crate::util::skipped::left_out("this Landlock has no scopes");
            continue;
        }
        let own = std::process::id();
        let script = format!(
            "kill -0 {own} && echo signalled; cat /proc/{own}/environ && echo read; exit 0"
        );
        let ended = room.shell(&room.confinement(level), &script).await;
        assert_eq!(ended.out, "", "{level:?}: {}", ended.err);
    }
}

#[tokio::test]
async fn doors_beside_the_file_rules_are_closed_and_threads_still_start() {
    if !Path::new(PYTHON).exists() {
        return;
    }
    let script = r"
import ctypes, platform, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == 'x86_64'
calls = {
    'ptrace': (101, 0) if x86 else (117, 0),
    'keyctl': (250, 0, 0) if x86 else (219, 0, 0),
    'bpf': (321, 0, 0, 0) if x86 else (280, 0, 0, 0),
    'perf': (298, 0, 0, 0, 0, 0) if x86 else (241, 0, 0, 0, 0, 0),
    'ring': (425, 1, 0),
    'user': (272, 0x10000000) if x86 else (97, 0x10000000),
}
EPERM, ENOSYS = 1, 38
for name, call in calls.items():
    if libc.syscall(*call) != -1 or ctypes.get_errno() != EPERM:
        print(name, ctypes.get_errno())
if libc.syscall(435, 0, 0) != -1 or ctypes.get_errno() != ENOSYS:
    print('clone3', ctypes.get_errno())
if x86 and (libc.syscall(0x40000000 + 39) != -1 or ctypes.get_errno() != ENOSYS):
    print('x32', ctypes.get_errno())
thread = threading.Thread(target=lambda: print('thread'))
thread.start()
thread.join()
";
    for level in levels() {
        let room = Room::new();
        let ended = room.run(&room.confinement(level), &[PYTHON, "-c", script]).await;
        assert_eq!(ended.out, "thread\n", "{level:?}: {}", ended.err);
    }
}

#[tokio::test]
async fn descriptors_left_open_do_not_pass() {
    for level in levels() {
        let room = Room::new();
        let root = std::fs::File::open("/").unwrap();
        // Without the flag that closes it on exec.
        let leak = rustix::io::dup(&root).unwrap();
        let script = format!("[ -e /proc/self/fd/{} ] && echo open", leak.as_raw_fd());
        let ended = room.shell(&room.confinement(level), &script).await;
        assert_eq!(ended.out, "", "{level:?}");
    }
}

fn limited(room: &Room, limits: ResourceLimits) -> Vec<Confinement> {
    let mut all = levels();
    all.push(ConfinementLevel::Limits);
    all.into_iter().map(|level| Confinement { limits, ..room.confinement(level) }).collect()
}

#[tokio::test]
async fn a_spinning_program_ends_at_its_limit() {
    let room = Room::new();
    let limits = ResourceLimits { cpu: Some(Duration::from_secs(1)), ..ResourceLimits::default() };
    for confinement in limited(&room, limits) {
        let ended = room.shell(&confinement, "while :; do :; done").await;
        let expected = Some(LimitCause::Limit("cpu limit of 1 s".into()));
        assert_eq!(ended.cause, expected, "{:?}", ended.status);
    }
}

#[tokio::test]
async fn memory_beyond_the_limit_is_not_given() {
    let room = Room::new();
    let limits = ResourceLimits { memory: Some(64 << 20), ..ResourceLimits::default() };
    // `tail` keeps its input, which has no line ends.
    let script = "head -c 300M /dev/zero | tail -n 1 | wc -c";
    for confinement in limited(&room, limits) {
        let ended = room.shell(&confinement, script).await;
        assert_eq!(ended.out.trim(), "0", "{}", ended.err);
        assert!(ended.err.contains("memory exhausted"), "{}", ended.err);
    }
}

#[tokio::test]
async fn a_file_beyond_the_limit_is_not_written() {
    let room = Room::new();
    let limits = ResourceLimits { file_size: Some(1 << 20), ..ResourceLimits::default() };
    for confinement in limited(&room, limits) {
        let script = "head -c 3M /dev/zero >${TMPDIR:-$ROOM}/f; stat -c %s ${TMPDIR:-$ROOM}/f";
        let ended = room.shell(&confinement, script).await;
        assert_eq!(ended.out.trim(), "1048576", "{:?} {}", confinement.level, ended.err);
    }
}

#[tokio::test]
async fn a_limit_cannot_be_lifted_from_inside() {
    let room = Room::new();
    let limits = ResourceLimits { open_files: Some(32), ..ResourceLimits::default() };
    for confinement in limited(&room, limits) {
        let script = "ulimit -Hn 33 2>/dev/null && echo lifted; ulimit -Hn";
        let ended = room.shell(&confinement, script).await;
        assert_eq!(ended.out.trim(), "32", "{:?} {}", confinement.level, ended.err);
    }
}

#[tokio::test]
async fn processes_are_bounded_or_that_is_refused() {
    let room = Room::new();
    let limits = ResourceLimits { processes: Some(8), ..ResourceLimits::default() };
    let script = "n=0; while [ $n -lt 40 ]; do sleep 5 & n=$((n+1)); done; echo $n; kill 0";
    if is_superuser() {
        let refusal = limits.check().unwrap_err();
        assert!(refusal.to_string().contains("superuser"), "{refusal}");
        return;
    }
    for confinement in limited(&room, limits) {
        let ended = room.shell(&confinement, script).await;
        assert_ne!(ended.out.trim(), "40", "{:?}", confinement.level);
    }
}

#[tokio::test]
async fn events_arrive_from_within() {
    for level in levels() {
        let room = Room::new();
        let program = Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), "echo event >&3; cat".into()],
            env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            cwd: room.path("work"),
            stdin: true,
        };
        let mut process =
            Process::start_within(&program, Some(&room.confinement(level)), true).unwrap();
        let mut stdin = process.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stdin, b"input").await.unwrap();
        drop(stdin);
        let (mut events, mut out) = (String::new(), String::new());
        process.events.take().unwrap().read_to_string(&mut events).await.unwrap();
        process.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
        assert_eq!((events.as_str(), out.as_str()), ("event\n", "input"), "{level:?}");
        process.shut_down(ShutdownTimeouts::default()).await;
    }
}

#[tokio::test]
async fn a_signal_is_told_as_one() {
    for level in levels() {
        let room = Room::new();
        let ended = room.shell(&room.confinement(level), "kill -9 $$").await;
        let code = ended.status.code().map(|code| code - 128);
        assert_eq!(ended.status.signal().or(code), Some(9), "{level:?}");
    }
}

#[tokio::test]
async fn a_path_that_is_not_there_stops_the_start() {
    for level in levels() {
        let room = Room::new();
        let confinement =
            Confinement { write: vec![room.path("nowhere")], ..room.confinement(level) };
        let program = Program {
            path: "/bin/true".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: room.path("work"),
            stdin: false,
        };
        let error = Process::start_within(&program, Some(&confinement), false).err().unwrap();
        let StartError::Confinement(ConfinementError::Path { path, .. }) = error else {
            panic!("{error}")
        };
        assert_eq!(path, room.path("nowhere"));
    }
}

/// Files of a small tree, each with the directories above it.
const TREE: [&str; 6] = ["a/one", "a/b/two", "a/b/three", "c/four", "c/d/five", "six"];
const NODES: [&str; 9] = ["a", "a/b", "a/b/two", "c", "c/d", "c/four", "six", "a/one", "c/d/five"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_can_be_reached_is_what_was_declared(
        read in proptest::sample::subsequence(NODES.to_vec(), 0..4),
        write in proptest::sample::subsequence(NODES.to_vec(), 0..3),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for level in levels() {
            let room = Room::new();
            for file in TREE {
                let path = room.path("tree").join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "x").unwrap();
            }
            let places = |nodes: &[&str]| nodes.iter().map(|n| room.path("tree").join(n)).collect();
            let confinement = Confinement {
                read: [vec![room.path("work")], places(&read)].concat(),
                write: places(&write),
                ..room.confinement(level)
            };
            let script = "for f in a/one a/b/two a/b/three c/four c/d/five six; do
                cat $ROOM/tree/$f >/dev/null 2>&1 && echo r $f
                [ -e $ROOM/tree/$f ] && (echo y >>$ROOM/tree/$f) 2>/dev/null && echo w $f
            done; true";
            let ended = runtime.block_on(room.shell(&confinement, script));
            let below = |nodes: &[&str], file: &str| {
                nodes.iter().any(|node| Path::new(file).starts_with(node))
            };
            let mut expected = String::new();
            for file in TREE {
                let writable = below(&write, file);
                if writable || below(&read, file) {
                    writeln!(expected, "r {file}").unwrap();
                }
                if writable {
                    writeln!(expected, "w {file}").unwrap();
                }
            }
            // What a child does in a place of its own reaches no file of the tree.
            let made: Vec<_> = TREE.iter().filter(|f| {
                std::fs::read(room.path("tree").join(f)).unwrap() != b"x" && !below(&write, f)
            }).collect();
            prop_assert!(made.is_empty(), "{:?} {:?}", level, made);
            prop_assert_eq!(ended.out, expected, "{:?} {}", level, ended.err);
        }
    }
}
