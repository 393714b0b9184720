//! Commands of the servers view. Their results arrive as
//! [`AppEvent::ServerStatuses`](super::AppEvent::ServerStatuses).

/// What the servers view asks the effects to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServersEffect {
    /// End a server and start it again.
    Restart(String),
    /// Close the connection of a server, which ends its process.
    Stop(String),
    /// Ask a server for log lines of this level and graver ones.
    LogLevel {
        /// The name of the server in the configuration.
        server: String,
        /// A level of the MCP specification, such as `warning`.
        level: &'static str,
    },
}
