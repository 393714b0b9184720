//! Entries under whose names an MCP server's tools are listed: the server gets the name.
//!
//! Owns: renaming the server's spec before anything is built from it, so that nobody after this
//! knows its old name. Never does: contact the server.

use crate::config::node::Node;
use crate::config::spec::{Configuration, DisabledEntry, FileRole, ServerSpec, ToolSpec};
use crate::model::{EntryOrigin, Place, Problem, ToolName};
use crate::providers::storage::{StandIn, stand_in};

/// Takes such entries out of the tools and gives their names to their servers.
pub(super) fn apply(configuration: &mut Configuration) {
    let mut taken: Vec<Taken> = Vec::new();
    let entries = configuration.tools.extract_if(.., |spec| stand_in(spec).is_some());
    for spec in entries.collect::<Vec<_>>() {
        let outcome = match stand_in(&spec) {
            None => continue,
            Some(Err(problem)) => Err(problem),
            Some(Ok(meant)) => hand_over(configuration, &spec, &meant, &taken)
                .map(|()| taken.push(Taken { meant, place: spec.place.clone() })),
        };
        if let Err(problem) = outcome {
            let name = spec.definition.name.full();
            let problem = problem.entry(name.clone());
            let (role, shown) = (FileRole::Tools, problem.clone());
            configuration.disabled.push(DisabledEntry {
                name,
                role,
                problem: shown,
                declares: Vec::new(),
                refusal: None,
            });
            configuration.problems.push(problem);
        }
    }
}

/// A server that has got its name from an entry, and where that stands.
struct Taken {
    meant: StandIn,
    place: Place,
}

fn hand_over(
    configuration: &mut Configuration,
    spec: &ToolSpec,
    meant: &StandIn,
    taken: &[Taken],
) -> Result<(), Problem> {
    let spot = spec.entry.get("mcp_server").map_or_else(|| spec.place.clone(), Node::place);
    let StandIn { component, server } = meant;
    if let Some(before) = taken.iter().find(|before| before.meant.server == *server) {
        let (name, at) = (&before.meant.component, show(&before.place));
        return Err(Problem::error(format!("the tools of '{server}' stand under '{name}' ({at})"))
            .hint("a server can have one component: take its tools from there")
            .at(spot));
    }
    let servers = &mut configuration.servers;
    if let Some(other) = servers.iter().find(|s| s.name == *component && s.name != *server) {
        let at = show(&other.place);
        return Err(Problem::error(format!("the name '{component}' is taken by a server ({at})"))
            .hint("give this component another name")
            .at(spec.place.clone()));
    }
    let Some(found) = servers.iter_mut().find(|known| known.name == *server) else {
        return Err(unknown(configuration, server, &spot));
    };
    let is_projects = |entry: &EntryOrigin| entry.project().is_some();
    if spec.definition.entry.as_deref().is_some_and(is_projects) && !is_projects(&found.origin) {
        // What the user refuses or allows goes by the name.
        return Err(Problem::error(format!("the server '{server}' is not one of this project"))
            .hint("only your own files can give its tools another name")
            .at(spot));
    }
    rename(found, component, spec);
    Ok(())
}

fn show(place: &Place) -> String {
    format!("{}:{}", place.file.display(), place.line)
}

fn rename(server: &mut ServerSpec, component: &str, spec: &ToolSpec) {
    component.clone_into(&mut server.name);
    for tool in &mut server.provides_tools {
        tool.name = ToolName::of(component, tool.name.tool());
    }
    if spec.definition.description.is_some() {
        server.description.clone_from(&spec.definition.description);
    }
    // An entry may raise caution, never lower it.
    server.requires_approval |= spec.definition.requires_approval;
}

fn unknown(configuration: &Configuration, server: &str, place: &Place) -> Problem {
    if let Some(entry) = configuration
        .disabled
        .iter()
        .find(|entry| entry.role == FileRole::Servers && entry.name == server)
    {
        let why = &entry.problem.message;
        return Problem::error(format!("the MCP server '{server}' is out of service: {why}"))
            .at(place.clone());
    }
    let known: Vec<&str> = configuration.servers.iter().map(|s| s.name.as_str()).collect();
    let problem = Problem::error(format!("there is no MCP server '{server}'")).at(place.clone());
    if known.is_empty() {
        problem.hint("servers stand in mcp.yaml")
    } else {
        problem.hint(format!("known servers: {}", known.join(", ")))
    }
}
