//! Entries of type `postgresql`: a name under which an MCP server's tools are listed.

use super::StoreKeys;
use crate::config::spec::ToolSpec;
use crate::config::typed;
use crate::model::{Diagnostic, check_name};
use crate::providers::engines::config::{EngineKeys, StorageType};
use crate::providers::toolkit::{ToolkitKeys, component};

/// An entry without its own tools: those of a server appear under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAlias {
    /// The name the tools are to have in common.
    pub component: String,
    pub server: String,
}

/// The server an entry stands for; `None` if it is a store itself.
pub fn server_alias(spec: &ToolSpec) -> Option<Result<ServerAlias, Diagnostic>> {
    if spec.kind != super::KEY {
        return None;
    }
    let engine: EngineKeys = typed::peek(&spec.entry)?;
    let server = typed::peek::<StoreKeys>(&spec.entry)?.mcp_server;
    let toolkit: ToolkitKeys = typed::peek(&spec.entry)?;
    match (engine.storage_type() == StorageType::Postgresql, server) {
        (false, None) => None,
        (false, Some(server)) => Some(Err(server
            .error("'mcp_server' is for stores of type postgresql")
            .with_hint("add 'storage_type: postgresql', or leave it out"))),
        (true, None) => Some(Err(Diagnostic::error(
            "a store of type postgresql needs the MCP server for the database",
        )
        .with_hint("name a server of mcp.yaml: 'mcp_server: …'; its tools get this entry's name")
        .with_location(spec.location.clone()))),
        (true, Some(server)) => Some((|| {
            check_name(&server).map_err(|error| server.error(error.to_string()))?;
            Ok(ServerAlias { component: component(spec, &toolkit)?, server: server.value })
        })()),
    }
}
