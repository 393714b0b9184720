//! Names that mean an entry of a file: what to say when the entry is out of service or is not there.

use std::collections::BTreeSet;

use crate::config::spec::{Configuration, DisabledEntry, FileRole};
use crate::model::{Fault, ServerStatus};

/// Checks that every name in `names` is one of `known` servers.
///
/// # Errors
/// A configuration fault for an entry that is out of service, a usage fault for one that is not
/// there.
pub fn expect_servers(
    configuration: &Configuration,
    names: &[String],
    known: &BTreeSet<&str>,
) -> Result<(), Fault> {
    let Some(name) = names.iter().find(|name| !known.contains(name.as_str())) else {
        return Ok(());
    };
    if let Some(entry) = configuration.disabled.iter().find(|entry| entry.name == *name) {
        let fault = Fault::config(format!("'{}' is {}", entry.name, out_of_service(entry)));
        return Err(explained(fault, entry));
    }
    if let Some(entry) = configuration.untrusted.iter().find(|entry| entry.name == *name) {
        return Err(entry.refusal());
    }
    let fault = Fault::usage(format!("there is no server '{name}'"));
    if known.is_empty() {
        return Err(fault.hint("no server is configured; they are declared in mcp.yaml"));
    }
    let known: Vec<&str> = known.iter().copied().collect();
    Err(fault.hint(format!("known: {}", known.join(", "))))
}

/// The servers whose entries cannot be used, as far as `names` (all when empty) ask for them.
pub fn broken_servers(configuration: &Configuration, names: &[String]) -> Vec<ServerStatus> {
    let wanted = |entry: &&DisabledEntry| {
        entry.role == FileRole::Servers && (names.is_empty() || names.contains(&entry.name))
    };
    let entries = configuration.disabled.iter().filter(wanted);
    let status = |entry: &DisabledEntry| {
        let fault = explained(Fault::config(out_of_service(entry)), entry);
        ServerStatus::failed(&entry.name, fault)
    };
    entries.map(status).collect()
}

fn out_of_service(entry: &DisabledEntry) -> String {
    format!("out of service: {}", entry.problem.message)
}

/// The fault of an entry with its place and what can be done.
fn explained(mut fault: Fault, entry: &DisabledEntry) -> Fault {
    let problem = &entry.problem;
    if let Some(place) = &problem.place {
        fault = fault.place(place.clone());
    }
    match &problem.hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

/// Whether `name` is the entry itself or one of its tools, with any of the separators.
pub fn owns(entry: &str, name: &str) -> bool {
    match name.strip_prefix(entry) {
        Some("") => !entry.is_empty(),
        Some(rest) if !entry.is_empty() => {
            rest.starts_with(['-', '.', '/', ':']) || rest.starts_with("__")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Problem;

    fn configuration() -> Configuration {
        let problem = Problem::error("variable 'TOKEN' is not set").hint("export TOKEN");
        let entry = DisabledEntry {
            name: "github".to_owned(),
            role: FileRole::Servers,
            problem,
            declares: Vec::new(),
            refusal: None,
        };
        Configuration { disabled: vec![entry], ..Configuration::default() }
    }

    #[test]
    fn an_entry_owns_its_tools_with_every_separator() {
        for name in ["github", "github-search", "github.search", "github/x", "github__search"] {
            assert!(owns("github", name), "{name}");
        }
        for name in ["git", "githubber", "search", ""] {
            assert!(!owns("github", name), "{name}");
        }
        assert!(!owns("", "-x"));
    }

    #[test]
    fn an_unknown_server_lists_the_known_ones() {
        let known = BTreeSet::from(["a", "b"]);
        let check = |name: &str| expect_servers(&configuration(), &[name.to_owned()], &known);
        assert!(check("a").is_ok());
        assert_eq!(check("github").unwrap_err().kind().exit_code(), 9);
        let unknown = check("c").unwrap_err();
        assert_eq!(unknown.kind().exit_code(), 2);
        assert_eq!(unknown.hint_text(), Some("known: a, b"));
    }
}
