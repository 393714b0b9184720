//! What the view of the servers wants done; what comes of it is told as
//! [`Event::Servers`](super::Event::Servers).

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServersEffect {
    /// End a server and start it again.
    Restart(String),
    /// End a server.
    Stop(String),
    /// Ask a server for log lines of this level and graver ones.
    LogLevel {
        /// The server.
        server: String,
        /// The level.
        level: &'static str,
    },
}
