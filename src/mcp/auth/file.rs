//! Storing logins in an encrypted file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::{FlockOperation, OFlags, flock};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::keychain;
use super::seal::{KEY_LEN, KeySource, LoginKey, VARIABLE, generate};
use super::vault::{OAuthLogin, RenewalLock, Vault, VaultEdit};
use crate::mcp::era_cache;
use crate::model::Error;
use crate::util::atomic_file::{self, FileMode};
use crate::util::private_file;
use crate::util::units::show_duration;

/// Bytes of the file; a login is about 4 KiB.
const FILE_SIZE_LIMIT: u64 = 4 << 20;
const WRITE_LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const RENEWAL_LOCK_TIMEOUT: Duration = Duration::from_mins(1);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(20);

pub struct FileVault {
    directory: PathBuf,
    variable: Option<SecretString>,
    /// A new key is kept in the keychain of the system, not in a file.
    uses_keychain: bool,
}

impl std::fmt::Debug for FileVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileVault({})", self.directory.display())
    }
}

#[derive(Serialize, Deserialize)]
struct LoginFile {
    logins: Vec<OAuthLogin>,
}

impl FileVault {
    /// Keeps logins in `auth` of this state directory, sealed with the value of
    /// `TOOLHOST_ENCRYPTION_KEY` when it has one. Touches nothing yet.
    pub fn new(state_dir: &Path, variable: Option<String>) -> Self {
        let variable = variable.filter(|value| !value.is_empty()).map(SecretString::from);
        Self { directory: state_dir.join("auth"), variable, uses_keychain: false }
    }

    /// Keeps the key in the keychain of the system, unless the variable has one.
    #[must_use]
    pub fn with_keychain(self, keychain: bool) -> Self {
        Self { uses_keychain: keychain, ..self }
    }

    fn path(&self) -> PathBuf {
        self.directory.join("logins")
    }

    /// Removes everything that is kept, readable or not; says whether there was anything.
    pub async fn clear(&self) -> Result<bool, Error> {
        if !self.directory.exists() {
            return Ok(false);
        }
        let _lock = self.lock("lock", WRITE_LOCK_TIMEOUT).await?;
        match std::fs::remove_file(self.path()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed("removed", &self.path(), &error)),
        }
    }

    async fn read(&self) -> Result<Vec<OAuthLogin>, Error> {
        let path = self.path();
        let sealed = match read(&path) {
            Ok(sealed) => sealed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("read", &path, &error)),
        };
        let unusable = |why: &str| {
            Error::auth(format!("the stored logins in {} cannot be read: {why}", path.display()))
                .with_hint("to forget them all: toolhost auth logout --all")
        };
        let source = KeySource::of(&sealed)
            .ok_or_else(|| unusable("the file was not written by toolhost"))?;
        let key = self.key(source).await?.ok_or_else(|| match source {
            KeySource::Variable => {
                unusable(&format!("they were encrypted with {VARIABLE}, which is not set"))
            }
            KeySource::File => unusable("their key file is gone"),
            KeySource::Keychain => unusable("the keychain no longer has their key"),
        })?;
        let opened = key.open(&sealed).ok_or_else(|| {
            unusable(match source {
                KeySource::Variable => {
                    "they were encrypted with another key, or the file is damaged"
                }
                KeySource::File | KeySource::Keychain => "the file or its key is damaged",
            })
        })?;
        let content: LoginFile = serde_json::from_slice(&opened)
            .map_err(|_| unusable("they were written by a newer toolhost"))?;
        Ok(content.logins)
    }

    async fn write(&self, logins: Vec<OAuthLogin>) -> Result<(), Error> {
        let path = self.path();
        let source = match &self.variable {
            Some(_) => KeySource::Variable,
            None if self.uses_keychain => KeySource::Keychain,
            None => KeySource::File,
        };
        let key = match self.key(source).await? {
            Some(key) => key,
            None => self.make_key(source).await?,
        };
        let text = serde_json::to_vec(&LoginFile { logins })
            .map_err(|error| Error::internal(error.to_string()))?;
        let sealed = key.seal(text).ok_or_else(no_random)?;
        atomic_file::replace(&path, &sealed, FileMode::Private)
            .map_err(|error| self.failed("written", &path, &error))
    }

    async fn key(&self, source: KeySource) -> Result<Option<LoginKey>, Error> {
        match source {
            KeySource::Variable => {
                let variable = self.variable.as_ref().map(|text| text.expose_secret().as_bytes());
                Ok(variable.map(|bytes| LoginKey::new(source, bytes)))
            }
            KeySource::File => self.key_file(),
            KeySource::Keychain => keychain::load_key().await,
        }
    }

    fn key_file(&self) -> Result<Option<LoginKey>, Error> {
        let path = self.directory.join("key");
        let open = || -> io::Result<Vec<u8>> {
            let meta = std::fs::symlink_metadata(&path)?;
            if meta.mode() & 0o077 != 0 {
                return Err(io::Error::other("others may read it; chmod 600 it"));
            }
            read(&path)
        };
        match open() {
            Ok(key) if key.len() == KEY_LEN => Ok(Some(LoginKey::new(KeySource::File, &key))),
            Ok(_) => Err(self.failed("used", &path, &io::Error::other("it is damaged"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("used", &path, &error)),
        }
    }

    async fn make_key(&self, source: KeySource) -> Result<LoginKey, Error> {
        let key = generate().ok_or_else(no_random)?;
        if source == KeySource::Keychain {
            keychain::store_key(key).await?;
        } else {
            let path = self.directory.join("key");
            atomic_file::replace(&path, &key, FileMode::Private)
                .map_err(|error| self.failed("written", &path, &error))?;
        }
        Ok(LoginKey::new(source, &key))
    }

    async fn lock(&self, name: &str, limit: Duration) -> Result<File, Error> {
        let path = self.directory.join(name);
        let open = || -> io::Result<File> {
            private_file::make_own_directory(&self.directory)?;
            private_file::open_lock(&path)
        };
        let file = open().map_err(|error| self.failed("locked", &path, &error))?;
        let end = Instant::now() + limit;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < end => {
                    sleep(LOCK_RETRY_INTERVAL).await;
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let limit = show_duration(limit);
                    return Err(Error::timeout(format!(
                        "another toolhost did not release {} within {limit}",
                        path.display()
                    )));
                }
                Err(error) => return Err(self.failed("locked", &path, &error.into())),
            }
        }
    }

    #[expect(clippy::unused_self, reason = "reads as what the vault says")]
    fn failed(&self, what: &str, path: &Path, error: &io::Error) -> Error {
        Error::auth(format!("{} cannot be {what}: {error}", path.display()))
    }
}

#[async_trait]
impl Vault for FileVault {
    async fn load(&self) -> Result<Vec<OAuthLogin>, Error> {
        self.read().await
    }

    async fn edit(&self, change: VaultEdit<'_>) -> Result<(), Error> {
        let _lock = self.lock("lock", WRITE_LOCK_TIMEOUT).await?;
        let mut logins = self.read().await?;
        change(&mut logins);
        self.write(logins).await
    }

    async fn lock_renewal(&self, server: &str) -> Result<RenewalLock, Error> {
        let lock =
            self.lock(&format!("{}.turn", era_cache::key(&[server])), RENEWAL_LOCK_TIMEOUT).await?;
        Ok(Box::new(lock))
    }
}

fn no_random() -> Error {
    Error::internal("the system provides no random numbers")
}

/// A small file of ours; links are not followed.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = options.read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::new();
    file.take(FILE_SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_SIZE_LIMIT {
        return Err(io::Error::other("it is too large"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::mcp::auth::vault::{OAuthClient, OAuthToken, insert_login};

    fn login(server: &str, access: &str) -> OAuthLogin {
        let token = OAuthToken {
            access: access.to_owned(),
            refresh: None,
            expires_at: None,
            scopes: Vec::new(),
            asked: Vec::new(),
        };
        let client = OAuthClient {
            id: "me".into(),
            secret: None,
            redirect: String::new(),
            registered: true,
        };
        OAuthLogin {
            server: server.into(),
            issuer: "https://as".into(),
            client,
            token: Some(token),
        }
    }

    async fn add(vault: &FileVault, login: &OAuthLogin) -> Result<(), Error> {
        vault.edit(&mut |logins| insert_login(logins, login)).await
    }

    #[cfg(not(feature = "keyring"))]
    #[tokio::test]
    async fn without_a_keychain_nothing_falls_back_to_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let vault = FileVault::new(dir.path(), None).with_keychain(true);
        let error = add(&vault, &login("https://a", "t")).await.unwrap_err();
        assert_eq!(error.kind(), crate::model::ErrorKind::Auth);
        assert!(error.message().contains("without the feature 'keyring'"), "{error}");
        assert!(!dir.path().join("auth/key").exists() && !dir.path().join("auth/logins").exists());
    }

    #[tokio::test]
    async fn what_is_kept_is_private_sealed_and_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let vault = FileVault::new(dir.path(), None);
        assert!(vault.load().await.unwrap().is_empty());
        assert!(!dir.path().join("auth").exists(), "reading makes nothing");
        add(&vault, &login("one", "hunter2hunter2")).await.unwrap();
        add(&vault, &login("two", "hunter3")).await.unwrap();
        add(&vault, &login("one", "hunter4")).await.unwrap();
        let logins = FileVault::new(dir.path(), None).load().await.unwrap();
        assert_eq!(logins, [login("two", "hunter3"), login("one", "hunter4")]);
        let mode = |path: &str| {
            std::fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!((mode("auth"), mode("auth/logins"), mode("auth/key")), (0o700, 0o600, 0o600));
        let bytes = std::fs::read(dir.path().join("auth/logins")).unwrap();
        assert!(!bytes.windows(6).any(|bytes| bytes == b"hunter"));
        assert!(vault.clear().await.unwrap());
        assert!(!vault.clear().await.unwrap());
    }

    #[tokio::test]
    async fn a_variable_takes_over_from_the_generated_key_and_is_needed_then() {
        let dir = tempfile::tempdir().unwrap();
        add(&FileVault::new(dir.path(), None), &login("one", "a")).await.unwrap();
        let with = |key: &str| FileVault::new(dir.path(), Some(key.to_owned()));
        assert_eq!(with("k").load().await.unwrap().len(), 1);
        add(&with("k"), &login("two", "b")).await.unwrap();
        assert_eq!(with("k").load().await.unwrap().len(), 2);
        let before = std::fs::read(dir.path().join("auth/logins")).unwrap();
        for vault in [with("other"), FileVault::new(dir.path(), None)] {
            let error = vault.load().await.unwrap_err();
            assert!(error.hint().unwrap().contains("logout --all"), "{error:?}");
            add(&vault, &login("three", "c")).await.unwrap_err();
        }
        assert_eq!(std::fs::read(dir.path().join("auth/logins")).unwrap(), before);
    }

    #[tokio::test]
    async fn damage_is_said_and_nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let vault = FileVault::new(dir.path(), None);
        add(&vault, &login("one", "a")).await.unwrap();
        let path = dir.path().join("auth/logins");
        let good = std::fs::read(&path).unwrap();
        for bad in [&b"nonsense"[..], b"", &good[..good.len() - 1]] {
            std::fs::write(&path, bad).unwrap();
            vault.load().await.unwrap_err();
            add(&vault, &login("two", "b")).await.unwrap_err();
            assert_eq!(std::fs::read(&path).unwrap(), bad);
        }
        std::fs::write(&path, &good).unwrap();
        let key = dir.path().join("auth/key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(vault.load().await.unwrap_err().message().contains("chmod 600"));
        std::fs::remove_file(&key).unwrap();
        assert!(vault.load().await.unwrap_err().message().contains("gone"));
        assert!(vault.clear().await.unwrap());
        add(&vault, &login("two", "b")).await.unwrap();
    }

    #[tokio::test]
    async fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let vault = FileVault::new(dir.path(), None);
        add(&vault, &login("one", "a")).await.unwrap();
        let path = dir.path().join("auth/logins");
        std::fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
        vault.load().await.unwrap_err();
    }

    #[tokio::test]
    async fn turns_are_taken_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (FileVault::new(dir.path(), None), FileVault::new(dir.path(), None));
        let turn = one.lock_renewal("s").await.unwrap();
        let other = two.lock_renewal("another").await.unwrap();
        let waiting = two.lock_renewal("s");
        tokio::pin!(waiting);
        assert!(futures_util::future::FutureExt::now_or_never(waiting.as_mut()).is_none());
        drop((turn, other));
        waiting.await.unwrap();
    }
}
