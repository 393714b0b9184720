//! Protocol warnings collected during a run over HTTP.

/// What was odd, and how often.
#[derive(Debug, Default)]
pub(super) struct LaneWarnings {
    /// Connections that the server closed after an answer.
    pub closed: u64,
    /// Connections that ended while nothing was asked on them.
    pub lost: u64,
    /// Connections that were closed because of what arrived, or did not arrive, on them.
    pub given_up: u64,
    /// Bytes came behind an answer.
    pub surplus: u64,
    /// Event streams that did not end after the answer.
    pub unfinished_streams: u64,
    /// Messages of the server that found no room.
    pub undelivered: u64,
    /// JSON that was labelled as something else.
    pub mislabelled: u64,
    /// Connections that could not be reopened.
    pub unreachable: u64,
    pub logins: u64,
    pub sessions: u64,
}

impl LaneWarnings {
    /// A line for each kind that came, with its count.
    pub(super) fn lines(&self) -> Vec<String> {
        [
            (self.closed, "responses after which the server closed the connection; reconnecting is not part of any latency"),
            (self.lost, "idle connections closed by the server and reopened"),
            (self.given_up, "connections reopened after a failed call"),
            (self.surplus, "connections closed because the server sent more than requested"),
            (self.unfinished_streams, "event streams that stayed open after the response; their connections were closed"),
            (self.undelivered, "messages from the server that were dropped because the queue was full"),
            (self.mislabelled, "JSON responses with another content type"),
            (self.unreachable, "connections that could not be reopened"),
            (self.logins, "token renewals"),
            (self.sessions, "sessions that the server ended; new ones were started"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}
