//! How much is kept of responses that their clients did not read.
//!
//! Owns: the bytes of all of them together, and the share of one token. Never does: decide which
//! response is kept.

use std::sync::Arc;

use rmcp::model::ServerJsonRpcMessage;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::util::json;

/// How many bytes are kept for all clients of a listener.
const BYTES: usize = 64 << 20;
/// How many of them are kept for the clients of one token.
pub(super) const BYTES_OF_ONE_TOKEN: usize = 16 << 20;

/// The room there is for messages that wait for clients to come back.
pub(in crate::serve::listen) struct KeptAnswers {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
}

/// The room that one message takes until this is dropped.
pub(super) struct KeptBytes {
    _of_all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl KeptAnswers {
    /// The room of a listener, of which nothing is taken.
    pub(in crate::serve::listen) fn new() -> Self {
        let room = |bytes| Arc::new(Semaphore::new(bytes));
        Self { all: room(BYTES), own: room(BYTES_OF_ONE_TOKEN) }
    }

    /// The share of another token in the same room.
    pub(in crate::serve::listen) fn of_one_token(&self) -> Self {
        let own = Arc::new(Semaphore::new(BYTES_OF_ONE_TOKEN));
        Self { all: Arc::clone(&self.all), own }
    }

    /// Takes the room that a message needs; `None` when there is not so much.
    pub(super) fn take(&self, message: &ServerJsonRpcMessage) -> Option<KeptBytes> {
        let bytes = u32::try_from(json::size(message)).ok()?;
        let own = Arc::clone(&self.own).try_acquire_many_owned(bytes).ok()?;
        let of_all = Arc::clone(&self.all).try_acquire_many_owned(bytes).ok()?;
        Some(KeptBytes { _of_all: of_all, _own: own })
    }
}
