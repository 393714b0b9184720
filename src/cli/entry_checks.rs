//! Names of entries on the command line, and the errors for disabled or unknown ones.

use std::collections::BTreeSet;

use crate::assembly::Assembly;
use crate::cli::mcp_file;
use crate::config::spec::{Configuration, FileRole};
use crate::host::hidden_by_profile;
use crate::model::{Diagnostic, Error};

/// Checks that the host has all of these servers.
pub fn require_hosted(assembly: &Assembly, names: &[String]) -> Result<(), Error> {
    let servers = assembly.host.servers();
    let known = servers.iter().map(|server| server.name.as_str()).collect();
    require_servers(&assembly.configuration, names, &known)
}

/// Checks that the configuration has all of these servers.
pub fn require_configured(configuration: &Configuration, names: &[String]) -> Result<(), Error> {
    let known = configuration.servers.iter().map(|server| server.name.as_str()).collect();
    require_servers(configuration, names, &known)
}

/// Fails for a file of servers that is left out as a whole. For commands that found none: they may be
/// in there.
pub fn require_files(configuration: &Configuration) -> Result<(), Error> {
    let is_of_tools = |problem: &Diagnostic| {
        let place = problem.location.as_ref();
        configuration.files.iter().any(|file| {
            file.role == FileRole::Tools && place.is_some_and(|place| *place.file == file.path)
        })
    };
    let errors = configuration.diagnostics.iter().filter(|problem| problem.is_error());
    let mut of_files = errors.filter(|problem| problem.entry.is_none() && !is_of_tools(problem));
    of_files.next().map_or(Ok(()), |problem| Err(mcp_file::error(problem.clone())))
}

/// Checks that every name is one of the known servers.
pub fn require_servers(
    configuration: &Configuration,
    names: &[String],
    server_names: &BTreeSet<&str>,
) -> Result<(), Error> {
    let Some(name) = names.iter().find(|name| !server_names.contains(name.as_str())) else {
        return Ok(());
    };
    if let Some(entry) = configuration.disabled.iter().find(|entry| entry.name == *name) {
        return Err(entry.error());
    }
    if let Some(entry) = configuration.untrusted.iter().find(|entry| entry.name == *name) {
        return Err(entry.refusal());
    }
    if configuration.servers.iter().any(|server| server.name == *name) {
        return Err(hidden_by_profile(name, None));
    }
    let error = Error::usage(format!("there is no server '{name}'"));
    if server_names.is_empty() {
        require_files(configuration)?;
        return Err(error.with_hint("no servers configured; add one under mcp_servers in mcp.yaml"));
    }
    let names: Vec<&str> = server_names.iter().copied().collect();
    Err(error.with_hint(format!("known: {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::spec::DisabledEntry;

    fn configuration() -> Configuration {
        let problem = Diagnostic::error("variable 'TOKEN' is not set").with_hint("export TOKEN");
        let entry = DisabledEntry {
            name: "github".to_owned(),
            role: FileRole::Servers,
            diagnostic: problem,
            definitions: Vec::new(),
            refusal: None,
        };
        Configuration { disabled: vec![entry], ..Configuration::default() }
    }

    #[test]
    fn an_unknown_server_lists_the_known_ones() {
        let known = BTreeSet::from(["a", "b"]);
        let check = |name: &str| require_servers(&configuration(), &[name.to_owned()], &known);
        assert!(check("a").is_ok());
        assert_eq!(check("github").unwrap_err().kind().exit_code(), 9);
        let unknown = check("c").unwrap_err();
        assert_eq!(unknown.kind().exit_code(), 2);
        assert_eq!(unknown.hint(), Some("known: a, b"));
    }
}
