//! The `permissions` of a server's entry, and where they contradict the rest of the entry.

use schemars::JsonSchema;
use serde::Deserialize;

use super::node::ConfigNode;
use super::sandbox::SandboxLevel;
use super::spec::{Endpoint, ServerSpec};
use super::typed::{self, Either, Texts};
use crate::model::{CredentialKind, Diagnostic, Diagnostics, ServerPermissions};
use crate::util::pattern;

/// What a server may offer and use.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "permissions", transform = typed::object::<Self>)]
pub(super) struct PermissionKeys {
    /// Only these tools can be listed and called; patterns with *.
    tools: Option<Texts>,
    /// Only these prompts can be listed and filled in; patterns with *.
    prompts: Option<Texts>,
    /// Only these resources can be listed and read: URIs or names; patterns with *.
    resources: Option<Texts>,
    /// Whether its program may use the network; false needs a sandbox.
    network: Option<bool>,
    /// The types of credentials that the server may receive.
    credentials: Option<Either<CredentialKind, Vec<CredentialKind>>>,
}

impl PermissionKeys {
    pub(super) fn permissions(self) -> ServerPermissions {
        ServerPermissions {
            tools: self.tools.map(|patterns| patterns.0),
            prompts: self.prompts.map(|patterns| patterns.0),
            resources: self.resources.map(|patterns| patterns.0),
            network: self.network,
            credentials: self.credentials.map(|kinds| match kinds {
                Either::Short(kind) => vec![kind],
                Either::Nested(kinds) => kinds,
            }),
        }
    }
}

/// What contradicts the rest of a server's entry; `names_sandbox` says whether it has a `sandbox`.
pub(super) fn contradictions(
    node: &ConfigNode,
    spec: &ServerSpec,
    names_sandbox: bool,
    diagnostics: &Diagnostics,
) {
    let permissions = &spec.permissions;
    let of = |key: &str| node.get(key).unwrap_or(node);
    let lists = [
        ("tools", &permissions.tools),
        ("prompts", &permissions.prompts),
        ("resources", &permissions.resources),
    ];
    for (key, patterns) in lists {
        for permitted in patterns.iter().flatten() {
            let excluded = spec.exclude.iter().find(|p| covers(p, permitted));
            if let Some(excluded) = excluded {
                let message =
                    format!("'{permitted}' is both permitted and excluded (by '{excluded}')");
                let hint = "remove it from 'exclude' or from 'permissions'";
                diagnostics.push(of(key).error(message).with_hint(hint));
            } else if !permitted.contains(['*', '?'])
                && let Some(included) = &spec.include
                && !included.iter().any(|p| pattern::matches(p, permitted))
            {
                let message = format!("'{permitted}' is permitted but not included");
                let hint = "add it to 'include', or remove it from 'permissions'";
                diagnostics.push(of(key).error(message).with_hint(hint));
            }
        }
    }
    if lists.iter().all(|(_, patterns)| patterns.as_ref().is_some_and(Vec::is_empty)) {
        let message = "these permissions permit nothing that the server offers";
        let hint = "name what may be used, or disable the entry with 'disabled: true'";
        diagnostics.push(node.error(message).with_hint(hint));
    }
    let network = network(spec, names_sandbox);
    diagnostics.extend(network.map(|wrong| wrong.with_location(of("network").location())));
    for named in &spec.credentials {
        let kinds = permissions.credentials.as_ref();
        if kinds.is_some_and(|kinds| !kinds.contains(&named.kind)) {
            let message = format!("the credential {named} is of a type that is not permitted");
            let hint = "add the type to 'permissions.credentials'";
            diagnostics.push(of("credentials").error(message).with_hint(hint));
        }
    }
}

/// Whether everything that `permitted` matches is also matched by `excluded`, as far as can be
/// told.
fn covers(excluded: &str, permitted: &str) -> bool {
    excluded == permitted
        || (!permitted.contains(['*', '?']) && pattern::matches(excluded, permitted))
}

fn network(spec: &ServerSpec, names_sandbox: bool) -> Option<Diagnostic> {
    let allowed = spec.permissions.network?;
    if !matches!(spec.endpoint, Endpoint::Stdio { .. }) {
        return (!allowed).then(|| {
            Diagnostic::error("'network: false' needs a server with a 'command', not a 'url'")
                .with_hint("only a program that toolhost starts can be confined")
        });
    }
    match &spec.sandbox {
        Some(sandbox) if sandbox.network.is_some_and(|on| on != allowed) => Some(
            Diagnostic::error("'permissions.network' and 'sandbox.network' contradict each other")
                .with_hint("set it in only one of them"),
        ),
        Some(sandbox) if !allowed && sandbox.level == SandboxLevel::Limits => Some(
            Diagnostic::error("'network: false' has no effect at the level 'limits'")
                .with_hint("use the level auto, landlock or bwrap"),
        ),
        None if !allowed && names_sandbox => Some(
            Diagnostic::error("'network: false' and 'sandbox: none' contradict each other")
                .with_hint("remove 'sandbox': then only the network is blocked"),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LoadRequest;
    use crate::config::environment::FixedEnvironment;
    use crate::config::load::load;

    fn problems(entry: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.yaml");
        std::fs::write(&file, format!("mcp_servers:\n  a:\n    {entry}\n")).unwrap();
        let request = LoadRequest { servers: vec![file], ..LoadRequest::default() };
        let loaded = load(&request, &[], &FixedEnvironment::default());
        let format_line = |d: &Diagnostic| {
            let place = d.location.as_ref().unwrap();
            format!("{}:{} {}", place.line, place.column, d.message)
        };
        loaded.diagnostics.iter().map(format_line).collect()
    }

    #[test]
    fn every_wrong_type_has_its_place() {
        for (permissions, expected) in [
            ("[a]", "expected a mapping"),
            ("text", "expected a mapping"),
            ("7", "expected a mapping"),
            ("{ tools: 7 }", "expected"),
            ("{ tools: { a: b } }", "expected"),
            ("{ tools: [[a]] }", "expected"),
            ("{ prompts: true }", "expected"),
            ("{ resources: { a: b } }", "expected"),
            ("{ network: maybe }", "expected true or false"),
            ("{ network: [] }", "expected true or false"),
            ("{ credentials: 1 }", "expected"),
            ("{ credentials: [bearr] }", "unknown credential kind 'bearr'"),
            ("{ tolls: [a] }", "unknown key 'tolls'"),
        ] {
            let lines = problems(&format!("command: x\n    permissions: {permissions}"));
            assert_eq!(lines.len(), 1, "{permissions}: {lines:?}");
            assert!(lines[0].starts_with("4:") && lines[0].contains(expected), "{lines:?}");
        }
        assert!(problems("command: x\n    permissions: ~").is_empty());
        assert!(problems("command: x\n    permissions: { tools: a, network: true }").is_empty());
    }

    #[test]
    fn contradictions_are_told_where_they_stand() {
        let command = "command: x\n    ";
        let url = "url: https://a.example/\n    ";
        for (start, rest, expected) in [
            (command, "exclude: ['w*'], P: { tools: [read, write] }", "'write' is both perm"),
            (
                command,
                "exclude: ['a*'], P: { resources: ['a*'] }",
                "'a*' is both permitted and excluded",
            ),
            (command, "include: [read], P: { tools: [write] }", "'write' is permitted but not inc"),
            (command, "P: { tools: [], prompts: [], resources: [] }", "permit nothing"),
            (url, "P: { network: false }", "needs a server with a 'command'"),
            (command, "sandbox: none, P: { network: false }", "contradict each other"),
            (command, "sandbox: limits, P: { network: false }", "no effect at the level"),
            (command, "sandbox: { network: true }, P: { network: false }", "contradict each other"),
        ] {
            let more =
                rest.replace("P:", "permissions:").replace(", permissions", "\n    permissions");
            let lines = problems(&format!("{start}{more}"));
            assert_eq!(lines.len(), 1, "{rest}: {lines:?}");
            assert!(lines[0].contains(expected), "{rest}: {lines:?}");
        }
        for fine in [
            "exclude: ['b*']\n    permissions: { tools: [a] }",
            "permissions: { tools: [] }",
            "sandbox: auto\n    permissions: { network: false }",
        ] {
            let lines = problems(&format!("{command}{fine}"));
            assert!(lines.is_empty(), "{fine}: {lines:?}");
        }
    }
}
