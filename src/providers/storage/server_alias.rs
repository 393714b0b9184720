//! Entries of type `postgresql`: a name under which an MCP server's tools are listed.

use super::OWN_KEYS;
use crate::config::spec::ToolSpec;
use crate::model::{Diagnostic, check_name};
use crate::providers::engines::config::storage_type;
use crate::providers::toolkit::component;

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
    let entry = &spec.entry;
    let server = entry.get(OWN_KEYS[1]).filter(|node| !node.is_null());
    // An unknown type is reported where the store is built.
    let postgres = storage_type(entry).ok()? == "postgresql";
    match (postgres, server) {
        (false, None) => None,
        (false, Some(node)) => {
            Some(Err(Diagnostic::error("'mcp_server' is for stores of type postgresql")
                .with_hint("add 'storage_type: postgresql', or leave it out")
                .with_location(node.location())))
        }
        (true, None) => Some(Err(Diagnostic::error(
            "a store of type postgresql needs the MCP server for the database",
        )
        .with_hint("name a server of mcp.yaml: 'mcp_server: …'; its tools get this entry's name")
        .with_location(spec.location.clone()))),
        (true, Some(node)) => Some((|| {
            let server = node.as_scalar_text()?;
            check_name(&server).map_err(|error| {
                Diagnostic::error(error.to_string()).with_location(node.location())
            })?;
            Ok(ServerAlias { component: component(spec)?, server })
        })()),
    }
}
