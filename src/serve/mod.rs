//! The server side of MCP: the servers that run inside this binary.
//!
//! Owns: the MCP servers that run inside this binary, and the recording proxy in front of another
//! server. Never does: load configuration, talk to a terminal, or start another server. The SDK's
//! types stay inside this module.

pub mod background;
pub mod catalogue_server;
pub mod demo;
pub mod listen;
pub mod record;
pub mod replay;

mod shared_room;

use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}
