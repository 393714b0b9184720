//! Protocol warnings collected during a run over HTTP.
//!
//! Owns: counting it, and the words for people. Never does: judge a call.

/// What was odd, and how often.
#[derive(Debug, Default)]
pub(super) struct LaneWarnings {
    /// Connections that the server closed after an answer.
    pub closed: u64,
    /// Connections that ended while nothing was asked on them.
    pub lost: u64,
    /// Connections that were given up because of what came, or did not come, on them.
    pub given_up: u64,
    /// Bytes came behind an answer.
    pub surplus: u64,
    /// Event streams that did not end after the answer.
    pub unfinished_streams: u64,
    /// Messages of the server that found no room.
    pub undelivered: u64,
    /// JSON that was labelled as something else.
    pub mislabelled: u64,
    /// Connections that could not be made again.
    pub unreachable: u64,
    /// How often the login was renewed.
    pub logins: u64,
    /// Sessions that the server forgot.
    pub sessions: u64,
}

impl LaneWarnings {
    /// A line for each kind that came, with its count.
    pub(super) fn lines(&self) -> Vec<String> {
        [
            (self.closed, "answers after which the server closed the connection; making the next one is in no call's time"),
            (self.lost, "idle connections that the server closed; they were made again"),
            (self.given_up, "connections made again after a call that failed on them"),
            (self.surplus, "connections given up because more came than was asked for"),
            (self.unfinished_streams, "event streams that went on after their answer; their connections were given up"),
            (self.undelivered, "messages of the server that nobody had time to read"),
            (self.mislabelled, "answers in JSON that were labelled as something else"),
            (self.unreachable, "connections that could not be made again"),
            (self.logins, "renewals of the login"),
            (self.sessions, "sessions that the server forgot; another one was begun"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}
