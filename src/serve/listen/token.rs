//! The token that network clients must send.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::SecretString;

use crate::model::Error;
use crate::util::private_file;

#[derive(Debug)]
pub struct TokenFile {
    token: SecretString,
    path: PathBuf,
}

impl TokenFile {
    /// Makes a token of 256 random bits and writes it to a file that only this user can read.
    pub fn create(directory: &Path) -> Result<Self, Error> {
        let fail = |error: io::Error| {
            Error::config(format!("cannot store a token in {}: {error}", directory.display()))
                .with_hint("set TOOLHOST_SERVE_TOKEN to your own token")
        };
        let mut random = [0; 32];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| Error::internal("the system provides no random numbers"))?;
        let token = URL_SAFE_NO_PAD.encode(random);
        private_file::make_directory(directory).map_err(fail)?;
        let path = directory.join(format!("token-{}", std::process::id()));
        // One of a process that had this number before.
        let _none_there = std::fs::remove_file(&path);
        let mut file = private_file::create_new(&path).map_err(fail)?;
        file.write_all(token.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(fail)?;
        Ok(Self { token: SecretString::from(token), path })
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
