//! The token that network clients must send.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::fs::{FlockOperation, flock};
use secrecy::SecretString;

use super::token_store::random;
use crate::model::Error;
use crate::util::{atomic_file, private_file};

const PREFIX: &str = "token-";

#[derive(Debug)]
pub struct TokenFile {
    token: SecretString,
    path: PathBuf,
    /// Its lock shows that the server lives.
    _file: File,
}

impl TokenFile {
    /// Makes a token of 256 random bits and writes it to a file that only this user can read. Those
    /// of servers that were killed are removed.
    pub fn create(directory: &Path) -> Result<Self, Error> {
        let fail = |error: io::Error| {
            Error::config(format!("cannot store a token in {}: {error}", directory.display()))
                .with_hint("set TOOLHOST_SERVE_TOKEN to your own token")
        };
        let token = URL_SAFE_NO_PAD.encode(random::<32>()?);
        private_file::make_directory(directory).map_err(fail)?;
        let mut path = directory.join(format!("{PREFIX}{}", std::process::id()));
        // A file that is made is not judged before it is locked.
        let _turn = atomic_file::lock(&path).map_err(fail)?;
        // What cannot be removed stays for the next time.
        let _left = remove_abandoned(directory);
        if path.exists() {
            // That of a server in another container, whose process has the same number.
            path.as_mut_os_string().push(format!("-{}", uuid::Uuid::new_v4().simple()));
        }
        let mut file = private_file::create_new(&path).map_err(fail)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| fail(errno.into()))?;
        file.write_all(token.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(fail)?;
        Ok(Self { token: SecretString::from(token), path, _file: file })
    }

    pub fn token(&self) -> &SecretString {
        &self.token
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let _gone_already = std::fs::remove_file(&self.path);
    }
}

/// Removes the tokens whose servers hold no lock on them.
fn remove_abandoned(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)?.flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let file = private_file::open_lock(&entry.path())?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_token_goes_with_its_server_however_that_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (killed, living) = (dir.path().join("token-1"), dir.path().join("token-2"));
        std::fs::write(&killed, "a").unwrap();
        let held = private_file::open_lock(&living).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        let own = TokenFile::create(dir.path()).unwrap();
        assert!(!killed.exists() && living.exists() && own.path().exists());
        drop(own);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn servers_with_the_same_process_id_leave_each_other_their_tokens() {
        let dir = tempfile::tempdir().unwrap();
        let one = TokenFile::create(dir.path()).unwrap();
        let other = TokenFile::create(dir.path()).unwrap();
        let stored = |file: &TokenFile| std::fs::read_to_string(file.path()).unwrap();
        for file in [&one, &other] {
            assert_eq!(stored(file).trim_end(), file.token().expose_secret());
        }
        drop(one);
        assert_eq!(stored(&other).trim_end(), other.token().expose_secret());
    }
}
