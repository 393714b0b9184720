//! Toolkits of `LangChain` by name: ours, and what to use in place of the others.

use crate::config::node::ConfigNode;
use crate::model::Diagnostic;
use crate::util::spelling::did_you_mean;

pub(super) const FILE_MANAGEMENT: &str = "FileManagementToolkit";

/// Replacements for other toolkits, by their names.
const INSTEAD: [(&[&str], &str); 12] = [
    (
        &["RequestsToolkit", "RequestsWrapper"],
        "use 'module: builtin.http', or an entry with 'endpoint_url' for each request",
    ),
    (
        &["OpenAPIToolkit", "NLAToolkit", "APIToolkit"],
        "use 'openapi: ./document.yaml' with 'include'",
    ),
    (&["JsonToolkit"], "use 'module: builtin.json'"),
    (&["PythonREPLTool", "PythonAstREPLTool"], "use 'module' and 'function', or an MCP server"),
    (&["ShellTool", "BashProcess", "TerminalToolkit"], "use 'command: [program, argument]'"),
    (
        &["SQLDatabaseToolkit", "SparkSQLToolkit", "PowerBIToolkit", "CassandraDatabaseToolkit"],
        "use an MCP server of the database in mcp.yaml, and with 'storage_type: postgresql' and \
         'mcp_server' its tools under a name of yours",
    ),
    (
        &["PlayWrightBrowserToolkit", "MultionToolkit", "BrowserbaseToolkit"],
        "use an MCP server that drives a browser, in mcp.yaml",
    ),
    (
        &["VectorStoreToolkit", "VectorStoreRouterToolkit", "ZapierToolkit", "NasaToolkit"],
        "use an MCP server of the service in mcp.yaml, or an entry with 'endpoint_url'",
    ),
    (
        &["GitHubToolkit", "GitLabToolkit", "JiraToolkit", "ClickupToolkit", "AmadeusToolkit"],
        "use the service's MCP server in mcp.yaml, or an entry with 'endpoint_url'",
    ),
    (
        &["GmailToolkit", "O365Toolkit", "SlackToolkit", "SteamToolkit", "StripeToolkit"],
        "use the service's MCP server in mcp.yaml, or an entry with 'endpoint_url'",
    ),
    (
        &["AzureCognitiveServicesToolkit", "AzureAiServicesToolkit", "AINetworkToolkit"],
        "use the service's MCP server in mcp.yaml, or an entry with 'endpoint_url'",
    ),
    (
        &["CSVAgent", "PandasAgent", "XorbitsAgent", "DataFrameAgent"],
        "an agent is not a tool: use 'module' and 'function' for a function of Python",
    ),
];

/// The refusal of an entry that names a toolkit for which there is a replacement: what else is
/// wrong with the entry is of no interest then.
pub(super) fn foreign(entry: &ConfigNode) -> Option<Diagnostic> {
    let (word, node) = named(entry)?;
    let (_, instead) = INSTEAD.iter().find(|(names, _)| names.contains(&word))?;
    Some(unknown(word, node).with_hint(*instead))
}

/// Refuses an entry that names any toolkit but ours.
pub(super) fn check(entry: &ConfigNode) -> Result<(), Diagnostic> {
    if let Some((_, node)) = entry.get_any(&KEYS) {
        node.as_text()?;
    }
    let Some((word, node)) = named(entry) else { return Ok(()) };
    if word == FILE_MANAGEMENT {
        return Ok(());
    }
    let hint = did_you_mean(word, std::iter::once(FILE_MANAGEMENT)).unwrap_or_else(|| {
        format!(
            "use {FILE_MANAGEMENT}, 'module' and 'class' for your own class, or an MCP server in \
             mcp.yaml for a service"
        )
    });
    Err(unknown(word, node).with_hint(hint))
}

const KEYS: [&str; 2] = ["toolkit_class", "toolkit"];

/// The class that an entry names, without the module of a full import path.
fn named(entry: &ConfigNode) -> Option<(&str, &ConfigNode)> {
    let (_, node) = entry.get_any(&KEYS)?;
    let written = node.as_text().ok()?;
    Some((written.rsplit('.').next().unwrap_or(written), node))
}

fn unknown(word: &str, node: &ConfigNode) -> Diagnostic {
    Diagnostic::error(format!("unknown toolkit '{word}'")).with_location(node.location())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    fn checked(text: &str) -> Result<(), (String, String)> {
        let entry = parse(&SourceText::new("t.yaml", text), text).unwrap().root;
        let outcome = foreign(&entry).map_or_else(|| check(&entry), Err);
        outcome.map_err(|diagnostic| (diagnostic.message, diagnostic.hint.unwrap_or_default()))
    }

    #[test]
    fn a_toolkit_is_ours_or_has_a_stand_in() {
        checked("toolkit: FileManagementToolkit").unwrap();
        checked("toolkit_class: langchain_community.agent_toolkits.FileManagementToolkit").unwrap();
        for (names, instead) in INSTEAD {
            for name in names {
                let (message, hint) = checked(&format!("toolkit: {name}")).unwrap_err();
                assert_eq!(
                    (message, hint),
                    (format!("unknown toolkit '{name}'"), instead.to_owned())
                );
            }
        }
        let (_, near) = checked("toolkit: FileManagmentToolkit").unwrap_err();
        assert_eq!(near, "did you mean 'FileManagementToolkit'?");
        let (_, far) = checked("toolkit: MyToolkit").unwrap_err();
        assert!(far.contains("'module' and 'class'"), "{far}");
        assert!(checked("toolkit: [x]").is_err());
    }
}
