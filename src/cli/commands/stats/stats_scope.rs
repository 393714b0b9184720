//! Resolving a name to tools with recorded calls.

use crate::catalogue::naming;
use crate::cli::commands::prelude::*;
use crate::model::{CallFilter, ToolName};
use crate::stats::count::ToolKey;

/// Which tools are shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StatsScope {
    /// Their full names; `None` is all.
    pub tools: Option<Vec<String>>,
    /// Whether it is a single tool, so that everything about it is shown. It may never have been
    /// called.
    pub is_single: bool,
}

impl StatsScope {
    fn tool(name: String) -> Self {
        Self { tools: Some(vec![name]), is_single: true }
    }

    fn server(tools: Vec<String>) -> Self {
        Self { tools: Some(tools), is_single: false }
    }
}

/// Resolves a name among the tools that were `called`. Another is found in the catalogue of declared
/// tools, without starting anything.
pub(super) async fn resolve(
    name: Option<&str>,
    mut called: Vec<ToolKey>,
    project: Option<&str>,
    context: &CommandContext,
) -> Result<StatsScope, Error> {
    let Some(name) = name else { return Ok(StatsScope::default()) };
    let filter = CallFilter { project: project.map(str::to_owned), ..CallFilter::default() };
    called.retain(|tool| tool.is_wanted(&filter));
    if let Some(meant) = find_called(name, &called)? {
        return Ok(meant);
    }
    let assembly = context.build()?;
    let declared = assembly.host.catalogue(&ListScope::Declared).await.tools;
    let mut names: Vec<ToolName> = declared.into_iter().map(|tool| tool.name.clone()).collect();
    if let [tool] = naming::resolve(name, &names, |name| name)[..] {
        return Ok(StatsScope::tool(tool.full()));
    }
    if assembly.host.servers().iter().any(|server| server.name == name) {
        return Ok(StatsScope::server(Vec::new()));
    }
    names.extend(called.iter().map(tool_name));
    let hint = naming::did_you_mean(name, &names.iter().collect::<Vec<_>>())
        .unwrap_or_else(|| "'toolhost stats' shows all tools that were called".to_owned());
    Err(Error::usage(format!("no calls of '{name}' recorded")).with_hint(hint))
}

/// Resolves a name among the tools that were called; `None` if it matches none.
fn find_called(name: &str, called: &[ToolKey]) -> Result<Option<StatsScope>, Error> {
    let names: Vec<ToolName> = called.iter().map(tool_name).collect();
    let meant = naming::resolve(name, &names, |name| name);
    let mut full: Vec<String> = meant.into_iter().map(ToolName::full).collect();
    full.dedup();
    let resolved = match full.as_slice() {
        [one] => Some(one.clone()),
        [_, ..] => {
            let error = Error::usage(format!("several tools are named '{name}'"));
            return Err(error.with_details(full));
        }
        [] => {
            let of_server = called.iter().filter(|tool| tool.server.as_deref() == Some(name));
            let mut tools: Vec<String> = of_server.map(|tool| tool.name.clone()).collect();
            tools.dedup();
            if !tools.is_empty() {
                return Ok(Some(StatsScope::server(tools)));
            }
            // For tools of components, only the full name is stored.
            let plain = name.replace("__", "-").replace(['.', '/', ':'], "-");
            called.iter().find(|tool| tool.name == plain).map(|tool| tool.name.clone())
        }
    };
    Ok(resolved.map(StatsScope::tool))
}

fn tool_name(tool: &ToolKey) -> ToolName {
    let parts = tool
        .server
        .as_deref()
        .and_then(|server| Some((server, tool.name.strip_prefix(server)?.strip_prefix('-')?)));
    match parts {
        Some((server, own)) => ToolName::of(server, own),
        None => ToolName::plain(&tool.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_tool_or_a_server_however_it_is_written() {
        let tool = |name: &str, server: Option<&str>| ToolKey {
            name: name.into(),
            server: server.map(str::to_owned),
            ..ToolKey::default()
        };
        let called = [
            tool("calculator", None),
            tool("git-log", Some("git")),
            tool("git-show", Some("git")),
            tool("notes-read", None),
            tool("web-log", Some("web")),
        ];
        let find = |name: &str| find_called(name, &called).unwrap();
        let one = |name: &str| Some(StatsScope::tool(name.to_owned()));
        assert_eq!(find("calculator"), one("calculator"));
        for written in ["git-log", "git.log", "git/log", "git__log"] {
            assert_eq!(find(written), one("git-log"), "{written}");
        }
        assert_eq!(find("show"), one("git-show"));
        assert_eq!(find("notes.read"), one("notes-read"));
        assert_eq!(
            find("git"),
            Some(StatsScope::server(vec!["git-log".into(), "git-show".into()]))
        );
        assert_eq!(find("nothing"), None);
        assert!(find_called("log", &called).unwrap_err().message().contains("several"));
    }
}
