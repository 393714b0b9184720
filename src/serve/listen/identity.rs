//! Who sends requests over the network.

use std::time::Duration;

use crate::host::ClientScope;

#[derive(Debug, Clone)]
pub(super) enum Requester {
    /// The one who runs the server: everything that it serves may be used.
    Owner,
    Client(AuthenticatedClient),
}

#[derive(Debug, Clone)]
pub(super) struct AuthenticatedClient {
    /// What no other client has: the id of a token that was issued here, or a hash of what an
    /// authorization server says.
    pub(super) key: String,
    pub(super) scope: ClientScope,
    /// Until when the token is valid, in time since the Unix epoch.
    pub(super) expires: Duration,
    pub(super) is_issued_here: bool,
}
