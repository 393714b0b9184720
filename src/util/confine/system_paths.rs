//! System paths that most programs need, and those that a single program needs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Confinement, is_superuser};

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

/// Device files without a device behind them.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

const ETC: &str = "/etc";

/// How deep `/etc` is searched for files that only the superuser may read.
const ETC_DEPTH: usize = 2;

/// What is read by nearly every program, as far as it exists here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SystemPaths {
    pub(super) readable: Vec<PathBuf>,
    /// A directory that can be given in parts only, with them.
    pub(super) split: Option<(PathBuf, SplitDirectory)>,
}

/// A directory that is not readable by everyone.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SplitDirectory {
    pub(super) readable: Vec<PathBuf>,
    /// What only some users may read.
    pub(super) restricted: Vec<PathBuf>,
}

pub(super) fn shared() -> SystemPaths {
    let mut shared = SystemPaths { readable: existing(&SHARED).collect(), split: None };
    // A link out of /etc on many systems.
    shared.readable.extend(std::fs::canonicalize("/etc/resolv.conf").ok());
    let etc = PathBuf::from(ETC);
    // The rights of the files keep secrets from every user but the superuser.
    let parts = is_superuser().then(|| split_by_permission(&etc, ETC_DEPTH)).flatten();
    match parts {
        Some(parts) => shared.split = Some((etc, parts)),
        None => shared.readable.extend(existing(&[ETC])),
    }
    shared
}

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

/// A directory in parts, searched down to `depth`; `None` if every user may read all of it.
fn split_by_permission(directory: &Path, depth: usize) -> Option<SplitDirectory> {
    const ALL_READ: u32 = 0o004;
    let is_link = directory.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    if depth == 0 || is_link || !directory.is_dir() {
        return None;
    }
    let mut split = SplitDirectory::default();
    for child in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let child = child.path();
        let open = |child: &Path| {
            std::fs::metadata(child).is_ok_and(|meta| meta.permissions().mode() & ALL_READ != 0)
        };
        let is_link = child.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        if !open(&child) {
            // Where a link leads is given or kept there.
            if !is_link {
                split.restricted.push(child);
            }
        } else if let Some(mut inner) = split_by_permission(&child, depth - 1) {
            split.readable.append(&mut inner.readable);
            split.restricted.append(&mut inner.restricted);
        } else {
            split.readable.push(child);
        }
    }
    (!split.restricted.is_empty()).then_some(split)
}

/// What stands beside a program and belongs to it: its directory, and for one in a `bin` the
/// libraries beside that, for the path as found and where it leads. A directory that holds `home`
/// is not given away for a program in it; the program alone is.
pub fn program_paths(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
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
    paths.sort_unstable();
    paths.dedup();
    paths
}

pub fn can_read(confinement: &Confinement, path: &Path) -> bool {
    if confinement.read.iter().chain(&confinement.write).any(|shown| contains(shown, path)) {
        return true;
    }
    if !confinement.system {
        return false;
    }
    let shared = shared();
    let parts = shared.split.into_iter().flat_map(|(_, parts)| parts.readable);
    let all = shared.readable.into_iter().chain(parts).chain(machine()).chain(devices());
    all.into_iter().any(|shown| contains(&shown, path))
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
        let of = |program: &str| program_paths(&home.path().join(program), Some(home.path()));
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
        std::os::unix::fs::symlink("/nowhere", etc.path().join("dangling")).unwrap();
        for open in ["passwd", "ssh/config", "ssl/a/b"] {
            let path = etc.path().join(open);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let SplitDirectory { readable: open, restricted: closed } =
            split_by_permission(etc.path(), ETC_DEPTH).unwrap();
        let names = |paths: Vec<PathBuf>| {
            let name = |path: PathBuf| path.strip_prefix(etc.path()).unwrap().display().to_string();
            let mut names: Vec<String> = paths.into_iter().map(name).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names(open), ["passwd", "ssh/config", "ssl"]);
        assert_eq!(names(closed), ["shadow", "ssh/key"]);
        assert_eq!(split_by_permission(&etc.path().join("ssl"), ETC_DEPTH), None);
    }
}
