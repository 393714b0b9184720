//! The client behind a request to a server: which questions it can answer, and which log lines it
//! wants.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuestionAbilities {
    /// Forms to fill in (elicitation, mode `form`).
    pub forms: bool,
    /// Addresses to visit (elicitation, mode `url`).
    pub urls: bool,
    pub sampling: bool,
    /// The directories it works in (`roots/list`).
    pub roots: bool,
}

impl QuestionAbilities {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            forms: self.forms && other.forms,
            urls: self.urls && other.urls,
            sampling: self.sampling && other.sampling,
            roots: self.roots && other.roots,
        }
    }
}

/// Which questions the client behind a request can answer and which log lines it wants, for servers
/// that clients share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientAbilities {
    /// The minimum level of log lines it wants, one of [`LOG_LEVELS`](super::event::LOG_LEVELS);
    /// `None` leaves it to the configuration.
    pub log_level: Option<&'static str>,
    /// The questions it can answer; `None` means all that toolhost supports.
    pub questions: Option<QuestionAbilities>,
}
