//! Toolkits of `LangChain` by name: ours, and what to use in place of the others.

use crate::config::typed::Located;
use crate::model::Diagnostic;
use crate::util::spelling::did_you_mean;

pub(super) const FILE_MANAGEMENT: &str = "FileManagementToolkit";

/// Refuses an entry that names any toolkit but ours.
pub(super) fn check(name: &Located<String>) -> Result<(), Diagnostic> {
    // It may be a full import path.
    let word = name.rsplit('.').next().unwrap_or_default();
    if word == FILE_MANAGEMENT {
        return Ok(());
    }
    let hint = did_you_mean(word, std::iter::once(FILE_MANAGEMENT)).unwrap_or_else(|| {
        format!(
            "use {FILE_MANAGEMENT}, 'endpoint_url' or 'openapi' for requests, 'command' for a \
             program, 'module' and 'class' for a class of yours, or for a service or a database an \
             MCP server in mcp.yaml, whose tools get a name of yours with 'storage_type: postgresql' \
             and 'mcp_server'"
        )
    });
    Err(name.error(format!("unknown toolkit '{word}'")).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;
    use crate::config::typed;
    use crate::model::Diagnostics;

    fn checked(text: &str) -> Result<(), String> {
        let root = parse(&SourceText::new("t.yaml", text), text).unwrap().root;
        check(&typed::read(&root, &Diagnostics::default()).unwrap())
            .map_err(|diagnostic| diagnostic.hint.unwrap_or_default())
    }

    #[test]
    fn a_toolkit_is_ours_or_has_a_stand_in() {
        checked("FileManagementToolkit").unwrap();
        checked("langchain_community.agent_toolkits.FileManagementToolkit").unwrap();
        let near = checked("FileManagmentToolkit").unwrap_err();
        assert_eq!(near, "did you mean 'FileManagementToolkit'?");
        for name in ["GmailToolkit", "langchain_community.agent_toolkits.SQLDatabaseToolkit"] {
            let far = checked(name).unwrap_err();
            assert!(far.contains("an MCP server in mcp.yaml"), "{far}");
        }
    }
}
