//! Table test over `tests/fixtures/config`: valid files give no diagnostic, invalid files give
//! exactly the diagnostics of their snapshot. Each file's name begins with what it holds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::consent::{EntryEffect, ProgramEffect};
use super::environment::FixedEnvironment;
use super::node::ConfigNode;
use super::sandbox::SandboxValue;
use super::spec::{
    Configuration, Endpoint, FileRole, KindClaim, KindDescriptor, RecordSpec, Transport,
};
use super::typed::{Keys, Scalar, Texts, object};
use super::{LoadRequest, load};

#[derive(Deserialize, JsonSchema)]
#[schemars(transform = object::<Self>)]
#[expect(dead_code, reason = "only its keys matter")]
struct FunctionKeys {
    /// The module.
    module: Option<String>,
    /// The function.
    function: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(transform = object::<Self>)]
#[expect(dead_code, reason = "only its keys matter")]
struct CommandKeys {
    /// The program.
    command: Option<Texts>,
    /// How it gets arguments.
    input: Option<String>,
    /// What it prints.
    output: Option<String>,
    /// Where it works.
    cwd: Option<String>,
    /// Its variables.
    env: Option<BTreeMap<String, Scalar>>,
    /// Variables passed through.
    env_keys: Option<Texts>,
    /// Whether values may be options.
    allow_dash: Option<bool>,
    /// How much is kept.
    max_output: Option<Scalar>,
    /// What it may access.
    #[schemars(with = "Option<SandboxValue>")]
    sandbox: Option<ConfigNode>,
}

/// Two kinds, so that the tests need no provider.
pub(super) const KINDS: [KindDescriptor; 2] = [
    KindDescriptor {
        key: "builtin",
        aliases: &[],
        keys: const { &[Keys::of::<FunctionKeys>()] },
        expand: &[],
        claims: |entry: &ConfigNode, _| {
            let module = entry.get("module").and_then(ConfigNode::text);
            KindClaim::certain_if(module.is_some_and(|m| m.starts_with("builtin.")))
        },
        effects: |_, _| Vec::new(),
        code: None,
    },
    KindDescriptor {
        key: "command",
        aliases: &["shell_command"],
        keys: const { &[Keys::of::<CommandKeys>()] },
        expand: &["command", "cwd", "env"],
        claims: |entry: &ConfigNode, _| KindClaim::certain_if(entry.get("command").is_some()),
        effects: |entry, site| {
            let argv = entry.get("command").and_then(|n| n.as_texts().ok()).unwrap_or_default();
            vec![EntryEffect::Runs(ProgramEffect {
                argv,
                found_from: Some(site.base_dir.to_path_buf()),
                usual_cwd: site.cwd(),
                ..ProgramEffect::default()
            })]
        },
        code: None,
    },
];

fn directory(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/config").join(kind)
}

fn files(kind: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory(kind)).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "yaml" || e == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn load_one(path: &Path) -> Configuration {
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut request = LoadRequest::default();
    let list = if name.starts_with("tools-") { &mut request.tools } else { &mut request.servers };
    list.push(path.to_path_buf());
    let mut environment = FixedEnvironment {
        cwd: "/work".into(),
        root: Some("/root-of-test".into()),
        ..FixedEnvironment::default()
    };
    for (name, value) in [("HOME", "/home/me"), ("CODE_EXEC_AUTH_TOKEN", "t0ken-of-the-test")] {
        environment.vars.insert(name.to_owned(), value.to_owned());
    }
    load(&request, &KINDS, &environment)
}

fn shown(configuration: &Configuration, base: &Path) -> String {
    let base = format!("{}/", base.display());
    let mut out = String::new();
    for tool in &configuration.tools {
        let d = &tool.definition;
        writeln!(
            out,
            "tool {} kind={} speed={} safety={} timeout={:?} retries={} approval={} scope={} repeatable={} version={:?}\n  in  {}\n  out {:?}",
            d.name, tool.kind, d.speed.as_str(), d.safety.as_str(), d.timeout, d.retries,
            d.requires_approval, d.scope.as_str(), d.is_repeatable, d.version, d.input_schema,
            d.output_schema.as_ref().map(ToString::to_string)
        )
        .unwrap();
    }
    for server in &configuration.servers {
        let endpoint = match &server.endpoint {
            Endpoint::Stdio { command, args, env, env_keys, cwd } => format!(
                "{command} {args:?} env={:?} keys={env_keys:?} in {}",
                env.keys().collect::<Vec<_>>(),
                cwd.display()
            ),
            Endpoint::Http { url, socket, transport, headers, auth, .. } => {
                let over = socket.as_ref().map(|path| format!(" over {}", path.display()));
                let open = *transport == Transport::Auto;
                format!(
                    "{url}{}{} headers={:?} auth={auth:?}",
                    over.unwrap_or_default(),
                    if open { String::new() } else { format!(" {transport:?}") },
                    headers.iter().map(|(name, _)| name).collect::<Vec<_>>()
                )
            }
        };
        writeln!(
            out,
            "server {} {endpoint}\n  {:?} timeout={:?} exclude={:?} include={:?} roots={:?} weight={:?} dev={} retries={} approval={}",
            server.name, server.protocol, server.timeout, server.exclude, server.include,
            server.roots, server.routing_weight, server.is_dev, server.retries,
            server.requires_approval
        )
        .unwrap();
        for tool in &server.provides_tools {
            let (status, safety) = (tool.status.as_str(), tool.safety.as_str());
            writeln!(out, "  provides {} {status} {safety} {:?}", tool.name, tool.timeout).unwrap();
        }
    }
    for diagnostic in &configuration.diagnostics {
        let location = diagnostic
            .location
            .as_ref()
            .map_or_else(String::new, |p| format!("{}:{}:{}", p.file.display(), p.line, p.column));
        let entry = diagnostic.entry.as_deref().map_or_else(String::new, |e| format!("[{e}] "));
        write!(out, "{location}: {:?}: {entry}{}", diagnostic.severity, diagnostic.message)
            .unwrap();
        if let Some(hint) = &diagnostic.hint {
            write!(out, " ({hint})").unwrap();
        }
        out.push('\n');
    }
    for entry in &configuration.disabled {
        let role = if entry.role == FileRole::Tools { "tool" } else { "server" };
        writeln!(out, "disabled {role} {}: {}", entry.name, entry.diagnostic.message).unwrap();
    }
    let c = configuration;
    let mut setting = |name: &str, value: String| {
        if !value.is_empty() {
            writeln!(out, "{name} {value}").unwrap();
        }
    };
    for (name, profile) in &c.profiles {
        setting("profile", format!("{name} {profile:?}"));
    }
    for rule in &c.policy {
        setting("rule", format!("{} {:?}", rule.pattern, rule.action));
    }
    let plain = format!("{:?}", RecordSpec::default());
    for (name, record) in [("stats", &c.stats), ("audit", &c.audit), ("history", &c.history)] {
        setting(name, Some(format!("{record:?}")).filter(|r| *r != plain).unwrap_or_default());
    }
    for (name, path) in &c.scopes {
        setting("scope", format!("{name} {}", path.display()));
    }
    out.replace(&base, "").replace(base.trim_end_matches('/'), ".")
}

fn check(path: &Path, kind: &str, text: &str) {
    let stem = path.file_name().unwrap().to_str().unwrap();
    insta::with_settings!({
        snapshot_path => directory(kind),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!(stem, text) });
}

#[test]
fn right_files_give_no_problem() {
    for path in files("valid") {
        let configuration = load_one(&path);
        assert!(
            configuration.diagnostics.is_empty(),
            "{}: {:?}",
            path.display(),
            configuration.diagnostics
        );
        check(&path, "valid", &shown(&configuration, &directory("valid")));
    }
}

#[test]
fn wrong_files_give_the_problems_of_their_snapshot() {
    for path in files("invalid") {
        let configuration = load_one(&path);
        assert!(!configuration.diagnostics.is_empty(), "{}", path.display());
        let text = shown(&configuration, &directory("invalid"));
        for diagnostic in &configuration.diagnostics {
            let quoted = format!("{diagnostic:?}");
            for secret in ["hunter2", "ghp_0123", "sk-abcdefgh", "t0ken-of"] {
                assert!(!quoted.contains(secret), "{quoted}");
            }
        }
        check(&path, "invalid", &text);
    }
}
