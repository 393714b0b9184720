//! A digest of several parts, each with a clear boundary, so that none can grow into the next.

use sha2::{Digest as _, Sha256};

#[derive(Default)]
pub struct PartDigest(Sha256);

impl PartDigest {
    pub fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.part(text.as_bytes());
    }

    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
