//! Which tools a name means, among those that were ever called.

use super::reading::Reading;
use crate::catalogue::naming::{self, Resolution};
use crate::cli::context::Context;
use crate::host::request::Reach;
use crate::model::{Fault, ToolName};
use crate::stats::count::Tool;
use crate::util::clock::{Clock as _, SystemClock};

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meant {
    /// All tools.
    All,
    /// The tools of a server, by full name.
    Server(Vec<String>),
    /// One tool, by full name; it may never have been called.
    Tool(String),
}

impl Meant {
    /// The full names; `None` is all.
    pub(super) fn tools(&self) -> Option<Vec<String>> {
        match self {
            Self::All => None,
            Self::Server(tools) => Some(tools.clone()),
            Self::Tool(tool) => Some(vec![tool.clone()]),
        }
    }

    /// Whether one tool is meant, so that everything about it is shown.
    pub(super) fn is_one(&self) -> bool {
        matches!(self, Self::Tool(_))
    }
}

/// Finds out what a name means. A tool that was never called is known by the catalogue of declared
/// tools; nothing is started for it.
pub(super) async fn find(
    name: Option<&str>,
    reading: &mut Reading,
    context: &Context,
) -> Result<Meant, Fault> {
    let Some(name) = name else { return Ok(Meant::All) };
    let called = reading.with(|statistics| statistics.tools(SystemClock.unix())).await?;
    if let Some(meant) = among_called(name, &called)? {
        return Ok(meant);
    }
    let assembly = context.build()?;
    let declared = assembly.host.catalogue(&Reach::Declared).await.tools;
    let mut names: Vec<ToolName> = declared.into_iter().map(|tool| tool.name.clone()).collect();
    if let Resolution::Found(at) = naming::resolve(name, &names.iter().collect::<Vec<_>>()) {
        return Ok(Meant::Tool(names.swap_remove(at).full()));
    }
    if assembly.host.servers().iter().any(|server| server.name == name) {
        return Ok(Meant::Server(Vec::new()));
    }
    names.extend(called.iter().map(tool_name));
    let near = naming::suggest(name, &names.iter().collect::<Vec<_>>());
    let fault = Fault::usage(format!("no call of '{name}' was counted"));
    if near.is_empty() {
        return Err(fault.hint("'toolhost stats' shows all tools that were called"));
    }
    let near: Vec<String> = near.iter().map(|name| format!("'{name}'")).collect();
    Err(fault.hint(format!("did you mean {}?", near.join(" or "))))
}

/// What a name means among the tools that were called; `None` when it is none of them.
fn among_called(name: &str, called: &[Tool]) -> Result<Option<Meant>, Fault> {
    let names: Vec<ToolName> = called.iter().map(tool_name).collect();
    let found = match naming::resolve(name, &names.iter().collect::<Vec<_>>()) {
        Resolution::Found(at) => names.get(at).map(ToolName::full),
        Resolution::Ambiguous(several) => {
            let mut full: Vec<String> =
                several.iter().filter_map(|at| names.get(*at)).map(ToolName::full).collect();
            full.dedup();
            match full.as_slice() {
                [one] => Some(one.clone()),
                _ => {
                    return Err(Fault::usage(format!("'{name}' is the name of several tools"))
                        .details(full));
                }
            }
        }
        Resolution::Unknown => {
            let of_server = called.iter().filter(|tool| tool.server.as_deref() == Some(name));
            let mut tools: Vec<String> = of_server.map(|tool| tool.name.clone()).collect();
            tools.dedup();
            if !tools.is_empty() {
                return Ok(Some(Meant::Server(tools)));
            }
            // Of a tool of a component only the full name was kept.
            let plain = name.replace("__", "-").replace(['.', '/', ':'], "-");
            called.iter().find(|tool| tool.name == plain).map(|tool| tool.name.clone())
        }
    };
    Ok(found.map(Meant::Tool))
}

fn tool_name(tool: &Tool) -> ToolName {
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
        let tool = |name: &str, server: Option<&str>| Tool {
            name: name.into(),
            server: server.map(str::to_owned),
        };
        let called = [
            tool("calculator", None),
            tool("git-log", Some("git")),
            tool("git-show", Some("git")),
            tool("notes-read", None),
            tool("web-log", Some("web")),
        ];
        let find = |name: &str| among_called(name, &called).unwrap();
        let one = |name: &str| Some(Meant::Tool(name.to_owned()));
        assert_eq!(find("calculator"), one("calculator"));
        for written in ["git-log", "git.log", "git/log", "git__log"] {
            assert_eq!(find(written), one("git-log"), "{written}");
        }
        assert_eq!(find("show"), one("git-show"));
        assert_eq!(find("notes.read"), one("notes-read"));
        assert_eq!(find("git"), Some(Meant::Server(vec!["git-log".into(), "git-show".into()])));
        assert_eq!(find("nothing"), None);
        assert!(among_called("log", &called).unwrap_err().message().contains("several"));
    }
}
