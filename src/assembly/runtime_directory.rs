//! The directory of the sockets, locks and logs of background hosts.

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use uuid::Uuid;

use crate::config::environment::Environment;
use crate::model::Error;
use crate::util::private_file;

const KEY: &str = "key";
/// The bytes of the key: two random UUIDs.
const KEY_BYTES: usize = 32;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The directory, which may not exist yet.
#[derive(Debug, Clone)]
pub struct RuntimeDirectory(PathBuf);

impl RuntimeDirectory {
    /// `toolhost` in `XDG_RUNTIME_DIR`, or `run` in the state directory if that is unset; `None`
    /// without either.
    pub fn of(environment: &dyn Environment) -> Option<Self> {
        let runtime = environment.var("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir());
        runtime
            .map(|runtime| runtime.join("toolhost"))
            .or_else(|| environment.state_dir().map(|state| state.join("run")))
            .map(Self)
    }

    /// Creates it, accessible only to this user.
    pub fn prepare(&self) -> Result<(), Error> {
        private_file::make_own_directory(&self.0).map_err(|error| self.failed(&error))?;
        if self.is_private() {
            return Ok(());
        }
        let words = format!("{} is not a private directory of this user", self.0.display());
        Err(Error::denied(words).with_hint("remove it, or set XDG_RUNTIME_DIR"))
    }

    fn is_private(&self) -> bool {
        std::fs::symlink_metadata(&self.0).is_ok_and(|meta| {
            meta.is_dir() && is_own(&meta) && meta.mode() & 0o777 == private_file::DIRECTORY
        })
    }

    /// The key for hashing configurations; `None` if no host was ever started, or the directory is
    /// not private.
    pub fn key(&self) -> Option<Vec<u8>> {
        if !self.is_private() {
            return None;
        }
        // Another user may have planted what stands there: it is judged by its descriptor.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = File::options().read(true).custom_flags(flags).open(self.0.join(KEY)).ok()?;
        let meta = file.metadata().ok()?;
        if !meta.is_file() || !is_own(&meta) || meta.mode() & 0o077 != 0 {
            return None;
        }
        let mut key = Vec::new();
        file.take(KEY_BYTES as u64 + 1).read_to_end(&mut key).ok()?;
        (key.len() == KEY_BYTES).then_some(key)
    }

    pub fn make_key(&self) -> Result<Vec<u8>, Error> {
        self.prepare()?;
        if let Some(key) = self.key() {
            return Ok(key);
        }
        let lock = private_file::open_lock(&self.0.join("key.lock"));
        let lock = lock.and_then(|file| file.lock().map(|()| file));
        let _lock = lock.map_err(|error| self.failed(&error))?;
        if let Some(key) = self.key() {
            return Ok(key);
        }
        let key = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        let path = self.0.join(KEY);
        let write = || -> io::Result<()> {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            private_file::create_new(&path)?.write_all(&key)
        };
        write().map_err(|error| self.failed(&error))?;
        Ok(key)
    }

    pub fn socket(&self, identity: &str) -> PathBuf {
        self.0.join(format!("{identity}.sock"))
    }

    pub fn host_lock(&self, identity: &str) -> PathBuf {
        self.0.join(format!("{identity}.lock"))
    }

    pub fn start_lock(&self, identity: &str) -> PathBuf {
        self.0.join(format!("{identity}.start"))
    }

    /// The existing sockets, with or without a host behind them.
    pub fn sockets(&self) -> Vec<PathBuf> {
        if !self.is_private() {
            return Vec::new();
        }
        let Ok(entries) = std::fs::read_dir(&self.0) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut sockets: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "sock")).collect();
        sockets.sort_unstable();
        sockets
    }

    fn failed(&self, error: &io::Error) -> Error {
        let shown = self.0.display();
        Error::config(format!("cannot use the background host directory {shown}: {error}"))
            .with_hint("set XDG_RUNTIME_DIR to a directory you own")
    }
}

fn is_own(meta: &Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw()
}

/// Takes a lock; `None` if another process holds it.
pub fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = private_file::open_lock(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Takes a lock within `limit`; `None` if another process held it that long.
pub async fn lock_within(path: &Path, limit: Duration) -> io::Result<Option<File>> {
    let end = tokio::time::Instant::now() + limit;
    loop {
        let taken = try_lock(path)?;
        if taken.is_some() || tokio::time::Instant::now() >= end {
            return Ok(taken);
        }
        tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_directory_is_private_and_its_key_stays() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = RuntimeDirectory(dir.path().join("toolhost"));
        assert_eq!(runtime.key(), None);
        let key = runtime.make_key().unwrap();
        assert_eq!(key.len(), KEY_BYTES);
        assert_eq!(runtime.make_key().unwrap(), key);
        assert_eq!(runtime.key(), Some(key));
        // What others may enter is not believed.
        std::fs::set_permissions(&runtime.0, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(runtime.key(), None);
        assert!(runtime.sockets().is_empty());
    }

    #[test]
    fn a_key_that_is_not_the_users_own_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = RuntimeDirectory(dir.path().join("toolhost"));
        runtime.prepare().unwrap();
        let (key, other) = (runtime.0.join(KEY), dir.path().join("other"));
        std::fs::write(&other, [7; KEY_BYTES]).unwrap();
        std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&other, &key).unwrap();
        assert_eq!(runtime.key(), None, "a link");
        std::fs::remove_file(&key).unwrap();
        std::fs::write(&key, [7; KEY_BYTES]).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(runtime.key(), None, "others may read it");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(runtime.key(), Some(vec![7; KEY_BYTES]));
        std::fs::write(&key, [7; KEY_BYTES + 1]).unwrap();
        assert_eq!(runtime.key(), None, "it is too long");
        assert_eq!(runtime.make_key().unwrap().len(), KEY_BYTES);
        assert_eq!(std::fs::read(other).unwrap(), [7; KEY_BYTES]);
    }

    #[tokio::test]
    async fn a_lock_is_held_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.lock");
        let held = try_lock(&path).unwrap();
        assert!(held.is_some());
        assert!(lock_within(&path, Duration::ZERO).await.unwrap().is_none());
        drop(held);
        assert!(lock_within(&path, Duration::ZERO).await.unwrap().is_some());
    }
}
