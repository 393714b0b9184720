//! Which paths of the system nearly every program needs, and which belong to one program.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Programs, libraries, and what is shared between users.
const SHARED: [&str; 13] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    // Systems whose programs live in a store.
    "/nix",
    "/gnu",
    "/run/current-system",
    // How many processors there are.
    "/sys/devices/system/cpu",
    // Generated certificates and the like, on systems that keep them there.
    "/var/lib/ca-certificates",
];

/// Facts about the machine. Not the whole of `/proc`, which shows the command lines of others.
const MACHINE: [&str; 9] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/proc/sys/kernel",
    "/proc/sys/vm",
];

/// Devices that are no devices.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The settings of the system.
const ETC: &str = "/etc";

/// How deep `/etc` is looked through for what only the superuser may read.
const ETC_DEPTH: usize = 2;

/// What is read by nearly every program, as far as it exists here.
pub(super) fn shared() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = existing(&SHARED).collect();
    // The rights of the files keep secrets from every user but the superuser.
    let parts = rustix::process::geteuid().is_root().then(|| open_parts(ETC.as_ref(), ETC_DEPTH));
    match parts.flatten() {
        Some(parts) => paths.extend(parts),
        None => paths.extend(existing(&[ETC])),
    }
    paths
}

/// Files that tell about the machine.
pub(super) fn machine() -> impl Iterator<Item = PathBuf> {
    existing(&MACHINE)
}

/// Devices that are read and written without effect.
pub(super) fn devices() -> impl Iterator<Item = PathBuf> {
    existing(&DEVICES)
}

fn existing(paths: &[&'static str]) -> impl Iterator<Item = PathBuf> {
    paths.iter().map(PathBuf::from).filter(|path| path.exists())
}

/// The parts of a directory that every user may read, looked for down to `depth`; nothing when
/// that is all of it.
fn open_parts(directory: &Path, depth: usize) -> Option<Vec<PathBuf>> {
    const ALL_READ: u32 = 0o004;
    let is_link = directory.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    if depth == 0 || is_link || !directory.is_dir() {
        return None;
    }
    let mut parts = Vec::new();
    let mut closed = false;
    for child in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let child = child.path();
        if !std::fs::metadata(&child).is_ok_and(|m| m.permissions().mode() & ALL_READ != 0) {
            closed = true;
            continue;
        }
        match open_parts(&child, depth - 1) {
            None => parts.push(child),
            Some(open) => {
                closed = true;
                parts.extend(open);
            }
        }
    }
    closed.then_some(parts)
}

/// What stands beside a program and belongs to it: its directory, and for one in a `bin` the
/// libraries beside that, for the path as found and where it leads. A directory that holds `home`
/// is not given away for a program in it; the program alone is.
pub fn beside_program(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let target = program.canonicalize().ok().filter(|target| target != program);
    let mut paths = Vec::new();
    for program in [Some(program.to_path_buf()), target].into_iter().flatten() {
        let Some(directory) = program.parent() else { continue };
        if home.is_some_and(|home| contains(directory, home)) {
            paths.push(program);
            continue;
        }
        paths.push(directory.to_path_buf());
        if let (true, Some(prefix)) = (directory.ends_with("bin"), directory.parent()) {
            let beside = ["lib", "lib64", "libexec", "pyvenv.cfg"];
            paths.extend(beside.iter().map(|name| prefix.join(name)).filter(|path| path.exists()));
        }
    }
    paths.retain(|path| path.exists());
    paths.sort();
    paths.dedup();
    paths
}

/// Whether `directory` is `path` or holds it, whatever links lead to either.
pub fn contains(directory: &Path, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    path.starts_with(directory) || real(path).starts_with(real(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_home_does_not_give_the_home_away() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir(home.path().join("venv/lib")).unwrap();
        std::fs::create_dir(home.path().join("venv/share")).unwrap();
        for program in [home.path().join("run"), bin.join("python")] {
            std::fs::write(program, "").unwrap();
        }
        let of = |program: &str| beside_program(&home.path().join(program), Some(home.path()));
        assert_eq!(of("run"), [home.path().join("run")]);
        assert_eq!(of("venv/bin/python"), [bin, home.path().join("venv/lib")]);
    }

    #[test]
    fn what_only_some_may_read_is_left_out() {
        let etc = tempfile::tempdir().unwrap();
        let secret = |path: &str| {
            let path = etc.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        };
        secret("shadow");
        secret("ssh/key");
        for open in ["passwd", "ssh/config", "ssl/a/b"] {
            let path = etc.path().join(open);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let mut found = open_parts(etc.path(), ETC_DEPTH).unwrap();
        found.sort();
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(etc.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("passwd"), Path::new("ssh/config"), Path::new("ssl")]);
        assert_eq!(open_parts(&etc.path().join("ssl"), ETC_DEPTH), None);
    }
}
