//! Entries of type `postgresql`: a name under which an MCP server's tools are listed.

use super::OWN;
use crate::config::spec::ToolSpec;
use crate::model::{Problem, check_name};
use crate::providers::engines::choice::storage_type;
use crate::providers::toolkit::component;

/// An entry that has no tools of its own: those of a server stand under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    /// The name the tools are to have in common.
    pub component: String,
    /// The server, by its name in the file of servers.
    pub server: String,
}

/// What an entry stands for; `None` when it is a store of its own.
///
/// # Errors
/// When it says that it belongs to a server and not to which, or the other way round.
pub fn stand_in(spec: &ToolSpec) -> Option<Result<StandIn, Problem>> {
    if spec.kind != super::KEY {
        return None;
    }
    let entry = &spec.entry;
    let server = entry.get(OWN[1]).filter(|node| !node.is_null());
    // An unknown type is told by who builds the store.
    let postgres = storage_type(entry).ok()? == "postgresql";
    match (postgres, server) {
        (false, None) => None,
        (false, Some(node)) => {
            Some(Err(Problem::error("'mcp_server' is for stores of type postgresql")
                .hint("add 'storage_type: postgresql', or leave it out")
                .at(node.place())))
        }
        (true, None) => Some(Err(Problem::error(
            "a store of type postgresql needs the MCP server that knows the database",
        )
        .hint("name a server of mcp.yaml: 'mcp_server: …'; its tools get this entry's name")
        .at(spec.place.clone()))),
        (true, Some(node)) => Some((|| {
            let server = node.as_scalar_text()?;
            check_name(&server).map_err(|why| Problem::error(why).at(node.place()))?;
            Ok(StandIn { component: component(spec)?, server })
        })()),
    }
}
