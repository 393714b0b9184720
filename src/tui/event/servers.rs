//! Commands of the servers view. Their results arrive as
//! [`AppEvent::ServerStatuses`](super::AppEvent::ServerStatuses).

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServersEffect {
    /// End a server and start it again.
    Restart(String),
    /// Close the connection of a server, which ends its process.
    Stop(String),
    LogLevel {
        server: String,
        /// A level of the MCP specification, such as `warning`.
        level: &'static str,
    },
}
