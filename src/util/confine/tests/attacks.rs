//! Tests of attacks by a confined program, with real children and real victims.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixDatagram;

use super::*;

/// Every attempt of the script below prints its name when it succeeded.
const BEGIN: &str = r"
import ctypes, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == 'x86_64'
def attempt(name, act):
    try:
        result = act()
    except (OSError, ValueError):
        return
    if not isinstance(result, int) or result >= 0:
        print(name)
def call(x86_number, other_number, *arguments):
    number = x86_number if x86 else other_number
    if number is None:
        return -1
    return libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
";

/// Changes of everything but the contents of `argv[1]`.
const METADATA: &str = r"
victim = sys.argv[1]
path = victim.encode()
fd = None
try:
    fd = os.open(victim, os.O_RDONLY)
except OSError:
    pass
attempt('chmod', lambda: os.chmod(victim, 0o777))
attempt('fchmodat', lambda: call(268, 53, -100, path, 0o777))
attempt('fchmodat2', lambda: call(452, 452, -100, path, 0o777, 0))
attempt('chown', lambda: os.chown(victim, os.getuid(), os.getgid()))
attempt('lchown', lambda: os.lchown(victim, os.getuid(), os.getgid()))
attempt('utimensat', lambda: os.utime(victim, (1, 1)))
attempt('utime', lambda: call(132, None, path, 0))
attempt('utimes', lambda: call(235, None, path, 0))
attempt('futimesat', lambda: call(261, None, -100, path, 0))
attempt('setxattr', lambda: os.setxattr(victim, 'user.mark', b'x'))
attempt('lsetxattr', lambda: os.setxattr(victim, 'user.mark', b'x', follow_symlinks=False))
attempt('removexattr', lambda: os.removexattr(victim, 'user.own'))
value = ctypes.create_string_buffer(b'x')
args = struct.pack('=QII', ctypes.addressof(value), 1, 0)
attempt('setxattrat', lambda: call(463, 463, -100, path, 0, b'user.at', args, 16))
attempt('removexattrat', lambda: call(466, 466, -100, path, 0, b'user.at'))
if fd is not None:
    attempt('fchmod', lambda: os.fchmod(fd, 0o777))
    attempt('fchown', lambda: os.fchown(fd, os.getuid(), os.getgid()))
    attempt('futimens', lambda: os.utime(fd, (1, 1)))
    attempt('fsetxattr', lambda: os.setxattr(fd, 'user.mark', b'x'))
    attempt('fremovexattr', lambda: os.removexattr(fd, 'user.own'))
    import fcntl
    flags = bytearray(8)
    def attributes():
        fcntl.ioctl(fd, 0x80086601, flags)
        flags[0] |= 0x40
        fcntl.ioctl(fd, 0x40086602, bytes(flags))
    attempt('attributes', attributes)
print('end')
";

/// Root is not bound by the modes of files, and needs no user namespace: all of this once more for
/// an ordinary user.
#[test]
fn the_same_holds_for_an_ordinary_user() {
    use std::os::unix::process::CommandExt as _;
    const UNPRIVILEGED_USER: u32 = 65534;
    if !is_superuser() {
        return;
    }
    let tests = std::env::current_exe().unwrap();
    let run = std::process::Command::new(&tests)
        .args(["confine::tests::attacks", "confine::tests::endings", "--skip", "ordinary_user"])
        .env("RUST_BACKTRACE", "0")
        .current_dir("/")
        .uid(UNPRIVILEGED_USER)
        .gid(UNPRIVILEGED_USER)
        .output();
    match run {
        Err(why) => {
            crate::util::skipped::left_out(&format!("{} as nobody: {why}", tests.display()));
        }
        Ok(run) => {
            let output = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success() && output.contains("attacks::metadata"), "{output}");
        }
    }
}

fn python(parts: &[&str]) -> Option<String> {
    if !Path::new(PYTHON).exists() {
        crate::util::skipped::left_out(&format!("there is no {PYTHON}"));
        return None;
    }
    Some(parts.concat())
}

/// What could be changed of a file beside its contents.
fn metadata_of(path: &Path) -> (u32, u32, u32, i64, i64) {
    let meta = std::fs::metadata(path).unwrap();
    (meta.mode(), meta.uid(), meta.gid(), meta.mtime(), meta.ctime_nsec())
}

#[tokio::test]
async fn metadata_outside_stays_as_it_is() {
    let Some(script) = python(&[BEGIN, METADATA]) else { return };
    for level in levels() {
        let room = Room::new();
        // One that it may not even read, and one that it may.
        for victim in ["home/secret", "work/file"] {
            let victim = room.path(victim);
            std::fs::write(&victim, "x").unwrap();
            std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o600)).unwrap();
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(&victim, "user.own", b"x", flags).unwrap();
            let before = metadata_of(&victim);
            let argv = [PYTHON, "-c", &script, victim.to_str().unwrap()];
            let ended = room.run(&room.confinement(level), &argv).await;
            assert_eq!(ended.out, "end\n", "{level:?}: {}", ended.err);
            assert_eq!(metadata_of(&victim), before, "{level:?}");
        }
    }
}

/// Nothing is written: what can be opened for writing could be written to.
#[tokio::test]
async fn no_setting_of_the_kernel_can_be_opened_for_writing() {
    let attack = r"
def files(path):
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(at, name) for at, _, names in os.walk(path) for name in names]
for top in ['sys', 'sysrq-trigger', 'irq', 'bus', 'acpi', 'scsi', 'mtrr', 'fs', 'driver', 'pressure']:
    for path in files('/proc/' + top):
        attempt(path, lambda: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)))
print('end')
";
    let Some(script) = python(&[BEGIN, attack]) else { return };
    for level in levels() {
        let room = Room::new();
        for (read, network) in [(room.path("work"), false), (PathBuf::from("/"), true)] {
            let confinement = Confinement { read: vec![read], network, ..room.confinement(level) };
            let ended = room.run(&confinement, &[PYTHON, "-c", &script]).await;
            assert_eq!(ended.out, "end\n", "{level:?}: {}", ended.err);
        }
    }
}

#[tokio::test]
async fn other_processes_keep_their_limits_and_priorities() {
    let attack = r"
import resource, select
victim = int(sys.argv[1])
own = os.getpid()
attempt('prlimit', lambda: resource.prlimit(victim, resource.RLIMIT_CORE, (0, 0)))
limit = struct.pack('=QQ', 64, 64)
attempt('prlimit64', lambda: call(302, 261, victim, 7, limit, None))
attempt('setpriority', lambda: os.setpriority(os.PRIO_PROCESS, victim, 19))
attempt('setpriority of a group', lambda: os.setpriority(os.PRIO_PGRP, os.getpgid(victim), 19))
attempt('setpriority of the user', lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
attempt('sched_setaffinity', lambda: os.sched_setaffinity(victim, {0}))
attempt('sched_setscheduler', lambda: os.sched_setscheduler(victim, os.SCHED_BATCH, os.sched_param(0)))
attempt('sched_setparam', lambda: os.sched_setparam(victim, os.sched_param(0)))
attempt('sched_setattr', lambda: call(314, 274, victim, struct.pack('=IIQiIQQQ', 48, 3, 0, 0, 0, 0, 0, 0), 0))
attempt('ioprio_set', lambda: call(251, 30, 1, victim, (3 << 13)))
attempt('kcmp', lambda: call(312, 272, victim, victim, 0, 0, 0))
attempt('migrate_pages', lambda: call(256, 238, victim, 8, b'\1\0\0\0\0\0\0\0', b'\1\0\0\0\0\0\0\0'))
attempt('ptrace', lambda: call(101, 117, 16, victim, 0, 0))
buffer = ctypes.create_string_buffer(8)
vector = struct.pack('=QQ', ctypes.addressof(buffer), 8)
attempt('process_vm_readv', lambda: call(310, 270, victim, vector, 1, vector, 1, 0))
attempt('process_vm_writev', lambda: call(311, 271, victim, vector, 1, vector, 1, 0))
def through_pidfd(number, *arguments):
    fd = os.pidfd_open(victim)
    return call(number, number, fd, *arguments)
attempt('pidfd_getfd', lambda: through_pidfd(438, 0, 0))
attempt('process_madvise', lambda: through_pidfd(440, vector, 1, 20, 0))
attempt('kill', lambda: os.kill(victim, 0))
attempt('pidfd_send_signal', lambda: through_pidfd(424, 0, None, 0))
for name in ['environ', 'maps', 'mem', 'cmdline', 'fd', 'cwd/.', 'root/.', 'oom_score_adj', 'status']:
    def look(name=name):
        path = f'/proc/{victim}/{name}'
        os.listdir(path) if name in ('fd', 'cwd/.', 'root/.') else open(path).close()
    attempt('/proc/PID/' + name, look)
# What a program may do with itself stays.
soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
resource.prlimit(0, resource.RLIMIT_CORE)
os.nice(1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
print('end')
";
    let Some(script) = python(&[BEGIN, attack]) else { return };
    for level in levels() {
        let room = Room::new();
        if level == ConfinementLevel::Landlock && !keeps_signals(&room.confinement(level)) {
            crate::util::skipped::left_out("this Landlock has no scopes");
            continue;
        }
        let mut victim = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = victim.id().to_string();
        let ended = room.run(&room.confinement(level), &[PYTHON, "-c", &script, &pid]).await;
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert_eq!(ended.out, "end\n", "{level:?}: {}", ended.err);
    }
}

#[tokio::test]
async fn no_memory_semaphore_or_queue_is_shared() {
    let attack = r"
attempt('shmget', lambda: call(29, 194, 0x7001, 4096, 0o1600))
attempt('semget', lambda: call(64, 190, 0x7002, 1, 0o1600))
attempt('msgget', lambda: call(68, 186, 0x7003, 0o1600))
for name, x86_number, other in [('shmat', 30, 196), ('msgrcv', 70, 188), ('semctl', 66, 191)]:
    result = call(x86_number, other, 0, 0, 0, 0, 0o4000)
    if ctypes.get_errno() != 1:
        print(name, ctypes.get_errno())
rt = ctypes.CDLL('librt.so.1', use_errno=True)
attempt('mq_open', lambda: rt.mq_open(b'/toolhost-test', 0o102, 0o600, None))
attempt('the semaphore outside', lambda: open('/dev/shm/' + sys.argv[1]).close())
print('end')
";
    let Some(script) = python(&[BEGIN, attack]) else { return };
    for level in levels() {
        let room = Room::new();
        let mut shared =
            tempfile::Builder::new().prefix("toolhost-").tempfile_in("/dev/shm").unwrap();
        std::io::Write::write_all(&mut shared, b"x").unwrap();
        let name = shared.path().file_name().unwrap().to_str().unwrap();
        let ended = room.run(&room.confinement(level), &[PYTHON, "-c", &script, name]).await;
        assert_eq!(ended.out, "end\n", "{level:?}: {}", ended.err);
    }
}

#[tokio::test]
async fn no_datagram_reaches_a_named_socket() {
    let attack = r"
import array
named, abstract = sys.argv[1], '\0' + sys.argv[2]
def datagram():
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def pair(kind):
    return socket.socketpair(socket.AF_UNIX, kind)[0]
# A datagram socket of a pair can still name another address.
makers = [('socket', datagram)] + [
    (name, lambda kind=kind: pair(kind))
    for name, kind in [('datagram pair', socket.SOCK_DGRAM), ('raw pair', socket.SOCK_RAW),
                       ('stream pair', socket.SOCK_STREAM), ('packet pair', socket.SOCK_SEQPACKET)]]
for what, make in makers:
    for where, address in [('path', named), ('abstract', abstract)]:
        def send(make=make, address=address):
            make().sendto(b'sendto', address)
        def message(make=make, address=address):
            make().sendmsg([b'sendmsg'], [], 0, address)
        def connected(make=make, address=address):
            s = make()
            s.connect(address)
            s.send(b'connected')
        for how in (send, message, connected):
            try:
                how()
            except OSError:
                pass
left, right = socket.socketpair()
left.send(b'end')
print(right.recv(3).decode())
";
    let Some(script) = python(&[BEGIN, attack]) else { return };
    for level in levels() {
        let room = Room::new();
        let path = room.path("work/bus");
        let name = format!("toolhost-{}", uuid::Uuid::new_v4());
        let address = <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name).unwrap();
        let victims =
            [UnixDatagram::bind(&path).unwrap(), UnixDatagram::bind_addr(&address).unwrap()];
        let argv = [PYTHON, "-c", &script, path.to_str().unwrap(), &name];
        let ended = room.run(&room.confinement(level), &argv).await;
        assert_eq!(ended.out, "end\n", "{level:?}: {}", ended.err);
        for victim in victims {
            victim.set_nonblocking(true).unwrap();
            let mut buffer = [0; 16];
            let received = victim.recv(&mut buffer).map(|size| buffer[..size].to_vec());
            assert!(received.is_err(), "{level:?}: {received:?}");
        }
    }
}

#[tokio::test]
async fn ordinary_programs_still_run() {
    let scripts = [
        ("sh", "d=$(mktemp -d) && cd $d && echo a >x && cp x y && mv y z && cat z && rm x z"),
        (
            "python3",
            "python3 -c 'import subprocess, tempfile, threading, ssl, sqlite3, json, asyncio
asyncio.run(asyncio.sleep(0))
print(subprocess.run([\"echo\", \"a\"], capture_output=True, text=True).stdout.strip())'",
        ),
        (
            "git",
            "cd $TMPDIR && git init -q r && cd r && echo a >f && git add f &&
git -c user.name=n -c user.email=e commit -qm m && git show HEAD:f",
        ),
        (
            "node",
            "node -e 'require(\"child_process\").execFile(\"echo\", [\"a\"], (e, out) => console.log(out.trim()))'",
        ),
        ("perl", "perl -e 'print \"a\\n\"'"),
    ];
    for level in levels() {
        for (program, script) in scripts {
            let room = Room::new();
            let lookup =
                room.shell(&room.confinement(level), &format!("command -v {program}")).await;
            if lookup.out.is_empty() {
                crate::util::skipped::left_out(&format!("there is no {program}"));
                continue;
            }
            // `git init` tries out whether the rights of a file can be changed, and gives up if not.
            let metadata = program == "git";
            let confinement = Confinement { metadata, ..room.confinement(level) };
            let ended = room.shell(&confinement, script).await;
            assert_eq!(ended.out, "a\n", "{level:?} {program}: {}", ended.err);
        }
    }
}
