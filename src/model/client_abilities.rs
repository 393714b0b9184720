//! The client behind a request to a server: what it can be asked, and what it wants to hear.

/// The kinds of questions that a client can answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuestionAbilities {
    /// Forms to fill in (elicitation, mode `form`).
    pub forms: bool,
    /// Addresses to visit (elicitation, mode `url`).
    pub urls: bool,
    /// Samples of a model (`sampling/createMessage`).
    pub sampling: bool,
    /// The directories it works in (`roots/list`).
    pub roots: bool,
}

impl QuestionAbilities {
    /// What both can answer.
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

/// What the client behind a request can be asked and wants to hear, where clients share servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientAbilities {
    /// The least grave level of log lines that it wants, one of
    /// [`LOG_LEVELS`](super::event::LOG_LEVELS); `None` leaves that to the configuration.
    pub log_level: Option<&'static str>,
    /// What it can be asked; `None` stands for everything that toolhost can.
    pub questions: Option<QuestionAbilities>,
}
