//! Which background host a run like this one used last.
//!
//! Owns: the links in the directory of the sockets that remember it. Never does: decide which host is
//! used. Finding that out takes as long as a host takes to answer the beginning of a connection, so that
//! a run begins one with the host it will most likely use; one that turns out to be another is dropped
//! before it was asked for anything.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::runtime_directory::RuntimeDirectory;
use crate::config::environment::Environment;

/// How the names of the links begin.
const PREFIX: &str = "last-";

/// What the runs of one kind remember: those in one directory with the same options.
pub struct LastUsed {
    directory: RuntimeDirectory,
    link: PathBuf,
}

impl LastUsed {
    /// Of runs with these options in the working directory.
    pub fn of(
        directory: &RuntimeDirectory,
        arguments: &[OsString],
        environment: &dyn Environment,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        // Programs are found by it; another one often means another host.
        (environment.cwd(), arguments, environment.var("PATH")).hash(&mut hasher);
        let link = directory.path().join(format!("{PREFIX}{:016x}", hasher.finish()));
        Self { directory: directory.clone(), link }
    }

    /// The identity of the host, which may be gone.
    pub fn identity(&self) -> Option<String> {
        identity_in(&self.link)
    }

    /// Remembers a host. What cannot be written costs later runs some time.
    pub fn note(&self, identity: &str) {
        self.forget_gone();
        let _absent = std::fs::remove_file(&self.link);
        let socket = self.directory.socket(identity);
        if let Some(name) = socket.file_name() {
            let _unwritable = symlink(name, &self.link);
        }
    }

    /// Removes what is remembered of hosts that are gone.
    fn forget_gone(&self) {
        let Ok(entries) = std::fs::read_dir(self.directory.path()) else { return };
        for entry in entries.flatten() {
            let is_link = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
            if is_link && !entry.path().exists() {
                let _gone_meanwhile = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Where a link points, if that is the name of a socket beside it.
fn identity_in(link: &Path) -> Option<String> {
    let target = std::fs::read_link(link).ok()?.into_os_string().into_string().ok()?;
    let identity = target.strip_suffix(".sock")?;
    let is_identity = identity.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_identity.then(|| identity.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::config::environment::FixedEnvironment;

    fn private_directory(root: &Path) -> RuntimeDirectory {
        let vars = [("XDG_RUNTIME_DIR".to_owned(), root.display().to_string())].into();
        let environment = FixedEnvironment { vars, ..FixedEnvironment::default() };
        let directory = RuntimeDirectory::of(&environment).unwrap();
        directory.prepare().unwrap();
        directory
    }

    fn environment(cwd: &str) -> FixedEnvironment {
        FixedEnvironment { cwd: cwd.into(), ..FixedEnvironment::default() }
    }

    #[test]
    fn each_kind_of_run_remembers_its_host_as_long_as_that_is_there() {
        let root = tempfile::tempdir().unwrap();
        let directory = private_directory(root.path());
        let here = LastUsed::of(&directory, &[], &environment("/here"));
        let with_trust = LastUsed::of(&directory, &["--trust".into()], &environment("/here"));
        let there = LastUsed::of(&directory, &[], &environment("/there"));
        assert_eq!(here.identity(), None);
        let _socket = File::create(directory.socket("0a1b")).unwrap();
        here.note("0a1b");
        assert_eq!(here.identity().as_deref(), Some("0a1b"));
        assert_eq!((with_trust.identity(), there.identity()), (None, None));
        let _socket = File::create(directory.socket("2c3d")).unwrap();
        here.note("2c3d");
        assert_eq!(here.identity().as_deref(), Some("2c3d"));
        assert!(directory.sockets().len() == 2, "no link counts as a socket");
        std::fs::remove_file(directory.socket("2c3d")).unwrap();
        there.note("0a1b");
        assert_eq!(here.identity(), None, "what is gone is forgotten");
        assert_eq!(there.identity().as_deref(), Some("0a1b"));
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let directory = private_directory(root.path());
        let run = LastUsed::of(&directory, &[], &environment("/here"));
        for target in ["../0a1b.sock", "/run/0a1b.sock", "0a1b", "agent.sock", ""] {
            let _absent = std::fs::remove_file(&run.link);
            let _empty = symlink(target, &run.link);
            assert_eq!(run.identity(), None, "{target:?}");
        }
    }
}
