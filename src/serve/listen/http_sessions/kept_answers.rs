//! How much is kept of responses that their clients did not read.

use rmcp::model::ServerJsonRpcMessage;

use crate::serve::shared_room::{SharedRoom, TakenRoom};
use crate::util::json;

/// How many bytes are kept for all clients of a listener.
const BYTES: usize = 64 << 20;
pub(super) const BYTES_OF_ONE_TOKEN: usize = 16 << 20;

/// The room there is for messages that wait for clients to come back.
pub(in crate::serve::listen) struct KeptAnswers(SharedRoom);

impl KeptAnswers {
    /// The room of a listener, of which nothing is taken.
    pub(in crate::serve::listen) fn new() -> Self {
        Self(SharedRoom::new((BYTES, BYTES_OF_ONE_TOKEN)))
    }

    pub(in crate::serve::listen) fn of_one_token(&self) -> Self {
        Self(self.0.of_one_token())
    }

    /// Takes the room that a message needs; `None` when there is not so much.
    pub(super) fn take(&self, message: &ServerJsonRpcMessage) -> Option<TakenRoom> {
        self.0.try_take(usize::try_from(json::size(message)).ok()?)
    }
}
