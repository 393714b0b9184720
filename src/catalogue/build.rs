//! Merging the listings of all providers into one catalogue.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Catalogue, LocalFailure, ServerListing};
use crate::model::{Diagnostic, Error, Origin, ToolDefinition};

#[derive(Debug, Clone, Default)]
pub struct Contribution {
    pub server: Option<String>,
    pub tools: Vec<Arc<ToolDefinition>>,
    /// What is wrong with single tools; one bad tool costs only itself.
    pub diagnostics: Vec<Diagnostic>,
    /// Why nothing could be listed; `tools` may still hold declared ones.
    pub error: Option<Error>,
    /// Whether something is missing from `tools`.
    pub is_partial: bool,
}

/// Builds the list: local tools in file order, then each server's in the server's order.
///
/// When two tools have one full name the first keeps it; the later is left out and reported with
/// both origins. Local tools come first, so that no server can take a name from one of them.
pub fn build(version: u64, local: Vec<Contribution>, servers: Vec<Contribution>) -> Catalogue {
    let mut catalogue = Catalogue { version, ..Catalogue::default() };
    let mut tools = Vec::new();
    for part in local {
        let kind = part.tools.first().map_or("".into(), |tool| tool.kind.clone());
        catalogue.failures.extend(part.error.map(|error| LocalFailure { kind, error }));
        tools.extend(part.tools);
        catalogue.diagnostics.extend(part.diagnostics);
    }
    sort_by_location(&mut tools);
    for part in servers {
        tools.extend(part.tools);
        catalogue.diagnostics.extend(part.diagnostics);
        if let Some(name) = part.server {
            let listing = ServerListing { name, error: part.error, is_partial: part.is_partial };
            catalogue.servers.push(listing);
        }
    }
    let (tools, clashes) = keep_first(tools);
    catalogue.tools = tools;
    catalogue.diagnostics.extend(clashes);
    catalogue
}

/// File order over providers: each kind has its own provider, so tools of one file arrive apart.
/// Files keep the order in which they were first seen; tools without a place come last.
pub fn sort_by_location(tools: &mut [Arc<ToolDefinition>]) {
    let mut files: HashMap<Arc<PathBuf>, usize> = HashMap::new();
    for tool in tools.iter() {
        if let Origin::File(location) = &tool.origin {
            let next = files.len();
            files.entry(Arc::clone(&location.file)).or_insert(next);
        }
    }
    tools.sort_by_key(|tool| match &tool.origin {
        Origin::File(location) => {
            let file = files.get(&location.file).copied().unwrap_or(usize::MAX);
            (file, location.line, location.column)
        }
        Origin::Server(_) | Origin::Program => (usize::MAX, 0, 0),
    });
}

fn keep_first(tools: Vec<Arc<ToolDefinition>>) -> (Vec<Arc<ToolDefinition>>, Vec<Diagnostic>) {
    let mut places: HashMap<String, usize> = HashMap::with_capacity(tools.len());
    let mut unique: Vec<Arc<ToolDefinition>> = Vec::with_capacity(tools.len());
    let mut diagnostics = Vec::new();
    for tool in tools {
        let name = tool.name.full();
        if let Some(first) = places.get(&name).and_then(|at| unique.get(*at)) {
            diagnostics.push(duplicate_name(&name, first, &tool));
        } else {
            places.insert(name, unique.len());
            unique.push(tool);
        }
    }
    (unique, diagnostics)
}

fn duplicate_name(name: &str, first: &ToolDefinition, later: &ToolDefinition) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!(
        "the tool '{name}' {} is skipped: its name is taken by the one {}",
        describe_origin(&later.origin),
        describe_origin(&first.origin)
    ))
    .with_hint("rename or exclude one of the two")
    .with_entry(name);
    match &later.origin {
        Origin::File(location) => diagnostic.with_location(location.clone()),
        Origin::Server(_) | Origin::Program => diagnostic,
    }
}

/// Where a definition was read, as the end of a phrase: `with_location tools.yaml:3:5`, `of server 'x'`.
pub fn describe_origin(origin: &Origin) -> String {
    match origin {
        Origin::File(location) => {
            format!("at {}:{}:{}", location.file.display(), location.line, location.column)
        }
        Origin::Server(name) => format!("of server '{name}'"),
        Origin::Program => "registered by this program".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{SourceLocation, ToolName, ToolSource};

    fn in_file(name: &str, line: u32) -> ToolDefinition {
        let location = SourceLocation {
            file: Arc::new("tools.yaml".into()),
            line,
            column: 5,
            text: Arc::from(""),
        };
        ToolDefinition::new(
            ToolName::plain(name),
            ToolSource::Internal,
            "builtin",
            Origin::File(location),
        )
    }

    fn of_server(server: &str, tool: &str) -> ToolDefinition {
        ToolDefinition::new(
            ToolName::of(server, tool),
            ToolSource::Mcp,
            "mcp",
            Origin::Server(server.to_owned()),
        )
    }

    fn tools(tools: Vec<ToolDefinition>) -> Contribution {
        Contribution { tools: tools.into_iter().map(Arc::new).collect(), ..Contribution::default() }
    }

    fn names(catalogue: &Catalogue) -> Vec<String> {
        catalogue.tools.iter().map(|t| t.name.full()).collect()
    }

    #[test]
    fn local_tools_come_in_file_order_whatever_their_kind() {
        let catalogue = build(
            1,
            vec![tools(vec![in_file("a", 3), in_file("c", 9)]), tools(vec![in_file("b", 5)])],
            vec![tools(vec![of_server("s", "z"), of_server("s", "y")])],
        );
        assert_eq!(names(&catalogue), ["a", "b", "c", "s-z", "s-y"]);
        assert!(catalogue.diagnostics.is_empty());
    }

    #[test]
    fn the_later_of_two_equal_names_is_left_out_and_both_origins_are_named() {
        let catalogue = build(
            1,
            vec![tools(vec![in_file("s-z", 3)])],
            vec![tools(vec![of_server("s", "z"), of_server("s", "y")])],
        );
        assert_eq!(names(&catalogue), ["s-z", "s-y"]);
        assert_eq!(catalogue.tools[0].source, ToolSource::Internal);
        assert_eq!(
            catalogue.diagnostics[0].message,
            "the tool 's-z' of server 's' is skipped: its name is taken by the one at tools.yaml:3:5"
        );
    }

    #[test]
    fn different_splits_of_one_name_clash_too() {
        let catalogue = build(
            1,
            vec![],
            vec![tools(vec![of_server("a", "b-c")]), tools(vec![of_server("a-b", "c")])],
        );
        assert_eq!(catalogue.tools.len(), 1);
        assert_eq!(catalogue.tools[0].name.component(), Some("a"));
        assert!(catalogue.diagnostics[0].is_error());
    }
}
